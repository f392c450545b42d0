/* Rank EP: a rank's start in an expert-parallel worker. */
#ifndef AKIN_ROLES_RANK_EP_H
#define AKIN_ROLES_RANK_EP_H

#include "ep/group.h"
#include "net/boot.h"
#include "net/boot_group.h"
#include "roles/job_ep.h"
#include "roles/message.h"

/** What a rank holds of it; zero before the start. */
typedef struct akini_rank_ep {
    akin_job_placements_t placements; /* of all workers */
    akin_boot_group_t *boot_group;    /* with ep.exchange = mpi */
    akin_ep_exchange_t *exchange;     /* NULL: a worker of one rank */
    akin_ep_group_t *group;           /* likewise */
} akini_rank_ep_t;

/**
 * All ranks call it: rank 0 makes the placements, all get them.
 *
 * \param[in] model, fit  of rank 0; others: NULL.
 * \param[in] status      of rank 0, which may have failed before.
 * \return as akin_boot_broadcast(), akin_job_placements_make()
 */
akin_status_t akini_rank_ep_place(akini_rank_ep_t *ep, akin_boot_t *boot,
                                  const akin_job_t *job,
                                  const akin_model_config_t *model,
                                  const akin_fit_t *fit, akin_status_t status,
                                  akin_error_t *err) AKIN_MUST_CHECK;

/** All ranks call it: connects the ranks of each worker. */
akin_status_t akini_rank_ep_boot(akini_rank_ep_t *ep, akin_boot_t *boot,
                                 const akin_job_t *job,
                                 akin_error_t *err) AKIN_MUST_CHECK;

/* Without MPI: open, connect the exchange to all others, bind; when the worker
 * is known, assume. All do nothing in a group of one rank. */

/** The exchange of a rank, not yet connected. */
akin_status_t akini_rank_ep_open(akini_rank_ep_t *ep, uint32_t rank,
                                 const akin_job_place_t *place,
                                 akin_error_t *err) AKIN_MUST_CHECK;

/** The group over the exchange, under the map of some worker of that size. */
akin_status_t akini_rank_ep_bind(akini_rank_ep_t *ep, const akin_job_t *job,
                                 uint32_t rank, const akin_job_place_t *place,
                                 akin_error_t *err) AKIN_MUST_CHECK;

/** The map of the worker that the group becomes. */
akin_status_t akini_rank_ep_assume(akini_rank_ep_t *ep,
                                   const akin_message_assume_t *m,
                                   akin_error_t *err) AKIN_MUST_CHECK;

/** After the engine; before akin_boot_finish() where MPI stayed up. */
void akini_rank_ep_leave(akini_rank_ep_t *ep);

#endif
