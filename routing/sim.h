/* Sim: prefill and decode workers on modelled machines serve generated
 * requests, event by event, under a policy. */
#ifndef AKIN_ROUTING_SIM_H
#define AKIN_ROUTING_SIM_H

#include "routing/cost_model.h"
#include "routing/policy.h"
#include "routing/route_generator.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Requests inside a simulation at most: beyond, it cannot keep up. */
#define AKIN_SIM_MAX_INSIDE 262144u

/** Thirds of the measured requests. */
#define AKIN_SIM_PHASES 3u

/** The i-th request of a run is the generator's first + i. */
typedef struct akin_sim_params {
    const akin_route_generator_t *generator; /* of the cost's model */
    const akin_route_workload_t *workload;   /* of the generator */
    akin_cost_model_t cost;
    const char *policy;
    const akin_fit_t *fit; /* or NULL */
    double tau;
    double pull;
    const akin_placement_t *placements; /* [n_decode] of workers of several
                                           ranks; NULL: one rank each */
    uint32_t n_prefill;
    uint32_t n_decode;
    uint32_t n_ranks;      /* of every worker, prefill too; 0: 1 */
    uint32_t chunk_tokens; /* of a prefill step; 0: prompts are not cut */
    uint32_t max_batch;    /* most requests of a decode worker; 0: no limit */
    uint64_t kv_tokens;    /* that a decode worker holds; 0: no limit */
    uint32_t signature_tokens;  /* of a prompt that are counted; 0: all */
    double rate;                /* requests per second, Poisson */
    const double *shares;       /* [n_domains] of the domains; NULL: the
                                   workload's */
    const double *later_shares; /* the same from two thirds of the measured
                                   requests on; over the second third the mix
                                   goes there evenly. NULL: it stays */
    uint32_t n_warmup;          /* requests before those that are measured */
    uint32_t n_measured;
    uint64_t first;            /* number of the first request */
    uint64_t seed;             /* of the arrivals and the policy */
    int64_t (*clock_ns)(void); /* to time decisions with; NULL: none is */
    /** Called now and then with the measured requests that have ended; may be
     * NULL. Non-zero: stop. */
    int (*progress)(void *arg, uint32_t n_done);
    void *arg;
} akin_sim_params_t;

typedef struct akin_sim_spread {
    double mean;
    double p50;
    double p95;
    double p99;
} akin_sim_spread_t;

/** A third of the measured requests, and the steps meanwhile. */
typedef struct akin_sim_phase {
    akin_sim_spread_t tpot_s;
    double distinct;
} akin_sim_phase_t;

/**
 * What the measured requests saw, by the definitions of vLLM's benchmark:
 * ttft is arrival to first token, which the prefill worker sends; tpot is first
 * to last token over the tokens after the first; itl is every gap between two
 * tokens, to within 0.1 %. The window is the time from the first to the last
 * arrival of a measured request.
 */
typedef struct akin_sim_result {
    akin_sim_spread_t ttft_s;
    akin_sim_spread_t tpot_s;
    akin_sim_spread_t itl_s;
    double queue_s;  /* wait for a prefill worker, mean */
    double stay_s;   /* arrival to last token, mean */
    double distinct; /* experts per layer and step, mean over the steps that
                        ended in the window */
    double busiest;  /* of the busiest rank, likewise */
    double batch;    /* requests per step, likewise */
    double inside;   /* requests in the system, mean over the window */
    double window_s;
    uint64_t n_steps; /* in the window */
    akin_sim_phase_t phases[AKIN_SIM_PHASES];
    /* Of the whole run: arrived = ended + left. */
    uint64_t n_arrived;
    uint64_t n_ended;
    uint64_t n_left;
    uint64_t n_events;
    uint64_t n_decisions;
    int64_t decision_ns; /* all of them, as far as they are timed */
} akin_sim_result_t;

/**
 * Requests come, wait for the prefill worker that has least, are prefilled one
 * after another, decided on, moved over the NICs of sender and receiver, join
 * the next step of their worker and take a token per step. Every token's
 * experts are drawn, so that a step's distinct experts are counted, not
 * expected. A request whose KV or place no worker has room for waits, in its
 * order. Arrivals go on until the last measured request has ended. Equal
 * parameters give equal results.
 *
 * \param[in]  params
 * \param[out] result_p
 * \param[out] err  names what is wrong.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: a size of 0, a request larger than a worker's KV,
 *         a load that the workers cannot keep up with, the errors of
 *         akin_policy_create().
 * \return AKIN_ERR_CANCELED: progress() stopped it.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_sim_run(const akin_sim_params_t *params,
                           akin_sim_result_t *result_p,
                           akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
