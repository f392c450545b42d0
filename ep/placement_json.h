/* Placement as JSON: {"ranks": R, "replicas": N, "epoch": E, "holders": layers
 * of experts of lists of ranks}. */
#ifndef AKIN_EP_PLACEMENT_JSON_H
#define AKIN_EP_PLACEMENT_JSON_H

#include "ep/placement.h"

#ifdef __cplusplus
extern "C" {
#endif

struct json_t;

/**
 * \param[out] json_p  owned by the caller, json_decref() it.
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akin_placement_json_pack(const akin_placement_t *placement,
                                       struct json_t **json_p) AKIN_MUST_CHECK;

/**
 * \param[in]  json         any value; NULL is an error like a wrong one.
 * \param[in]  name         where it came from, for messages ("fit.json:
 *                          placement[3]").
 * \param[in]  n_layers     that it must have, with n_experts.
 * \param[out] placement_p  owned by the caller, akin_placement_cleanup();
 *                          checked.
 * \param[out] err          names the key or layer and expert at fault.
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT: not of that form, or a map that
 *         akin_placement_check() refuses.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_placement_json_unpack(const struct json_t *json,
                                         const char *name, uint32_t n_layers,
                                         uint32_t n_experts,
                                         akin_placement_t *placement_p,
                                         akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
