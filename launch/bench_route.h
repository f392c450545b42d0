/* bench route: what is measured, beside how it is asked for and shown. */
#ifndef AKIN_LAUNCH_BENCH_ROUTE_H
#define AKIN_LAUNCH_BENCH_ROUTE_H

#include "launch/bench.h"
#include "launch/planted.h"
#include "routing/fit.h"

/** What all policies of a number of workers share. Zero, then init. */
typedef struct akin_bench_route_bed {
    const akin_planted_t *planted; /* borrowed */
    uint32_t n_workers;
    uint32_t max_seconds; /* per case */
    akin_fit_t fit;
    uint16_t *counts;  /* [requests][cells] */
    uint16_t *request; /* [cells] */
    uint8_t *eligible; /* [n_workers] */
} akin_bench_route_bed_t;

typedef struct akin_bench_route_figures {
    akin_bench_medians_t choice;
    double p99_seconds;
    double read_p99_seconds;
    double decide_seconds; /* choice and bookkeeping */
    double n_band;         /* mean; 0: the policy has none */
    size_t bytes;
    uint32_t n;
} akin_bench_route_figures_t;

/** Clean up whatever it returns. \return AKIN_OK, AKIN_ERR_NOMEM */
akin_status_t akin_bench_route_init(akin_bench_route_bed_t *bed,
                                    akin_error_t *err) AKIN_MUST_CHECK;

void akin_bench_route_cleanup(akin_bench_route_bed_t *bed);

/**
 * Time the decisions of a policy that reads centroids or chances.
 *
 * \return AKIN_OK, and the errors of akin_policy_create().
 */
akin_status_t akin_bench_route_run(const akin_bench_route_bed_t *bed,
                                   const char *policy,
                                   akin_bench_route_figures_t *figures_p,
                                   akin_error_t *err) AKIN_MUST_CHECK;

#endif
