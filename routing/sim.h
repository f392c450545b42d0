/* Sim: prefill and decode workers on modelled machines serve generated
 * requests, event by event, under a policy. */
#ifndef AKIN_ROUTING_SIM_H
#define AKIN_ROUTING_SIM_H

#include "routing/cost_model.h"
#include "routing/load_watch.h"
#include "routing/policy.h"
#include "routing/route_pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Requests inside a simulation at most: beyond, it cannot keep up. */
#define AKIN_SIM_MAX_INSIDE 524288u

/** Every fifth percentile, from the least value to the largest. */
#define AKIN_SIM_PERCENTILES 21u

/** Thirds of the measured requests. */
#define AKIN_SIM_PHASES 3u

/** When requests come. */
typedef enum akin_sim_arrivals {
    AKIN_SIM_POISSON,
    AKIN_SIM_CLOSED, /* the end of one admits the next, as a batch job does */
    AKIN_SIM_TRACE   /* as the pool's requests did, from the first on again
                        after the last */
} akin_sim_arrivals_t;

/** Which prefill worker a request goes to. */
typedef enum akin_sim_prefill_router {
    AKIN_SIM_PREFIX_HASH, /* by what its prompt begins with */
    AKIN_SIM_LEAST_LOADED /* in tokens */
} akin_sim_prefill_router_t;

/** A worker that dies. */
typedef struct akin_sim_fault {
    double at_s;
    bool is_decode;
    uint32_t worker; /* of its role */
} akin_sim_fault_t;

/** How workers die. Times are seconds. */
typedef struct akin_sim_faults {
    const akin_sim_fault_t *at; /* [n_at] */
    uint32_t n_at;
    double mtbf_s;   /* of every worker, exponential; 0: none dies by chance */
    double down_s;   /* until it is back, empty; 0: it never is */
    double detect_s; /* until the router knows */
} akin_sim_faults_t;

/**
 * Requests are those of the pool in an order that the seed gives, from the
 * first on again after the last; where the mix of the domains is given, those
 * of each domain; of a trace's arrivals, the i-th is the i-th of the pool by
 * time.
 */
typedef struct akin_sim_params {
    const akin_route_pool_t *pool; /* of the cost's model; with counts if the
                                      policy looks at them */
    akin_cost_model_t cost;
    const char *policy;
    const akin_fit_t *fit; /* or NULL */
    double tau;
    double pull;
    const akin_placement_t *placements; /* [n_decode] of workers of several
                                           ranks; NULL: one rank each */
    uint32_t n_prefill;
    uint32_t n_decode;
    uint32_t n_ranks; /* of every worker, prefill too; 0: 1 */
    akin_sim_prefill_router_t prefill_router;
    uint32_t chunk_tokens; /* of a prefill step; 0: no limit */
    uint64_t cache_tokens; /* of prompts that a prefill worker keeps; 0: none */
    uint32_t max_batch;    /* most requests of a decode worker; 0: no limit */
    uint64_t kv_tokens;    /* that a decode worker holds; 0: no limit */
    akin_sim_arrivals_t arrivals;
    double rate;                /* requests per second, Poisson */
    uint32_t in_flight;         /* requests inside, closed */
    const double *shares;       /* [n_domains] of the pool's domains; NULL:
                                   those of its requests. Not of a trace's
                                   arrivals, nor are the next ones */
    const double *later_shares; /* the same from two thirds of the measured
                                   requests on; over the second third the mix
                                   goes there evenly. NULL: it stays */
    uint32_t n_warmup;          /* requests before those that are measured */
    uint32_t n_measured;
    uint64_t n_total; /* requests of the run, which ends when all have; 0: they
                         come until the last measured one has ended */
    akin_sim_faults_t faults;
    uint64_t seed; /* of the requests, the arrivals, faults and the policy */
    akin_load_watch_t *watch;  /* of the decode workers; or NULL */
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
 * Figures of which nothing was measured, as times between tokens of outputs
 * with one, are NaN. What the measured requests saw, by the definitions of
 * vLLM's benchmark: ttft is arrival to first token, which the prefill worker
 * sends; tpot is first to last token over the tokens after the first; itl is
 * every gap between two tokens, to within 0.1 %. The window is the time from
 * the first to the last arrival of a measured request; of a run with an end, to
 * the end of the last measured one.
 */
typedef struct akin_sim_result {
    akin_sim_spread_t ttft_s;
    akin_sim_spread_t tpot_s;
    akin_sim_spread_t itl_s;
    double ttft_percentiles_s[AKIN_SIM_PERCENTILES];
    double tpot_percentiles_s[AKIN_SIM_PERCENTILES];
    double queue_s;  /* wait until a prefill worker begins, mean */
    double stay_s;   /* arrival to last token, mean */
    double distinct; /* experts per layer and step, mean over the steps that
                        ended in the window */
    double busiest;  /* of the busiest rank, likewise */
    double batch;    /* requests per step, likewise */
    double inside;   /* requests in the system, mean over the window */
    double copies;   /* part of these steps in which a request was beside a
                        copy of itself, which flatters policies that look at
                        experts: the pool is too small */
    double cached;   /* part of the prompt tokens that a prefill worker had in
                        its cache, of the measured requests */
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
    /* Of workers that died. Counts as doubles, as all other figures. */
    double deaths;
    double rerun;              /* times that a request began again */
    double reprefilled_tokens; /* that these had prefilled anew */
} akin_sim_result_t;

/** Does a policy look at what prompts chose? Unknown ones may. */
bool akin_sim_needs_counts(const char *policy);

/**
 * Requests come, wait in the router while 16 per prefill worker are ahead, are
 * prefilled one after another but for what is cached, decided on, moved over
 * the NICs of sender and receiver, join the next step of their worker and take
 * a token per step. A step's distinct experts are counted, not expected. A
 * request whose KV or place no worker has room for waits, in its order.
 *
 * What a decode worker had when it died begins again, prompt and tokens so far
 * being prefilled elsewhere, before requests that have not begun; so does what
 * waits at a prefill worker that died. Until the router knows, it sends more
 * there.
 *
 * Equal parameters give equal results.
 *
 * \param[in]  params
 * \param[out] result_p
 * \param[out] err  names what is wrong.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: a size of 0, a request larger than a worker's KV,
 *         a load that the workers cannot keep up with, all workers of a role
 *         dead, a pool of another shape, without counts or without arrivals
 *         where they are needed, the errors of akin_policy_create().
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
