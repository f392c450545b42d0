/* Fault: damages received blocks on purpose, in test builds only. */
#ifndef AKIN_KV_FAULT_H
#define AKIN_KV_FAULT_H

#include "kv/block.h"

#define AKINI_KV_N_FAULTS 3

/** What is damaged, and the count that says when. */
typedef struct akini_kv_faults {
    uint64_t periods[AKINI_KV_N_FAULTS]; /* 0: never */
    uint64_t n_received;
} akini_kv_faults_t;

/**
 * Read AKIN_FAULT_KV: items "flip-kv:N", "flip-sidecar:N" and
 * "stale-generation:N" with commas between them; each damages every N-th block
 * that is received. Unset or empty: none.
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

#endif
