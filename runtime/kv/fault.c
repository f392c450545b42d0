/* Fault: every N-th received block gets a flipped bit or an old generation. */
#include "kv/fault.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { FLIP_KV, FLIP_SIDECAR, STALE_GENERATION, N_FAULTS };

static const char *const names[N_FAULTS] = {"flip-kv", "flip-sidecar",
                                            "stale-generation"};

/* One comm thread receives; 0: never. */
static uint64_t periods[N_FAULTS];
static uint64_t n_received;

static akin_status_t parse_item(const char *item, size_t length,
                                akin_error_t *err)
{
    for (int i = 0; i < N_FAULTS; i++) {
        size_t n = strlen(names[i]);
        if (length < n + 2 || strncmp(item, names[i], n) != 0 || item[n] != ':')
            continue;
        char *end;
        unsigned long long value = strtoull(item + n + 1, &end, 10);
        if (!isdigit((unsigned char)item[n + 1]) || end != item + length ||
            value == 0)
            break;
        periods[i] = value;
        return AKIN_OK;
    }
    return akin_error_set(err, AKIN_ERR_CONFIG,
                          "AKIN_FAULT_KV: '%.*s' is not flip-kv:N, "
                          "flip-sidecar:N or stale-generation:N with N >= 1",
                          length < 100 ? (int)length : 100, item);
}

akin_status_t akini_kv_fault_configure(akin_error_t *err)
{
    memset(periods, 0, sizeof(periods));
    n_received = 0;
    const char *spec = getenv("AKIN_FAULT_KV");
    akin_status_t status = AKIN_OK;
    while (status == AKIN_OK && spec != NULL && *spec != '\0') {
        size_t length = strcspn(spec, ",");
        status = parse_item(spec, length, err);
        spec += length;
        if (*spec == ',')
            spec++;
    }
    return status;
}

static int is_due(int fault)
{
    return periods[fault] != 0 && n_received % periods[fault] == 0;
}

/* The place of the flipped bit moves through the block. */
static void flip_bit(unsigned char *bytes, size_t n_bytes)
{
    uint64_t bit = n_received * UINT64_C(0x9e3779b97f4a7c15) % (n_bytes * 8);
    bytes[bit / 8] = (unsigned char)(bytes[bit / 8] ^ 1u << bit % 8);
}

void akini_kv_fault_damage(const akin_kv_layout_t *layout, unsigned char *slot)
{
    n_received++;
    if (is_due(FLIP_KV))
        flip_bit(slot + layout->kv_offset, layout->kv_bytes);
    if (is_due(FLIP_SIDECAR))
        flip_bit(slot + layout->sidecar_offset, layout->sidecar_bytes);
    if (is_due(STALE_GENERATION))
        akin_kv_header(slot)->generation--;
}
