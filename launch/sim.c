/* akin sim: compare policies on workers that need not be there. */
#define _POSIX_C_SOURCE 200809L /* sigaction */
#include "launch/sim.h"

#include "launch/command.h"
#include "launch/sim_page.h"

#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPT_SET = 256,
    OPT_THREADS,
    OPT_KEYS,
    OPT_COST,
    OPT_JSON,
    MAX_SETTINGS = 64
};

static volatile sig_atomic_t was_stopped;

static void stop(int signal_number)
{
    (void)signal_number;
    was_stopped = 1;
}

/* The first signal ends the simulation, a second one the process. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = stop,
                               .sa_flags = (int)SA_RESETHAND};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

typedef struct options {
    const char *path;
    const char *settings[MAX_SETTINGS];
    uint32_t n_settings;
    uint32_t n_threads;
    int keys;
    int is_page; /* of keys */
    int cost;
    int json;
} options_t;

static const struct argp_option arguments[] = {
    {"config", 'c', "SIM", 0, "Simulation file; --keys lists its keys", 0},
    {"set", OPT_SET, "KEY=VALUE", 0,
     "Change a key of the file; may be repeated", 0},
    {"threads", OPT_THREADS, "N", 0,
     "Runs at the same time (default 1); the table stays the same", 0},
    {"keys", OPT_KEYS, "FORM", OPTION_ARG_OPTIONAL,
     "Show the keys and their values, or, with FORM man, the source of "
     "akin.sim(5)",
     0},
    {"cost", OPT_COST, NULL, 0,
     "Tell on stderr what the simulation itself cost per event and decision",
     0},
    {"json", OPT_JSON, NULL, 0, "Print one JSON value", 0},
    {0}};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    char *end = NULL;
    switch (key) {
    case 'c':
        o->path = arg;
        break;
    case OPT_SET:
        if (o->n_settings == MAX_SETTINGS)
            argp_error(state, "--set: more than %d settings", MAX_SETTINGS);
        o->settings[o->n_settings++] = arg;
        break;
    case OPT_THREADS: {
        errno = 0;
        const long n = strtol(arg, &end, 10);
        if (errno != 0 || end == arg || *end != '\0' || n < 1 ||
            n > (long)AKIN_SIM_MAX_THREADS)
            argp_error(state, "--threads %s: 1 to %u are possible", arg,
                       AKIN_SIM_MAX_THREADS);
        o->n_threads = (uint32_t)n;
        break;
    }
    case OPT_KEYS:
        if (arg != NULL && strcmp(arg, "man") != 0)
            argp_error(state, "--keys=%s: the only other form is man", arg);
        o->keys = 1;
        o->is_page = arg != NULL;
        break;
    case OPT_COST:
        o->cost = 1;
        break;
    case OPT_JSON:
        o->json = 1;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "%s: the file is given with -c", arg);
        break;
    case ARGP_KEY_END:
        if (o->path == NULL && !o->keys)
            argp_error(state, "-c SIM is missing");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static akin_status_t read_config(const options_t *o, akin_config_t *config,
                                 akin_error_t *err)
{
    akin_status_t status = AKIN_OK;
    if (o->path != NULL)
        status = akin_config_read_file(config, o->path, err);
    for (uint32_t i = 0; i < o->n_settings && status == AKIN_OK; i++)
        status = akin_config_set(config, o->settings[i], err);
    return status == AKIN_OK && !o->keys ? akin_config_check(config, err)
                                         : status;
}

static int is_stopped(void)
{
    return was_stopped != 0;
}

