/* Supervised: the memory that a rank and its supervisor share, as the
 * supervisor sees it. */
#ifndef AKIN_NET_SUPERVISED_H
#define AKIN_NET_SUPERVISED_H

#include "net/supervisor.h"

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct akini_supervised_board;

/** Of the supervisor and, after a fork, of the rank. */
typedef struct akini_supervised {
    struct akini_supervised_board *board; /* shared */
    int ticket_fds[2];                    /* shared; one is in force */
    pid_t supervisor;
    uint64_t begun; /* what was in force when this life began */
} akini_supervised_t;

/** What a life has told so far. */
typedef struct akini_supervised_signs {
    int is_armed;
    int has_beaten; /* since the look before */
    int is_ending;
    int64_t end_limit_ns;          /* 0: none */
    akin_supervised_terms_t terms; /* of the life that was armed last */
} akini_supervised_signs_t;

/**
 * Make the memory; before the first fork, in the supervisor.
 *
 * \return AKIN_OK, AKIN_ERR_NOMEM, AKIN_ERR_IO
 */
akin_status_t akini_supervised_init(akini_supervised_t *supervised,
                                    akin_error_t *err) AKIN_MUST_CHECK;

/** Frees it on this side. */
void akini_supervised_cleanup(akini_supervised_t *supervised);

/** Before the fork of each life: it is not armed, does not end. Terms and
 * ticket of those before it stay. */
void akini_supervised_begin(akini_supervised_t *supervised);

/** In the rank: akin_supervised_arm() and its like speak to this one from now
 * on, which must live as long as the process. */
void akini_supervised_enter(const akini_supervised_t *supervised);

/** See what the life has told; `signs` starts as zero and is kept from look to
 * look. Takes back the beat. */
void akini_supervised_look(akini_supervised_t *supervised,
                           akini_supervised_signs_t *signs);

/**
 * A copy of the ticket that is in force.
 *
 * \param[out] ticket_p  owned by the caller, free(); NULL if there is none.
 * \return AKIN_OK, AKIN_ERR_NOMEM, AKIN_ERR_IO
 */
akin_status_t
akini_supervised_get_ticket(const akini_supervised_t *supervised,
                            void **ticket_p,
                            size_t *ticket_bytes_p) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
