/* Decode map making: from calibration requests to a map. */
#include "routing/decode_map_make.h"

#include "base/clock.h"
#include "routing/decode_samples.h"
#include "routing/decode_search.h"
#include "routing/eigen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A map being made. */
typedef struct maker {
    const akini_decode_samples_t *samples;
    const akini_decode_choice_t *choice;
    double *values;  /* [n_axes] eigenvalues: squared scores, summed */
    double *vectors; /* [n_axes][n] */
    double *sums;    /* [2][cells] */
} maker_t;

/* The axis is X'u / sigma, its response (Y - carry X)'z / (sigma^2 + ridge)
 * with the scores z = sigma u. */
static void make_axis(const maker_t *maker, uint32_t q, double ridge,
                      float *axis, float *response)
{
    const akini_decode_samples_t *s = maker->samples;
    const size_t cells = s->cells;
    const double sigma = sqrt(maker->values[q]);
    double *restrict x_sums = maker->sums;
    double *restrict y_sums = maker->sums + cells;
    memset(maker->sums, 0, 2 * cells * sizeof(*maker->sums));
    for (uint32_t i = 0; i < s->n; i++) {
        const double u = maker->vectors[(size_t)q * s->n + i];
        const float *x = s->x + i * cells, *y = s->y + i * cells;
        for (size_t j = 0; j < cells; j++) {
            x_sums[j] += u * (double)x[j];
            y_sums[j] += u * (double)y[j];
        }
    }
    const double factor = sigma / (maker->values[q] + ridge);
    for (size_t j = 0; j < cells; j++) {
        axis[j] = (float)(x_sums[j] / sigma);
        response[j] =
            (float)(factor * (y_sums[j] - maker->choice->carry * x_sums[j]));
    }
}

static akin_status_t fill(const maker_t *maker, uint32_t n_axes,
                          const akin_calibration_t *c, akin_decode_map_t *map)
{
    const akini_decode_samples_t *s = maker->samples;
    const size_t cells = s->cells;
    akin_status_t status =
        akin_decode_map_init(map, c->n_layers, c->n_experts, n_axes);
    if (status != AKIN_OK)
        return status;
    map->carry = (float)maker->choice->carry;
    map->prompt_tokens = s->prompt_tokens;
    memcpy(map->prompt_mean, s->prompt_mean, cells * sizeof(float));
    memcpy(map->decode_mean, s->decode_mean, cells * sizeof(float));
    double mean_square = 0.0;
    for (size_t i = 0; i < s->n; i++)
        mean_square += s->xx[i * s->n + i] / (double)s->n;
    for (uint32_t q = 0; q < n_axes; q++)
        make_axis(maker, q, maker->choice->ridge * mean_square,
                  map->axes + q * cells, map->responses + q * cells);
    return AKIN_OK;
}

static akin_status_t make(const akini_decode_samples_t *samples,
                          const akini_decode_choice_t *choice, uint64_t seed,
                          const akin_calibration_t *c, akin_decode_map_t *map)
{
    const size_t wanted = choice->n_axes;
    const maker_t maker = {
        .samples = samples,
        .choice = choice,
        .values = calloc(wanted + 1, sizeof(double)),
        .vectors = calloc(wanted + 1, samples->n * sizeof(double)),
        .sums = calloc(2, samples->cells * sizeof(double)),
    };
    const akini_eigen_params_t eigen = {
        .matrix = samples->xx,
        .stride = samples->n,
        .n = samples->n,
        .n_wanted = choice->n_axes,
        .seed = seed,
    };
    uint32_t n_axes = 0;
    akin_status_t status = AKIN_OK;
    if (maker.values == NULL || maker.vectors == NULL || maker.sums == NULL)
        status = AKIN_ERR_NOMEM;
    if (status == AKIN_OK && wanted > 0)
        status = akini_eigen_find(&eigen, maker.values, maker.vectors, &n_axes);
    if (status == AKIN_OK)
        status = fill(&maker, n_axes, c, map);
    free(maker.sums);
    free(maker.vectors);
    free(maker.values);
    return status;
}

akin_status_t akin_decode_map_make(const akin_calibration_t *calibration,
                                   uint64_t seed, akin_decode_map_t *map,
                                   akin_decode_map_report_t *report,
                                   akin_error_t *err)
{
    int64_t began_ns = akin_clock_now_ns();
    akini_decode_samples_t samples;
    akini_decode_choice_t choice = {.r2 = NAN};
    memset(map, 0, sizeof(*map));
    akin_status_t status = akini_decode_samples_init(&samples, calibration);
    if (status == AKIN_OK)
        status = akini_decode_search(&samples, seed, &choice);
    if (status == AKIN_OK && samples.n > 0)
        status = make(&samples, &choice, seed, calibration, map);
    if (status == AKIN_OK && report != NULL)
        *report = (akin_decode_map_report_t){
            .r2 = choice.r2,
            .ridge = choice.ridge,
            .carry = choice.carry,
            .n_axes = map->n_axes,
            .n_requests = samples.n,
            .seconds = (double)(akin_clock_now_ns() - began_ns) /
                       (double)AKIN_NS_PER_S,
        };
    akini_decode_samples_cleanup(&samples);
    if (status != AKIN_OK)
        return akin_error_set(err, status,
                              "decode map: out of memory for %u requests",
                              calibration->n_requests);
    return AKIN_OK;
}
