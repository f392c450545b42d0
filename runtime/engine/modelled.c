/* The modelled engine: no weights; a step lasts as long as a model of a machine
 * says, and gates choose what a record of another model's gates says. What a
 * sequence goes on with follows from its tokens by way of its KV blocks, so
 * that a wrong block shows in the text. */
#define _POSIX_C_SOURCE 200809L /* clock_nanosleep */
#include "engine/engine.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/modelled_kv.h"
#include "ep/placement_choice.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Tokens of which one is likely to come next. */
#define N_CANDIDATES 64u

/* The end of a text is up to the request: ends are never chosen. */
#define NEVER (-1e30f)

/* A step of decode that begins within this part of its own time and of the last
 * one's after that one's end is counted from there: what came between is in the
 * model's time per step. */
#define GAP_PART 4

/* A step that is longer has this length: nothing ends it before its time. */
#define MAX_STEP_S 10.0

/* Late steps that are worth a word: more than this part of all. */
#define LATE_PART 20

typedef struct modelled_engine {
    akin_engine_t base;
    akin_model_config_t config;
    akin_modelled_params_t params;
    const akin_kernels_t *kernels;
    akin_ep_group_t *group; /* NULL: all experts are here */
    uint32_t max_rows;
    uint32_t n_words;        /* of a layer's set of experts */
    uint64_t *step_words;    /* [HEAD_WORDS + n_layers * n_words] */
    akin_ep_piece_t *pieces; /* [n_ranks] */
    uint8_t *rank_of;        /* [n_experts] */
    uint16_t *routes;        /* [n_layers][top_k] of a token */
    int64_t end_ns;          /* when the last step was to end */
    int64_t last_ns;         /* its time */
    uint64_t n_steps;
    uint64_t n_late; /* that took longer than the model says */
} modelled_engine_t;

/* What a rank tells of its step before the sets of experts. */
enum { HEAD_TOKENS, HEAD_PROMPTS, HEAD_CONTEXT, HEAD_WORDS };

uint64_t akin_modelled_name(uint64_t name, uint32_t token)
{
    return akini_modelled_mix(name ^ akini_modelled_mix(token + 1));
}

void akin_modelled_apply(const akin_modelled_params_t *params,
                         akin_model_config_t *config)
{
    config->n_layers = params->n_layers;
    config->n_experts = params->n_experts;
    config->top_k = params->top_k;
    config->hidden_size = params->hidden;
    config->moe_intermediate_size = params->moe_intermediate;
    config->n_kv_heads = 1;
    config->head_dim = params->kv_width;
    config->max_positions = AKIN_MODELLED_MAX_POSITIONS;
}

static void destroy(akin_engine_t *engine)
{
    modelled_engine_t *e = (modelled_engine_t *)engine;
    if (e->n_late > e->n_steps / LATE_PART)
        AKIN_LOG(ENGINE, WARN,
                 "%llu of %llu steps took longer than modelled: this machine "
                 "is too busy; raise modelled.slowdown above %g",
                 (unsigned long long)e->n_late, (unsigned long long)e->n_steps,
                 e->params.slowdown);
    free(e->step_words);
    free(e->pieces);
    free(e->rank_of);
    free(e->routes);
    free(e);
}

static akin_status_t check(const modelled_engine_t *e, akin_error_t *err)
{
    const akin_modelled_params_t *p = &e->params;
    if (p->n_layers == 0 || p->top_k == 0 || p->top_k > p->n_experts ||
        p->kv_width == 0 || p->kv_width % AKIN_MODELLED_KV_UNIT != 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "engine: %u layers, %u of %u experts and KV of "
                              "%u values make no model",
                              p->n_layers, p->top_k, p->n_experts, p->kv_width);
    if (e->group == NULL)
        return AKIN_OK;
    const akin_placement_t *placement = akin_ep_group_placement(e->group);
    if (placement->n_layers != p->n_layers ||
        placement->n_experts != p->n_experts)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "engine: %u layers of %u experts are placed, the "
                              "model has %u of %u",
                              placement->n_layers, placement->n_experts,
                              p->n_layers, p->n_experts);
    return AKIN_OK;
}

