/* Prefix index: a tree of full blocks by their tokens, found through the
 * chained hash of the tokens and confirmed by comparing them. */
#ifndef AKIN_KV_PREFIX_INDEX_H
#define AKIN_KV_PREFIX_INDEX_H

#include "base/error.h"
#include "kv/slot_map.h"

#include <stdint.h>

/** The parent of first blocks, in place of a node number. */
#define AKINI_KV_ROOT (UINT32_MAX - 1)

/**
 * One chain hash that at least one live full block has. A block whose tokens
 * and parent node are those of the node is its member and shares its place in
 * the tree. A block with the same hash but another history (a collision, or a
 * history that the index does not know) is a stranger: it is counted, so that
 * blocks after it cannot be taken for children of this node, and is never
 * found.
 *
 * Links to a parent carry its serial number: once the parent is gone its
 * children are unreachable, even when another node gets its number.
 */
typedef struct akini_kv_node {
    uint64_t hash;
    uint64_t serial;        /* unique; 0: not in use */
    uint64_t parent_serial; /* 0 with the root */
    uint32_t parent;        /* node, AKINI_KV_ROOT or AKINI_KV_NONE: unknown */
    uint32_t next;          /* in its bucket, or in the list of free nodes */
    uint32_t first;         /* slot list of members and strangers */
    uint32_t shown;         /* the member that is found; AKINI_KV_NONE */
    uint32_t n_members;
    uint32_t n_strangers;
    uint32_t n_children; /* nodes whose parent link is this node and serial */
    uint8_t mark;        /* akini_kv_prefix_index_mark() */
} akini_kv_node_t;

/** A slot's place in the index. */
typedef struct akini_kv_place {
    uint32_t node; /* AKINI_KV_NONE: the slot is not in the index */
    uint32_t prev, next;
    uint8_t is_stranger;
} akini_kv_place_t;

typedef struct akini_kv_prefix_index {
    uint32_t n_slots;
    uint32_t block_tokens;
    uint64_t bucket_mask;
    uint64_t next_serial;
    uint32_t *buckets;        /* [bucket_mask + 1] first node */
    akini_kv_node_t *nodes;   /* [n_slots]: each has a slot of its own */
    uint32_t *tokens;         /* [n_slots][block_tokens] by node */
    akini_kv_place_t *places; /* [n_slots] by slot */
    uint32_t free_node;
    uint32_t n_nodes;
} akini_kv_prefix_index_t;

/** All memory is allocated here; nothing is later. */
akin_status_t akini_kv_prefix_index_init(akini_kv_prefix_index_t *index,
                                         uint32_t n_slots,
                                         uint32_t block_tokens) AKIN_MUST_CHECK;
void akini_kv_prefix_index_cleanup(akini_kv_prefix_index_t *index);

/**
 * The child of a node with these tokens.
 *
 * \param[in] parent  node or AKINI_KV_ROOT.
 * \param[in] hash    chain hash of the tokens after that parent.
 * \return a node with a shown slot, or AKINI_KV_NONE.
 */
uint32_t akini_kv_prefix_index_find(const akini_kv_prefix_index_t *index,
                                    uint32_t parent, uint64_t hash,
                                    const uint32_t *tokens);

/**
 * Enter a full block. The block before it is still in the index, where the
 * caller has a reference to it: so if all blocks with the parent's hash are
 * members of one node, that node is its parent.
 *
 * \param[in] slot         not in the index.
 * \param[in] parent_hash  AKIN_KV_ROOT_HASH for a first block.
 */
void akini_kv_prefix_index_enter(akini_kv_prefix_index_t *index, uint32_t slot,
                                 uint64_t parent_hash, uint64_t hash,
                                 const uint32_t *tokens);

/**
 * Take a slot out; another member becomes the one that is found.
 *
 * \return the shown slot of the parent if it has no children any more, else
 *         AKINI_KV_NONE.
 */
uint32_t akini_kv_prefix_index_leave(akini_kv_prefix_index_t *index,
                                     uint32_t slot);

/** Whether a slot is the one that is found for its tokens. */
int akini_kv_prefix_index_shows(const akini_kv_prefix_index_t *index,
                                uint32_t slot);

/** Whether blocks in the index build on this slot's, which it shows. */
int akini_kv_prefix_index_has_children(const akini_kv_prefix_index_t *index,
                                       uint32_t slot);

/**
 * Mark the node of a first block and all nodes that build on it, whether they
 * show a slot or not, and take the marks of all others away: O(slots).
 *
 * \param[in] hash    chain hash of the tokens after the root.
 * \param[in] tokens  [block_tokens]
 * \return nodes marked; 0: no such first block.
 */
uint32_t akini_kv_prefix_index_mark(akini_kv_prefix_index_t *index,
                                    uint64_t hash, const uint32_t *tokens);

/** Whether a slot is a member of a node that was marked last. */
int akini_kv_prefix_index_is_marked(const akini_kv_prefix_index_t *index,
                                    uint32_t slot);

/**
 * Make a member a stranger: it is found no more, and as long as it is there no
 * block after its hash can be taken for a child of its node.
 */
void akini_kv_prefix_index_disown(akini_kv_prefix_index_t *index,
                                  uint32_t slot);

/** Recount everything; AKIN_ERR_INTERNAL with text if something is wrong. */
akin_status_t akini_kv_prefix_index_audit(const akini_kv_prefix_index_t *index,
                                          akin_error_t *err) AKIN_MUST_CHECK;

#endif
