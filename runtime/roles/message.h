/* Message: what router, prefill and decode ranks tell each other. */
#ifndef AKIN_ROLES_MESSAGE_H
#define AKIN_ROLES_MESSAGE_H

#include "base/error.h"
#include "engine/sampler.h"
#include "kv/block.h"
#include "net/wire.h"
#include "roles/batch_format.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Types on the wire: append, never reorder. */
typedef enum akin_message_type {
    AKIN_MESSAGE_PREFILL = 1, /* router -> prefill: a prompt */
    AKIN_MESSAGE_PREFILLED,   /* prefill -> router: first token, blocks */
    AKIN_MESSAGE_DECODE,      /* router -> decode: go on from these blocks */
    AKIN_MESSAGE_TRANSFERRED, /* decode -> router: the blocks are here, or not
                               */
    AKIN_MESSAGE_TOKENS,      /* decode -> router: one step of all requests */
    AKIN_MESSAGE_STEP,        /* prefill -> router: one step */
    AKIN_MESSAGE_COUNTS,      /* decode -> router: experts of recent tokens */
    AKIN_MESSAGE_RELEASE,     /* to prefill: the blocks are needed no more */
    AKIN_MESSAGE_KEEP,        /* router -> prefill: extend the lease */
    AKIN_MESSAGE_CANCEL,      /* router -> worker: forget the request */
    AKIN_MESSAGE_STOP,        /* router -> worker: finish */
    AKIN_MESSAGE_STATS,       /* worker -> router: counters, the last word */
    AKIN_MESSAGE_ROUTES,      /* worker -> router: experts of some tokens; only
                               * while routes are recorded */
    AKIN_MESSAGE_EP_READY,    /* rank -> its worker's leader: has work */
    AKIN_MESSAGE_EP_STEP,     /* leader -> ranks: make this step */
    AKIN_MESSAGE_EP_DONE,     /* rank -> leader: that step is made */
    AKIN_MESSAGE_EP_END,      /* leader -> ranks: no step will follow */
    AKIN_MESSAGE_PLACE,       /* router -> decode: a layer's next map */
    AKIN_MESSAGE_PLACED,      /* rank -> its leader: has the weights for it;
                               * leader -> router: steps run under it, or will
                               * not */
    AKIN_MESSAGE_JOIN,        /* new process of a rank -> router */
    AKIN_MESSAGE_GROUP,       /* router -> it: the ranks of its group, all of
                               * which have joined */
    AKIN_MESSAGE_READY,       /* it -> router: loaded, waits for a role */
    AKIN_MESSAGE_ASSUME,      /* router -> waiting rank: be this worker */
    AKIN_MESSAGE_ASSUMED,     /* it -> router: it is, or cannot */
    AKIN_MESSAGE_PEER,   /* router -> worker: another rank, to connect to */
    AKIN_MESSAGE_PEERED, /* worker -> router: connected to it, or not */
    AKIN_MESSAGE_LOST,   /* router -> worker: give that rank up */
    AKIN_MESSAGE_LEASES, /* prefill -> router: its pinned blocks */
    AKIN_MESSAGE_TYPES   /* behind the last one */
} akin_message_type_t;

/** Name of a type, "PREFILL"; "?" for a number that is none. Static. */
const char *akin_message_name(uint16_t type);

/** Most tokens of a sequence on the wire. */
#define AKIN_MESSAGE_MAX_TOKENS ((size_t)1 << 26)

/** How a request's tokens are chosen; part of PREFILL and DECODE. */
typedef struct akin_message_sampling {
    akin_sampling_t sampling;
    uint32_t max_tokens;
    uint8_t ignore_eos;
    uint8_t want_logprobs;
    uint8_t n_top;
} akin_message_sampling_t;

typedef struct akin_message_prefill {
    uint64_t id;
    akin_message_sampling_t how;
    uint8_t fresh;    /* non-zero: recompute everything, no cached block */
    uint32_t *tokens; /* [n_tokens] the prompt */
    size_t n_tokens;
} akin_message_prefill_t;

