/* Signature quality: how well signatures of prompts tell which requests decode
 * alike. */
#include "routing/signature_quality.h"

#include "routing/dot.h"
#include "routing/ranking.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Distances that differ by less are equal up to the rounding of a float dot
 * product: such values do not vary. */
#define MIN_SPREAD 1e-6

/* Cosine distances of the pairs under a form. */
static akin_status_t measure(const akin_signature_quality_params_t *params,
                             const akin_signature_form_t *form,
                             const uint16_t *counts, double *distance)
{
    size_t cells = (size_t)form->n_layers * form->n_experts;
    size_t dim = akin_signature_size(form);
    float *vectors = calloc(params->n_requests, dim * sizeof(*vectors));
    if (vectors == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t i = 0; i < params->n_requests; i++)
        akin_signature_compute(form, counts + i * cells, vectors + i * dim);
    for (uint32_t p = 0; p < params->n_pairs; p++)
        distance[p] = 1.0 - akini_dot(vectors + params->left[p] * dim,
                                      vectors + params->right[p] * dim, dim);
    free(vectors);
    return AKIN_OK;
}

static bool does_vary(const double *values, uint32_t n)
{
    double min = values[0], max = values[0];
    for (uint32_t i = 1; i < n; i++) {
        min = fmin(min, values[i]);
        max = fmax(max, values[i]);
    }
    return max - min > MIN_SPREAD;
}

static akin_status_t check_pairs(const akin_signature_quality_params_t *params,
                                 akin_error_t *err)
{
    for (uint32_t p = 0; p < params->n_pairs; p++)
        if (params->left[p] >= params->n_requests ||
            params->right[p] >= params->n_requests)
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "signature quality: pair %u is (%u, %u), but "
                                  "there are %u requests",
                                  p, params->left[p], params->right[p],
                                  params->n_requests);
    return AKIN_OK;
}

akin_status_t
akin_signature_quality_rho(const akin_signature_quality_params_t *params,
                           double *rho_p, akin_error_t *err)
{
    const akin_signature_form_t plain = {.n_layers = params->form.n_layers,
                                         .n_experts = params->form.n_experts};
    uint32_t n = params->n_pairs;
    akin_status_t status = check_pairs(params, err);
    if (status != AKIN_OK)
        return status;
    if (n == 0) {
        *rho_p = NAN;
        return AKIN_OK;
    }
    akin_ranking_t *ranking = NULL;
    double *values = calloc(n, 4 * sizeof(*values));
    status = values != NULL ? akin_ranking_create(n, &ranking) : AKIN_ERR_NOMEM;
    if (status != AKIN_OK)
        goto out;
    double *near_prompt = values;
    double *near_decode = values + n;
    double *ranks = values + 2 * (size_t)n;
    status = measure(params, &params->form, params->prefill, near_prompt);
    if (status == AKIN_OK)
        status = measure(params, &plain, params->decode, near_decode);
    if (status != AKIN_OK)
        goto out;
    if (does_vary(near_prompt, n) && does_vary(near_decode, n)) {
        akin_ranking_centred(ranking, near_prompt, ranks);
        akin_ranking_centred(ranking, near_decode, ranks + n);
        *rho_p = akin_ranking_correlate(ranks, ranks + n, n);
    } else {
        *rho_p = NAN;
    }
out:
    akin_ranking_destroy(ranking);
    free(values);
    return status == AKIN_OK
               ? AKIN_OK
               : akin_error_set(err, status,
                                "signature quality: out of memory for %u "
                                "requests and %u pairs",
                                params->n_requests, n);
}
