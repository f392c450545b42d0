/* Replay set: the requests of a trace, as a replay of decode steps needs
 * them. */
#include "routing/replay_set.h"

#include <stdlib.h>
#include <string.h>

/* Rows read from the trace at a time. */
#define CHUNK_ROWS 64u

typedef struct sizes {
    uint32_t n_requests;
    uint32_t n_short;
    uint64_t n_decode; /* rows */
} sizes_t;

static uint32_t prompt_of(const akin_trace_record_t *record,
                          uint32_t prompt_tokens)
{
    return record->n_prompt != 0 ? record->n_prompt : prompt_tokens;
}

/* Is the record long enough to have a prompt and a decode row? */
static int is_long_enough(const akin_trace_record_t *record,
                          uint32_t prompt_tokens, uint32_t min_tokens)
{
    return record->n_tokens >= min_tokens &&
           record->n_tokens > prompt_of(record, prompt_tokens);
}

static akin_status_t measure(const akin_trace_t *trace, uint32_t prompt_tokens,
                             uint32_t min_tokens, sizes_t *sizes,
                             akin_error_t *err)
{
    uint32_t n;
    const akin_trace_record_t *records = akin_trace_records(trace, &n);
    *sizes = (sizes_t){0};
    for (uint32_t i = 0; i < n; i++) {
        if (prompt_of(&records[i], prompt_tokens) == 0)
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "the trace does not say which rows of record "
                                  "\"%.120s\" are its prompt's; say how many "
                                  "stand in for it with --prompt-tokens",
                                  records[i].id);
        if (!is_long_enough(&records[i], prompt_tokens, min_tokens)) {
            sizes->n_short++;
            continue;
        }
        sizes->n_requests++;
        sizes->n_decode +=
            records[i].n_tokens - prompt_of(&records[i], prompt_tokens);
    }
    if (sizes->n_requests == 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "of %u records none has %u rows or more and "
                              "some of them after the prompt's: ask for fewer "
                              "rows, or record longer answers",
                              n, min_tokens > 1 ? min_tokens : 1);
    return AKIN_OK;
}

static void fill_active(const akin_trace_t *trace, uint32_t record,
                        uint32_t first, uint32_t n, uint32_t n_words,
                        uint16_t *routes, uint64_t *active)
{
    const akin_trace_shape_t *shape = akin_trace_shape(trace);
    const uint32_t n_layer_words = n_words / shape->n_layers;
    for (uint32_t from = 0; from < n; from += CHUNK_ROWS) {
        uint32_t rows = n - from < CHUNK_ROWS ? n - from : CHUNK_ROWS;
        akin_trace_routes(trace, record, first + from, rows, routes);
        const uint16_t *next = routes;
        for (uint32_t row = 0; row < rows; row++) {
            uint64_t *words = active + (size_t)(from + row) * n_words;
            for (uint32_t l = 0; l < shape->n_layers; l++)
                for (uint32_t k = 0; k < shape->top_k; k++) {
                    uint32_t expert = *next++;
                    words[l * n_layer_words + expert / 64] |= UINT64_C(1)
                                                              << expert % 64;
                }
        }
    }
}

akin_status_t akin_replay_set_create(const akin_trace_t *trace,
                                     uint32_t prompt_tokens,
                                     uint32_t min_tokens,
                                     akin_replay_set_t **set_p,
                                     akin_error_t *err)
{
    *set_p = NULL;
    sizes_t sizes;
    akin_status_t status =
        measure(trace, prompt_tokens, min_tokens, &sizes, err);
    if (status != AKIN_OK)
        return status;
    const akin_trace_shape_t *shape = akin_trace_shape(trace);
    const size_t cells = (size_t)shape->n_layers * shape->n_experts;
    const uint32_t n_layer_words = (shape->n_experts + 63) / 64;
    const uint32_t n_words = shape->n_layers * n_layer_words;
    const size_t active_bytes = sizes.n_decode * n_words * sizeof(uint64_t);
    const size_t count_bytes = 2 * cells * sizeof(uint16_t);

    akin_replay_set_t *set = calloc(1, sizeof(*set));
    akin_replay_request_t *requests =
        calloc(sizes.n_requests, sizeof(*requests));
    char *memory = calloc(1, active_bytes + sizes.n_requests * count_bytes);
    uint16_t *routes = malloc((size_t)CHUNK_ROWS * shape->n_layers *
                              shape->top_k * sizeof(*routes));
    if (set == NULL || requests == NULL || memory == NULL || routes == NULL)
        goto err_nomem;
    *set = (akin_replay_set_t){
        .shape = *shape,
        .n_layer_words = n_layer_words,
        .n_words = n_words,
        .n_requests = sizes.n_requests,
        .requests = requests,
        .n_short = sizes.n_short,
        .memory = memory,
    };
    uint64_t *active = (uint64_t *)(void *)memory;
    uint16_t *counts = (uint16_t *)(void *)(memory + active_bytes);
    uint32_t n;
    const akin_trace_record_t *records = akin_trace_records(trace, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (!is_long_enough(&records[i], prompt_tokens, min_tokens))
            continue;
        const uint32_t n_prompt = prompt_of(&records[i], prompt_tokens);
        const uint32_t n_decode = records[i].n_tokens - n_prompt;
        set->n_stand_in += records[i].n_prompt == 0;
        akin_trace_count(trace, i, 0, n_prompt, counts);
        akin_trace_count(trace, i, n_prompt, n_decode, counts + cells);
        fill_active(trace, i, n_prompt, n_decode, n_words, routes, active);
        *requests++ = (akin_replay_request_t){
            .prompt_counts = counts,
            .decode_counts = counts + cells,
            .active = active,
            .n_prompt = n_prompt,
            .n_decode = n_decode,
            .record = i,
            .domain = records[i].domain,
            .arrival_s = records[i].arrival_s,
        };
        active += (size_t)n_decode * n_words;
        counts += 2 * cells;
    }
    free(routes);
    *set_p = set;
    return AKIN_OK;

err_nomem:
    free(routes);
    free(memory);
    free(requests);
    free(set);
    return akin_error_set(err, AKIN_ERR_NOMEM,
                          "out of memory for the routes of %u requests",
                          sizes.n_requests);
}

void akin_replay_set_destroy(akin_replay_set_t *set)
{
    if (set == NULL)
        return;
    free(set->requests);
    free(set->memory);
    free(set);
}
