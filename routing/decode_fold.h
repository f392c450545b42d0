/* Decode fold: a ridge regression of decode on prompt rates, fitted on some
 * samples and looked at through their products alone. */
#ifndef AKIN_ROUTING_DECODE_FOLD_H
#define AKIN_ROUTING_DECODE_FOLD_H

#include "base/status.h"
#include "routing/decode_samples.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    AKINI_DECODE_FOLD_BASE = 96, /* principal axes that a regression starts
                                    from, at most */
    AKINI_DECODE_FOLD_AXES = 32  /* axes that are left of them, at most */
};

/**
 * Products of two sets of samples whose means over the samples for fitting are
 * taken off. A sample loses its weight times the mean, which is the sum of the
 * samples over the sum of their weights.
 */
typedef struct akini_decode_products {
    const double *all;   /* [n][n] left_i . right_j */
    const double *left;  /* [n] weights */
    const double *right; /* [n] weights */
    double *rows;        /* [n] left_i . mean of the right */
    double *columns;     /* [n] mean of the left . right_j */
    double mean;         /* of the left . of the right */
} akini_decode_products_t;

/**
 * With the scores z_q = X u_q = sqrt(value_q) vector_q of the samples on the
 * principal axes u_q of their x, and R = Y - carry X, a ridge regression
 * predicts R from x by sum over q of (u_q . x) R'z_q / (value_q + ridge).
 */
typedef struct akini_decode_fold {
    uint32_t n;
    uint32_t n_fit;  /* the first of the order are fitted */
    uint32_t n_base; /* principal axes */
    uint32_t *order; /* [n] number -> sample */
    akini_decode_products_t xx, xy, yy;
    double *fit_xx;     /* [n_fit][n_fit] */
    double mean_square; /* of the x for fitting */
    double *values;     /* [n_base] eigenvalues, falling */
    double *vectors;    /* [n_base][n_fit] */
    double *scores;     /* [n][BASE] of x on the axes */
    double *residual;   /* [n][n_fit] products of the R */
    double *own;        /* [n] product of each R with itself */
    double *responses;  /* [n][BASE] products of the R with the R'z_q */
    double *mutual;     /* [BASE][BASE] products of the R'z_q */
    double *memory;     /* what the pointers above lead to */
} akini_decode_fold_t;

/**
 * The best few axes for what a regression predicts of the samples that it was
 * fitted on, that is the first principal axes of those predictions: new axis p
 * = sum over q of mix_pq value_q^(-1/2) u_q, its response = sum over q of
 * mix_pq value_q^(1/2) / (value_q + ridge) R'z_q.
 */
typedef struct akini_decode_mix {
    uint32_t n_axes;
    double strengths[AKINI_DECODE_FOLD_AXES]; /* squared lengths of responses;
                                                 they are at right angles */
    double rows[AKINI_DECODE_FOLD_AXES * AKINI_DECODE_FOLD_BASE];
    /* [n_axes][n_base] */
} akini_decode_mix_t;

/**
 * \param[in]  samples  borrowed, at least one.
 * \param[out] fold     the caller's to clean up, also on failure.
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t
akini_decode_fold_init(akini_decode_fold_t *fold,
                       const akini_decode_samples_t *samples) AKIN_MUST_CHECK;

void akini_decode_fold_cleanup(akini_decode_fold_t *fold);

/**
 * Find the principal axes of the first n_fit >= 1 samples of the fold's order,
 * which the caller has filled.
 *
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akini_decode_fold_begin(akini_decode_fold_t *fold, uint32_t n_fit,
                                      uint64_t seed) AKIN_MUST_CHECK;

/** Take responses for a carry. */
void akini_decode_fold_carry(akini_decode_fold_t *fold, double carry);

/**
 * Reduce the regression of the last carry to a few axes.
 *
 * \param[in]  ridge  in the unit of the eigenvalues.
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akini_decode_fold_reduce(const akini_decode_fold_t *fold,
                                       double ridge, uint64_t seed,
                                       akini_decode_mix_t *mix) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
