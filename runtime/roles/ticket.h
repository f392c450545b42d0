/* Ticket: what a rank's later life needs to know to join a running job without
 * MPI. */
#ifndef AKIN_ROLES_TICKET_H
#define AKIN_ROLES_TICKET_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/** Texts and blobs are borrowed; of one that was unpacked, from its data. */
typedef struct akini_ticket {
    uint32_t rank;
    uint32_t host_ranks;    /* that share the host's cores */
    const char *job;        /* canonical text */
    const char *kernel;     /* path that all ranks agreed on */
    const char *placements; /* akin_job_placements_pack(); "": none */
    const void *router;     /* akin_net_identity() of the router */
    size_t router_bytes;
} akini_ticket_t;

/**
 * \param[out] data_p  malloc'ed, owned by the caller.
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akini_ticket_pack(const akini_ticket_t *ticket, void **data_p,
                                size_t *bytes_p) AKIN_MUST_CHECK;

/** \return AKIN_OK, AKIN_ERR_FORMAT */
akin_status_t akini_ticket_unpack(const void *data, size_t bytes,
                                  akini_ticket_t *ticket_p) AKIN_MUST_CHECK;

#endif
