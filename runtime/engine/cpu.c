/* The cpu engine: loading, description, and cutting steps into passes. */
#include "engine/cpu_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MAX_ROWS 256u

/* Pages are this large or larger. */
#define PAGE_BYTES 4096u

static void destroy(akin_engine_t *engine)
{
    akini_cpu_engine_t *e = (akini_cpu_engine_t *)engine;
    akini_cpu_scratch_cleanup(&e->scratch, e->n_threads);
    akin_expert_step_destroy(e->experts);
    akin_team_destroy(e->team);
    free(e->inv_freq);
    free(e->norm_storage);
    free(e->norms);
    akin_model_close(e->model);
    free(e);
}

static const float *widen_norm(const akini_cpu_engine_t *e,
                               const akin_matrix_t *norm, float **storage)
{
    float *out = *storage;
    e->kernels->widen[norm->dtype](norm->data, out, norm->cols);
    *storage += norm->cols;
    return out;
}

static akin_status_t widen_norms(akini_cpu_engine_t *e)
{
    const akin_model_config_t *c = &e->model->config;
    size_t per_layer = 2 * (size_t)c->hidden_size + 2 * (size_t)c->head_dim;
    size_t n = per_layer * c->n_layers + c->hidden_size;
    e->norms = calloc(c->n_layers, sizeof(*e->norms));
    e->norm_storage = calloc(n, sizeof(float));
    if (e->norms == NULL || e->norm_storage == NULL)
        return AKIN_ERR_NOMEM;
    float *storage = e->norm_storage;
    for (uint32_t l = 0; l < c->n_layers; l++) {
        const akin_layer_t *layer = &e->model->layers[l];
        e->norms[l].input = widen_norm(e, &layer->input_norm, &storage);
        e->norms[l].post = widen_norm(e, &layer->post_norm, &storage);
        e->norms[l].q_norm = widen_norm(e, &layer->q_norm, &storage);
        e->norms[l].k_norm = widen_norm(e, &layer->k_norm, &storage);
    }
    e->final_norm = widen_norm(e, &e->model->final_norm, &storage);
    return AKIN_OK;
}

/* Frequencies as the reference implementations have them: float throughout. */
static akin_status_t fill_frequencies(akini_cpu_engine_t *e)
{
    const akin_model_config_t *c = &e->model->config;
    uint32_t half = c->head_dim / 2;
    e->inv_freq = calloc(half, sizeof(float));
    if (e->inv_freq == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t i = 0; i < half; i++)
        e->inv_freq[i] =
            (float)(1.0 / pow(c->rope_theta, 2.0 * i / (double)c->head_dim));
    return AKIN_OK;
}

static akin_status_t join_group(akini_cpu_engine_t *e, akin_ep_group_t *group,
                                const akin_expert_step_params_t *experts,
                                akin_error_t *err)
{
    const akin_placement_t *placement = akin_ep_group_placement(group);
    if (placement->n_layers != e->model->config.n_layers)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "engine: experts of %u layers are placed, the "
                              "model has %u",
                              (unsigned)placement->n_layers,
                              (unsigned)e->model->config.n_layers);
    e->group = group;
    return akin_ep_group_prepare(group, experts, err);
}

static akin_status_t load(const akin_engine_params_t *params,
                          akin_engine_t **engine_p, akin_error_t *err)
{
    *engine_p = NULL;
    const akin_kernels_t *kernels;
    const char *path = params->kernel != NULL ? params->kernel : "auto";
    akin_status_t status = akin_kernels_find(path, &kernels, err);
    if (status != AKIN_OK)
        return status;
    akini_cpu_engine_t *e = calloc(1, sizeof(*e));
    if (e == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "engine: out of memory");
    e->base.ops = &akin_engine_cpu_ops;
    e->kernels = kernels;
    e->n_threads =
        params->n_threads > 0 ? params->n_threads : akin_thread_usable_cores();
    e->max_rows = params->max_rows > 0 ? params->max_rows : DEFAULT_MAX_ROWS;
    status = akin_model_open(params->model_dir, &e->model, err);
    if (status != AKIN_OK)
        goto err_destroy;
    const akin_model_config_t *c = &e->model->config;
    akin_expert_step_params_t experts = {
        .kernels = kernels,
        .hidden = c->hidden_size,
        .intermediate = c->moe_intermediate_size,
        .n_experts = c->n_experts,
        .top_k = c->top_k,
        .max_rows = e->max_rows,
    };
    if (params->group != NULL) {
        status = join_group(e, params->group, &experts, err);
        if (status != AKIN_OK)
            goto err_destroy;
    }
    e->team = akin_team_create();
    status = e->team != NULL ? widen_norms(e) : AKIN_ERR_NOMEM;
    if (status == AKIN_OK)
        status = fill_frequencies(e);
    if (status == AKIN_OK && e->group == NULL)
        status = akin_expert_step_create(&experts, &e->experts);
    if (status == AKIN_OK)
        status =
            akini_cpu_scratch_init(&e->scratch, c, e->max_rows, e->n_threads);
    if (status != AKIN_OK) {
        (void)akin_error_set(err, status, "engine: out of memory for %u rows",
                             e->max_rows);
        goto err_destroy;
    }
    AKIN_LOG(ENGINE, INFO, "cpu engine: %s, kernel %s, %d threads",
             params->model_dir, kernels->name, e->n_threads);
    *engine_p = &e->base;
    return AKIN_OK;

err_destroy:
    destroy(&e->base);
    return status;
}

