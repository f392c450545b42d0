/* What the files of the group share: its buffers, and the messages that ranks
 * of a group swap. */
#ifndef AKIN_EP_GROUP_STATE_H
#define AKIN_EP_GROUP_STATE_H

#include "ep/expert_pairs.h"
#include "ep/group.h"

#include <assert.h>

#define AKINI_EP_MAGIC UINT32_C(0x50454b41) /* "AKEP" */
#define AKINI_EP_VERSION 1u
/* Vectors in a message begin at such a boundary. */
#define AKINI_EP_ALIGN ((size_t)64)

enum {
    AKINI_EP_ACTIVE = 1,
    AKINI_EP_DISPATCH,
    AKINI_EP_COMBINE,
    AKINI_EP_SHARE
};

/**
 * Head of every message. All ranks of a group run the same program on the same
 * kind of machine, so numbers go as they are: little-endian.
 *
 * Active: head, [(n_experts + 63) / 64] u64, bit e: a row of mine chose e.
 * Dispatch: head, [n_pairs] pairs, gap, [n_rows][hidden] f32.
 * Combine: head, gap, [n_pairs][hidden] f32 in the order of the pairs.
 * Share: head, what the caller gave.
 */
typedef struct akini_ep_head {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;
    uint32_t layer;
    uint32_t hidden;
    uint32_t n_rows;
    uint32_t n_pairs;
    uint64_t epoch; /* of the placement */
} akini_ep_head_t;
static_assert(sizeof(akini_ep_head_t) == 32, "heads go over the wire");

/** An expert that the sender wants for a row of its message. */
typedef struct akini_ep_wish {
    uint32_t row;
    uint32_t expert;
} akini_ep_wish_t;
static_assert(sizeof(akini_ep_wish_t) == 8, "wishes go over the wire");

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the messages of a group are little-endian"
#endif

/** Where the vectors of a dispatch with so many pairs begin. */
static inline size_t akini_ep_dispatch_vectors(size_t n_pairs)
{
    size_t at = sizeof(akini_ep_head_t) + n_pairs * sizeof(akini_ep_wish_t);
    return (at + AKINI_EP_ALIGN - 1) / AKINI_EP_ALIGN * AKINI_EP_ALIGN;
}

/** What goes to one other rank. */
typedef struct akini_ep_link {
    unsigned char *dispatch; /* message under construction, in the memory below
                                or the exchange's */
    unsigned char *combine;
    unsigned char *own_dispatch; /* room for the longest of each */
    unsigned char *own_combine;
    uint32_t *rows;    /* [max_rows] batch rows that the dispatch carries */
    uint32_t *choices; /* [max_rows * k] row * k + j of each pair */
    uint32_t n_rows;
    uint32_t n_pairs;
    uint32_t n_served; /* pairs computed for that rank */
} akini_ep_link_t;

struct akin_ep_group {
    akin_ep_exchange_t *exchange;
    akin_placement_t placement;
    int64_t timeout_ns;
    akin_expert_step_params_t step; /* zero before prepare */
    akin_expert_pairs_t *pairs;
    akini_ep_link_t *links;   /* [n_ranks], the own one empty */
    akin_ep_piece_t *out;     /* [n_ranks] */
    akin_ep_piece_t *in;      /* [n_ranks] */
    unsigned char *share;     /* head and what is shared */
    size_t share_bytes;       /* room in it */
    akin_expert_pair_t *list; /* [max_rows * k * n_ranks] */
    uint32_t n_list;
    const float **terms; /* [max_rows * k] expert outputs in row order */
    float *out_buffer;   /* [max_rows * k][hidden] those computed here */
    uint8_t *rank_of;    /* [n_experts] who serves, in this layer */
    uint32_t *loads;     /* [n_ranks] */
    uint64_t *active;    /* head and bitmap, as sent */
    uint64_t *active_of_all;
    size_t n_words;       /* of a bitmap */
    akin_status_t status; /* not AKIN_OK: the group is no more */
    akin_error_t error;
    akin_ep_group_stats_t stats;
};

/** Where a message of at most so many bytes for the next swap is made. */
unsigned char *akini_ep_place(akin_ep_group_t *group, uint32_t to, size_t bytes,
                              unsigned char *own);

/** Write the head of a message. */
void akini_ep_head_put(const akin_ep_group_t *group, void *message, int kind,
                       uint32_t layer, uint32_t n_rows, uint32_t n_pairs);

/**
 * Check the head of what came from a rank.
 *
 * \return AKIN_OK, AKIN_ERR_FORMAT with the group's error text.
 */
akin_status_t akini_ep_head_get(akin_ep_group_t *group, uint32_t from, int kind,
                                uint32_t layer,
                                akini_ep_head_t *head_p) AKIN_MUST_CHECK;

/** Swap group->out for group->in; a failure has the group's error text. */
akin_status_t akini_ep_swap(akin_ep_group_t *group, int kind,
                            uint32_t layer) AKIN_MUST_CHECK;

/** Decide who serves each expert of the layer; swaps what is active where
 * experts have several holders. */
akin_status_t akini_ep_choose(akin_ep_group_t *group, uint32_t layer,
                              const akin_expert_batch_t *batch) AKIN_MUST_CHECK;

/** Sort the choices of the rows by who serves them: own pairs into the list,
 * the others into the messages. */
void akini_ep_plan(akin_ep_group_t *group, uint32_t layer,
                   const akin_expert_batch_t *batch);

/** Put one row's vector into the dispatch to one rank; i is below n_ranks *
 * n_rows. Any thread. */
void akini_ep_copy_row(akin_ep_group_t *group, const akin_expert_batch_t *batch,
                       uint32_t i);

/** Swap the dispatches and list the pairs of the others behind the own. */
akin_status_t akini_ep_dispatch(akin_ep_group_t *group,
                                uint32_t layer) AKIN_MUST_CHECK;

/** Swap the vectors of the others' pairs for those of the own. */
akin_status_t akini_ep_combine(akin_ep_group_t *group,
                               uint32_t layer) AKIN_MUST_CHECK;

#endif
