/* Fit choice: tries the variants and settings of a fit on requests held out,
 * and keeps what serves them best. */
#ifndef AKIN_ROUTING_FIT_AUTO_H
#define AKIN_ROUTING_FIT_AUTO_H

#include "routing/fit_make.h"
#include "routing/interval.h"
#include "routing/replay.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    AKIN_FIT_AUTO_VARIANTS = 2,
    AKIN_FIT_AUTO_TAUS = 5,
    AKIN_FIT_AUTO_PULLS = 5
};

/** The settings that are tried. */
extern const double akin_fit_auto_taus[AKIN_FIT_AUTO_TAUS];
extern const double akin_fit_auto_pulls[AKIN_FIT_AUTO_PULLS];

typedef struct akin_fit_auto_params {
    const akin_trace_t *trace;
    const akin_replay_set_t *set; /* of the trace: the requests to fit */
    uint32_t prompt_tokens;       /* that the set was made with */
    uint32_t n_clusters;
    uint64_t seed;
    int only_variant; /* non-zero: `variant` alone */
    akin_fit_variant_t variant;
    akin_cost_line_t cost; /* of a step */
} akin_fit_auto_params_t;

/** Changes of the time per token against `jsq`, as parts of 1; negative is
 * faster. */
typedef struct akin_fit_auto_gain {
    akin_interval_t mean;
    akin_interval_t p99;
} akin_fit_auto_gain_t;

/** What replays of the held-out half showed of a variant. */
typedef struct akin_fit_auto_outcome {
    int was_tried;
    akin_error_t refusal; /* why there is no such fit; else empty */
    double rho;           /* of the fit on all requests */
    uint32_t n_masked;    /* layers kept */
    akin_fit_auto_gain_t band[AKIN_FIT_AUTO_TAUS];  /* eldr-static, by tau */
    akin_fit_auto_gain_t pull[AKIN_FIT_AUTO_PULLS]; /* union-pull, by pull */
    uint32_t best_tau;                              /* index */
    uint32_t best_pull;                             /* index */
} akin_fit_auto_outcome_t;

typedef struct akin_fit_auto_report {
    akin_fit_auto_outcome_t variants[AKIN_FIT_AUTO_VARIANTS];
    int was_replayed;   /* else too few requests: the variant of greater rho was
                           taken, tau and pull were left open */
    uint32_t in_flight; /* per worker in the replays */
    uint32_t n_seeds;   /* splits into halves */
    akin_fit_variant_t chosen;
    akin_fit_report_t fit; /* of the fit that was kept */
    double seconds;
} akin_fit_auto_report_t;

/** Free what the report owns; NULL is allowed. */
void akin_fit_auto_report_cleanup(akin_fit_auto_report_t *report);

/**
 * Choose variant, tau and pull by outcome (ALGORITHMS.md 1): split the
 * requests into halves a few times, fit one half, replay the other, and fit
 * all requests with the variant whose best setting of `union-pull` serves
 * the held-out ones best, where the mean time per token and its 99th
 * percentile weigh alike. A variant that these requests do not allow is left
 * out, and the report says why. The same input and seed give the same bits.
 *
 * \param[out] fit     the caller's to clean up; empty on failure.
 * \param[out] report  the caller's to clean up; empty on failure.
 * \param[out] err
 * \return AKIN_OK, and the errors of akin_fit_make() where no variant is left.
 */
akin_status_t akin_fit_auto(const akin_fit_auto_params_t *params,
                            akin_fit_t *fit, akin_fit_auto_report_t *report,
                            akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
