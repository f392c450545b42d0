/* Fault: damages blocks on purpose, in test builds only. */
#ifndef AKIN_KV_FAULT_H
#define AKIN_KV_FAULT_H

#include "kv/block.h"

#define AKINI_KV_N_FAULTS 5

/** What is damaged, and the count that says when. */
typedef struct akini_kv_faults {
    uint64_t periods[AKINI_KV_N_FAULTS]; /* 0: never */
    uint64_t n_received;
    uint64_t n_sealed;
} akini_kv_faults_t;

/**
 * Read AKIN_FAULT_KV: items with commas between them. "flip-kv:N",
 * "flip-sidecar:N", "flip-header:N" and "stale-generation:N" each damage every
 * N-th block that a decode rank receives; "flip-owned:N" damages keys and
 * values of the N-th block that a prefill rank seals, where it lies. Unset or
 * empty: none.
 *
 * \param[out] faults_p
 * \param[out] err       names the bad item.
 * \return AKIN_OK
 * \return AKIN_ERR_CONFIG
 */
akin_status_t akini_kv_faults_init(akini_kv_faults_t *faults_p,
                                   akin_error_t *err) AKIN_MUST_CHECK;

/** Called once for each received block before it is checked. */
void akini_kv_faults_damage(akini_kv_faults_t *faults,
                            const akin_kv_layout_t *layout,
                            unsigned char *slot);

/** Called once for each block that a prefill rank has sealed. */
void akini_kv_faults_damage_owned(akini_kv_faults_t *faults,
                                  const akin_kv_layout_t *layout,
                                  unsigned char *slot);

#endif