typedef struct akin_message_prefilled {
    uint64_t id;
    int32_t status; /* akin_status_t; not OK: nothing below counts */
    uint32_t token; /* first token */
    akin_token_logprob_t logprob;
    uint32_t n_cached_blocks;     /* full blocks found in the cache */
    uint32_t n_queried_blocks;    /* full blocks looked for */
    akin_kv_descriptor_t *blocks; /* [n_blocks] of the prompt */
    size_t n_blocks;
    uint16_t *counts; /* [n_layers][n_experts] over the prompt */
    size_t n_counts;
} akin_message_prefilled_t;

typedef struct akin_message_decode {
    uint64_t id;
    akin_message_sampling_t how;
    uint32_t owner;   /* rank that holds the blocks */
    uint32_t *tokens; /* [n_tokens] the prompt and the first token */
    size_t n_tokens;
    akin_kv_descriptor_t *blocks; /* [n_blocks] of the prompt */
    size_t n_blocks;
} akin_message_decode_t;

typedef struct akin_message_transferred {
    uint64_t id;
    int32_t status;  /* akin_status_t */
    uint8_t refusal; /* akin_kv_refusal_t */
    uint32_t n_blocks;
    uint32_t n_shared; /* blocks that were there already */
    uint64_t bytes;
    int64_t ns;
} akin_message_transferred_t;

/** Part of TOKENS. */
typedef struct akin_message_token {
    uint64_t id;
    uint32_t token;
    uint8_t finished; /* 0, or 1 + akin_finish_t */
    uint8_t has_logprob;
    akin_token_logprob_t logprob;
} akin_message_token_t;

/** One engine step, alone (STEP) or before its tokens (TOKENS). */
typedef struct akin_message_step {
    int64_t ns;
    int64_t idle_ns;  /* of the rank since the step before */
    uint64_t number;  /* from 1, the same on all ranks of a worker */
    uint32_t n_rows;  /* of this rank */
    uint16_t *served; /* [n_served] per layer: distinct experts that this rank
                       * computed, for whatever rank's rows */
    size_t n_served;
} akin_message_step_t;

/** EP_STEP. */
typedef struct akin_message_ep_step {
    uint64_t number;
    uint64_t epoch; /* of the placement that it runs under */
} akin_message_ep_step_t;

/** PLACE. */
typedef struct akin_message_place {
    uint64_t epoch; /* of the placement with this change */
    uint32_t layer;
    uint64_t *holders; /* [n_holders] of the layer's experts */
    size_t n_holders;
} akin_message_place_t;

/** PLACED. */
typedef struct akin_message_placed {
    uint64_t epoch;
    int32_t status; /* akin_status_t; not OK: the change is dropped */
} akin_message_placed_t;

/** EP_DONE. */
typedef struct akin_message_ep_done {
    uint64_t number;  /* of the step */
    uint8_t has_work; /* for another one */
} akin_message_ep_done_t;

typedef struct akin_message_tokens {
    akin_message_step_t step;
    akin_message_token_t *tokens; /* [n_tokens] */
    size_t n_tokens;
} akin_message_tokens_t;

typedef struct akin_message_counts {
    uint32_t n_tokens;
    uint16_t *counts; /* [n_layers][n_experts] */
    size_t n_counts;
} akin_message_counts_t;

/** Rows of one request; they come before the PREFILLED or the TOKENS that their
 * last one leads to. */
typedef struct akin_message_routes {
    uint64_t id;
    uint32_t first;    /* position of the first row's token */
    uint32_t n_tokens; /* rows, >= 1 */
    uint16_t *routes;  /* [n_tokens][n_layers][top_k], in the gate's order */
    size_t n_routes;   /* a multiple of n_tokens */
} akin_message_routes_t;

/** What others need to reach a rank: akin_net_identity(), and within its group
 * akin_ep_exchange_ucx_identity(). Blobs are borrowed, those of a message that
 * was unpacked from its data. */
