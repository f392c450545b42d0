/* BLAKE2b with a digest of 8 bytes: the hash of the prefix ring. The digest's
 * length is part of the hash, and the libraries of the distributions begin at
 * 16 bytes or more. */
#ifndef AKIN_ROUTING_BLAKE2B_H
#define AKIN_ROUTING_BLAKE2B_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Unkeyed BLAKE2b-64 (RFC 7693), the digest read as a big-endian number.
 *
 * \param[in] data   may be NULL when `bytes` is 0.
 * \param[in] bytes  length.
 */
uint64_t akini_blake2b_64(const void *data, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
