/* The options of replay. */
#include "launch/replay.h"
#include "launch/trace_command.h"

#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPT_POLICY = 256,
    OPT_WORKERS,
    OPT_IN_FLIGHT,
    OPT_RATE,
    OPT_MAX_BATCH,
    OPT_SEEDS,
    OPT_SEED,
    OPT_SPLIT,
    OPT_REQUESTS,
    OPT_PROMPT,
    OPT_MIN,
    OPT_FIT,
    OPT_VARIANT,
    OPT_TAU,
    OPT_PULL,
    OPT_STEP,
    OPT_EP,
    OPT_REPLICAS,
    OPT_PLACEMENT,
    OPT_JSON
};

#define MAX_WORKERS 4096
#define MAX_IN_FLIGHT 65536
#define DEFAULT_IN_FLIGHT 16
#define MAX_SEEDS 1000
/* Larger settings stand for no setting at all. */
#define MAX_SETTING 1e6
/* Requests that come more seldom than this meet nobody. */
#define MIN_RATE 1e-4

static const struct argp_option arguments[] = {
    {"policy", OPT_POLICY, "P[:SETTING],...", 0,
     "Policies to compare (all); a setting is the tau of eldr, eldr-static, "
     "union-band, the pull of union-pull",
     1},
    {"tau", OPT_TAU, "LIST", 0, "Replay policies with a band for each (0.1)",
     1},
    {"pull", OPT_PULL, "LIST", 0, "Replay union-pull for each (0.16)", 1},
    {"workers", OPT_WORKERS, "W", 0, "Decode workers (8)", 2},
    {"ep", OPT_EP, "R", 0, "Expert-parallel ranks per worker (1)", 2},
    {"replicas", OPT_REPLICAS, "N", 0,
     "Slots of every layer beyond one per expert (0)", 2},
    {"placement", OPT_PLACEMENT, "P,...", 0,
     "Where the experts of a worker's ranks lie, each policy with each: "
     "linear, "
     "round-robin, eplb, activation-shared, activation (linear)",
     2},
    {"in-flight", OPT_IN_FLIGHT, "N", 0,
     "Closed loop: requests per worker at any time (16)", 2},
    {"rate", OPT_RATE, "R", 0,
     "Open loop instead: random arrivals, R requests per second in all", 2},
    {"max-batch", OPT_MAX_BATCH, "N", 0,
     "Most requests of a worker at a time (no limit)", 2},
    {"step", OPT_STEP, "T0,ALL,PER", 0,
     "Milliseconds of an empty step, of all experts of the model, per request "
     "(2,14,0.02)",
     2},
    {"seeds", OPT_SEEDS, "N", 0, "Splits and orders of the requests (5)", 3},
    {"seed", OPT_SEED, "S", 0, "The first of them (1)", 3},
    {"split", OPT_SPLIT, "N", 0,
     "Requests that fit; the others are measured (40 %)", 3},
    {"requests", OPT_REQUESTS, "N", 0,
     "Requests measured per replay, in passes over those there are (four "
     "passes)",
     3},
    {"fit", OPT_FIT, "FIT", 0, "Take this fit and measure all requests", 4},
    {"variant", OPT_VARIANT, "V", 0,
     "Of the fits: count or count_idf "
     "(count_idf)",
     4},
    {"prompt-tokens", OPT_PROMPT, "N", 0,
     "First rows that stand in for the prompt of requests that know none", 5},
    {"min-tokens", OPT_MIN, "N", 0, "Leave out requests of fewer rows", 5},
    {"json", OPT_JSON, NULL, 0, "Print JSON", 6},
    {0}};

/* A number >= 0 at the start of a text; gives what follows, or NULL. */
static const char *take_number(const char *text, double *value_p)
{
    char *end;
    if (*text != '.' && (*text < '0' || *text > '9'))
        return NULL;
    *value_p = strtod(text, &end);
    return isfinite(*value_p) && *value_p <= MAX_SETTING ? end : NULL;
}

/* Gives how many numbers a list has, at most max; 0: it is none. */
static uint32_t parse_numbers(const char *text, double *values, uint32_t max)
{
    for (uint32_t n = 0; n < max; text++) {
        text = take_number(text, &values[n++]);
        if (text == NULL || (*text != ',' && *text != '\0'))
            return 0;
        if (*text == '\0')
            return n;
    }
    return 0;
}

static uint32_t parse_settings(const char *name, const char *text,
                               double *values, const struct argp_state *state)
{
    uint32_t n = parse_numbers(text, values, AKIN_REPLAY_MAX_SETTINGS);
    if (n == 0)
        argp_error(state,
                   "--%s %s: up to %d numbers of 0 or more are needed, as in "
                   "0.1,0.2",
                   name, text, AKIN_REPLAY_MAX_SETTINGS);
    return n;
}

static double parse_rate(const char *text, const struct argp_state *state)
{
    double rate = 0.0;
    if (parse_numbers(text, &rate, 1) != 1 || rate < MIN_RATE)
        argp_error(state, "--rate %s: %g to %g requests per second are needed",
                   text, MIN_RATE, MAX_SETTING);
    return rate;
}

static void parse_step(const char *text, double step_ms[3],
                       const struct argp_state *state)
{
    if (parse_numbers(text, step_ms, 3) != 3 ||
        step_ms[0] + step_ms[1] + step_ms[2] <= 0.0)
        argp_error(state,
                   "--step %s: three numbers of milliseconds are needed, not "
                   "all 0, as in 2,14,0.02",
                   text);
}

