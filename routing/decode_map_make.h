/* Decode map making: from calibration requests to a map. */
#ifndef AKIN_ROUTING_DECODE_MAP_MAKE_H
#define AKIN_ROUTING_DECODE_MAP_MAKE_H

#include "base/error.h"
#include "routing/calibration.h"
#include "routing/decode_map.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How a map was made. */
typedef struct akin_decode_map_report {
    double r2; /* share of the variance of the decode rates, about their mean,
                  that is explained in requests held out; NaN: too few requests
                  to hold any out, or all decode alike */
    double ridge; /* 0: there are no axes */
    double carry;
    uint32_t n_axes;
    uint32_t n_requests; /* used */
    double seconds;
} akin_decode_map_report_t;

/**
 * Learn a map. A ridge regression predicts what a request's decode differs from
 * the mean, beyond the share of its prompt's difference that is carried over
 * cell by cell, from what its prompt has of the directions in which prompts
 * differ most (principal axes, at most 96). The axes of the map are the few
 * mixtures of them that matter most to what it predicts. The number of axes
 * (0, 8, 16 or 32), the ridge (0.1, 0.3, 1 or 3 parts of the mean squared
 * length of a prompt's rates about their mean) and the share (0 to 1 in
 * quarters) are those that predict best in five-fold cross-validation, where
 * every request counts the same. At most 2,048 requests, spread over the
 * calibration, are used. The same input and seed give the same bits.
 *
 * \param[in]  calibration  borrowed.
 * \param[in]  seed         of the folds.
 * \param[out] map      the caller's to clean up; empty on failure, and where no
 *                      request has both a prompt and a decode.
 * \param[out] report   NULL is allowed.
 * \param[out] err
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akin_decode_map_make(const akin_calibration_t *calibration,
                                   uint64_t seed, akin_decode_map_t *map,
                                   akin_decode_map_report_t *report,
                                   akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
