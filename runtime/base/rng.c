/* Counter-based random numbers: Philox4x32-10. */
#include "base/rng.h"

#include <assert.h>

/* Constants of Salmon et al., SC'11, section 4.3 and table 2. */
#define PHILOX_M0 UINT32_C(0xD2511F53)
#define PHILOX_M1 UINT32_C(0xCD9E8D57)
#define PHILOX_W0 UINT32_C(0x9E3779B9)
#define PHILOX_W1 UINT32_C(0xBB67AE85)
#define PHILOX_ROUNDS 10

__extension__ typedef unsigned __int128 u128_t;

void akin_rng_philox(uint64_t key, const uint64_t counter[2], uint32_t out[4])
{
    uint32_t k0 = (uint32_t)key;
    uint32_t k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)counter[0];
    uint32_t c1 = (uint32_t)(counter[0] >> 32);
    uint32_t c2 = (uint32_t)counter[1];
    uint32_t c3 = (uint32_t)(counter[1] >> 32);
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)PHILOX_M0 * c0;
        uint64_t p1 = (uint64_t)PHILOX_M1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += PHILOX_W0;
        k1 += PHILOX_W1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

uint64_t akin_rng_u64(uint64_t key, uint64_t stream, uint64_t index)
{
    const uint64_t counter[2] = {index, stream};
    uint32_t block[4];
    akin_rng_philox(key, counter, block);
    return (uint64_t)block[1] << 32 | block[0];
}

double akin_rng_uniform(uint64_t key, uint64_t stream, uint64_t index)
{
    return (double)(akin_rng_u64(key, stream, index) >> 11) * 0x1p-53;
}

uint64_t akin_rng_below(uint64_t key, uint64_t stream, uint64_t index,
                        uint64_t bound)
{
    assert(bound >= 1);
    return (uint64_t)((u128_t)akin_rng_u64(key, stream, index) * bound >> 64);
}