static akin_status_t allocate(modelled_engine_t *e, akin_error_t *err)
{
    const akin_modelled_params_t *p = &e->params;
    const size_t n_ranks =
        e->group != NULL ? akin_ep_group_placement(e->group)->n_ranks : 1;
    e->n_words = (p->n_experts + 63) / 64;
    e->step_words = calloc(HEAD_WORDS + (size_t)p->n_layers * e->n_words,
                           sizeof(*e->step_words));
    e->pieces = calloc(n_ranks, sizeof(*e->pieces));
    e->rank_of = calloc(p->n_experts, sizeof(*e->rank_of));
    e->routes = calloc((size_t)p->n_layers * p->top_k, sizeof(*e->routes));
    return e->step_words != NULL && e->pieces != NULL && e->rank_of != NULL &&
                   e->routes != NULL
               ? AKIN_OK
               : akin_error_set(err, AKIN_ERR_NOMEM, "engine: out of memory");
}

static akin_status_t load(const akin_engine_params_t *params,
                          akin_engine_t **engine_p, akin_error_t *err)
{
    *engine_p = NULL;
    if (params->modelled == NULL)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "engine: nothing says what is modelled");
    modelled_engine_t *e = calloc(1, sizeof(*e));
    if (e == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "engine: out of memory");
    e->base.ops = &akin_engine_modelled_ops;
    e->params = *params->modelled;
    e->group = params->group;
    e->max_rows = params->max_rows;
    akin_status_t status = akin_kernels_find(
        params->kernel != NULL ? params->kernel : "auto", &e->kernels, err);
    if (status == AKIN_OK)
        status = akin_model_config_read(params->model_dir, &e->config, err);
    if (status == AKIN_OK)
        status = check(e, err);
    if (status == AKIN_OK)
        status = allocate(e, err);
    if (status != AKIN_OK) {
        destroy(&e->base);
        return status;
    }
    akin_modelled_apply(&e->params, &e->config);
    AKIN_LOG(ENGINE, INFO,
             "modelled engine: %u layers of %u experts, %u per token, KV of "
             "%u values per token and layer",
             e->params.n_layers, e->params.n_experts, e->params.top_k,
             2 * e->params.kv_width);
    *engine_p = &e->base;
    return AKIN_OK;
}

static void describe(const akin_engine_t *engine, akin_engine_info_t *info_p)
{
    const modelled_engine_t *e = (const modelled_engine_t *)engine;
    *info_p = (akin_engine_info_t){
        .name = "modelled",
        .kernels = e->kernels,
        .n_threads = 1,
        .model = &e->config,
    };
}

/* The first token of a block resets its histogram, later ones add. */
static void record_routes(modelled_engine_t *e, const akin_kv_view_t *view,
                          const uint32_t *slots, uint32_t position)
{
    const akin_modelled_params_t *p = &e->params;
    const uint32_t block_tokens = view->layout->shape.block_tokens;
    unsigned char *slot = akin_kv_slot(view, slots[position / block_tokens]);
    uint8_t *counts = akin_kv_sidecar(view->layout, slot);
    uint64_t *set = e->step_words + HEAD_WORDS;
    const uint16_t *route = e->routes;
    if (position % block_tokens == 0)
        memset(counts, 0, (size_t)p->n_layers * p->n_experts);
    for (uint32_t l = 0; l < p->n_layers; l++) {
        for (uint32_t j = 0; j < p->top_k; j++, route++) {
            counts[*route]++;
            set[*route / 64] |= UINT64_C(1) << *route % 64;
        }
        counts += p->n_experts;
        set += e->n_words;
    }
}

/* What comes next follows from the name of the sequence and from the KV of one
 * earlier token, which the name picks. */
