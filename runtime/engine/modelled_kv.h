/* Modelled KV: rows of bytes that follow from a sequence's tokens, in place of
 * keys and values. */
#ifndef AKIN_ENGINE_MODELLED_KV_H
#define AKIN_ENGINE_MODELLED_KV_H

#include "kv/block.h"

#include <stdint.h>

/* 64 bits that follow from 64 others and leave nothing of them to see: the
 * finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom
 * number generators", OOPSLA 2014). */
static inline uint64_t akini_modelled_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/** Keys and values of a token in all layers.
 *
 * \param[in] slots  slot of position p: slots[p / block_tokens]
 * \param[in] name   of the sequence up to and with the token.
 */
void akini_modelled_kv_write(const akin_kv_view_t *view, const uint32_t *slots,
                             uint32_t position, uint64_t name);

/** The name that was written at a position. */
uint64_t akini_modelled_kv_name(const akin_kv_view_t *view,
                                const uint32_t *slots, uint32_t position);

/** What all bytes of a token come to. */
uint64_t akini_modelled_kv_read(const akin_kv_view_t *view,
                                const uint32_t *slots, uint32_t position);

#endif
