/* Counter-based random numbers: Philox4x32-10, a pure function of key and
 * counter, so that a draw does not depend on who drew before it. */
#ifndef AKIN_BASE_RNG_H
#define AKIN_BASE_RNG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * One Philox4x32-10 block (Salmon et al., SC'11, "Parallel random numbers: as
 * easy as 1, 2, 3").
 *
 * \param[in]  key      64-bit key; the low word is key[0] of the paper.
 * \param[in]  counter  128-bit counter as two words, low first.
 * \param[out] out      four 32-bit words.
 */
void akin_rng_philox(uint64_t key, const uint64_t counter[2], uint32_t out[4]);

/**
 * The first two words of the block (key, {index, stream}), first word low.
 *
 * \return 64 uniform bits.
 */
uint64_t akin_rng_u64(uint64_t key, uint64_t stream, uint64_t index);

/**
 * Uniform double in [0, 1) with 53 bits, from akin_rng_u64.
 */
double akin_rng_uniform(uint64_t key, uint64_t stream, uint64_t index);

/**
 * Uniform integer in [0, bound) by a 64 x 64 -> 128 bit multiply; the bias is
 * below bound / 2^64.
 *
 * \param[in] bound  at least 1.
 */
uint64_t akin_rng_below(uint64_t key, uint64_t stream, uint64_t index,
                        uint64_t bound);

#ifdef __cplusplus
}
#endif

#endif
