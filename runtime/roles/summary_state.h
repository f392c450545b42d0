/* Summary state: what the adders collect and the writers show. */
#ifndef AKIN_ROLES_SUMMARY_STATE_H
#define AKIN_ROLES_SUMMARY_STATE_H

#include "roles/histogram.h"
#include "roles/summary.h"
#include "routing/load_watch.h"

/* Batch sizes that are counted each on its own; larger ones share a row. */
#define AKINI_SUMMARY_BATCHES 256

/** A mean under way; n of 0 has none. */
typedef struct akini_mean {
    uint64_t n;
    double sum;
} akini_mean_t;

/** Steps with one batch size. */
typedef struct akini_summary_batch {
    uint64_t n_steps;
    uint64_t n_rows; /* tells the mean size of the last row */
    akini_mean_t distinct;
    akini_mean_t step_ns;
} akini_summary_batch_t;

/** Sums of a worker, or of the run. */
typedef struct akini_summary_sums {
    char *name;
    char *role;
    char *node;
    char *transport;
    uint32_t rank;
    int is_decode;
    uint32_t decode; /* of the decode workers, the how manieth it is */
    uint64_t n_steps;
    uint64_t n_rows;
    double busy_ns;
    akini_mean_t distinct;
    akini_mean_t max_distinct;
    uint64_t n_chosen;
    uint64_t n_query_tokens;
    uint64_t n_hit_tokens;
    uint64_t n_blocks;
    uint64_t n_bytes;
    uint64_t n_shared;
    akin_summary_reads_t reads;
    uint64_t refused[AKIN_KV_REFUSAL_COUNT];
    uint64_t n_lost;
    uint64_t n_restarted;
    uint64_t n_recovered;
} akini_summary_sums_t;

/** What losses cost the run, and what they left behind. */
typedef struct akini_summary_recovery {
    akini_mean_t recovered_ns; /* from a worker's loss until it was served */
    int64_t max_recovered_ns;
    uint64_t n_retries;
    uint64_t n_late;
    akin_summary_leases_t leases; /* as they were last */
    uint64_t max_blocks;
    int64_t max_oldest_ns;
} akini_summary_recovery_t;

/** Sums over steps of which a policy had a prediction: x what it expected, y
 * what was observed. */
typedef struct akini_summary_predictions {
    uint64_t n;
    double x, y, xx, yy, xy;
    double error; /* sum of |x - y| */
} akini_summary_predictions_t;

struct akin_summary {
    char *model;
    char *policy;
    char *policy_setting;
    char *engine;
    char *modelled;
    double slowdown;
    char *kernel;
    uint32_t ep;
    uint32_t prefill_ep;
    int64_t start_ns;
    int64_t end_ns;
    int64_t unix_s; /* time of day of the start */
    uint64_t completed;
    uint64_t failed;
    uint64_t n_prompt_tokens;
    uint64_t n_output_tokens;
    akin_histogram_t *ttft;
    akin_histogram_t *tpot;
    akin_histogram_t *itl;
    akin_histogram_t *e2el;
    akin_histogram_t *routing;
    akin_histogram_t *transfer;
    akin_histogram_t *resumed; /* from a loss to a request's next token */
    akini_summary_recovery_t recovery;
    akini_mean_t band;       /* workers in the locality band */
    akini_mean_t similarity; /* cosine with the chosen worker's centroid */
    akini_summary_predictions_t predictions;
    akin_policy_refits_t refits;
    akin_replacer_stats_t replaced;
    akin_transports_t transports; /* n_hosts is 0: not known */
    akini_summary_sums_t run;     /* steps: of decode workers only */
    akini_summary_sums_t *workers;
    uint32_t n_workers;
    akin_load_watch_t *watch; /* of the decode workers */
    /* [0] is size 1; the last row is for sizes above AKINI_SUMMARY_BATCHES. */
    akini_summary_batch_t batches[AKINI_SUMMARY_BATCHES + 1];
};

static inline double akini_mean_get(const akini_mean_t *mean)
{
    return mean->n == 0 ? 0 : mean->sum / (double)mean->n;
}

/** Age of the centroids at the end of the run, seconds; below 0: they are those
 * of the fit file. */
double akini_summary_centroid_age_s(const akin_summary_t *summary);

/** Correlation of what was expected with what was observed; NaN: one of them
 * did not vary. */
double akini_summary_correlation(const akini_summary_predictions_t *p);

/** Seconds of the run, above 0. */
double akini_summary_duration_s(const akin_summary_t *summary);

/** Share of the run in which a worker made no step, 0 .. 1. */
double akini_summary_idle_share(const akin_summary_t *summary,
                                const akini_summary_sums_t *worker);

/** Whether the run lost anything, or began anything again. */
int akini_summary_has_recovery(const akin_summary_t *summary);

/** "transports" as JSON, a new reference; NULL: out of memory. */
struct json_t *akini_summary_transports_json(const akin_summary_t *summary);

/** Number the decode workers, and watch them.
 * \return AKIN_OK, AKIN_ERR_NOMEM */
akin_status_t akini_summary_load_create(akin_summary_t *summary,
                                        uint32_t n_layers,
                                        uint32_t n_experts) AKIN_MUST_CHECK;

/** "load" and "experts" as akin_load_watch_json() has them; NULL: out of
 * memory. */
struct json_t *akini_summary_load_json(const akin_summary_t *summary);

/** Blocks refused, whatever the reason. */
uint64_t akini_summary_refused(const akini_summary_sums_t *sums);

#endif
