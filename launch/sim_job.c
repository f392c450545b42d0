/* Sim job: from a config to the parameters of the runs. */
#define _POSIX_C_SOURCE 200809L /* strdup, strtok_r */
#include "launch/sim.h"

#include "base/nearest.h"
#include "routing/replay_placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static akin_status_t find_model(akin_sim_job_t *job, akin_error_t *err)
{
    const char *name = akin_config_string(job->config, "model");
    const akin_model_shape_t *shape = akin_model_shape_find(name);
    const char *names[64];
    uint32_t n = 0;
    for (; n < 64 && akin_model_shape_at(n) != NULL; n++)
        names[n] = akin_model_shape_at(n)->name;
    const char *nearest = akin_nearest_name(name, names, n);
    if (shape == NULL)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "model: there is no \"%s\"; did you mean \"%s\"?",
                              name, nearest != NULL ? nearest : names[0]);
    job->shape = *shape;
    return AKIN_OK;
}

static akin_status_t find_machine(akin_sim_job_t *job, akin_error_t *err)
{
    const char *name = akin_config_string(job->config, "machine");
    const akin_machine_t *machine = akin_machine_find(name);
    if (machine == NULL) {
        const akin_status_t status =
            akin_machine_read_bench(name, &job->machine, err);
        return status == AKIN_OK
                   ? status
                   : akin_error_prefix(err, status,
                                       "machine: neither mi300x nor h200 nor a "
                                       "measurement: ");
    }
    job->machine = *machine;
    return AKIN_OK;
}

/* A trace that --set names takes the place of the requests of the file, so that
 * one file serves both. What is set beside it would be ignored; so would a
 * common beginning of prompts, which are not the trace's. */
static akin_status_t check_trace_alone(const akin_config_t *c,
                                       akin_error_t *err)
{
    const char *trace = akin_config_origin(c, "routes.trace");
    for (size_t i = 0; i < akin_sim_n_rows; i++) {
        const char *key = akin_sim_rows[i].key;
        const char *origin = akin_config_origin(c, key);
        if (strncmp(key, "workload.", strlen("workload.")) != 0 ||
            strstr(key, "shares") != NULL || strcmp(origin, "default") == 0)
            continue;
        if (strcmp(origin, "--set") == 0 || strcmp(trace, "--set") != 0)
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "%s: not together with routes.trace, whose "
                                  "requests are as they are: set one of them",
                                  key);
    }
    if (akin_config_int(c, "workload.shared_prefix_tokens") > 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "workload.shared_prefix_tokens: requests of "
                              "routes.trace share none: leave it at 0");
    return AKIN_OK;
}

static akin_status_t make_generator(akin_sim_job_t *job, akin_error_t *err)
{
    const akin_config_t *c = job->config;
    const char *trace = akin_config_string(c, "routes.trace");
    const char *name = akin_config_string(c, "workload.kind");
    const akin_route_workload_t *workload = akin_route_workload_find(name);
    if (trace[0] != '\0') {
        job->workload.name = trace;
        return check_trace_alone(c, err);
    }
    if (workload == NULL)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "workload.kind: there is no \"%s\"; task and "
                              "language are possible",
                              name);
    job->workload = *workload;
    const akin_route_generator_params_t params = {
        .n_layers = job->shape.n_layers,
        .n_experts = job->shape.n_experts,
        .top_k = job->shape.top_k,
        .workload = &job->workload,
        .seed = (uint64_t)akin_config_int(c, "workload.seed"),
        .prompt_tokens = akin_config_float(c, "workload.prompt_tokens"),
        .output_tokens = akin_config_float(c, "workload.output_tokens"),
        .prompt_spread = akin_config_float(c, "workload.prompt_spread"),
        .output_spread = akin_config_float(c, "workload.output_spread"),
    };
    return akin_route_generator_create(&params, &job->generator, err);
}

static akin_status_t add_policy(akin_sim_job_t *job, const char *name,
                                akin_error_t *err)
{
    size_t n = 0;
    int is_known = 0;
    for (; akin_policy_names[n] != NULL; n++)
        is_known |= strcmp(akin_policy_names[n], name) == 0;
    const char *nearest = akin_nearest_name(name, akin_policy_names, n);
    if (!is_known)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "routing.policies: there is no \"%s\"; did you "
                              "mean \"%s\"?",
                              name, nearest != NULL ? nearest : "jsq");
    if (job->n_cases == AKIN_SIM_MAX_CASES)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "routing.policies: more than %u",
                              AKIN_SIM_MAX_CASES);
    job->policies[job->n_cases++] = name;
    return AKIN_OK;
}

