/* replay: what its options say, and what becomes of them. */
#ifndef AKIN_LAUNCH_REPLAY_H
#define AKIN_LAUNCH_REPLAY_H

#include "routing/replay_study.h"

enum { AKIN_REPLAY_MAX_CASES = 64, AKIN_REPLAY_MAX_SETTINGS = 8 };

typedef struct akin_replay_options {
    const char *path;     /* of the trace */
    const char *fit_path; /* NULL: fit each split */
    const char *policies; /* as given */
    double taus[AKIN_REPLAY_MAX_SETTINGS];
    uint32_t n_taus; /* 0: not given */
    double pulls[AKIN_REPLAY_MAX_SETTINGS];
    uint32_t n_pulls; /* 0: not given */
    uint32_t n_workers;
    uint32_t n_ranks;       /* of a worker */
    uint32_t n_replicas;    /* slots of a layer beyond one per expert */
    const char *placements; /* as given; NULL: linear */
    uint32_t in_flight;
    double rate;        /* 0: closed loop */
    uint32_t max_batch; /* 0: no limit */
    uint32_t n_seeds;
    uint64_t seed;
    uint32_t split; /* requests that fit; 0: not given */
    uint32_t prompt_tokens;
    uint32_t min_tokens;
    uint32_t n_measured; /* 0: not given */
    akin_fit_variant_t variant;
    int has_variant;
    double step_ms[3]; /* empty, all experts of the model, per request */
    int json;
} akin_replay_options_t;

/** A study and what it rests on. */
typedef struct akin_replay_job {
    akin_replay_options_t options;
    akin_trace_t *trace;
    akin_replay_set_t *set;
    akin_fit_t fit; /* of --fit; else empty */
    akin_replay_case_t cases[AKIN_REPLAY_MAX_CASES];
    uint32_t n_cases;
    akin_replay_study_params_t study;
    akin_replay_result_t *results;                     /* [n_cases][n_seeds] */
    double *rho;                                       /* [n_seeds] */
    akin_load_watch_t *watches[AKIN_REPLAY_MAX_CASES]; /* [n_cases], for JSON */
    double seconds;                                    /* that the study took */
    int stands_in; /* rows of decode are taken for prompts */
} akin_replay_job_t;

/** Ends the process with a message if an option is wrong.
 * \return 0, or not. */
int akin_replay_options_parse(int argc, char **argv, akin_replay_options_t *o);

/**
 * The policies to replay and their settings, from the options, the trace and
 * the fit.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: an unknown policy, one that is named twice, a
 *         setting that it has not got, `domain` without domains.
 */
akin_status_t akin_replay_job_set_cases(akin_replay_job_t *job,
                                        akin_error_t *err) AKIN_MUST_CHECK;

/** What a policy's setting is called: "tau", "pull", or NULL: it has none. */
const char *akin_replay_case_setting(const char *policy);

/** "jsq", or "eldr-static:0.1". */
void akin_replay_case_name(const akin_replay_case_t *which, char *text,
                           size_t bytes);

#endif
