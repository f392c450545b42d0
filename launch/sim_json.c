/* Sim JSON: the runs of a simulation for programs. */
#include "launch/sim.h"

#include "launch/command.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

/* NaN has no JSON: an interval of one seed, or what nothing was measured of, is
 * null. */
static json_t *number_of(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *array_of(const double *values, uint32_t n)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < n; i++)
        (void)json_array_append_new(array, number_of(values[i]));
    return array;
}

/* A third of the measured requests: means over the seeds, and the time of every
 * seed, so that a reader has an interval. */
static json_t *phase_json(const akin_sim_job_t *job, uint32_t which,
                          uint32_t phase, double *values)
{
    const akin_sim_result_t *results =
        &job->results[(size_t)which * job->n_seeds];
    double means[3];
    akin_sim_phase_means(job, which, phase, means);
    for (uint32_t s = 0; s < job->n_seeds; s++)
        values[s] = 1e3 * results[s].phases[phase].tpot_s.p50;
    return json_pack("{s:o, s:o, s:o, s:o}", "p50_tpot_ms", number_of(means[0]),
                     "p99_tpot_ms", number_of(means[1]), "distinct_experts",
                     number_of(means[2]), "p50_tpot_ms_values",
                     array_of(values, job->n_seeds));
}

/* [[0, ms], [5, ms], ... [100, ms]], means over the seeds, of an array in the
 * results. */
static json_t *percentiles(const akin_sim_job_t *job, uint32_t which,
                           size_t offset)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < AKIN_SIM_PERCENTILES; i++) {
        double ms = 0.0;
        for (uint32_t s = 0; s < job->n_seeds; s++) {
            const void *at =
                (const char *)&job->results[(size_t)which * job->n_seeds + s] +
                offset;
            ms += 1e3 / job->n_seeds * ((const double *)at)[i];
        }
        (void)json_array_append_new(
            list, json_pack("[io]", 5 * (int)i, number_of(ms)));
    }
    return list;
}

static json_t *case_json(const akin_sim_job_t *job, uint32_t which,
                         double *values)
{
    json_t *json = json_pack("{s:s}", "policy", job->policies[which]);
    uint64_t n[4] = {0};
    for (size_t f = 0; f < akin_sim_n_figures; f++) {
        const akin_sim_figure_t *figure = &akin_sim_figures[f];
        double width, change_width;
        const double mean =
            akin_sim_figure_mean(job, which, figure, values, &width);
        json_t *of_seeds = array_of(values, job->n_seeds);
        const double change =
            akin_sim_figure_change(job, which, figure, values, &change_width);
        (void)json_object_set_new(
            json, figure->name,
            json_pack("{s:o, s:o, s:o, s:o, s:o}", "mean", number_of(mean),
                      "half_width", number_of(width), "change_percent",
                      number_of(change), "change_half_width",
                      number_of(change_width), "values", of_seeds));
    }
    (void)json_object_set_new(
        json, "ttft_percentiles_ms",
        percentiles(job, which,
                    offsetof(akin_sim_result_t, ttft_percentiles_s)));
    (void)json_object_set_new(
        json, "tpot_percentiles_ms",
        percentiles(job, which,
                    offsetof(akin_sim_result_t, tpot_percentiles_s)));
    json_t *phases = json_array();
    for (uint32_t p = 0; p < AKIN_SIM_PHASES; p++)
        (void)json_array_append_new(phases, phase_json(job, which, p, values));
    (void)json_object_set_new(json, "phases", phases);
    for (uint32_t s = 0; s < job->n_seeds; s++) {
        const akin_sim_result_t *r =
            &job->results[(size_t)which * job->n_seeds + s];
        n[0] += r->n_arrived;
        n[1] += r->n_ended;
        n[2] += r->n_left;
        n[3] += r->n_events;
    }
    (void)json_object_set_new(json, "arrived", json_integer((json_int_t)n[0]));
    (void)json_object_set_new(json, "ended", json_integer((json_int_t)n[1]));
    (void)json_object_set_new(json, "left", json_integer((json_int_t)n[2]));
    (void)json_object_set_new(json, "events", json_integer((json_int_t)n[3]));
    json_t *watched = akin_load_watch_json(job->watches[which]);
    if (watched == NULL || json_object_update(json, watched) != 0) {
        json_decref(json);
        json = NULL;
    }
    json_decref(watched);
    return json;
}