static void write_logits(const modelled_engine_t *e, const akin_kv_view_t *view,
                         const uint32_t *slots, uint32_t position,
                         uint64_t name, float *logits)
{
    const akin_model_config_t *c = &e->config;
    const uint32_t vocab = c->vocab_size;
    const uint32_t earlier = (uint32_t)(name % ((uint64_t)position + 1));
    uint64_t at =
        akini_modelled_mix(name ^ akini_modelled_kv_read(view, slots, earlier));
    memset(logits, 0, vocab * sizeof(*logits));
    for (uint32_t i = 0; i < N_CANDIDATES; i++) {
        at = akini_modelled_mix(at + AKIN_MODELLED_NO_NAME);
        /* 1 to 9, of 24 bits. */
        logits[at % vocab] = 1.0f + (float)(at >> 40) * 0x1p-21f;
    }
    for (uint32_t i = 0; i < c->n_eos_ids; i++)
        if (c->eos_ids[i] < vocab)
            logits[c->eos_ids[i]] = NEVER;
}

static void run_span(modelled_engine_t *e, const akin_kv_view_t *view,
                     const akin_engine_span_t *span)
{
    const akin_modelled_params_t *p = &e->params;
    const size_t route_size = (size_t)p->n_layers * p->top_k;
    const uint32_t named = AKIN_MODELLED_NAME_TOKENS - 1;
    uint64_t name = AKIN_MODELLED_NO_NAME;
    if (span->position > 0)
        name = akini_modelled_kv_name(view, span->slots, span->position - 1);
    for (uint32_t t = 0; t < span->n_tokens; t++) {
        const uint32_t position = span->position + t;
        name = akin_modelled_name(name, span->tokens[t]);
        akini_modelled_kv_write(view, span->slots, position, name);
        p->routes(p->arg,
                  position > named
                      ? akini_modelled_kv_name(view, span->slots, named)
                      : name,
                  position, e->routes);
        record_routes(e, view, span->slots, position);
        if (span->routes != NULL)
            memcpy(span->routes + t * route_size, e->routes,
                   route_size * sizeof(*e->routes));
    }
    if (span->logits != NULL)
        write_logits(e, view, span->slots, span->position + span->n_tokens - 1,
                     name, span->logits);
}

/* Experts beyond the last one, in a set that another rank sent. */
static int is_malformed(const modelled_engine_t *e, const uint64_t *words)
{
    const uint32_t n_left = e->params.n_experts % 64;
    const uint64_t *set = words + HEAD_WORDS;
    uint64_t beyond = 0;
    for (uint32_t l = 0; n_left != 0 && l < e->params.n_layers; l++)
        beyond |= set[(size_t)(l + 1) * e->n_words - 1] >> n_left;
    return beyond != 0;
}

/* Add the other ranks' parts of the step to the own. */
static akin_status_t gather(modelled_engine_t *e, uint32_t n_ranks)
{
    const size_t n = HEAD_WORDS + (size_t)e->params.n_layers * e->n_words;
    const akin_status_t status = akin_ep_group_share(
        e->group, e->step_words, n * sizeof(*e->step_words), e->pieces);
    for (uint32_t r = 0; status == AKIN_OK && r < n_ranks; r++) {
        const uint64_t *words = e->pieces[r].data;
        if (words == e->step_words)
            continue;
        if (is_malformed(e, words))
            return AKIN_ERR_FORMAT;
        for (size_t i = 0; i < HEAD_WORDS; i++)
            e->step_words[i] += words[i];
        for (size_t i = HEAD_WORDS; i < n; i++)
            e->step_words[i] |= words[i];
    }
    return status;
}

/* Distinct experts of all ranks, of the busiest one and of this one. */
static void count_experts(modelled_engine_t *e, akin_modelled_load_t *load,
                          uint16_t *n_distinct)
{
    const uint64_t *set = e->step_words + HEAD_WORDS;
    uint32_t loads[AKIN_PLACEMENT_MAX_RANKS];
    for (uint32_t l = 0; l < e->params.n_layers; l++, set += e->n_words) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < e->n_words; i++)
            n += (uint32_t)__builtin_popcountll(set[i]);
        load->distinct += n;
        if (e->group != NULL) {
            load->busiest += akin_placement_choose(
                akin_placement_layer(akin_ep_group_placement(e->group), l), set,
                e->params.n_experts, load->n_ranks, e->rank_of, loads);
            n = loads[akin_ep_group_rank(e->group)];
        } else {
            load->busiest += n;
        }
        if (n_distinct != NULL)
            n_distinct[l] = (uint16_t)n;
    }
}