static void describe(const akin_engine_t *engine, akin_engine_info_t *info_p)
{
    const akini_cpu_engine_t *e = (const akini_cpu_engine_t *)engine;
    *info_p = (akin_engine_info_t){
        .name = "cpu",
        .kernels = e->kernels,
        .n_threads = e->n_threads,
        .model = &e->model->config,
    };
}

/* A group's ranks go through a step in lock-step: it is one pass, with rows or
 * without. */
static int fits_group(const akini_cpu_engine_t *e,
                      const akin_engine_span_t *spans, uint32_t n_spans)
{
    uint64_t n_rows = 0;
    for (uint32_t i = 0; i < n_spans; i++)
        n_rows += spans[i].n_tokens;
    return n_rows <= e->max_rows;
}

static akin_status_t step(akin_engine_t *engine, const akin_kv_view_t *view,
                          const akin_engine_span_t *spans, uint32_t n_spans,
                          akin_engine_report_t *report)
{
    akini_cpu_engine_t *e = (akini_cpu_engine_t *)engine;
    const akin_model_config_t *c = &e->model->config;
    const size_t route_size = (size_t)c->n_layers * c->top_k;
    uint16_t *n_distinct = report != NULL ? report->n_distinct : NULL;
    int64_t begin = akin_clock_now_ns();
    uint32_t n_rows = 0, total = 0;
    if (e->group != NULL && !fits_group(e, spans, n_spans))
        return AKIN_ERR_RANGE;
    e->group_status = AKIN_OK;
    if (n_distinct != NULL)
        memset(n_distinct, 0, c->n_layers * sizeof(*n_distinct));
    for (uint32_t i = 0; i < n_spans; i++) {
        const akin_engine_span_t *span = &spans[i];
        for (uint32_t t = 0; t < span->n_tokens; t++) {
            int last = t + 1 == span->n_tokens;
            e->scratch.rows[n_rows++] = (akini_cpu_row_t){
                .token = span->tokens[t],
                .position = span->position + t,
                .slots = span->slots,
                .logits = last ? span->logits : NULL,
                .routes =
                    span->routes != NULL ? span->routes + t * route_size : NULL,
            };
            total++;
            if (n_rows == e->max_rows || (last && i + 1 == n_spans)) {
                akini_cpu_pass(e, view, n_rows, n_distinct);
                n_rows = 0;
            }
        }
    }
    if (e->group != NULL && total == 0)
        akini_cpu_pass(e, view, 0, n_distinct);
    if (e->group_status != AKIN_OK)
        return e->group_status;
    if (report != NULL) {
        report->ns = akin_clock_now_ns() - begin;
        report->n_rows = total;
    }
    return AKIN_OK;
}

/* One byte of each page; the sum keeps the compiler from leaving it out. */
static unsigned touch(const akin_matrix_t *matrix)
{
    const volatile unsigned char *bytes = matrix->data;
    const size_t n = akin_matrix_bytes(matrix);
    unsigned sum = 0;
    for (size_t i = 0; i < n; i += PAGE_BYTES)
        sum += bytes[i];
    return n > 0 ? sum + bytes[n - 1] : sum;
}

static void touch_expert(const akin_engine_t *engine, uint32_t layer,
                         uint32_t expert)
{
    const akini_cpu_engine_t *e = (const akini_cpu_engine_t *)engine;
    const akin_expert_t *w = &e->model->layers[layer].experts[expert];
    (void)(touch(&w->gate) + touch(&w->up) + touch(&w->down));
}

const akin_engine_ops_t akin_engine_cpu_ops = {
    .name = "cpu",
    .load = load,
    .destroy = destroy,
    .describe = describe,
    .step = step,
    .touch_expert = touch_expert,
};
