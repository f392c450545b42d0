/* Replay pool: decode workers and the recorded requests that run on them, step
 * by step. */
#ifndef AKIN_ROUTING_REPLAY_POOL_H
#define AKIN_ROUTING_REPLAY_POOL_H

#include "routing/replay.h"

/** A request on a worker. */
typedef struct akini_replay_member {
    uint64_t id;
    uint32_t request; /* index into the requests of the pool */
    uint32_t n_done;  /* decode tokens */
    double start_s;   /* of its decision */
} akini_replay_member_t;

typedef struct akini_replay_worker {
    akini_replay_member_t *members; /* [n_running] of the step, then
                                       [n_waiting] */
    uint32_t n_running;
    uint32_t n_waiting; /* join at the next step */
    uint32_t capacity;
    double end_s;    /* of the step; infinite: idle */
    double distinct; /* experts of the step, over the layers */
    double busiest;  /* of the busiest rank of each layer */
    double expected; /* of that by the policy */
} akini_replay_worker_t;

typedef struct akini_replay_pool {
    const akin_replay_params_t *params;
    akini_replay_worker_t *workers;
    uint8_t *eligible;            /* [n_workers] has room */
    uint64_t *active;             /* [n_words] union of a step */
    uint8_t *rank_of;             /* [n_experts] scratch */
    akini_replay_member_t *ended; /* [n_ended] by the last step that ended */
    uint32_t n_ended;
    uint32_t ended_capacity;
    uint32_t n_in_flight;
} akini_replay_pool_t;

/** All workers idle; cleanup() also after a failure. */
akin_status_t akini_replay_pool_init(akini_replay_pool_t *pool,
                                     const akin_replay_params_t *params);

void akini_replay_pool_cleanup(akini_replay_pool_t *pool);

const akin_replay_request_t *
akini_replay_pool_request(const akini_replay_pool_t *pool,
                          const akini_replay_member_t *member);

/** Set `eligible`. \return 0 if no worker has room. */
int akini_replay_pool_find_room(akini_replay_pool_t *pool);

/** Add a request to a worker; an idle one starts a step at once. */
akin_status_t akini_replay_pool_join(akini_replay_pool_t *pool, uint32_t w,
                                     const akini_replay_member_t *member,
                                     double now_s) AKIN_MUST_CHECK;

/** The worker whose step ends first; the lowest of several. */
uint32_t akini_replay_pool_first(const akini_replay_pool_t *pool);

/** Start a worker's next step with all that it has, or let it idle. */
void akini_replay_pool_start_step(akini_replay_pool_t *pool, uint32_t w,
                                  double now_s);

/** Give every request of a worker's step its token; those that have all of
 * theirs leave and lie in `ended`, in the order in which they joined. */
void akini_replay_pool_end_step(akini_replay_pool_t *pool, uint32_t w);

/** Duration of the step that a worker is in. */
double akini_replay_pool_step_seconds(const akini_replay_pool_t *pool,
                                      uint32_t w);

#endif
