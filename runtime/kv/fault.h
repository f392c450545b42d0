/* Fault: damages received blocks on purpose, in test builds only. */
#ifndef AKIN_KV_FAULT_H
#define AKIN_KV_FAULT_H

#include "kv/block.h"

/**
 * Read AKIN_FAULT_KV: items "flip-kv:N", "flip-sidecar:N" and
 * "stale-generation:N" with commas between them; each damages every N-th block
 * that is received. Unset or empty: none. Counting starts anew.
 *
 * \param[out] err  names the bad item.
 * \return AKIN_OK
 * \return AKIN_ERR_CONFIG
 */
akin_status_t akini_kv_fault_configure(akin_error_t *err) AKIN_MUST_CHECK;

/** Called once for each received block before it is checked. */
void akini_kv_fault_damage(const akin_kv_layout_t *layout, unsigned char *slot);

#endif
