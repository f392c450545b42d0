/* Modelled: the model, the machine and the trace that the modelled engine of a
 * job stands for. */
#include "roles/modelled.h"

#include "base/nearest.h"
#include "routing/trace.h"
#include "routing/worker_cost.h"

#include <stdlib.h>
#include <string.h>

/* Time of a token of one request alone, at most. */
#define MAX_TOKEN_S 1.0

struct akin_modelled {
    const akin_model_shape_t *shape;
    akin_machine_t machine;
    akin_trace_t *trace;
    const akin_trace_record_t *records;
    uint32_t n_records;
    akin_modelled_params_t params;
};

int akin_job_is_modelled(const akin_job_t *job)
{
    return strcmp(job->engine, akin_engine_modelled_ops.name) == 0;
}

static akin_status_t find_shape(const akin_job_t *job,
                                const akin_model_shape_t **shape_p,
                                akin_error_t *err)
{
    const char *names[64];
    uint32_t n = 0;
    *shape_p = akin_model_shape_find(job->modelled_model);
    if (*shape_p != NULL)
        return AKIN_OK;
    for (; n < 64 && akin_model_shape_at(n) != NULL; n++)
        names[n] = akin_model_shape_at(n)->name;
    const char *nearest = akin_nearest_name(job->modelled_model, names, n);
    return akin_error_set(err, AKIN_ERR_CONFIG,
                          "%s: modelled.model: there is no \"%s\"; did you "
                          "mean \"%s\"?",
                          job->modelled_model_origin, job->modelled_model,
                          nearest != NULL ? nearest : names[0]);
}

/* Sizes alone: the functions come with the trace. */
static akin_status_t set_sizes(const akin_job_t *job,
                               const akin_model_shape_t *shape,
                               akin_modelled_params_t *params,
                               akin_error_t *err)
{
    const uint32_t width = shape->n_kv_heads * shape->head_dim;
    const uint32_t kept = width / job->modelled_kv_scale /
                          AKIN_MODELLED_KV_UNIT * AKIN_MODELLED_KV_UNIT;
    if (kept == 0)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "%s: modelled.kv_scale is %u: of %u values per "
                              "token and layer nothing would be left; %u is "
                              "the most for %s",
                              job->modelled_kv_scale_origin,
                              job->modelled_kv_scale, width,
                              width / AKIN_MODELLED_KV_UNIT, shape->name);
    *params = (akin_modelled_params_t){
        .n_layers = shape->n_layers,
        .n_experts = shape->n_experts,
        .top_k = shape->top_k,
        .hidden = shape->hidden,
        .moe_intermediate = shape->moe_intermediate,
        .kv_width = kept,
        .slowdown = job->modelled_slowdown,
    };
    return AKIN_OK;
}

akin_status_t akin_job_model_read(const akin_job_t *job,
                                  akin_model_config_t *model, akin_error_t *err)
{
    const akin_model_shape_t *shape;
    akin_modelled_params_t params;
    akin_status_t status = akin_model_config_read(job->model_path, model, err);
    if (status != AKIN_OK || !akin_job_is_modelled(job))
        return status;
    status = find_shape(job, &shape, err);
    if (status == AKIN_OK)
        status = set_sizes(job, shape, &params, err);
    if (status == AKIN_OK)
        akin_modelled_apply(&params, model);
    return status;
}

/* A name picks a record, a position a row of it; a longer sequence begins
 * anew. */
static void routes(void *arg, uint64_t name, uint32_t position,
                   uint16_t *routes_out)
{
    const akin_modelled_t *m = arg;
    const uint32_t record = (uint32_t)(name % m->n_records);
    akin_trace_routes(m->trace, record, position % m->records[record].n_tokens,
                      1, routes_out);
}

static double seconds(void *arg, const akin_modelled_load_t *load)
{
    const akin_modelled_t *m = arg;
    const akin_cost_model_t cost = {m->shape, &m->machine};
    if (load->has_prompts)
        return akin_worker_cost_prefill(&cost, load->n_ranks, load->n_tokens,
                                        load->context_tokens);
    const akin_worker_step_t step = {
        .n_ranks = load->n_ranks,
        .batch = load->n_tokens,
        .context_tokens = load->context_tokens + load->n_tokens,
        .distinct = load->distinct,
        .busiest = load->busiest,
    };
    return akin_worker_cost_step(&cost, &step);
}

