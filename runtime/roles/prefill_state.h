/* Prefill state: the prompts of a prefill rank, shared by the files that
 * compute them, keep their blocks and doubt them. */
#ifndef AKIN_ROLES_PREFILL_STATE_H
#define AKIN_ROLES_PREFILL_STATE_H

#include "roles/worker.h"
#ifdef AKIN_FAULTS
#include "kv/fault.h"
#endif

#include <uthash.h>

typedef enum akini_prompt_state {
    AKINI_PROMPT_WAITING, /* has no slots yet */
    AKINI_PROMPT_RUNNING, /* is being computed */
    AKINI_PROMPT_PINNED,  /* computed; blocks are kept under a lease */
    AKINI_PROMPT_STATES
} akini_prompt_state_t;

typedef struct akini_prompt {
    uint64_t id;
    akin_message_prefill_t request; /* its tokens are the prompt's own */
    akini_prompt_state_t state;
    uint32_t *slots; /* [n_blocks] */
    uint32_t n_blocks;
    uint32_t n_cached; /* blocks found in the cache */
    uint32_t n_done;   /* tokens computed or cached */
    uint32_t n_sealed; /* blocks sealed or cached */
    uint64_t chain;    /* hash of the last sealed block */
    uint32_t in_job;   /* tokens that the engine is computing now */
    int is_canceled;   /* forget it when the job is back */
    int is_doubted;    /* compute it anew when the job is back */
    int64_t arrival_ns;
    int64_t pinned_ns; /* pinned: since then */
    int64_t lease_ns;  /* pinned: until then */
    UT_hash_handle hh;
    struct akini_prompt *prev, *next; /* list of its state */
} akini_prompt_t;

/** worker->state of a prefill rank. */
typedef struct akini_prefill {
    akini_prompt_t *by_id;
    akini_prompt_t *lists[AKINI_PROMPT_STATES]; /* the pinned ones by age */
    uint16_t *counts; /* [n_layers][n_experts] scratch */
    uint32_t n_pinned;
    uint32_t n_pinned_blocks; /* each as often as it is */
    uint64_t n_expired;
    akin_message_leases_t told; /* the last LEASES */
    int64_t told_ns;
#ifdef AKIN_FAULTS
    akini_kv_faults_t faults;
#endif
} akini_prefill_t;

/**
 * A prompt that waits. Takes the tokens of the message; it is known by the
 * message's id, which no other prompt has.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akini_prompt_create(akin_worker_t *w,
                                  const akin_message_prefill_t *m,
                                  uint32_t n_blocks) AKIN_MUST_CHECK;

akini_prompt_t *akini_prompt_find(const akini_prefill_t *p, uint64_t id);

/** Into another state; pinned ones count as such from here on. */
void akini_prompt_move(akini_prefill_t *p, akini_prompt_t *prompt,
                       akini_prompt_state_t state);

/** Back to those that wait, in front of them, without slots. */
void akini_prompt_restart(akin_worker_t *w, akini_prompt_t *prompt);

/** Give its blocks back and free it. The engine does not have it. */
void akini_prompt_forget(akin_worker_t *w, akini_prompt_t *prompt);

/** It is computed: its blocks are kept for the length of a lease. */
void akini_prefill_pin(akin_worker_t *w, akini_prompt_t *prompt);

/** End the leases that are over and tell the router of the others, when that
 * is due. The time of what is due next. */
int64_t akini_prefill_expire(akin_worker_t *w, int64_t now_ns);

/** The last LEASES, and what the leases came to, for the last word. */
void akini_prefill_end_leases(akin_worker_t *w, akin_message_stats_t *m);

/**
 * A reader has refused a block of this prompt. Where a cached block is not what
 * it ought to be, nobody finds it any more, nor what was computed from it;
 * prompts that use it are computed anew, or their readers refused. Where all
 * are sound the damage is not here.
 */
void akini_prefill_doubt(akin_worker_t *w, const akin_message_prefill_t *m);

#endif
