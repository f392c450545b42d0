/* BLAKE2b with a digest of 8 bytes (RFC 7693). */
#include "routing/blake2b.h"

#include <stdbool.h>
#include <string.h>

enum { BLOCK_BYTES = 128, DIGEST_BYTES = 8, N_ROUNDS = 12 };

/* RFC 7693, 2.6: fractions of the square roots of the first eight primes. */
static const uint64_t initial[8] = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
    0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
    0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

/* RFC 7693, 2.7: the order of the message words, round after round. */
static const uint8_t order[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static uint64_t rotate_right(uint64_t x, unsigned bits)
{
    return x >> bits | x << (64 - bits);
}

static uint64_t load_le64(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

static void mix(uint64_t v[16], unsigned a, unsigned b, unsigned c, unsigned d,
                uint64_t x, uint64_t y)
{
    v[a] += v[b] + x;
    v[d] = rotate_right(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = rotate_right(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = rotate_right(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = rotate_right(v[b] ^ v[c], 63);
}

static void compress(uint64_t h[8], const uint8_t block[BLOCK_BYTES],
                     uint64_t hashed_bytes, bool last)
{
    uint64_t m[16], v[16];
    for (int i = 0; i < 16; i++)
        m[i] = load_le64(block + 8 * i);
    memcpy(v, h, 8 * sizeof(v[0]));
    memcpy(v + 8, initial, sizeof(initial));
    v[12] ^= hashed_bytes;
    if (last)
        v[14] = ~v[14];
    for (int round = 0; round < N_ROUNDS; round++) {
        const uint8_t *s = order[round % 10];
        for (unsigned i = 0; i < 4; i++)
            mix(v, i, 4 + i, 8 + i, 12 + i, m[s[2 * i]], m[s[2 * i + 1]]);
        for (unsigned i = 0; i < 4; i++)
            mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4,
                m[s[8 + 2 * i]], m[s[8 + 2 * i + 1]]);
    }
    for (int i = 0; i < 8; i++)
        h[i] ^= v[i] ^ v[i + 8];
}

uint64_t akini_blake2b_64(const void *data, size_t bytes)
{
    const uint8_t *next = data;
    uint64_t h[8];
    memcpy(h, initial, sizeof(h));
    h[0] ^= 0x01010000u | DIGEST_BYTES; /* fanout 1, depth 1, no key */

    size_t left = bytes;
    for (; left > BLOCK_BYTES; left -= BLOCK_BYTES, next += BLOCK_BYTES)
        compress(h, next, bytes - left + BLOCK_BYTES, false);
    uint8_t block[BLOCK_BYTES] = {0};
    if (left > 0)
        memcpy(block, next, left);
    compress(h, block, bytes, true);
    return __builtin_bswap64(h[0]);
}