static json_t *setting_json(const akin_config_t *config,
                            const akin_config_row_t *row)
{
    switch (row->type) {
    case AKIN_CONFIG_INT:
        return json_integer((json_int_t)akin_config_int(config, row->key));
    case AKIN_CONFIG_FLOAT:
        return json_real(akin_config_float(config, row->key));
    case AKIN_CONFIG_BOOL:
        return json_boolean(akin_config_bool(config, row->key));
    case AKIN_CONFIG_SIZE:
        return json_integer((json_int_t)akin_config_bytes(config, row->key));
    case AKIN_CONFIG_TIME:
        return json_real((double)akin_config_ns(config, row->key) / 1e9);
    case AKIN_CONFIG_STRING:
    case AKIN_CONFIG_CHOICE:
    default:
        return json_string(akin_config_string(config, row->key));
    }
}

/* Every key of the file with its value; sizes in bytes, times in seconds. */
static json_t *settings_json(const akin_config_t *config)
{
    json_t *json = json_object();
    for (size_t i = 0; i < akin_sim_n_rows; i++)
        (void)json_object_set_new(json, akin_sim_rows[i].key,
                                  setting_json(config, &akin_sim_rows[i]));
    return json;
}

static akin_status_t check_text(const char *what, const char *text,
                                akin_error_t *err)
{
    json_t *json = json_string(text);
    const bool is_text = json != NULL;
    json_decref(json);
    return is_text ? AKIN_OK
                   : akin_error_set(err, AKIN_ERR_INVALID,
                                    "%s: \"%.200s\" is not UTF-8, as JSON must "
                                    "be: rename it, or leave --json out",
                                    what, text);
}

akin_status_t akin_sim_check_json(const akin_sim_job_t *job, akin_error_t *err)
{
    akin_status_t status = check_text("-c", job->path, err);
    if (status == AKIN_OK)
        status = check_text("machine", job->machine.name, err);
    for (size_t i = 0; i < akin_sim_n_rows && status == AKIN_OK; i++) {
        const akin_config_row_t *row = &akin_sim_rows[i];
        if (row->type == AKIN_CONFIG_STRING)
            status = check_text(row->key,
                                akin_config_string(job->config, row->key), err);
    }
    return status;
}

int akin_sim_print_json(const akin_sim_job_t *job)
{
    const akin_sim_params_t *p = &job->params;
    char arrivals[64];
    double *values = calloc(job->n_seeds, sizeof(*values));
    json_t *cases = json_array();
    if (values == NULL || cases == NULL) {
        free(values);
        json_decref(cases);
        akin_error_t err;
        return akin_command_fail(
            akin_error_set(&err, AKIN_ERR_NOMEM, "out of memory"), &err);
    }
    for (uint32_t c = 0; c < job->n_cases; c++)
        (void)json_array_append_new(cases, case_json(job, c, values));
    free(values);
    akin_sim_arrivals_text(job, arrivals, sizeof(arrivals));
    return akin_command_print_json(json_pack(
        "{s:s, s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:s, s:o, s:o, "
        "s:I, s:I, s:I, s:I, s:o, s:o, s:o}",
        "sim", job->path, "model", job->shape.name, "machine",
        job->machine.name, "workload", job->workload.name, "mix_turns_over",
        p->later_shares != NULL, "prefill", (json_int_t)p->n_prefill, "decode",
        (json_int_t)p->n_decode, "ep",
        (json_int_t)(p->n_ranks > 1 ? p->n_ranks : 1), "arrivals", arrivals,
        "rate",
        p->arrivals == AKIN_SIM_POISSON ? json_real(p->rate) : json_null(),
        "in_flight",
        p->arrivals == AKIN_SIM_CLOSED ? json_integer((json_int_t)p->in_flight)
                                       : json_null(),
        "warmup", (json_int_t)p->n_warmup, "measured",
        (json_int_t)p->n_measured, "seeds", (json_int_t)job->n_seeds, "seed",
        (json_int_t)p->seed, "rho",
        akin_sim_job_needs_fit(job) ? number_of(job->fit.rho) : json_null(),
        "policies", cases, "settings", settings_json(job->config)));
}
