/* Fuzz: arbitrary bytes as an identity, a frame and a message's fields. */
#include "net/net_internal.h"
#include "net/wire.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

static void identity(const uint8_t *data, size_t bytes)
{
    akini_identity_t id;
    akin_error_t err = {{0}};
    if (akini_identity_unpack(data, bytes, &id, &err) != AKIN_OK)
        return;
    /* What is accepted packs to the same bytes. */
    void *blob = NULL;
    size_t n = 0;
    if (akini_identity_pack(&id, &blob, &n) != AKIN_OK)
        return;
    if (n != bytes || memcmp(blob, data, n) != 0)
        abort();
    free(blob);
}

static void frame(const uint8_t *data, size_t bytes)
{
    akini_frame_t f;
    unsigned char wire[AKINI_FRAME_BYTES];
    if (akini_frame_unpack(data, bytes, &f) != AKIN_OK)
        return;
    akini_frame_pack(&f, wire);
    if (memcmp(wire, data, sizeof(wire)) != 0)
        abort();
}

/* The input also says which fields are read from it. */
static void fields(const uint8_t *data, size_t bytes)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    for (size_t i = 0; i < bytes && u.status == AKIN_OK; i++) {
        size_t n = 0, left = u.bytes - u.position;
        const void *at;
        switch (data[i] % 5) {
        case 0:
            (void)akin_unpacker_u8(&u);
            break;
        case 1:
            (void)akin_unpacker_u64(&u);
            break;
        case 2:
            at = akin_unpacker_bytes(&u, &n);
            if (n > left || (at == NULL && n > 0))
                abort();
            break;
        case 3:
            free(akin_unpacker_u16s(&u, 64, &n));
            if (n > 64 || 2 * n > left)
                abort();
            break;
        default:
            free(akin_unpacker_u32s(&u, 64, &n));
            if (n > 64 || 4 * n > left)
                abort();
        }
        if (u.position > bytes)
            abort();
    }
    (void)!akin_unpacker_finish(&u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    identity(data, size_bytes);
    frame(data, size_bytes);
    fields(data, size_bytes);
    return 0;
}
