/* KV block: the layout of one slot, in which a block of keys and values, its
 * signature sidecar and its header lie side by side. */
#ifndef AKIN_KV_BLOCK_H
#define AKIN_KV_BLOCK_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AKIN_KV_MAGIC                                                          \
    UINT32_C(0x424b4e41) /* "ANKB" on a little-endian host                     \
                          */
#define AKIN_KV_VERSION 1
#define AKIN_KV_SLOT_ALIGN_BYTES 4096
#define AKIN_KV_MIN_BLOCK_TOKENS 8
#define AKIN_KV_MAX_BLOCK_TOKENS 64

/** First bytes of a slot, little-endian, part of the wire format. */
typedef struct akin_kv_header {
    uint32_t magic;
    uint16_t version;
    uint16_t n_tokens;    /* tokens filled, 0 .. block_tokens */
    uint64_t generation;  /* bumped whenever the slot gets a new owner */
    uint64_t chain_hash;  /* hash of the parent block's hash and the tokens */
    uint64_t checksum;    /* akin_kv_block_checksum() */
    uint8_t reserved[32]; /* zeros */
} akin_kv_header_t;

/** Shape of the model, as far as a block depends on it. */
typedef struct akin_kv_shape {
    uint32_t n_layers;
    uint32_t n_kv_heads;
    uint32_t head_dim;
    uint32_t n_experts;
    uint32_t top_k;
    uint32_t block_tokens; /* power of two, 8 .. 64 */
} akin_kv_shape_t;

/** Offsets inside a slot, all in bytes. */
typedef struct akin_kv_layout {
    akin_kv_shape_t shape;
    size_t kv_offset;      /* = sizeof(akin_kv_header_t) */
    size_t kv_bytes;       /* layers * 2 * kv_heads * block_tokens * dim * 2 */
    size_t sidecar_offset; /* kv_offset + kv_bytes */
    size_t sidecar_bytes;  /* layers * experts, one u8 each */
    size_t payload_bytes;  /* header + KV + sidecar: what a transfer moves */
    size_t stride_bytes;   /* payload_bytes up to a multiple of 4096 */
    size_t layer_bytes;    /* K and V of one layer */
    size_t half_bytes;     /* K (or V) of one layer */
    size_t head_bytes;     /* one head of one layer's K (or V) */
} akin_kv_layout_t;

/**
 * Compute the layout of DESIGN.md section 4.
 *
 * \param[in]  shape     all fields non-zero, block_tokens a power of two in
 *                       [8, 64], top_k <= n_experts.
 * \param[out] layout_p
 * \param[out] err       names the field.
 * \return AKIN_OK
 * \return AKIN_ERR_RANGE
 */
akin_status_t akin_kv_layout_init(const akin_kv_shape_t *shape,
                                  akin_kv_layout_t *layout_p,
                                  akin_error_t *err) AKIN_MUST_CHECK;

/** Slots of one rank as the engine sees them; memory is borrowed. */
typedef struct akin_kv_view {
    const akin_kv_layout_t *layout;
    unsigned char *base; /* slot i at base + i * layout->stride_bytes */
    uint32_t n_slots;
} akin_kv_view_t;

/** First byte of a slot. */
static inline unsigned char *akin_kv_slot(const akin_kv_view_t *view,
                                          uint32_t slot)
{
    return view->base + (size_t)slot * view->layout->stride_bytes;
}

/** Keys of one head of one layer: bf16 [block_tokens][head_dim]. */
static inline uint16_t *akin_kv_keys(const akin_kv_layout_t *layout,
                                     unsigned char *slot, uint32_t layer,
                                     uint32_t head)
{
    void *p = slot + layout->kv_offset + layer * layout->layer_bytes +
              head * layout->head_bytes;
    return (uint16_t *)p;
}

