/* Decode state: the requests of a decode rank. */
#ifndef AKIN_ROLES_DECODE_STATE_H
#define AKIN_ROLES_DECODE_STATE_H

#include "kv/transfer.h"
#include "roles/worker.h"

#include <uthash.h>

/** A request, from its DECODE to its last token. */
typedef struct akini_sequence {
    uint64_t id;
    akin_worker_t *worker;
    akin_message_decode_t request; /* its tokens are in `tokens` */
    uint32_t *tokens;              /* [n_prompt + max_tokens] */
    uint32_t n_tokens;             /* the last one has not been computed */
    uint32_t n_prompt;
    uint32_t *slots; /* [n_slots] for all tokens it may have */
    uint32_t n_slots;
    uint32_t n_shared; /* blocks that were in the cache */
    uint32_t n_sealed; /* full blocks */
    uint64_t chain;    /* hash of the last full block */
    uint16_t *routes;  /* [max_tokens - 1][n_layers][top_k] of the generated
                        * tokens that were computed, or NULL */
    int is_running;
    int has_transfer;
    uint64_t transfer;
    int in_job;
    int canceled; /* or finished: forget it when nothing uses it */
    UT_hash_handle hh;
    struct akini_sequence *prev, *next; /* running ones */
} akini_sequence_t;

/** worker->state of a decode rank. */
typedef struct akini_decode {
    akini_sequence_t *by_id;
    akini_sequence_t *running;
    akin_kv_transfers_t *transfers;
    akin_message_token_t *out; /* [max_rows] */
    uint32_t n_uncounted_steps;
} akini_decode_t;

/** What the router cannot have meant. \return AKIN_OK, AKIN_ERR_RANGE */
akin_status_t akini_sequence_check(const akin_worker_t *w,
                                   const akin_message_decode_t *m);

/** Takes the blocks of the message, not its tokens; NULL: out of memory. */
akini_sequence_t *akini_sequence_create(akin_worker_t *w,
                                        const akin_message_decode_t *m);

/** Give back its slots and free it. */
void akini_sequence_forget(akin_worker_t *w, akini_sequence_t *s);

/** Slots for everything that the request may become, so that it can never run
 * out of them half way: full blocks that are here already, then fresh ones. */
akin_status_t akini_sequence_take_slots(akin_worker_t *w, akini_sequence_t *s);

/** All blocks of the prompt are here: those that were read join the prefix
 * index, and the request takes part in the next step. */
akin_status_t akini_sequence_run(akin_worker_t *w, akini_sequence_t *s);

/** The token that a row gave; says whether it was the last one. */
int akini_sequence_token(akin_worker_t *w, akini_sequence_t *s,
                         const akin_stepper_row_t *row,
                         akin_message_token_t *out);

/** Send the router the experts of the tokens, if they are recorded. */
void akini_sequence_send_routes(akin_worker_t *w, const akini_sequence_t *s);

#endif
