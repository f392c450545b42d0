/* Fault: blocks get a flipped bit or an old generation. */
#include "kv/fault.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { FLIP_KV, FLIP_SIDECAR, FLIP_HEADER, STALE_GENERATION, FLIP_OWNED };

static const char *const names[AKINI_KV_N_FAULTS] = {
    "flip-kv", "flip-sidecar", "flip-header", "stale-generation", "flip-owned"};

static akin_status_t parse_item(akini_kv_faults_t *faults, const char *item,
                                size_t length, akin_error_t *err)
{
    for (int i = 0; i < AKINI_KV_N_FAULTS; i++) {
        size_t n = strlen(names[i]);
        if (length < n + 2 || strncmp(item, names[i], n) != 0 || item[n] != ':')
            continue;
        char *end;
        unsigned long long value = strtoull(item + n + 1, &end, 10);
        if (!isdigit((unsigned char)item[n + 1]) || end != item + length ||
            value == 0)
            break;
        faults->periods[i] = value;
        return AKIN_OK;
    }
    return akin_error_set(err, AKIN_ERR_CONFIG,
                          "AKIN_FAULT_KV: '%.*s' is not flip-kv:N, "
                          "flip-sidecar:N, flip-header:N, stale-generation:N "
                          "or flip-owned:N with N >= 1",
                          length < 100 ? (int)length : 100, item);
}

akin_status_t akini_kv_faults_init(akini_kv_faults_t *faults_p,
                                   akin_error_t *err)
{
    memset(faults_p, 0, sizeof(*faults_p));
    const char *spec = getenv("AKIN_FAULT_KV");
    akin_status_t status = AKIN_OK;
    while (status == AKIN_OK && spec != NULL && *spec != '\0') {
        size_t length = strcspn(spec, ",");
        status = parse_item(faults_p, spec, length, err);
        spec += length;
        if (*spec == ',')
            spec++;
    }
    return status;
}

static int is_due(const akini_kv_faults_t *faults, int fault)
{
    return faults->periods[fault] != 0 &&
           faults->n_received % faults->periods[fault] == 0;
}

/* The place of the flipped bit moves through the block from one to the next. */
static void flip_bit(unsigned char *bytes, size_t n_bytes, uint64_t number)
{
    uint64_t bit = number * UINT64_C(0x9e3779b97f4a7c15) % (n_bytes * 8);
    bytes[bit / 8] = (unsigned char)(bytes[bit / 8] ^ 1u << bit % 8);
}

void akini_kv_faults_damage(akini_kv_faults_t *faults,
                            const akin_kv_layout_t *layout, unsigned char *slot)
{
    faults->n_received++;
    if (is_due(faults, FLIP_KV))
        flip_bit(slot + layout->kv_offset, layout->kv_bytes,
                 faults->n_received);
    if (is_due(faults, FLIP_SIDECAR))
        flip_bit(slot + layout->sidecar_offset, layout->sidecar_bytes,
                 faults->n_received);
    if (is_due(faults, FLIP_HEADER))
        flip_bit(slot, sizeof(akin_kv_header_t), faults->n_received);
    if (is_due(faults, STALE_GENERATION))
        akin_kv_header(slot)->generation--;
}

void akini_kv_faults_damage_owned(akini_kv_faults_t *faults,
                                  const akin_kv_layout_t *layout,
                                  unsigned char *slot)
{
    if (++faults->n_sealed == faults->periods[FLIP_OWNED])
        flip_bit(slot + layout->kv_offset, layout->kv_bytes, faults->n_sealed);
}