/* Both in time of the processor, so that decisions are never more than all. */
static void print_cost(const akin_sim_job_t *job)
{
    (void)fprintf(stderr, "%u requests with their routes: %.1f s\n",
                  job->pool->n_entries, job->routes_s);
    for (uint32_t c = 0; c < job->n_cases; c++) {
        double events = 0.0, decisions = 0.0, decision_s = 0.0, run_s = 0.0;
        for (uint32_t s = 0; s < job->n_seeds; s++) {
            const size_t i = (size_t)c * job->n_seeds + s;
            events += (double)job->results[i].n_events;
            decisions += (double)job->results[i].n_decisions;
            decision_s += (double)job->results[i].decision_ns / 1e9;
            run_s += job->run_s[i];
        }
        (void)fprintf(
            stderr,
            "%s: %.0f events of %.2f us, %.0f decisions of %.2f us among them; "
            "%.1f s\n",
            job->policies[c], events, events > 0.0 ? run_s / events * 1e6 : 0.0,
            decisions, decisions > 0.0 ? decision_s / decisions * 1e6 : 0.0,
            run_s);
    }
    (void)fprintf(stderr, "all: %.1f s\n", job->routes_s + job->seconds);
}

/* Copies side by side flatter whoever puts what is alike together. */
static void warn_of_copies(const akin_sim_job_t *job)
{
    double most = 0.0;
    for (size_t i = 0; i < (size_t)job->n_cases * job->n_seeds; i++)
        if (job->results[i].copies > most)
            most = job->results[i].copies;
    if (!(most > 0.0))
        return;
    (void)fprintf(stderr,
                  "akin: in up to %.2g %% of the steps a request was beside a "
                  "copy of itself, which flatters policies that look at "
                  "experts; %s\n",
                  100.0 * most,
                  job->generator != NULL
                      ? "raise routes.requests"
                      : "the trace is short for so many at a time");
}

static int finish(akin_status_t status, const akin_sim_job_t *job,
                  const options_t *o, const akin_error_t *err)
{
    if (status == AKIN_ERR_CANCELED) {
        (void)fprintf(stderr, "akin: stopped by a signal; nothing is shown\n");
        return AKIN_EXIT_STOPPED;
    }
    if (status != AKIN_OK)
        return akin_command_fail(status, err);
    if (o->cost)
        print_cost(job);
    warn_of_copies(job);
    return o->json ? akin_sim_print_json(job) : akin_sim_print_table(job);
}

int akin_command_sim(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        "-c SIM",
        "Compare policies on simulated prefill and decode workers of a "
        "modelled "
        "machine: arrivals, prefill queues and caches, transfers, continuous "
        "batching, workers that die, with every token's experts. Times have "
        "the names and "
        "definitions of vLLM's benchmark. Equal files give equal bytes.",
        NULL,
        NULL,
        NULL};
    options_t o = {.n_threads = 1};
    akin_error_t err = {{0}};
    akin_config_t *config;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return AKIN_EXIT_USAGE;
    if (o.is_page) {
        akini_sim_page_write(stdout);
        return AKIN_EXIT_OK;
    }
    akin_status_t status =
        akin_config_create(akin_sim_rows, akin_sim_n_rows, &config);
    if (status != AKIN_OK)
        return akin_command_fail(status, &err);
    akin_sim_job_t job = {.path = o.path, .is_watched = o.json != 0};
    akin_config_set_lister(config, "akin sim --keys");
    status = read_config(&o, config, &err);
    int code = AKIN_EXIT_OK;
    if (status == AKIN_OK && o.keys) {
        status = akin_config_print(config, stdout);
    } else {
        catch_signals();
        if (status == AKIN_OK)
            status = akin_sim_job_init(&job, config, &err);
        if (status == AKIN_OK && o.json)
            status = akin_sim_check_json(&job, &err);
        job.params.clock_ns = o.cost ? akin_sim_processor_ns : NULL;
        if (status == AKIN_OK)
            status = akin_sim_job_prepare(&job, o.n_threads, is_stopped, &err);
        if (status == AKIN_OK)
            status = akin_sim_job_run(&job, o.n_threads, is_stopped, &err);
        code = finish(status, &job, &o, &err);
        status = AKIN_OK;
    }
    if (status != AKIN_OK)
        code = akin_command_fail(status, &err);
    akin_sim_job_cleanup(&job);
    akin_config_destroy(config);
    return code;
}
