/* Worker: what prefill and decode ranks have in common. */
#ifndef AKIN_ROLES_WORKER_H
#define AKIN_ROLES_WORKER_H

#include "base/error.h"
#include "engine/engine.h"
#include "kv/cache.h"
#include "net/net.h"
#include "roles/job.h"
#include "roles/message.h"
#include "roles/stepper.h"
#include "roles/worker_group.h"
#include "roles/worker_peers.h"
#include "roles/worker_place.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Rank of the router. */
#define AKIN_ROUTER_RANK 0u

typedef struct akin_worker akin_worker_t;

/** Who gets the messages of a rank that has no role yet. */
typedef struct akin_worker_waiter {
    void (*message)(void *arg, uint16_t type, const void *payload,
                    size_t bytes); /* of the router */
} akin_worker_waiter_t;

/** What a role adds to a worker. */
typedef struct akin_worker_role {
    /* A message of the role arrived. */
    void (*message)(akin_worker_t *worker, uint32_t from, uint16_t type,
                    const void *payload, size_t bytes);
    /* A peer other than the router is lost. */
    void (*peer_lost)(akin_worker_t *worker, uint32_t rank);
    /* The job is back from the engine thread. */
    void (*finished)(akin_worker_t *worker, akin_stepper_job_t *job);
    /* Fill the rows of a free job; none: nothing is to be done. */
    void (*fill)(akin_worker_t *worker, akin_stepper_job_t *job);
    /* Whether fill() would find rows; only workers of several ranks ask. */
    int (*has_work)(akin_worker_t *worker);
    /* Do what is due; the time of what is due next, INT64_MAX: nothing. */
    int64_t (*expire)(akin_worker_t *worker, int64_t now_ns);
    /* Add the role's counters to the last word. */
    void (*stats)(akin_worker_t *worker, akin_message_stats_t *stats);
} akin_worker_role_t;

struct akin_worker {
    const akin_job_t *job;
    uint32_t rank;
    uint32_t max_rows;   /* spans of a step */
    uint32_t max_tokens; /* tokens of a step; 0: one per span */
    int count_routes;    /* the engine thread counts the experts chosen */
    akin_net_t *net;
    akin_engine_t *engine;
    akin_ep_group_t *ep_group; /* the engine's; NULL: all experts are here */
    const akin_model_config_t *model;
    const akin_kv_view_t *view; /* over the net's slab */
    akin_kv_cache_t *cache;
    akin_stepper_t *stepper;
    akin_packer_t packer; /* for messages, one at a time */
    const akin_worker_role_t *role;
    void *state;               /* the role's */
    akin_worker_group_t group; /* its worker, if that has several ranks */
    akin_worker_peers_t peers; /* ranks of the other role that come and go */
    const akin_worker_waiter_t *waiter; /* while it has no role */
    void *waiter_arg;
    akin_worker_place_t place; /* the next map of a layer, likewise */
    int stopping;
    akin_status_t failure; /* why the rank cannot go on */
    akin_error_t error;    /* the same in words */
    int64_t start_ns;
    int64_t step_end_ns;
    uint64_t n_steps;
    int64_t busy_ns;
};

/**
 * Serve until the router says STOP. Called by the role with worker->role and
 * worker->state set; net, engine, view and job are borrowed. A rank that cannot
 * go on, because the router or a rank of the same worker is lost or for any
 * other reason, says so and ends its process with exit code 1 from here: its
 * engine may be in a step that nothing can break.
 *
 * \return AKIN_OK after STOP
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_worker_run(akin_worker_t *worker) AKIN_MUST_CHECK;

/** Make progress until then at the latest. A failure is in worker->failure. */
void akin_worker_wait(akin_worker_t *worker, int64_t until_ns);

/** End the process of a worker that failed; says why. */
void akin_worker_leave(akin_worker_t *worker) __attribute__((noreturn));

/** Send what is in worker->packer, then reset it. Failures to a lost peer are
 * left to peer_lost; another worker that takes nothing any more is given up. */
void akin_worker_send(akin_worker_t *worker, uint32_t rank,
                      akin_message_type_t type);

/** Send the router the experts of a request's tokens from position `first` on.
 *
 * \param[in] routes  [n_tokens][n_layers][top_k]
 */
void akin_worker_send_routes(akin_worker_t *worker, uint64_t id, uint32_t first,
                             uint32_t n_tokens, uint16_t *routes);

/** The rank cannot go on; what was said first counts. */
void akin_worker_fail(akin_worker_t *worker, akin_status_t status,
                      const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** The engine's step came to no end; tells which rank is at fault. */
void akin_worker_fail_step(akin_worker_t *worker, akin_status_t status);

/** Report of a step that just ended, with the idle time before it. */
void akin_worker_report(akin_worker_t *worker, const akin_stepper_job_t *job,
                        akin_message_step_t *step_p);

/** A message that cannot be read: log it and go on; its sender is broken. */
void akin_worker_refuse(uint32_t from, uint16_t type, akin_status_t status);

/** Run a prefill or a decode worker. \return as akin_worker_run(). */
akin_status_t akin_prefill_run(akin_worker_t *worker) AKIN_MUST_CHECK;
akin_status_t akin_decode_run(akin_worker_t *worker) AKIN_MUST_CHECK;

/** Net events of a worker; `arg` is the worker. */
void akin_worker_on_message(void *arg, uint32_t from, uint16_t type,
                            const void *payload, size_t bytes);
void akin_worker_on_peer_lost(void *arg, uint32_t rank, akin_status_t status);

#ifdef __cplusplus
}
#endif

#endif
