/* Decode map making: from calibration requests to a map. */
#include "routing/decode_map_make.h"

#include "base/clock.h"
#include "routing/decode_fold.h"
#include "routing/decode_samples.h"
#include "routing/decode_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A map being made. */
typedef struct maker {
    const akini_decode_samples_t *samples;
    const akini_decode_choice_t *choice;
    akini_decode_fold_t fold; /* of all samples */
    akini_decode_mix_t mix;
    double ridge;   /* in the unit of the eigenvalues */
    double *axis;   /* [n] weights of the x in an axis */
    double *answer; /* [n] weights of the y - carry * x in its response */
    double *sums;   /* [2][cells] */
} maker_t;

/* What the samples weigh in an axis and its response. */
static void weigh(const maker_t *maker, uint32_t p)
{
    const akini_decode_fold_t *fold = &maker->fold;
    const size_t n = fold->n;
    memset(maker->axis, 0, n * sizeof(*maker->axis));
    memset(maker->answer, 0, n * sizeof(*maker->answer));
    for (uint32_t q = 0; q < fold->n_base; q++) {
        const double part = maker->mix.rows[(size_t)p * fold->n_base + q];
        const double value = fold->values[q];
        const double *vector = fold->vectors + q * n;
        for (size_t i = 0; i < n; i++) {
            maker->axis[i] += part / value * vector[i];
            maker->answer[i] +=
                part * value / (value + maker->ridge) * vector[i];
        }
    }
}

/* Axes are scaled to length 1, their responses the other way. */
static void make_axis(const maker_t *maker, uint32_t p, float *axis,
                      float *response)
{
    const akini_decode_samples_t *s = maker->samples;
    const size_t cells = s->cells;
    double *restrict axes = maker->sums;
    double *restrict answers = maker->sums + cells;
    weigh(maker, p);
    memset(maker->sums, 0, 2 * cells * sizeof(*maker->sums));
    for (size_t i = 0; i < s->n; i++) {
        const float *x = s->x + i * cells, *y = s->y + i * cells;
        const double a = maker->axis[i], b = maker->answer[i];
        const double carried = b * maker->choice->carry;
        for (size_t j = 0; j < cells; j++) {
            axes[j] += a * (double)x[j];
            answers[j] += b * (double)y[j] - carried * (double)x[j];
        }
    }
    double squares = 0.0;
    for (size_t j = 0; j < cells; j++)
        squares += axes[j] * axes[j];
    const double length = sqrt(squares);
    for (size_t j = 0; j < cells; j++) {
        axis[j] = (float)(axes[j] / length);
        response[j] = (float)(answers[j] * length);
    }
}

static akin_status_t find_axes(maker_t *maker, uint64_t seed, uint32_t *n_axes)
{
    akini_decode_fold_t *fold = &maker->fold;
    akin_status_t status = akini_decode_fold_init(fold, maker->samples);
    if (status != AKIN_OK)
        return status;
    for (uint32_t i = 0; i < fold->n; i++)
        fold->order[i] = i;
    status = akini_decode_fold_begin(fold, fold->n, seed);
    if (status != AKIN_OK)
        return status;
    akini_decode_fold_carry(fold, maker->choice->carry);
    maker->ridge = maker->choice->ridge * fold->mean_square;
    status = akini_decode_fold_reduce(fold, maker->ridge, seed, &maker->mix);
    *n_axes = maker->choice->n_axes < maker->mix.n_axes ? maker->choice->n_axes
                                                        : maker->mix.n_axes;
    return status;
}

static akin_status_t fill(maker_t *maker, uint64_t seed,
                          const akin_calibration_t *c, akin_decode_map_t *map)
{
    const akini_decode_samples_t *s = maker->samples;
    const size_t cells = s->cells;
    uint32_t n_axes = 0;
    akin_status_t status = AKIN_OK;
    if (maker->axis == NULL || maker->answer == NULL || maker->sums == NULL)
        return AKIN_ERR_NOMEM;
    if (maker->choice->n_axes > 0)
        status = find_axes(maker, seed, &n_axes);
    if (status == AKIN_OK)
        status = akin_decode_map_init(map, c->n_layers, c->n_experts, n_axes);
    if (status != AKIN_OK)
        return status;
    map->carry = (float)maker->choice->carry;
    map->prompt_tokens = s->prompt_tokens;
    memcpy(map->prompt_mean, s->prompt_mean, cells * sizeof(float));
    memcpy(map->decode_mean, s->decode_mean, cells * sizeof(float));
    for (uint32_t p = 0; p < n_axes; p++)
        make_axis(maker, p, map->axes + p * cells, map->responses + p * cells);
    return AKIN_OK;
}

static akin_status_t make(const akini_decode_samples_t *samples,
                          const akini_decode_choice_t *choice, uint64_t seed,
                          const akin_calibration_t *c, akin_decode_map_t *map)
{
    maker_t maker = {
        .samples = samples,
        .choice = choice,
        .axis = calloc(samples->n, sizeof(double)),
        .answer = calloc(samples->n, sizeof(double)),
        .sums = calloc(2, samples->cells * sizeof(double)),
    };
    akin_status_t status = fill(&maker, seed, c, map);
    akini_decode_fold_cleanup(&maker.fold);
    free(maker.sums);
    free(maker.answer);
    free(maker.axis);
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
