/* Id set: the custom_ids that were seen, by 128-bit hash, each with the line
 * that brought it. */
#ifndef AKIN_ROLES_ID_SET_H
#define AKIN_ROLES_ID_SET_H

#include "base/status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Only hashes are kept (XXH3-128: among 10^9 ids two clash with a probability
 * of 10^-21), about 50 bytes per id.
 */
typedef struct akin_id_set akin_id_set_t;

/**
 * \param[out] set_p  owned by the caller.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_id_set_create(akin_id_set_t **set_p) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akin_id_set_destroy(akin_id_set_t *set);

/**
 * Add a custom_id.
 *
 * \param[in]  custom_id
 * \param[in]  line     line that brings it.
 * \param[out] first_p  with AKIN_ERR_EXISTS: line that brought it first; may
 *                      be NULL.
 * \return AKIN_OK
 * \return AKIN_ERR_EXISTS: it is there already; nothing was changed.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_id_set_add(akin_id_set_t *set, const char *custom_id,
                              uint64_t line, uint64_t *first_p) AKIN_MUST_CHECK;

/**
 * Add a line that has no custom_id of its own, in a name space apart; returns
 * as akin_id_set_add().
 */
akin_status_t akin_id_set_add_line(akin_id_set_t *set,
                                   uint64_t line) AKIN_MUST_CHECK;

/** Whether a custom_id was added. */
int akin_id_set_has(akin_id_set_t *set, const char *custom_id);

/** Whether akin_id_set_add_line() was called with this line. */
int akin_id_set_has_line(akin_id_set_t *set, uint64_t line);

/** Number of ids and lines in the set. */
uint64_t akin_id_set_size(akin_id_set_t *set);

#ifdef __cplusplus
}
#endif

#endif
