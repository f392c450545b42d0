/* Sim statistics: the times of the measured requests and of the steps in the
 * window. */
#ifndef AKIN_ROUTING_SIM_STATISTICS_H
#define AKIN_ROUTING_SIM_STATISTICS_H

#include "routing/sim_decode.h"

typedef struct akini_sim_statistics {
    double *ttft;   /* [n_ttft] s */
    double *tpot;   /* [n_tpot] s */
    uint64_t *gaps; /* counts of gaps by the logarithm of their length */
    double gap_s;   /* sum of these */
    uint64_t n_gaps;
    double last_gap_s; /* and its place in `gaps`: most follow one like it */
    uint32_t last_at;
    uint32_t n_ttft;
    uint32_t n_tpot;
    double queue_s; /* sums of these */
    double stay_s;
    uint32_t n_stay;
    double distinct;
    double busiest;
    double batch;
    uint64_t n_steps;
    uint64_t n_copies;                   /* steps that had a copy */
    double *phase_tpot[AKIN_SIM_PHASES]; /* [n_phase_tpot] s */
    uint32_t n_phase_tpot[AKIN_SIM_PHASES];
    double phase_distinct[AKIN_SIM_PHASES];
    uint64_t n_phase_steps[AKIN_SIM_PHASES];
    double area; /* requests inside x seconds */
} akini_sim_statistics_t;

/** \param[in] n  requests to be measured. */
akin_status_t akini_sim_statistics_init(akini_sim_statistics_t *of,
                                        uint32_t n) AKIN_MUST_CHECK;

void akini_sim_statistics_cleanup(akini_sim_statistics_t *of);

/** A measured request has ended. */
void akini_sim_statistics_end(akini_sim_statistics_t *of,
                              const akini_sim_request_t *request,
                              uint32_t phase);

/** A step in the window has ended. */
void akini_sim_statistics_step(akini_sim_statistics_t *of,
                               const akini_sim_worker_t *worker,
                               uint32_t phase);

void akini_sim_statistics_gap(akini_sim_statistics_t *of, double seconds);

/** Sorts the times; window, arrivals and events are the caller's. */
void akini_sim_statistics_result(akini_sim_statistics_t *of, uint32_t n_layers,
                                 double window_s, akin_sim_result_t *result_p);

#endif
