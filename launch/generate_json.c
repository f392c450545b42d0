/* generate: the object of `--json`. */
#include "launch/generate.h"

#include <jansson.h>

static json_t *ids(const uint32_t *values, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(array, json_integer(values[i]));
    return array;
}

static json_t *top(const akin_generate_result_t *r)
{
    json_t *positions = json_array();
    for (size_t i = 0; i < r->n_tokens; i++) {
        json_t *best = json_array();
        for (uint32_t j = 0; j < r->n_top; j++) {
            const akin_candidate_t *c = &r->top[i * AKIN_GENERATE_TOP + j];
            (void)json_array_append_new(
                best, json_pack("[i, f]", (int)c->id, (double)c->logit));
        }
        (void)json_array_append_new(positions, best);
    }
    return positions;
}

static json_t *counts(const akin_generate_result_t *r)
{
    json_t *layers = json_array();
    for (uint32_t l = 0; l < r->n_layers; l++) {
        json_t *experts = json_array();
        for (uint32_t e = 0; e < r->n_experts; e++)
            (void)json_array_append_new(
                experts, json_integer(r->counts[l * r->n_experts + e]));
        (void)json_array_append_new(layers, experts);
    }
    return layers;
}

static double ms(int64_t ns)
{
    return (double)ns / 1e6;
}

json_t *akin_generate_result_json(const akin_generate_result_t *r)
{
    return json_pack(
        "{s:o, s:o, s:s%, s:s, s:o, s:o, s:{s:f, s:f, s:f}}", "prompt_tokens",
        ids(r->prompt, r->n_prompt), "tokens", ids(r->tokens, r->n_tokens),
        "text", r->text != NULL ? r->text : "", r->text_bytes, "finish_reason",
        r->finish_reason, "top", top(r), "counts", counts(r), "timings",
        "load_ms", ms(r->load_ns), "prefill_ms", ms(r->prefill_ns), "decode_ms",
        ms(r->decode_ns));
}
