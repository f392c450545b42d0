/* Decode samples: the requests of a calibration as rates about their means,
 * and the products of every two of them. */
#ifndef AKIN_ROUTING_DECODE_SAMPLES_H
#define AKIN_ROUTING_DECODE_SAMPLES_H

#include "base/error.h"
#include "routing/calibration.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    /* More requests are thinned out: their products grow with the square. */
    AKINI_DECODE_SAMPLES_MAX = 2048
};

/**
 * With the rates r of a request's prompt (counts / tokens), its trust s
 * (akin_decode_map_trust()) and the rates d of its decode: x = s * (r - mean of
 * r weighted by s), y = d - mean of d. The x, and so the y, add up to zero.
 * Everything is owned. Zero is empty.
 */
typedef struct akini_decode_samples {
    uint32_t n; /* requests with a prompt and a decode */
    size_t cells;
    float prompt_tokens; /* mean length of the prompts; 0: n is 0 */
    float *prompt_mean;  /* [cells] */
    float *decode_mean;  /* [cells] */
    float *x;            /* [n][cells] */
    float *y;            /* [n][cells] */
    double *trust;       /* [n] */
    double *ones;        /* [n] */
    double *xx;          /* [n][n] products x_i . x_j */
    double *xy;          /* [n][n] products x_i . y_j */
    double *yy;          /* [n][n] products y_i . y_j */
} akini_decode_samples_t;

/**
 * \param[in]  calibration  borrowed.
 * \param[out] samples      the caller's to clean up; empty on failure.
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akini_decode_samples_init(akini_decode_samples_t *samples,
                                        const akin_calibration_t *calibration)
    AKIN_MUST_CHECK;

void akini_decode_samples_cleanup(akini_decode_samples_t *samples);

#ifdef __cplusplus
}
#endif

#endif
