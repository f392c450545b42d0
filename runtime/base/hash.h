/* Hashing: XXH3 for identities and chains, CRC-free checksums of payloads. */
#ifndef AKIN_BASE_HASH_H
#define AKIN_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * XXH3-64 of a buffer.
 *
 * \param[in] data   bytes; may be NULL when `bytes` is 0.
 * \param[in] bytes  length.
 * \param[in] seed   chains hashes: pass the parent's hash.
 * \return 64-bit hash, the same on every little-endian host.
 */
uint64_t akin_hash64(const void *data, size_t bytes, uint64_t seed);

#ifdef __cplusplus
}
#endif

#endif
