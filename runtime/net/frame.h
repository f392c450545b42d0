/* Frame: the header in front of everything that one net sends to another. */
#ifndef AKIN_NET_FRAME_H
#define AKIN_NET_FRAME_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AKINI_FRAME_MAGIC UINT32_C(0x4d4e4b41) /* "AKNM" */
#define AKINI_FRAME_VERSION 1
#define AKINI_FRAME_BYTES 64

/* Types above AKINI_FRAME_LAST_USER are the net's own. */
#define AKINI_FRAME_LAST_USER 0xff00
#define AKINI_FRAME_GOODBYE 0xff01
#define AKINI_FRAME_READ_REQUEST 0xff02
#define AKINI_FRAME_READ_DATA 0xff03
#define AKINI_FRAME_HEARTBEAT 0xff04

/**
 * Fields in host order. An incarnation is one life of a rank: a restarted rank
 * has another one, so that what its dead predecessor sent, or what was meant
 * for the predecessor, is told apart.
 */
typedef struct akini_frame {
    uint16_t type;
    uint32_t from;             /* sender's rank */
    int32_t status;            /* READ_DATA: akin_status_t, else 0 */
    uint64_t from_incarnation; /* sender's life */
    uint64_t to_incarnation;   /* the receiver's life that is meant */
    uint64_t sequence;         /* messages count from 0; reads: their id */
    uint64_t offset;           /* READ_REQUEST: into the slab, else 0 */
    uint64_t length;           /* payload bytes; READ_REQUEST: wanted bytes */
} akini_frame_t;

/** \param[out] wire  little-endian form. */
void akini_frame_pack(const akini_frame_t *frame,
                      unsigned char wire[AKINI_FRAME_BYTES]);

/**
 * \param[in] wire, bytes  untrusted.
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT: length, magic, version or reserved bytes are wrong.
 */
akin_status_t akini_frame_unpack(const void *wire, size_t bytes,
                                 akini_frame_t *frame_p) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
