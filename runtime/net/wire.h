/* Wire: bounds-checked little-endian packing and unpacking of messages. */
#ifndef AKIN_NET_WIRE_H
#define AKIN_NET_WIRE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Growing output buffer. Start it as `{0}`. A failed put marks the packer and
 * later puts do nothing, so that only the end needs a check.
 */
typedef struct akin_packer {
    unsigned char *data; /* malloc'ed, owned by the packer */
    size_t bytes;
    size_t capacity;
    akin_status_t status; /* AKIN_OK or AKIN_ERR_NOMEM */
} akin_packer_t;

void akin_packer_u8(akin_packer_t *p, uint8_t value);
void akin_packer_u16(akin_packer_t *p, uint16_t value);
void akin_packer_u32(akin_packer_t *p, uint32_t value);
void akin_packer_u64(akin_packer_t *p, uint64_t value);
void akin_packer_f32(akin_packer_t *p, float value);
void akin_packer_f64(akin_packer_t *p, double value);
/** A length (u32) and the bytes. */
void akin_packer_bytes(akin_packer_t *p, const void *data, size_t bytes);
/** A count (u32) and the elements. */
void akin_packer_u16s(akin_packer_t *p, const uint16_t *values, size_t n);
void akin_packer_u32s(akin_packer_t *p, const uint32_t *values, size_t n);
/** Forget the content, keep the memory. */
void akin_packer_reset(akin_packer_t *p);
/** Free the memory. */
void akin_packer_cleanup(akin_packer_t *p);

/**
 * Cursor over received bytes. A get beyond the end marks the unpacker with
 * AKIN_ERR_FORMAT and gives zeros from then on.
 */
typedef struct akin_unpacker {
    const unsigned char *data;
    size_t bytes;
    size_t position;
    akin_status_t status;
} akin_unpacker_t;

void akin_unpacker_init(akin_unpacker_t *u, const void *data, size_t bytes);
uint8_t akin_unpacker_u8(akin_unpacker_t *u);
uint16_t akin_unpacker_u16(akin_unpacker_t *u);
uint32_t akin_unpacker_u32(akin_unpacker_t *u);
uint64_t akin_unpacker_u64(akin_unpacker_t *u);
float akin_unpacker_f32(akin_unpacker_t *u);
double akin_unpacker_f64(akin_unpacker_t *u);
/** Bytes after a u32 length, borrowed from the input; NULL on failure. */
const void *akin_unpacker_bytes(akin_unpacker_t *u, size_t *bytes_p);
/**
 * Elements after a u32 count, into malloc'ed memory owned by the caller.
 * Refuses more than `max` elements (AKIN_ERR_RANGE). NULL if none or failed.
 */
uint16_t *akin_unpacker_u16s(akin_unpacker_t *u, size_t max, size_t *n_p);
uint32_t *akin_unpacker_u32s(akin_unpacker_t *u, size_t max, size_t *n_p);
/**
 * The verdict: AKIN_OK only if no get failed and nothing is left over.
 */
akin_status_t akin_unpacker_finish(const akin_unpacker_t *u) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