typedef struct akin_message_identity {
    uint32_t rank;
    const void *net;
    size_t net_bytes;
    const void *exchange;
    size_t exchange_bytes; /* 0: of a group of one rank */
} akin_message_identity_t;

/** JOIN. */
typedef struct akin_message_join {
    uint32_t life;   /* of the rank's process: 1, 2, ... */
    uint8_t is_last; /* non-zero: only to tell that the one before is dead */
    akin_message_identity_t identity;
} akin_message_join_t;

/** GROUP; PEER with one rank. */
typedef struct akin_message_group {
    akin_message_identity_t *ranks; /* [n_ranks] ascending */
    size_t n_ranks;
} akin_message_group_t;

/** ASSUME: which worker to be, whom to connect to, and where its experts are.
 */
typedef struct akin_message_assume {
    uint8_t is_prefill;
    uint32_t worker;                /* among those of the role */
    uint64_t epoch;                 /* of the placement */
    akin_message_identity_t *peers; /* [n_peers] of the other role */
    size_t n_peers;
    uint64_t *holders; /* [n_holders] = layers x experts, as in a placement;
                        * none: of one rank */
    size_t n_holders;
} akin_message_assume_t;

/** READY, ASSUMED: rank is the sender; PEERED, LOST: whom it is about. */
typedef struct akin_message_rank {
    uint32_t rank;
    uint64_t incarnation; /* LOST: of the life that is over; else 0 */
    int32_t status;       /* akin_status_t */
} akin_message_rank_t;

/** LEASES: gauges of a prefill rank. */
typedef struct akin_message_leases {
    uint32_t n_blocks;   /* pinned now, each as often as it is */
    uint32_t n_requests; /* that pin them */
    int64_t oldest_ns;   /* since the oldest of them was pinned */
    uint64_t n_expired;  /* leases that ended, since the start */
} akin_message_leases_t;

typedef struct akin_message_stats {
    uint64_t steps;
    uint64_t busy_ns;
    uint64_t total_ns;
    uint64_t evictions;
    uint64_t reads_one_sided;
    uint64_t reads_rendezvous;
    uint64_t read_bytes;
    uint64_t leases_expired;
    uint64_t pinned_blocks; /* not released when the rank ends */
    uint64_t messages_late; /* of or for dead processes, dropped */
} akin_message_stats_t;

/*
 * Packing appends to a packer that the caller has reset; the result is in the
 * packer (status AKIN_ERR_NOMEM if memory ran out).
 */
void akin_message_pack_prefill(akin_packer_t *p,
                               const akin_message_prefill_t *m);
void akin_message_pack_prefilled(akin_packer_t *p,
                                 const akin_message_prefilled_t *m);
void akin_message_pack_decode(akin_packer_t *p, const akin_message_decode_t *m);
void akin_message_pack_transferred(akin_packer_t *p,
                                   const akin_message_transferred_t *m);
void akin_message_pack_tokens(akin_packer_t *p, const akin_message_tokens_t *m);
void akin_message_pack_step(akin_packer_t *p, const akin_message_step_t *m);
void akin_message_pack_counts(akin_packer_t *p, const akin_message_counts_t *m);
void akin_message_pack_id(akin_packer_t *p,
                          uint64_t id); /* RELEASE ... CANCEL; EP_READY,
                                           EP_END: the step's number */
void akin_message_pack_stats(akin_packer_t *p, const akin_message_stats_t *m);
void akin_message_pack_routes(akin_packer_t *p, const akin_message_routes_t *m);
void akin_message_pack_ep_done(akin_packer_t *p,
                               const akin_message_ep_done_t *m);
void akin_message_pack_ep_step(akin_packer_t *p,
                               const akin_message_ep_step_t *m);