/** Values of one head of one layer: bf16 [block_tokens][head_dim]. */
static inline uint16_t *akin_kv_values(const akin_kv_layout_t *layout,
                                       unsigned char *slot, uint32_t layer,
                                       uint32_t head)
{
    void *p = slot + layout->kv_offset + layer * layout->layer_bytes +
              layout->half_bytes + head * layout->head_bytes;
    return (uint16_t *)p;
}

/** Sidecar: u8 [n_layers][n_experts], tokens of the block that chose each. */
static inline uint8_t *akin_kv_sidecar(const akin_kv_layout_t *layout,
                                       unsigned char *slot)
{
    return slot + layout->sidecar_offset;
}

/** Header of a slot. */
static inline akin_kv_header_t *akin_kv_header(unsigned char *slot)
{
    void *p = slot;
    return (akin_kv_header_t *)p;
}

/**
 * Checksum of a slot as it lies in memory: XXH3-64 of the KV and sidecar
 * bytes, seeded with a mix of the chain hash and n_tokens of its header.
 *
 * The generation takes no part. It says whose slot this is, not what lies in
 * it, and akin_kv_block_check() compares it with the one that was promised, so
 * a wrong one is refused anyway; and a block that was overwritten while it was
 * read no longer matches the checksum of either owner. In return a block that
 * was copied to another slot takes that slot's generation with one store and
 * stays intact, without a second pass over its payload.
 *
 * \param[in] layout
 * \param[in] slot  first byte; the header's fields take part.
 * \return what header.checksum of an intact block holds.
 */
uint64_t akin_kv_block_checksum(const akin_kv_layout_t *layout,
                                const unsigned char *slot);

/** Give a slot an empty header: no tokens, no chain, no checksum. */
void akin_kv_block_clear(unsigned char *slot, uint64_t generation);

/**
 * Write chain hash, token count and checksum into the header; the generation
 * stays.
 *
 * \param[in] n_tokens  1 .. block_tokens
 */
void akin_kv_block_seal(const akin_kv_layout_t *layout, unsigned char *slot,
                        uint64_t chain_hash, uint32_t n_tokens);

/** What a reader expects of a block before it trusts it. */
typedef struct akin_kv_descriptor {
    uint32_t slot; /* in the owner's slab */
    uint32_t n_tokens;
    uint64_t generation;
    uint64_t chain_hash;
} akin_kv_descriptor_t;

/** Why a block was refused; NONE: it was not. */
typedef enum akin_kv_refusal {
    AKIN_KV_REFUSAL_NONE,
    AKIN_KV_REFUSAL_MAGIC,
    AKIN_KV_REFUSAL_VERSION,
    AKIN_KV_REFUSAL_GENERATION,
    AKIN_KV_REFUSAL_TOKENS,
    AKIN_KV_REFUSAL_CHAIN,
    AKIN_KV_REFUSAL_CHECKSUM,
    AKIN_KV_REFUSAL_CONSERVATION,
    AKIN_KV_REFUSAL_COUNT
} akin_kv_refusal_t;

/** Short word for a refusal: "generation". */
const char *akin_kv_refusal_string(akin_kv_refusal_t refusal);

/**
 * All checks of a block, in the order of the enum. Reserved bytes that are not
 * zero count as another version; a block without tokens is refused.
 * Conservation
 * (ALGORITHMS.md section 1): in every layer the sidecar's counts sum to
 * n_tokens * top_k and no count exceeds n_tokens.
 *
 * \param[in] slot      the block as it was read.
 * \param[in] expected
 * \return the first check that failed, or AKIN_KV_REFUSAL_NONE.
 */
akin_kv_refusal_t akin_kv_block_check(const akin_kv_layout_t *layout,
                                      const unsigned char *slot,
                                      const akin_kv_descriptor_t *expected);

/**
 * Add a block's sidecar to request counts (16 bit, saturating).
 *
 * \param[in]     slot
 * \param[in,out] counts  [n_layers][n_experts]
 */
void akin_kv_sidecar_add(const akin_kv_layout_t *layout,
                         const unsigned char *slot, uint16_t *counts);

#ifdef __cplusplus
}
#endif

#endif
