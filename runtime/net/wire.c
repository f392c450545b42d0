/* Bounds-checked little-endian packing and unpacking. */
#include "net/wire.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 256

/* Room for `bytes` more, or NULL with the packer marked. */
static unsigned char *packer_extend(akin_packer_t *p, size_t bytes)
{
    if (p->status != AKIN_OK)
        return NULL;
    if (bytes > p->capacity - p->bytes) {
        size_t capacity = p->capacity != 0 ? p->capacity : FIRST_CAPACITY;
        while (capacity - p->bytes < bytes && capacity <= SIZE_MAX / 2)
            capacity *= 2;
        unsigned char *data = NULL;
        if (capacity - p->bytes >= bytes)
            data = realloc(p->data, capacity);
        if (data == NULL) {
            p->status = AKIN_ERR_NOMEM;
            return NULL;
        }
        p->data = data;
        p->capacity = capacity;
    }
    unsigned char *at = p->data + p->bytes;
    p->bytes += bytes;
    return at;
}

static void packer_raw(akin_packer_t *p, const void *data, size_t bytes)
{
    unsigned char *at = packer_extend(p, bytes);
    if (at != NULL && bytes > 0)
        memcpy(at, data, bytes);
}

/* A count or length, which has 32 bits on the wire. */
static int packer_count(akin_packer_t *p, size_t n)
{
    if (n > UINT32_MAX) {
        if (p->status == AKIN_OK)
            p->status = AKIN_ERR_NOMEM;
        return 0;
    }
    akin_packer_u32(p, (uint32_t)n);
    return p->status == AKIN_OK;
}

void akin_packer_u8(akin_packer_t *p, uint8_t value)
{
    packer_raw(p, &value, sizeof(value));
}

void akin_packer_u16(akin_packer_t *p, uint16_t value)
{
    value = htole16(value);
    packer_raw(p, &value, sizeof(value));
}

void akin_packer_u32(akin_packer_t *p, uint32_t value)
{
    value = htole32(value);
    packer_raw(p, &value, sizeof(value));
}

void akin_packer_u64(akin_packer_t *p, uint64_t value)
{
    value = htole64(value);
    packer_raw(p, &value, sizeof(value));
}

void akin_packer_f32(akin_packer_t *p, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    akin_packer_u32(p, bits);
}

void akin_packer_f64(akin_packer_t *p, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    akin_packer_u64(p, bits);
}

void akin_packer_bytes(akin_packer_t *p, const void *data, size_t bytes)
{
    if (packer_count(p, bytes))
        packer_raw(p, data, bytes);
}

void akin_packer_u16s(akin_packer_t *p, const uint16_t *values, size_t n)
{
    if (packer_count(p, n))
        for (size_t i = 0; i < n; i++)
            akin_packer_u16(p, values[i]);
}

void akin_packer_u32s(akin_packer_t *p, const uint32_t *values, size_t n)
{
    if (packer_count(p, n))
        for (size_t i = 0; i < n; i++)
            akin_packer_u32(p, values[i]);
}

void akin_packer_reset(akin_packer_t *p)
{
    p->bytes = 0;
    p->status = AKIN_OK;
}

void akin_packer_cleanup(akin_packer_t *p)
{
    free(p->data);
    *p = (akin_packer_t){0};
}

void akin_unpacker_init(akin_unpacker_t *u, const void *data, size_t bytes)
{
    *u = (akin_unpacker_t){.data = data, .bytes = bytes};
}

/* The next `bytes` of the input, or NULL with the unpacker marked. */
static const unsigned char *unpacker_take(akin_unpacker_t *u, size_t bytes)
{
    if (u->status != AKIN_OK)
        return NULL;
    if (bytes > u->bytes - u->position) {
        u->status = AKIN_ERR_FORMAT;
        return NULL;
    }
    const unsigned char *at = u->data + u->position;
    u->position += bytes;
    return at;
}

uint8_t akin_unpacker_u8(akin_unpacker_t *u)
{
    const unsigned char *at = unpacker_take(u, 1);
    return at != NULL ? *at : 0;
}

uint16_t akin_unpacker_u16(akin_unpacker_t *u)
{
    uint16_t value = 0;
    const unsigned char *at = unpacker_take(u, sizeof(value));
    if (at != NULL)
        memcpy(&value, at, sizeof(value));
    return le16toh(value);
}

uint32_t akin_unpacker_u32(akin_unpacker_t *u)
{
    uint32_t value = 0;
    const unsigned char *at = unpacker_take(u, sizeof(value));
    if (at != NULL)
        memcpy(&value, at, sizeof(value));
    return le32toh(value);
}

uint64_t akin_unpacker_u64(akin_unpacker_t *u)
{
    uint64_t value = 0;
    const unsigned char *at = unpacker_take(u, sizeof(value));
    if (at != NULL)
        memcpy(&value, at, sizeof(value));
    return le64toh(value);
}

float akin_unpacker_f32(akin_unpacker_t *u)
{
    uint32_t bits = akin_unpacker_u32(u);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

double akin_unpacker_f64(akin_unpacker_t *u)
{
    uint64_t bits = akin_unpacker_u64(u);
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

const void *akin_unpacker_bytes(akin_unpacker_t *u, size_t *bytes_p)
{
    *bytes_p = 0;
    uint32_t n = akin_unpacker_u32(u);
    const unsigned char *at = unpacker_take(u, n);
    if (at != NULL)
        *bytes_p = n;
    return at;
}

/* Count of elements that are really there, so that a made-up count cannot ask
 * for memory that its message could never fill. */
static size_t unpacker_count(akin_unpacker_t *u, size_t max, size_t width)
{
    uint32_t n = akin_unpacker_u32(u);
    if (u->status == AKIN_OK && n > max)
        u->status = AKIN_ERR_RANGE;
    else if (u->status == AKIN_OK && n > (u->bytes - u->position) / width)
        u->status = AKIN_ERR_FORMAT;
    return u->status == AKIN_OK ? n : 0;
}

uint16_t *akin_unpacker_u16s(akin_unpacker_t *u, size_t max, size_t *n_p)
{
    *n_p = 0;
    size_t n = unpacker_count(u, max, sizeof(uint16_t));
    if (n == 0)
        return NULL;
    uint16_t *values = malloc(n * sizeof(*values));
    if (values == NULL) {
        u->status = AKIN_ERR_NOMEM;
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        values[i] = akin_unpacker_u16(u);
    *n_p = n;
    return values;
}

uint32_t *akin_unpacker_u32s(akin_unpacker_t *u, size_t max, size_t *n_p)
{
    *n_p = 0;
    size_t n = unpacker_count(u, max, sizeof(uint32_t));
    if (n == 0)
        return NULL;
    uint32_t *values = malloc(n * sizeof(*values));
    if (values == NULL) {
        u->status = AKIN_ERR_NOMEM;
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        values[i] = akin_unpacker_u32(u);
    *n_p = n;
    return values;
}

akin_status_t akin_unpacker_finish(const akin_unpacker_t *u)
{
    if (u->status != AKIN_OK)
        return u->status;
    return u->position == u->bytes ? AKIN_OK : AKIN_ERR_FORMAT;
}
