/* KV block: layout of a slot, its checksum and the checks before it is used. */
#include "kv/block.h"

#include <assert.h>
#include <string.h>

/* The dispatching variant uses the widest vectors of the CPU at hand, with the
 * same result: up to four times the speed of the portable one. */
#ifdef __x86_64__
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

static_assert(sizeof(akin_kv_header_t) == 64, "part of the wire format");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "slots are read by peers as they lie in memory");

/* Bounds of a shape, wide of any model, that keep all sizes below 2^57. */
#define MAX_LAYERS 4096u
#define MAX_KV_HEADS 4096u
#define MAX_HEAD_DIM 65536u
#define MAX_EXPERTS 65536u

#define BYTES_PER_VALUE 2u /* bf16 */

static akin_status_t check_field(const char *name, uint32_t value,
                                 uint32_t least, uint32_t most,
                                 akin_error_t *err)
{
    if (value >= least && value <= most)
        return AKIN_OK;
    return akin_error_set(err, AKIN_ERR_RANGE,
                          "KV block: %s is %u, but must be from %u to %u", name,
                          (unsigned)value, (unsigned)least, (unsigned)most);
}

static akin_status_t check_shape(const akin_kv_shape_t *shape,
                                 akin_error_t *err)
{
    const struct {
        const char *name;
        uint32_t value, least, most;
    } fields[] = {
        {"n_layers", shape->n_layers, 1, MAX_LAYERS},
        {"n_kv_heads", shape->n_kv_heads, 1, MAX_KV_HEADS},
        {"head_dim", shape->head_dim, 1, MAX_HEAD_DIM},
        {"n_experts", shape->n_experts, 1, MAX_EXPERTS},
        {"top_k", shape->top_k, 1, shape->n_experts},
        {"block_tokens", shape->block_tokens, AKIN_KV_MIN_BLOCK_TOKENS,
         AKIN_KV_MAX_BLOCK_TOKENS},
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        akin_status_t status =
            check_field(fields[i].name, fields[i].value, fields[i].least,
                        fields[i].most, err);
        if (status != AKIN_OK)
            return status;
    }
    if ((shape->block_tokens & (shape->block_tokens - 1)) != 0)
        return akin_error_set(err, AKIN_ERR_RANGE,
                              "KV block: block_tokens is %u, but must be a "
                              "power of two: 8, 16, 32 or 64",
                              (unsigned)shape->block_tokens);
    return AKIN_OK;
}

akin_status_t akin_kv_layout_init(const akin_kv_shape_t *shape,
                                  akin_kv_layout_t *layout_p, akin_error_t *err)
{
    akin_status_t status = check_shape(shape, err);
    if (status != AKIN_OK)
        return status;
    akin_kv_layout_t l = {.shape = *shape};
    l.head_bytes =
        (size_t)shape->block_tokens * shape->head_dim * BYTES_PER_VALUE;
    l.half_bytes = l.head_bytes * shape->n_kv_heads;
    l.layer_bytes = 2 * l.half_bytes;
    l.kv_offset = sizeof(akin_kv_header_t);
    l.kv_bytes = l.layer_bytes * shape->n_layers;
    l.sidecar_offset = l.kv_offset + l.kv_bytes;
    l.sidecar_bytes = (size_t)shape->n_layers * shape->n_experts;
    l.payload_bytes = l.sidecar_offset + l.sidecar_bytes;
    l.stride_bytes = (l.payload_bytes + AKIN_KV_SLOT_ALIGN_BYTES - 1) /
                     AKIN_KV_SLOT_ALIGN_BYTES * AKIN_KV_SLOT_ALIGN_BYTES;
    *layout_p = l;
    return AKIN_OK;
}

/* Spreads both fields over the seed, so that no change of one of them can
 * undo a change of the other. */
