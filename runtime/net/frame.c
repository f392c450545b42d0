/* Packing and unpacking of the header in front of everything sent. */
#include "net/frame.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

/* The bytes on the wire, each field little-endian. */
typedef struct wire_frame {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint32_t from;
    uint32_t status;
    uint64_t from_incarnation;
    uint64_t to_incarnation;
    uint64_t sequence;
    uint64_t offset;
    uint64_t length;
    uint64_t reserved; /* 0 */
} wire_frame_t;

static_assert(sizeof(wire_frame_t) == AKINI_FRAME_BYTES,
              "the wire format has no padding");

void akini_frame_pack(const akini_frame_t *frame,
                      unsigned char wire[AKINI_FRAME_BYTES])
{
    const wire_frame_t w = {
        .magic = htole32(AKINI_FRAME_MAGIC),
        .version = htole16(AKINI_FRAME_VERSION),
        .type = htole16(frame->type),
        .from = htole32(frame->from),
        .status = htole32((uint32_t)frame->status),
        .from_incarnation = htole64(frame->from_incarnation),
        .to_incarnation = htole64(frame->to_incarnation),
        .sequence = htole64(frame->sequence),
        .offset = htole64(frame->offset),
        .length = htole64(frame->length),
    };
    memcpy(wire, &w, sizeof(w));
}

akin_status_t akini_frame_unpack(const void *wire, size_t bytes,
                                 akini_frame_t *frame_p)
{
    wire_frame_t w;
    if (bytes != sizeof(w))
        return AKIN_ERR_FORMAT;
    memcpy(&w, wire, sizeof(w));
    if (le32toh(w.magic) != AKINI_FRAME_MAGIC ||
        le16toh(w.version) != AKINI_FRAME_VERSION || w.reserved != 0)
        return AKIN_ERR_FORMAT;
    *frame_p = (akini_frame_t){
        .type = le16toh(w.type),
        .from = le32toh(w.from),
        .status = (int32_t)le32toh(w.status),
        .from_incarnation = le64toh(w.from_incarnation),
        .to_incarnation = le64toh(w.to_incarnation),
        .sequence = le64toh(w.sequence),
        .offset = le64toh(w.offset),
        .length = le64toh(w.length),
    };
    return AKIN_OK;
}
