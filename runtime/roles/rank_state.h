/* What one process of a rank holds, from its start to its end. */
#ifndef AKIN_ROLES_RANK_STATE_H
#define AKIN_ROLES_RANK_STATE_H

#include "engine/tokenizer.h"
#include "math/kernels.h"
#include "net/boot.h"
#include "roles/modelled.h"
#include "roles/paths.h"
#include "roles/rank.h"
#include "roles/rank_ep.h"
#include "roles/worker.h"
#include "roles/worker_wait.h"

/** Released in one place. */
typedef struct akini_self {
    const akin_rank_params_t *params;
    const akin_supervisor_life_t *life;
    akin_boot_t *boot; /* NULL: MPI is not, or no more, up */
    uint32_t number;
    uint32_t host_ranks;
    akin_job_place_t place;
    akin_config_t *config;
    char *job_text; /* canonical, of the config */
    akin_job_t job;
    const akin_kernels_t *kernels;
    akin_model_config_t model;
    akin_tokenizer_t *tokenizer;
    akin_fit_t fit;
    akini_rank_ep_t ep;
    akin_router_t *router;
    akin_engine_t *engine;
    akin_modelled_t *modelled; /* of the engine; NULL: it computes */
    akin_kv_layout_t layout;
    akin_kv_view_t view;
    akin_net_t *net;
    akin_worker_t worker;
    akini_paths_t paths;          /* while MPI is up */
    akin_transports_t transports; /* what was found of them */
    unsigned char *blobs;         /* identities of all ranks, of their start */
    const void *router_identity;  /* in them, or in the ticket */
    size_t router_identity_bytes;
    int router_is_gone; /* nothing of it was there for a later life */
    int router_is_away; /* it does not answer, or no network leads to it */
    int64_t met_ns;     /* when a later life turned to it */
    akin_message_identity_t *identities; /* [n_ranks] for the router */
    int64_t start_ns;
    akin_error_t err;
} akini_self_t;

/* rank_boot.c: the first life: all ranks start together, over MPI. */

/** \return AKIN_OK on all ranks or on none. */
akin_status_t akini_rank_boot(akini_self_t *self) AKIN_MUST_CHECK;

/* rank_join.c: a later life joins over UCX; it and spare ranks wait for a
 * role. */

/**
 * Tell the router, load, and say READY.
 *
 * \param[out] wait  begun; akini_worker_wait_end() in any case.
 * \return AKIN_OK
 * \return AKIN_ERR_CANCELED: there is nothing to join for; the end is in order.
 * \return why this life cannot go on; self->router_is_gone: nor can another;
 *         self->router_is_away: but another may.
 */
akin_status_t akini_rank_join(akini_self_t *self,
                              akini_worker_wait_t *wait) AKIN_MUST_CHECK;

/** Wait for a role; self->place has it.
 *
 * \return AKIN_OK, AKIN_ERR_CANCELED: none is needed any more; else why this
 *         life cannot go on.
 */
akin_status_t akini_rank_wait(akini_self_t *self,
                              akini_worker_wait_t *wait) AKIN_MUST_CHECK;

/* rank_load.c: what both have in common. */

/** Job from self->job_text, which another rank or life has read. */
akin_status_t akini_rank_read_text(akini_self_t *self) AKIN_MUST_CHECK;

akin_status_t akini_rank_load_engine(akini_self_t *self) AKIN_MUST_CHECK;
/** From now on the router is to show that it lives. */
akin_status_t akini_rank_watch_router(akini_self_t *self) AKIN_MUST_CHECK;
/** Layout of the KV slots of this job's model. */
akin_status_t akini_rank_compute_layout(akini_self_t *self) AKIN_MUST_CHECK;
/** The net, and on workers their KV cache. */
akin_status_t akini_rank_create_net(akini_self_t *self) AKIN_MUST_CHECK;
/** The ranks of a worker's own group that it exchanges messages with. */
int akini_rank_is_fellow(const akini_self_t *self, uint32_t rank);

#endif