static uint64_t checksum_seed(uint64_t chain_hash, uint32_t n_tokens)
{
    uint64_t x = chain_hash + n_tokens * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t payload_checksum(const akin_kv_layout_t *layout,
                                 const unsigned char *slot, uint64_t chain_hash,
                                 uint32_t n_tokens)
{
    return XXH3_64bits_withSeed(slot + layout->kv_offset,
                                layout->kv_bytes + layout->sidecar_bytes,
                                checksum_seed(chain_hash, n_tokens));
}

uint64_t akin_kv_block_checksum(const akin_kv_layout_t *layout,
                                const unsigned char *slot)
{
    akin_kv_header_t header;
    memcpy(&header, slot, sizeof(header));
    return payload_checksum(layout, slot, header.chain_hash, header.n_tokens);
}

void akin_kv_block_clear(unsigned char *slot, uint64_t generation)
{
    const akin_kv_header_t header = {.magic = AKIN_KV_MAGIC,
                                     .version = AKIN_KV_VERSION,
                                     .generation = generation};
    memcpy(slot, &header, sizeof(header));
}

void akin_kv_block_seal(const akin_kv_layout_t *layout, unsigned char *slot,
                        uint64_t chain_hash, uint32_t n_tokens)
{
    assert(n_tokens >= 1 && n_tokens <= layout->shape.block_tokens);
    akin_kv_header_t *header = akin_kv_header(slot);
    header->chain_hash = chain_hash;
    header->n_tokens = (uint16_t)n_tokens;
    header->checksum = payload_checksum(layout, slot, chain_hash, n_tokens);
}

const char *akin_kv_refusal_string(akin_kv_refusal_t refusal)
{
    static const char *const words[AKIN_KV_REFUSAL_COUNT] = {
        [AKIN_KV_REFUSAL_NONE] = "none",
        [AKIN_KV_REFUSAL_MAGIC] = "magic",
        [AKIN_KV_REFUSAL_VERSION] = "version",
        [AKIN_KV_REFUSAL_GENERATION] = "generation",
        [AKIN_KV_REFUSAL_TOKENS] = "tokens",
        [AKIN_KV_REFUSAL_CHAIN] = "chain",
        [AKIN_KV_REFUSAL_CHECKSUM] = "checksum",
        [AKIN_KV_REFUSAL_CONSERVATION] = "conservation",
    };
    if ((int)refusal < 0 || refusal >= AKIN_KV_REFUSAL_COUNT)
        return "unknown";
    return words[refusal];
}

/*
 * Sum of the counts of one layer, eight at a time: even and odd bytes are
 * added into four 16-bit lanes, which 128 words of at most 2 * 255 per lane
 * cannot overflow. A count above n_tokens (at most 64) carries into the high
 * bit of its byte when 127 - n_tokens is added; a byte above 127 has that bit
 * set already, so no carry into a neighbour can go unnoticed.
 */
static uint32_t layer_sum(const uint8_t *counts, uint32_t n, uint32_t n_tokens,
                          uint64_t *excess)
{
    const uint64_t bytes = UINT64_C(0x0101010101010101);
    const uint64_t lanes = UINT64_C(0x00ff00ff00ff00ff);
    const uint64_t slack = (127 - n_tokens) * bytes;
    uint32_t sum = 0, i = 0;
    uint64_t high = 0;
    while (n - i >= 8) {
        uint32_t words = (n - i) / 8;
        if (words > 128)
            words = 128;
        uint64_t acc = 0;
        for (uint32_t w = 0; w < words; w++, i += 8) {
            uint64_t x;
            memcpy(&x, counts + i, sizeof(x));
            high |= x | (x + slack);
            acc += (x & lanes) + ((x >> 8) & lanes);
        }
        sum += (uint32_t)((acc & 0xffff) + ((acc >> 16) & 0xffff) +
                          ((acc >> 32) & 0xffff) + (acc >> 48));
    }
    for (; i < n; i++) {
        sum += counts[i];
        high |= (uint64_t)counts[i] | (counts[i] + slack % 256);
    }
    *excess |= high & (bytes << 7);
    return sum;
}

static int is_conserved(const akin_kv_layout_t *layout,
                        const unsigned char *slot, uint32_t n_tokens)
{
    const uint8_t *counts = slot + layout->sidecar_offset;
    const uint32_t n = layout->shape.n_experts;
    const uint32_t expected = n_tokens * layout->shape.top_k;
    uint64_t excess = 0;
    uint32_t wrong = 0;
    for (uint32_t l = 0; l < layout->shape.n_layers; l++, counts += n)
        wrong |= layer_sum(counts, n, n_tokens, &excess) ^ expected;
    return wrong == 0 && excess == 0;
}

akin_kv_refusal_t akin_kv_block_check(const akin_kv_layout_t *layout,
                                      const unsigned char *slot,
                                      const akin_kv_descriptor_t *expected)
{
    static const uint8_t zeros[sizeof(((akin_kv_header_t *)0)->reserved)];
    akin_kv_header_t header;
    memcpy(&header, slot, sizeof(header));
    if (header.magic != AKIN_KV_MAGIC)
        return AKIN_KV_REFUSAL_MAGIC;
    /* Whoever sets reserved bytes means something that this version does not
     * know. */
    if (header.version != AKIN_KV_VERSION ||
        memcmp(header.reserved, zeros, sizeof(zeros)) != 0)
        return AKIN_KV_REFUSAL_VERSION;
    if (header.generation != expected->generation)
        return AKIN_KV_REFUSAL_GENERATION;
    if (header.n_tokens != expected->n_tokens || header.n_tokens == 0 ||
        header.n_tokens > layout->shape.block_tokens)
        return AKIN_KV_REFUSAL_TOKENS;
    if (header.chain_hash != expected->chain_hash)
        return AKIN_KV_REFUSAL_CHAIN;
    if (header.checksum != akin_kv_block_checksum(layout, slot))
        return AKIN_KV_REFUSAL_CHECKSUM;
    if (!is_conserved(layout, slot, header.n_tokens))
        return AKIN_KV_REFUSAL_CONSERVATION;
    return AKIN_KV_REFUSAL_NONE;
}

void akin_kv_sidecar_add(const akin_kv_layout_t *layout,
                         const unsigned char *slot, uint16_t *counts)
{
    const uint8_t *sidecar = slot + layout->sidecar_offset;
    for (size_t i = 0; i < layout->sidecar_bytes; i++) {
        uint32_t sum = (uint32_t)counts[i] + sidecar[i];
        counts[i] = sum > UINT16_MAX ? UINT16_MAX : (uint16_t)sum;
    }
}