static akin_status_t split_policies(akin_sim_job_t *job, akin_error_t *err)
{
    akin_status_t status = AKIN_OK;
    char *rest = NULL;
    job->names = strdup(akin_config_string(job->config, "routing.policies"));
    if (job->names == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    for (char *name = strtok_r(job->names, ", ", &rest);
         name != NULL && status == AKIN_OK; name = strtok_r(NULL, ", ", &rest))
        status = add_policy(job, name, err);
    if (status == AKIN_OK && job->n_cases == 0)
        status = akin_error_set(err, AKIN_ERR_INVALID,
                                "routing.policies: names none");
    return status;
}

static uint32_t count_of(const akin_sim_job_t *job, const char *key)
{
    return (uint32_t)akin_config_int(job->config, key);
}

/* Numbers with commas between them, one for each domain. */
static akin_status_t parse_shares(const akin_sim_job_t *job, const char *key,
                                  double *shares, const double **shares_p,
                                  akin_error_t *err)
{
    const char *at = akin_config_string(job->config, key);
    double sum = 0.0;
    uint32_t n = 0;
    if (at[0] == '\0')
        return AKIN_OK;
    if (job->generator == NULL)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: the mix is that of routes.trace", key);
    for (; n < job->workload.n_domains; n++) {
        char *end;
        shares[n] = strtod(at, &end);
        if (end == at || !(shares[n] >= 0.0 && shares[n] <= 1e6) ||
            (*end != ',' && *end != '\0'))
            break;
        sum += shares[n];
        at = *end == ',' ? end + 1 : end;
    }
    if (n < job->workload.n_domains || *at != '\0' || !(sum > 0.0))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: %u numbers from 0 on are needed, not all 0, "
                              "with commas between them",
                              key, job->workload.n_domains);
    for (uint32_t d = 0; d < n; d++)
        shares[d] /= sum;
    *shares_p = shares;
    return AKIN_OK;
}

static void set_params(akin_sim_job_t *job)
{
    const akin_config_t *c = job->config;
    job->params = (akin_sim_params_t){
        .cost = {&job->shape, &job->machine},
        .tau = akin_config_float(c, "routing.tau"),
        .pull = akin_config_float(c, "routing.pull"),
        .n_prefill = count_of(job, "roles.prefill"),
        .n_decode = count_of(job, "roles.decode"),
        .n_ranks = count_of(job, "roles.ep"),
        .chunk_tokens = count_of(job, "prefill.chunk_tokens"),
        .cache_tokens = (uint64_t)akin_config_int(c, "prefill.cache_tokens"),
        .prefill_router = akin_config_string(c, "routing.prefill")[0] == 'p'
                              ? AKIN_SIM_PREFIX_HASH
                              : AKIN_SIM_LEAST_LOADED,
        .max_batch = count_of(job, "decode.max_batch"),
        .kv_tokens = (uint64_t)akin_config_int(c, "decode.kv_tokens"),
        .rate = akin_config_float(c, "requests.rate"),
        .in_flight = count_of(job, "requests.in_flight"),
        .n_warmup = count_of(job, "requests.warmup"),
        .n_measured = count_of(job, "requests.measured"),
        .n_total = (uint64_t)akin_config_int(c, "requests.total"),
        .seed = (uint64_t)akin_config_int(c, "seed"),
    };
    if (job->params.in_flight > 0)
        job->params.arrivals = AKIN_SIM_CLOSED;
    else if (akin_config_string(c, "requests.arrivals")[0] == 't')
        job->params.arrivals = AKIN_SIM_TRACE;
    job->n_seeds = count_of(job, "seeds");
    job->n_replicas = count_of(job, "ep.replicas");
    job->placement = akin_config_string(c, "ep.placement");
}

static akin_status_t check_arrivals(const akin_sim_job_t *job,
                                    akin_error_t *err)
{
    const akin_sim_params_t *p = &job->params;
    const uint64_t n = (uint64_t)p->n_warmup + p->n_measured;
    if (p->arrivals == AKIN_SIM_TRACE && job->generator != NULL)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "requests.arrivals: \"trace\" needs a trace: "
                              "name one in routes.trace");
    if (p->arrivals == AKIN_SIM_POISSON && !(p->rate > 0.0))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "requests.rate: set it, or requests.in_flight, "
                              "or requests.arrivals to \"trace\"");
    if (p->arrivals != AKIN_SIM_POISSON && p->rate > 0.0)
        return akin_error_set(
            err, AKIN_ERR_INVALID, "requests.rate: not together with %s",
            p->arrivals == AKIN_SIM_CLOSED ? "requests.in_flight"
                                           : "requests.arrivals = \"trace\"");
    if (p->n_total > 0 && n > p->n_total)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "requests.total: %llu are fewer than the %llu "
                              "of requests.warmup and requests.measured",
                              (unsigned long long)p->n_total,
                              (unsigned long long)n);
    return AKIN_OK;
}