static akin_status_t find_machine(const akin_job_t *job,
                                  akin_machine_t *machine, akin_error_t *err)
{
    const akin_machine_t *known = akin_machine_find(job->modelled_machine);
    if (known != NULL) {
        *machine = *known;
        return AKIN_OK;
    }
    if (akin_machine_read_bench(job->modelled_machine, machine, err) == AKIN_OK)
        return AKIN_OK;
    return akin_error_prefix(err, AKIN_ERR_CONFIG,
                             "%s: modelled.machine is neither mi300x nor h200 "
                             "nor a measurement: ",
                             job->modelled_machine_origin);
}

/* Nothing ends a step before its time, so that a job with long ones could not
 * be stopped. */
static akin_status_t check_speed(const akin_job_t *job, akin_modelled_t *m,
                                 akin_error_t *err)
{
    const akin_modelled_load_t one = {
        .n_ranks = 1,
        .n_tokens = 1,
        .distinct = m->shape->n_layers * m->shape->top_k,
        .busiest = m->shape->n_layers * m->shape->top_k,
    };
    const double s = seconds(m, &one) * job->modelled_slowdown;
    if (s < MAX_TOKEN_S)
        return AKIN_OK;
    return akin_error_set(err, AKIN_ERR_CONFIG,
                          "%s: modelled.machine: a single token of %s would "
                          "take %.3g s there, with modelled.slowdown; %g s are "
                          "the most",
                          job->modelled_machine_origin, m->shape->name, s,
                          MAX_TOKEN_S);
}

static akin_status_t open_trace(const akin_job_t *job, akin_modelled_t *m,
                                akin_error_t *err)
{
    if (job->modelled_trace[0] == '\0')
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "modelled.trace: the modelled engine needs the "
                              "experts that tokens choose: a trace of %s, as "
                              "akin trace make --like %s writes",
                              m->shape->name, m->shape->name);
    akin_status_t status = akin_trace_open(job->modelled_trace, &m->trace, err);
    if (status != AKIN_OK)
        return akin_error_prefix(
            err, status == AKIN_ERR_NOMEM ? status : AKIN_ERR_CONFIG,
            "%s: modelled.trace: ", job->modelled_trace_origin);
    const akin_trace_shape_t *shape = akin_trace_shape(m->trace);
    if (shape->n_layers != m->shape->n_layers ||
        shape->n_experts != m->shape->n_experts ||
        shape->top_k != m->shape->top_k)
        return akin_error_set(
            err, AKIN_ERR_CONFIG,
            "%s: modelled.trace: %s has %u layers and %u of %u experts, %s has "
            "%u and %u of %u",
            job->modelled_trace_origin, job->modelled_trace, shape->n_layers,
            shape->top_k, shape->n_experts, m->shape->name, m->shape->n_layers,
            m->shape->top_k, m->shape->n_experts);
    m->records = akin_trace_records(m->trace, &m->n_records);
    return AKIN_OK;
}

akin_status_t akin_modelled_open(const akin_job_t *job,
                                 akin_modelled_t **modelled_p,
                                 akin_error_t *err)
{
    *modelled_p = NULL;
    akin_modelled_t *m = calloc(1, sizeof(*m));
    if (m == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    akin_status_t status = find_shape(job, &m->shape, err);
    if (status == AKIN_OK)
        status = set_sizes(job, m->shape, &m->params, err);
    if (status == AKIN_OK)
        status = find_machine(job, &m->machine, err);
    if (status == AKIN_OK)
        status = check_speed(job, m, err);
    if (status == AKIN_OK)
        status = open_trace(job, m, err);
    if (status != AKIN_OK) {
        akin_modelled_close(m);
        return status;
    }
    m->params.routes = routes;
    m->params.seconds = seconds;
    m->params.arg = m;
    *modelled_p = m;
    return AKIN_OK;
}

void akin_modelled_close(akin_modelled_t *modelled)
{
    if (modelled == NULL)
        return;
    akin_trace_close(modelled->trace);
    free(modelled);
}

const akin_modelled_params_t *
akin_modelled_engine_params(const akin_modelled_t *modelled)
{
    return &modelled->params;
}
