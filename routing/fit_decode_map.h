/* Fit decode map: the decode map out of the text of a fit file. */
#ifndef AKIN_ROUTING_FIT_DECODE_MAP_H
#define AKIN_ROUTING_FIT_DECODE_MAP_H

#include "routing/fit.h"
#include "routing/fit_json.h"

/**
 * Read the key `decode_map`, if it is there: an object of `carry` (0 to 1),
 * `prompt_tokens`, `prompt_mean` and `decode_mean` (a rate per cell, layer by
 * layer), `axes` and `responses` (as many lists of a number per cell; none are
 * the same as empty lists). Axes are of length 1.
 *
 * \param[in]     json
 * \param[in,out] fit  its shape is read already; the map stays empty on
 *                     failure.
 * \return AKIN_OK, AKIN_ERR_FORMAT, AKIN_ERR_NOMEM
 */
akin_status_t akini_fit_decode_map_read(const akini_fit_json_t *json,
                                        akin_fit_t *fit) AKIN_MUST_CHECK;

#endif