static akin_status_t check(const akin_sim_job_t *job, akin_error_t *err)
{
    const akin_placement_sizes_t sizes = {
        .n_layers = job->shape.n_layers,
        .n_experts = job->shape.n_experts,
        .n_ranks = job->params.n_ranks,
        .n_replicas = job->n_replicas,
    };
    akin_status_t status = check_arrivals(job, err);
    if (status == AKIN_OK && job->params.n_ranks > 1)
        status = akin_placement_check_sizes(&sizes, err);
    if (status != AKIN_OK)
        return status;
    if (akin_sim_job_learns(job) &&
        count_of(job, "fit.requests") < job->params.n_decode)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "fit.requests: %u decode workers need as many "
                              "requests or more to learn from, not %u",
                              job->params.n_decode,
                              count_of(job, "fit.requests"));
    return AKIN_OK;
}

akin_status_t akin_sim_job_init(akin_sim_job_t *job,
                                const akin_config_t *config, akin_error_t *err)
{
    job->config = config;
    akin_status_t status = find_model(job, err);
    if (status == AKIN_OK)
        status = find_machine(job, err);
    if (status == AKIN_OK)
        status = make_generator(job, err);
    if (status == AKIN_OK)
        status = split_policies(job, err);
    if (status != AKIN_OK)
        return status;
    set_params(job);
    for (uint32_t d = 0; d < job->workload.n_domains; d++)
        job->shares[d] = job->workload.domains[d].share;
    status = parse_shares(job, "workload.shares", job->shares,
                          &job->params.shares, err);
    if (status == AKIN_OK)
        status = parse_shares(job, "workload.later_shares", job->later_shares,
                              &job->params.later_shares, err);
    if (job->params.later_shares != NULL)
        job->params.shares = job->shares;
    if (status == AKIN_OK)
        status = akin_sim_job_take_faults(job, err);
    if (status == AKIN_OK)
        status = check(job, err);
    if (status != AKIN_OK)
        return status;
    const size_t n_runs = (size_t)job->n_cases * job->n_seeds;
    job->results = calloc(n_runs, sizeof(*job->results));
    job->run_s = calloc(n_runs, sizeof(*job->run_s));
    job->watches = calloc(job->n_cases, sizeof(*job->watches));
    return job->results != NULL && job->run_s != NULL && job->watches != NULL
               ? AKIN_OK
               : akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
}

void akin_sim_arrivals_text(const akin_sim_job_t *job, char *text, size_t size)
{
    const akin_sim_params_t *p = &job->params;
    if (p->arrivals == AKIN_SIM_CLOSED)
        (void)snprintf(text, size, "%u requests in flight", p->in_flight);
    else if (p->arrivals == AKIN_SIM_TRACE)
        (void)snprintf(text, size, "arrivals of the trace");
    else
        (void)snprintf(text, size, "%g requests/s", p->rate);
}

void akin_sim_job_cleanup(akin_sim_job_t *job)
{
    akin_replay_placement_destroy(job->placements, job->params.n_decode);
    akin_fit_cleanup(&job->fit);
    akin_route_generator_destroy(job->generator);
    akin_route_pool_destroy(job->pool);
    for (uint32_t c = 0; job->watches != NULL && c < job->n_cases; c++)
        akin_load_watch_destroy(job->watches[c]);
    free(job->watches);
    free(job->run_s);
    free(job->faults);
    free(job->results);
    free(job->names);
}

bool akin_sim_job_needs_fit(const akin_sim_job_t *job)
{
    bool needs = job->params.n_ranks > 1 &&
                 akin_replay_placement_needs_fit(job->placement);
    for (uint32_t c = 0; c < job->n_cases; c++)
        needs |= akin_policy_needs_fit(job->policies[c]) != 0;
    return needs;
}

bool akin_sim_job_learns(const akin_sim_job_t *job)
{
    return akin_sim_job_needs_fit(job) &&
           akin_config_string(job->config, "fit.file")[0] == '\0';
}