void akin_message_pack_place(akin_packer_t *p, const akin_message_place_t *m);
void akin_message_pack_placed(akin_packer_t *p, const akin_message_placed_t *m);
void akin_message_pack_join(akin_packer_t *p, const akin_message_join_t *m);
void akin_message_pack_group(akin_packer_t *p, const akin_message_group_t *m);
void akin_message_pack_assume(akin_packer_t *p, const akin_message_assume_t *m);
void akin_message_pack_rank(akin_packer_t *p, const akin_message_rank_t *m);
void akin_message_pack_leases(akin_packer_t *p, const akin_message_leases_t *m);

/*
 * Unpacking: AKIN_OK, or AKIN_ERR_FORMAT, AKIN_ERR_RANGE or AKIN_ERR_NOMEM,
 * and then the message owns nothing. Arrays of a message that was unpacked are
 * its own: free() them.
 */
akin_status_t
akin_message_unpack_prefill(const void *data, size_t bytes,
                            akin_message_prefill_t *m) AKIN_MUST_CHECK;
akin_status_t
akin_message_unpack_prefilled(const void *data, size_t bytes,
                              akin_message_prefilled_t *m) AKIN_MUST_CHECK;
akin_status_t
akin_message_unpack_decode(const void *data, size_t bytes,
                           akin_message_decode_t *m) AKIN_MUST_CHECK;
akin_status_t
akin_message_unpack_transferred(const void *data, size_t bytes,
                                akin_message_transferred_t *m) AKIN_MUST_CHECK;
akin_status_t
akin_message_unpack_tokens(const void *data, size_t bytes,
                           akin_message_tokens_t *m) AKIN_MUST_CHECK;
akin_status_t akin_message_unpack_step(const void *data, size_t bytes,
                                       akin_message_step_t *m) AKIN_MUST_CHECK;
akin_status_t
akin_message_unpack_counts(const void *data, size_t bytes,
                           akin_message_counts_t *m) AKIN_MUST_CHECK;
akin_status_t akin_message_unpack_id(const void *data, size_t bytes,
                                     uint64_t *id_p) AKIN_MUST_CHECK;
akin_status_t
akin_message_unpack_stats(const void *data, size_t bytes,
                          akin_message_stats_t *m) AKIN_MUST_CHECK;
akin_status_t
akin_message_unpack_routes(const void *data, size_t bytes,
                           akin_message_routes_t *m) AKIN_MUST_CHECK;
akin_status_t
akin_message_unpack_ep_done(const void *data, size_t bytes,
                            akin_message_ep_done_t *m) AKIN_MUST_CHECK;
akin_status_t
akin_message_unpack_ep_step(const void *data, size_t bytes,
                            akin_message_ep_step_t *m) AKIN_MUST_CHECK;
akin_status_t
akin_message_unpack_place(const void *data, size_t bytes,
                          akin_message_place_t *m) AKIN_MUST_CHECK;
akin_status_t
akin_message_unpack_placed(const void *data, size_t bytes,
                           akin_message_placed_t *m) AKIN_MUST_CHECK;
akin_status_t akin_message_unpack_join(const void *data, size_t bytes,
                                       akin_message_join_t *m) AKIN_MUST_CHECK;
akin_status_t
akin_message_unpack_group(const void *data, size_t bytes,
                          akin_message_group_t *m) AKIN_MUST_CHECK;
akin_status_t
akin_message_unpack_assume(const void *data, size_t bytes,
                           akin_message_assume_t *m) AKIN_MUST_CHECK;
akin_status_t akin_message_unpack_rank(const void *data, size_t bytes,
                                       akin_message_rank_t *m) AKIN_MUST_CHECK;
akin_status_t
akin_message_unpack_leases(const void *data, size_t bytes,
                           akin_message_leases_t *m) AKIN_MUST_CHECK;

/** Free what a message that was unpacked owns. Identities borrow from the data
 * they were unpacked from. */
void akin_message_tokens_cleanup(akin_message_tokens_t *m);
void akin_message_group_cleanup(akin_message_group_t *m);
void akin_message_assume_cleanup(akin_message_assume_t *m);

#ifdef __cplusplus
}
#endif

#endif
