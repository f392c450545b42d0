/* Replay statistics: sums over the steps and decisions of a replay, and the
 * times of its requests. */
#ifndef AKIN_ROUTING_REPLAY_STATISTICS_H
#define AKIN_ROUTING_REPLAY_STATISTICS_H

#include "routing/replay_pool.h"

typedef struct akini_replay_statistics {
    double *tpots; /* [n_tpots] s */
    uint32_t n_tpots;
    uint64_t n_steps;
    uint64_t n_tokens;
    uint64_t n_decisions;
    double distinct; /* sums of these */
    double busiest;
    double expected;
    double expected_squares;
    double busiest_squares;
    double products; /* of expected and busiest */
    double spread;
    double wait_s;
    double n_band;
    double similarity;
} akini_replay_statistics_t;

/** \param[in] n  requests to be measured. */
akin_status_t akini_replay_statistics_init(akini_replay_statistics_t *of,
                                           uint32_t n) AKIN_MUST_CHECK;

void akini_replay_statistics_cleanup(akini_replay_statistics_t *of);

/** A request was sent to a worker; some other worker may have more. */
void akini_replay_statistics_decision(akini_replay_statistics_t *of,
                                      const akin_policy_t *policy,
                                      uint32_t n_workers, uint32_t n_in_flight);

/** A worker's step ended. */
void akini_replay_statistics_step(akini_replay_statistics_t *of,
                                  const akini_replay_worker_t *worker);

/** Sorts the times.
 * \param[in]  n_layers
 * \param[in]  seconds  of replayed time. */
void akini_replay_statistics_result(akini_replay_statistics_t *of,
                                    uint32_t n_layers, double seconds,
                                    akin_replay_result_t *result_p);

#endif
