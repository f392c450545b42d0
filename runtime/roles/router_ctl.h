/* The router's workers as those see them who ask from outside. */
#ifndef AKIN_ROLES_ROUTER_CTL_H
#define AKIN_ROLES_ROUTER_CTL_H

#include "roles/router_state.h"

typedef enum akini_worker_state {
    AKINI_WORKER_SERVING,
    AKINI_WORKER_DRAINING, /* gets nothing new, has requests */
    AKINI_WORKER_DRAINED,  /* has none */
    AKINI_WORKER_JOINING,  /* is lost; who will be it loads or connects */
    AKINI_WORKER_LOST,
    AKINI_WORKER_STATES
} akini_worker_state_t;

/** "serving" ...; static. */
const char *akini_worker_state_name(akini_worker_state_t state);

/** A worker of the summary. */
typedef struct akini_worker_view {
    char name[32];
    akini_worker_state_t state;
    const akini_rank_t *places; /* [n_ranks] */
    uint32_t n_ranks;
    uint32_t life;       /* of the rank that was started anew most often */
    uint32_t n_requests; /* that need it */
    uint32_t n_limit;    /* decode: requests in a step */
    uint32_t n_reserved; /* decode: slots promised */
    uint64_t n_slots;    /* of all its ranks */
} akini_worker_view_t;

/** \param[in] worker  below that number of the summary. */
void akini_router_view(const akin_router_t *r, uint32_t worker,
                       akini_worker_view_t *view_p);

/** Whether a request needs a worker: its decode worker, or the prefill worker
 * that computes its prompt, or holds what it computed. */
int akini_flight_needs(const akin_router_t *r, const akini_flight_t *f,
                       uint32_t worker);

/** router_metrics.c: the metrics' text, owned by the caller; NULL: out of
 * memory. */
char *akini_router_metrics(const akin_router_t *r);

struct json_t;

/** router_status.c: what "status" answers; NULL: out of memory. */
struct json_t *akini_router_status(const akin_router_t *r);

#endif