static akin_fit_variant_t parse_variant(const char *text,
                                        const struct argp_state *state)
{
    if (strcmp(text, "count_idf") == 0)
        return AKIN_FIT_COUNT_IDF;
    if (strcmp(text, "count") != 0)
        argp_error(state, "--variant %s: count or count_idf is needed", text);
    return AKIN_FIT_COUNT;
}

static uint32_t parse_count(const char *option, const char *text, uint32_t min,
                            uint32_t max, const struct argp_state *state)
{
    return (uint32_t)akin_trace_parse_number(option, text, min, max, state);
}

static void check_options(const akin_replay_options_t *o,
                          const struct argp_state *state)
{
    if (o->path == NULL)
        argp_error(state, "no trace: name its index");
    if (o->n_ranks == 1 && (o->placements != NULL || o->n_replicas > 0))
        argp_error(state, "--placement and --replicas are for workers of "
                          "several ranks: give --ep, too");
    if (o->rate > 0.0 && o->in_flight != 0)
        argp_error(state, "--rate and --in-flight: in an open loop the "
                          "arrivals say how many run; leave one out");
    if (o->fit_path != NULL && o->split != 0)
        argp_error(state, "--fit and --split: a given fit measures all "
                          "requests, so none is split off");
    if (o->fit_path != NULL && o->has_variant)
        argp_error(state, "--fit and --variant: a fit has its own variant");
}

/* Numbers that count something; gives 0 if the key is another's. */
static int parse_size(int key, const char *arg, akin_replay_options_t *o,
                      const struct argp_state *state)
{
    switch (key) {
    case OPT_WORKERS:
        o->n_workers = parse_count("--workers", arg, 1, MAX_WORKERS, state);
        return 1;
    case OPT_EP:
        o->n_ranks =
            parse_count("--ep", arg, 1, AKIN_PLACEMENT_MAX_RANKS, state);
        return 1;
    case OPT_REPLICAS:
        o->n_replicas = parse_count("--replicas", arg, 0, 65536, state);
        return 1;
    case OPT_IN_FLIGHT:
        o->in_flight = parse_count("--in-flight", arg, 1, MAX_IN_FLIGHT, state);
        return 1;
    case OPT_MAX_BATCH:
        o->max_batch = parse_count("--max-batch", arg, 1, MAX_IN_FLIGHT, state);
        return 1;
    case OPT_SEEDS:
        o->n_seeds = parse_count("--seeds", arg, 1, MAX_SEEDS, state);
        return 1;
    case OPT_SEED:
        o->seed = akin_trace_parse_number("--seed", arg, 0,
                                          INT64_MAX - MAX_SEEDS, state);
        return 1;
    case OPT_SPLIT:
        o->split = parse_count("--split", arg, 1, UINT32_MAX, state);
        return 1;
    case OPT_REQUESTS:
        o->n_measured = parse_count("--requests", arg, 1, 10000000, state);
        return 1;
    case OPT_PROMPT:
        o->prompt_tokens =
            parse_count("--prompt-tokens", arg, 1, UINT32_MAX, state);
        return 1;
    case OPT_MIN:
        o->min_tokens = parse_count("--min-tokens", arg, 0, UINT32_MAX, state);
        return 1;
    default:
        return 0;
    }
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    akin_replay_options_t *o = state->input;
    if (parse_size(key, arg, o, state))
        return 0;
    switch (key) {
    case OPT_PLACEMENT:
        o->placements = arg;
        break;
    case OPT_POLICY:
        o->policies = arg;
        break;
    case OPT_TAU:
        o->n_taus = parse_settings("tau", arg, o->taus, state);
        break;
    case OPT_PULL:
        o->n_pulls = parse_settings("pull", arg, o->pulls, state);
        break;
    case OPT_RATE:
        o->rate = parse_rate(arg, state);
        break;
    case OPT_STEP:
        parse_step(arg, o->step_ms, state);
        break;
    case OPT_FIT:
        o->fit_path = arg;
        break;
    case OPT_VARIANT:
        o->variant = parse_variant(arg, state);
        o->has_variant = 1;
        break;
    case OPT_JSON:
        o->json = 1;
        break;
    case ARGP_KEY_ARG:
        if (o->path != NULL)
            argp_error(state, "one trace at a time: %s is too many", arg);
        o->path = arg;
        break;
    case ARGP_KEY_END:
        check_options(o, state);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int akin_replay_options_parse(int argc, char **argv, akin_replay_options_t *o)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        "TRACE.json",
        "Replay the decode steps of recorded requests on a pool of workers "
        "under several policies, and compare their times per output token "
        "(TPOT). A step takes a time that its distinct experts and its batch "
        "give; prefill and transfer take none.",
        NULL,
        NULL,
        NULL};
    *o = (akin_replay_options_t){
        .policies = "all",
        .n_workers = 8,
        .n_ranks = 1,
        .n_seeds = 5,
        .seed = 1,
        .variant = AKIN_FIT_COUNT_IDF,
        .step_ms = {2.0, 14.0, 0.02},
    };
    const error_t code = argp_parse(&argp, argc, argv, 0, NULL, o);
    if (o->in_flight == 0)
        o->in_flight = DEFAULT_IN_FLIGHT;
    return code;
}
