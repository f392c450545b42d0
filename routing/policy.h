/* Policy: chooses the decode worker of a request. Pure decisions: no I/O, no
 * MPI, no UCX, and no clock but the requests' own. */
#ifndef AKIN_ROUTING_POLICY_H
#define AKIN_ROUTING_POLICY_H

#include "base/error.h"
#include "ep/placement.h"
#include "routing/fit.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AKIN_ROUTING_NO_WORKER UINT32_MAX

typedef struct akin_policy akin_policy_t;

/** What `tau` and `pull` are where nothing better is known. */
#define AKIN_POLICY_TAU 0.1
#define AKIN_POLICY_PULL 0.16

typedef struct akin_policy_params {
    uint32_t n_workers;
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t top_k;
    uint64_t seed;         /* random, jsq ties, p2c */
    const akin_fit_t *fit; /* borrowed, outlives the policy; NULL: none */
    double tau;            /* width of the locality band, cosine, >= 0 */
    double pull;           /* of the nearest centroids: what a cosine of 1 is
                              worth, in steps that activate every expert; >= 0
                              */
    /* [n_workers] of workers of several ranks, all alike in n_ranks; borrowed,
     * outlive the policy; NULL: workers of one rank */
    const akin_placement_t *placements;
    int refit_inline; /* a refit runs inside the decision that starts it,
                         not on a thread: for replays, whose clock is not
                         the world's */
} akin_policy_params_t;

/** What the router knows of a request after its prefill; borrowed. */
typedef struct akin_policy_request {
    uint64_t id;            /* unique among the requests in flight */
    const uint16_t *counts; /* [n_layers][n_experts] prompt counts */
    uint32_t n_tokens;      /* prompt tokens, >= 1 */
    const char *domain;     /* label of its kind; NULL: none */
    int64_t now_ns;         /* of the decision; never goes back */
} akin_policy_request_t;

/** What the last decision looked at. */
typedef struct akin_policy_choice {
    uint32_t n_band; /* workers in the locality band; 0: the policy has none */
    double similarity; /* cosine with the chosen worker's centroid; 0: none */
} akin_policy_choice_t;

/** Refits of the centroids since the policy was created. */
typedef struct akin_policy_refits {
    uint64_t n_started;
    uint64_t n_installed;
    uint64_t n_failed;
    int64_t installed_ns;   /* of the last decision that installed one; 0 */
    int64_t max_install_ns; /* longest installation; 0: none, or inline */
    int is_refitting;       /* non-zero: the policy makes refits */
} akin_policy_refits_t;

/** One decode step of a worker, as its report says. */
typedef struct akin_policy_step {
    uint32_t batch;  /* requests in the step */
    double distinct; /* distinct experts of the rank with the most of them in
                        each layer, summed over the layers */
    double seconds;  /* duration */
} akin_policy_step_t;

/**
 * Names of the policies, NULL-terminated: "random", "rr", "jsq", "p2c",
 * "domain", "eldr-static", "eldr", "union", "union-band", "union-pull".
 */
extern const char *const akin_policy_names[];

/**
 * \param[in]  name      one of akin_policy_names.
 * \param[out] policy_p  owned by the caller; one thread.
 * \param[out] err       names the nearest policy.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: unknown name; a size of 0 in params; more than
 *         65,536 workers or 2^24 layers x experts; top_k above n_experts; a
 *         policy that needs a fit without one; a fit of other sizes; a tau
 *         that is negative or not finite.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_policy_create(const char *name,
                                 const akin_policy_params_t *params,
                                 akin_policy_t **policy_p,
                                 akin_error_t *err) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akin_policy_destroy(akin_policy_t *policy);

/**
 * Choose a worker and count the request as in flight there. No allocation
 * beyond a bounded per-request record, and no waiting: `eldr` fits on a thread
 * of its own, which the policy starts and ends, to the last 4,096 signatures
 * (those that 256 MiB hold, if that is fewer) of the last 5 s.
 *
 * `domain`: a request without a label, or with one that the fit knows little
 * of, goes to the workers of the rest. Where its own workers may not be
 * chosen, or are none, the least loaded of all is.
 *
 * \param[in]  request
 * \param[in]  eligible  [n_workers], non-zero: may be chosen (alive, has
 *                       room).
 * \param[out] worker_p  AKIN_ROUTING_NO_WORKER if none is eligible; then
 *                       nothing is counted.
 * \return AKIN_OK
 * \return AKIN_ERR_EXISTS: a request of that id is in flight.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_policy_decide(akin_policy_t *policy,
                                 const akin_policy_request_t *request,
                                 const uint8_t *eligible,
                                 uint32_t *worker_p) AKIN_MUST_CHECK;

/** The request has ended in any way; unknown ids are ignored. */
void akin_policy_finish(akin_policy_t *policy, uint64_t id);

/**
 * Feed a worker's step report (cost fit). Reports that are out of range, not
 * finite or far outliers are ignored.
 */
void akin_policy_observe(akin_policy_t *policy, uint32_t worker,
                         const akin_policy_step_t *step);

/**
 * Feed decode counts: how often each expert was chosen in some decode tokens.
 * Counts in which a layer does not add up to n_tokens x top_k are damaged and
 * ignored.
 *
 * \param[in] counts    [n_layers][n_experts]
 * \param[in] n_tokens  decode tokens they cover.
 */
void akin_policy_observe_counts(akin_policy_t *policy, const uint16_t *counts,
                                uint32_t n_tokens);

/** A map of params->placements has changed: what the policy keeps of that
 * worker is worked out again. */
void akin_policy_placement_changed(akin_policy_t *policy, uint32_t worker);

/** What the last decision that found a worker looked at. */
akin_policy_choice_t akin_policy_last_choice(const akin_policy_t *policy);

/** Refits so far; zeros for policies that make none. */
akin_policy_refits_t akin_policy_refits(const akin_policy_t *policy);

/** Does the policy need a fit? */
int akin_policy_needs_fit(const char *name);

/** Requests in flight on a worker. */
uint32_t akin_policy_in_flight(const akin_policy_t *policy, uint32_t worker);

/**
 * Expected distinct experts per step of a worker's present requests, of the
 * rank with the most of them in each layer, summed over layers; 0 for policies
 * that do not predict it.
 */
double akin_policy_expected_distinct(const akin_policy_t *policy,
                                     uint32_t worker);

#ifdef __cplusplus
}
#endif

#endif
