/* Fuzz target: the text of a fit file. */
#include "fuzz.h"
#include "routing/fit.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void check(bool is_kept)
{
    if (!is_kept)
        abort();
}

/* Whatever a map holds, what it predicts are rates. */
static void check_decode_map(const akin_decode_map_t *map)
{
    size_t cells = (size_t)map->n_layers * map->n_experts;
    uint16_t *counts = calloc(cells, sizeof(*counts));
    float *rates = calloc(cells, sizeof(*rates));
    check(counts != NULL && rates != NULL);
    for (size_t i = 0; i < cells; i++)
        counts[i] = (uint16_t)(i % 3);
    akin_decode_map_apply(map, counts, 2, rates);
    for (size_t i = 0; i < cells; i++)
        check(rates[i] > 0.0f && rates[i] < 1.0f);
    free(rates);
    free(counts);
}

/* What a fit that was taken promises to the policies. */
static void check_fit(const akin_fit_t *fit)
{
    akin_error_t err = {{0}};
    akin_signature_form_t form = akin_fit_form(fit);
    check(akin_signature_form_check(&form, &err) == AKIN_OK);
    check(fit->dim == akin_signature_size(&form) && fit->n_clusters > 0);
    check((fit->idf != NULL) == (fit->variant == AKIN_FIT_COUNT_IDF));
    for (uint32_t k = 0; k < fit->n_clusters; k++) {
        double squares = 0;
        for (size_t i = 0; i < fit->dim; i++) {
            double value = (double)fit->centroids[k * fit->dim + i];
            squares += value * value;
        }
        check(fabs(squares - 1.0) < 1e-5);
    }
    size_t n = (size_t)fit->n_clusters * fit->n_layers * fit->n_experts;
    for (size_t i = 0; fit->pbar != NULL && i < n; i++)
        check(fit->pbar[i] >= 0.0f && fit->pbar[i] <= 1.0f);
    if (fit->decode_map.prompt_mean != NULL)
        check_decode_map(&fit->decode_map);
    for (uint32_t i = 1; i < fit->n_domains; i++)
        check(fit->domains[i].n_requests <= fit->domains[i - 1].n_requests);
    check(fit->top_k <= fit->n_experts);
    check(isnan(fit->rho) || fabs(fit->rho) < 1.00001);
    check(isnan(fit->tau) || (fit->tau >= 0.0 && isfinite(fit->tau)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    akin_error_t err = {{0}};
    akin_fit_t fit;
    akin_status_t status =
        akin_fit_parse((const char *)data, size, "fuzz", &fit, &err);
    if (status == AKIN_OK)
        check_fit(&fit);
    else
        check(strstr(err.text, "fuzz") != NULL && fit.centroids == NULL);
    akin_fit_cleanup(&fit);
    return 0;
}
