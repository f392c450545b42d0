/* Fit: what calibration found: how to form signatures, a centroid per decode
 * worker, and how each cluster decodes. */
#ifndef AKIN_ROUTING_FIT_H
#define AKIN_ROUTING_FIT_H

#include "base/error.h"
#include "ep/placement.h"
#include "routing/decode_map.h"
#include "routing/signature.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum akin_fit_variant {
    AKIN_FIT_COUNT,    /* counts as they are */
    AKIN_FIT_COUNT_IDF /* weighted by inverse document frequency */
} akin_fit_variant_t;

/** A kind of request that calibration knew. */
typedef struct akin_fit_domain {
    char *name;
    uint32_t n_requests; /* of the calibration */
} akin_fit_domain_t;

/** Everything is owned by the fit. Zero is an empty fit. */
typedef struct akin_fit {
    char *model; /* or NULL */
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t top_k; /* 0: the file does not say */
    uint32_t n_clusters;
    uint32_t n_requests; /* of the calibration; 0: unknown */
    akin_fit_variant_t variant;
    uint32_t *layers; /* [n_masked] rising */
    uint32_t n_masked;
    float *idf;       /* [n_layers][n_experts] of `count_idf`, anything outside
                         of the layers; NULL: 1 everywhere */
    size_t dim;       /* n_masked x n_experts */
    float *centroids; /* [n_clusters][dim], of length 1 */
    float *pbar;      /* [n_clusters][n_layers][n_experts] mean chance that a
                         decode token activates the expert; or NULL */
    akin_decode_map_t decode_map; /* of the same shape; may be empty */
    akin_placement_t *placements; /* [n_clusters] of workers of several ranks,
                                     alike in ranks and replicas; or NULL */
    double rho;                   /* of the signatures; NaN: unknown */
    double tau;                   /* chosen by replay; NaN: none was */
    double pull;                  /* likewise */
    uint64_t seed;
    akin_fit_domain_t *domains; /* [n_domains], most requests first */
    uint32_t n_domains;
} akin_fit_t;

/** Free what the fit owns; NULL is allowed. The fit is empty then. */
void akin_fit_cleanup(akin_fit_t *fit);

/** Put the domains in their order: most requests first, then by name. */
void akin_fit_sort_domains(akin_fit_t *fit);

/** Form of the fit's signatures; borrows from the fit. */
akin_signature_form_t akin_fit_form(const akin_fit_t *fit);

/**
 * Read a fit file: JSON in the format of the ELDR artifact
 * (arXiv 2607.00466), whose keys are `L`, `e`, `k`, `layer_mask`, `variant`,
 * `sig_idf`, `centroids`, `seed`, `fit_peak_rho`; ours adds `top_k`, `tau`,
 * `pull`, `pbar`, `domains`, `decode_map` and `placement`. Layers rise in the
 * mask, none twice, as the artifact has it; `sig_idf` holds the masked layers
 * alone and becomes 0 elsewhere. Centroids whose length is within 0.001 of 1
 * are scaled to 1. Unknown keys are passed over, save those that change the
 * meaning of a signature.
 *
 * \param[in]  path
 * \param[out] fit  the caller's to clean up; empty on failure.
 * \param[out] err  names the file, the key and the index.
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND, AKIN_ERR_IO
 * \return AKIN_ERR_FORMAT: not a fit, a value that fits no other, or more
 *         than 256 MiB.
 * \return AKIN_ERR_UNSUPPORTED: signatures of another formula.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_fit_read(const char *path, akin_fit_t *fit,
                            akin_error_t *err) AKIN_MUST_CHECK;

/** As akin_fit_read(), from memory; `name` stands for the path in errors. */
akin_status_t akin_fit_parse(const char *text, size_t bytes, const char *name,
                             akin_fit_t *fit,
                             akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Write a fit file, to a temporary one beside it that is synced and renamed.
 * Equal fits give equal bytes; numbers are written so that they read back the
 * same, those that are NaN not at all.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: a number that is not finite, a seed of 2^63 or
 *         more, a text that is not UTF-8, a fit of more than 256 MiB.
 * \return AKIN_ERR_NOT_FOUND, AKIN_ERR_FULL, AKIN_ERR_IO, AKIN_ERR_NOMEM
 */
akin_status_t akin_fit_write(const akin_fit_t *fit, const char *path,
                             akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Is this a fit for such a model and so many workers?
 *
 * \param[in]  top_k  0: not checked.
 * \param[out] err    names what differs.
 * \return AKIN_OK, AKIN_ERR_INVALID
 */
akin_status_t akin_fit_match(const akin_fit_t *fit, uint32_t n_workers,
                             uint32_t n_layers, uint32_t n_experts,
                             uint32_t top_k, akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