/* When a step of decode began, as far as its time goes. */
static int64_t count_from(const modelled_engine_t *e, int64_t begin_ns,
                          int64_t step_ns)
{
    const int64_t shorter_ns = step_ns < e->last_ns ? step_ns : e->last_ns;
    return begin_ns - e->end_ns <= shorter_ns / GAP_PART ? e->end_ns : begin_ns;
}

/* In time, whatever the model says. */
static int64_t find_step_ns(const modelled_engine_t *e, double seconds)
{
    const double s = seconds * e->params.slowdown;
    return s > 0.0 ? (int64_t)(fmin(s, MAX_STEP_S) * (double)AKIN_NS_PER_S) : 0;
}

static void wait_for_end(modelled_engine_t *e, int64_t begin_ns,
                         int64_t step_ns)
{
    const int64_t now_ns = akin_clock_now_ns();
    e->last_ns = step_ns;
    e->end_ns = begin_ns + step_ns;
    e->n_steps++;
    if (e->end_ns <= now_ns) {
        e->n_late += e->end_ns < now_ns;
        e->end_ns = now_ns;
        return;
    }
    const struct timespec until = {
        .tv_sec = (time_t)(e->end_ns / AKIN_NS_PER_S),
        .tv_nsec = (long)(e->end_ns % AKIN_NS_PER_S),
    };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) ==
           EINTR)
        continue;
}

static void sum_spans(modelled_engine_t *e, const akin_engine_span_t *spans,
                      uint32_t n_spans)
{
    uint64_t *head = e->step_words;
    for (uint32_t i = 0; i < n_spans; i++) {
        head[HEAD_TOKENS] += spans[i].n_tokens;
        head[HEAD_PROMPTS] += spans[i].n_tokens > 1;
        head[HEAD_CONTEXT] += (uint64_t)spans[i].position * spans[i].n_tokens;
    }
}

static akin_status_t step(akin_engine_t *engine, const akin_kv_view_t *view,
                          const akin_engine_span_t *spans, uint32_t n_spans,
                          akin_engine_report_t *report)
{
    modelled_engine_t *e = (modelled_engine_t *)engine;
    const uint32_t n_ranks =
        e->group != NULL ? akin_ep_group_placement(e->group)->n_ranks : 1;
    int64_t begin = akin_clock_now_ns();
    memset(e->step_words, 0,
           (HEAD_WORDS + (size_t)e->params.n_layers * e->n_words) *
               sizeof(*e->step_words));
    sum_spans(e, spans, n_spans);
    const uint64_t n_own = e->step_words[HEAD_TOKENS];
    if (e->group != NULL && e->max_rows > 0 && n_own > e->max_rows)
        return AKIN_ERR_RANGE;
    for (uint32_t i = 0; i < n_spans; i++)
        run_span(e, view, &spans[i]);
    akin_status_t status = e->group != NULL ? gather(e, n_ranks) : AKIN_OK;
    if (status != AKIN_OK)
        return status;
    akin_modelled_load_t sum = {
        .n_ranks = n_ranks,
        .n_tokens = (uint32_t)e->step_words[HEAD_TOKENS],
        .has_prompts = e->step_words[HEAD_PROMPTS] > 0,
        .context_tokens = e->step_words[HEAD_CONTEXT],
    };
    if (sum.has_prompts)
        sum.context_tokens /= sum.n_tokens;
    count_experts(e, &sum, report != NULL ? report->n_distinct : NULL);
    const int64_t step_ns =
        find_step_ns(e, e->params.seconds(e->params.arg, &sum));
    if (!sum.has_prompts)
        begin = count_from(e, begin, step_ns);
    wait_for_end(e, begin, step_ns);
    if (report != NULL) {
        report->ns = e->end_ns - begin;
        report->n_rows = (uint32_t)n_own;
    }
    return AKIN_OK;
}

const akin_engine_ops_t akin_engine_modelled_ops = {
    .name = "modelled",
    .load = load,
    .destroy = destroy,
    .describe = describe,
    .step = step,
};
