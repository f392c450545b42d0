/* Report input: what a page shows, read from summaries of runs, replays
 * and simulations. */
#ifndef AKIN_LAUNCH_REPORT_INPUT_H
#define AKIN_LAUNCH_REPORT_INPUT_H

#include "base/error.h"
#include "launch/report_watch.h"

#include <jansson.h>
#include <stddef.h>

typedef enum akin_report_metric {
    AKIN_REPORT_COMPLETED,
    AKIN_REPORT_FAILED,
    AKIN_REPORT_DURATION,
    AKIN_REPORT_TOKEN_RATE,
    AKIN_REPORT_REQUEST_RATE,
    AKIN_REPORT_TTFT_P50,
    AKIN_REPORT_TTFT_P99,
    AKIN_REPORT_TPOT_MEAN,
    AKIN_REPORT_TPOT_P50,
    AKIN_REPORT_TPOT_P95,
    AKIN_REPORT_TPOT_P99,
    AKIN_REPORT_ITL_P50,
    AKIN_REPORT_ITL_P99,
    AKIN_REPORT_QUEUE,
    AKIN_REPORT_BATCH,
    AKIN_REPORT_DISTINCT,
    AKIN_REPORT_BUSIEST,
    AKIN_REPORT_PREDICTED,
    AKIN_REPORT_CORRELATION,
    AKIN_REPORT_HIT_RATE,
    AKIN_REPORT_KV_BYTES,
    AKIN_REPORT_DEATHS,
    AKIN_REPORT_RERUN,
    AKIN_REPORT_N_METRICS
} akin_report_metric_t;

/** What a metric is called, and which of two values is better. */
typedef struct akin_report_metric_info {
    const char *title;
    const char *unit; /* "" if it is a plain number */
    int digits;       /* behind the point */
    int better;       /* -1: less, +1: more, 0: neither */
    int if_any;       /* of no interest where it is 0 everywhere */
} akin_report_metric_info_t;

extern const akin_report_metric_info_t
    akin_report_metrics[AKIN_REPORT_N_METRICS];

/** What the load of a case is told in. */
typedef enum akin_report_load {
    AKIN_REPORT_LOAD_ANSWERED, /* a run: requests answered per second */
    AKIN_REPORT_LOAD_RATE,     /* arrivals per second */
    AKIN_REPORT_LOAD_INSIDE,   /* requests of all workers at any time */
    AKIN_REPORT_LOAD_IN_FLIGHT /* of a worker at any time */
} akin_report_load_t;

/** One line of the table: a run, or a policy of a replay or a
 * simulation. JSON is borrowed
 * from the input. */
typedef struct akin_report_case {
    char label[128];
    const char *policy;
    const json_t *json;   /* summary, or the policy's object */
    const json_t *source; /* the whole file */
    size_t file;          /* index of the path */
    int is_run;           /* otherwise a policy of a replay or a simulation */
    int is_sim;
    akin_report_load_t load;
    double load_value;
    double values[AKIN_REPORT_N_METRICS];      /* NaN: none */
    double half_widths[AKIN_REPORT_N_METRICS]; /* of the 95 % interval or NaN */
    akin_report_watch_t watch;
} akin_report_case_t;

typedef struct akin_report_input {
    char **paths; /* [n_files], borrowed */
    json_t **files;
    size_t n_files;
    akin_report_case_t *cases;
    size_t n_cases;
} akin_report_input_t;

/**
 * Read files of `akin run --summary`, `akin replay --json` and `akin sim
 * --json`.
 *
 * \param[in]  paths    [n], at least 1; kept.
 * \param[out] input_p  akin_report_input_cleanup() frees what it owns.
 * \param[out] err      names the file and what is wrong.
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT: none of the three.
 * \return AKIN_ERR_NOT_FOUND, AKIN_ERR_IO, ...: a file cannot be read.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_report_input_read(char **paths, size_t n,
                                     akin_report_input_t *input_p,
                                     akin_error_t *err) AKIN_MUST_CHECK;

void akin_report_input_cleanup(akin_report_input_t *input);

/** A text of a case's file; NULL: it has none. */
const char *akin_report_case_text(const akin_report_case_t *c, const char *key);

/** What a policy is called: with its setting where the file tells it. */
const char *akin_report_case_name(const akin_report_case_t *c);

/** A number of an object; NaN: it has none. */
double akin_report_number(const json_t *object, const char *key);

/** Cases that have a metric; none if it is of no interest. */
size_t akin_report_count(const akin_report_input_t *input,
                         akin_report_metric_t metric);

#endif
