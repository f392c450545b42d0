/* Union rates: how likely a decode token of a request activates each expert. */
#include "routing/union_rates.h"

#include "routing/union_kernel.h"

#include <math.h>
#include <stdbool.h>

/* Of the softmax over cosines that mixes the clusters' decode rates. */
#define SHARPNESS 20.0f
#define MIN_WEIGHT 1e-3f
#define MIN_EXPONENT -7.0f /* exp of less is surely below that */

void akini_union_rates_init(akini_union_rates_source_t *source,
                            const akin_policy_params_t *params, float *arrays,
                            size_t padded)
{
    *source = (akini_union_rates_source_t){
        .n_layers = params->n_layers,
        .n_experts = params->n_experts,
        .top_k = params->top_k,
        .cells = (size_t)params->n_layers * params->n_experts,
        .prior = arrays,
        .mixed = arrays + padded,
        .rates = arrays + 2 * padded,
    };
    for (size_t i = 0; i < source->cells; i++)
        source->prior[i] = (float)params->top_k / (float)params->n_experts;
    if (params->fit == NULL)
        return;
    source->pbar = params->fit->pbar;
    if (params->fit->decode_map.prompt_mean != NULL)
        source->map = &params->fit->decode_map;
}

int akini_union_rates_need_scores(const akini_union_rates_source_t *source)
{
    return source->map == NULL && source->pbar != NULL;
}

/* The mean decode rate of the clusters most similar to the request: a softmax
 * over the cosines; clusters far behind the nearest weigh nothing. All but the
 * last few are mixed here, those where the mixture is used. */
static akini_union_mixture_t mix_prior(akini_union_rates_source_t *source,
                                       const akini_locality_t *locality)
{
    const float *scores = locality->scores;
    float nearest = -INFINITY;
    for (uint32_t k = 0; k < locality->n_workers; k++)
        nearest = fmaxf(nearest, scores[k]);
    akini_union_mixture_t mixture = {.scale = 1.0f};
    float total = 0.0f;
    for (uint32_t k = 0; k < locality->n_workers; k++) {
        /* A cheap bound first: few clusters pass it where there are many. */
        float behind = SHARPNESS * (scores[k] - nearest);
        float weight = behind < MIN_EXPONENT ? 0.0f : expf(behind);
        if (weight < MIN_WEIGHT)
            continue;
        if (mixture.n_rows == AKINI_UNION_MIX_ROWS) {
            akini_union_mix(&mixture, source->mixed, source->cells);
            mixture.sum = source->mixed;
            mixture.n_rows = 0;
        }
        total += weight;
        mixture.rows[mixture.n_rows] = source->pbar + k * source->cells;
        mixture.weights[mixture.n_rows++] = weight;
    }
    mixture.scale = 1.0f / total;
    return mixture;
}

void akini_union_rates_expect(akini_union_rates_source_t *source,
                              const akini_locality_t *locality,
                              const akin_policy_request_t *request)
{
    const uint16_t *counts = request->n_tokens > 0 ? request->counts : NULL;
    if (source->map != NULL) {
        akin_decode_map_apply(source->map, counts, request->n_tokens,
                              source->rates);
        return;
    }
    akini_union_mixture_t prior = {
        .rows = {source->prior}, .weights = {1.0f}, .n_rows = 1, .scale = 1.0f};
    float kappa = AKINI_UNION_KAPPA;
    if (source->pbar != NULL) {
        prior = mix_prior(source, locality);
        kappa = AKINI_UNION_FIT_KAPPA;
    }
    akini_union_rates(counts, &prior, source->rates, source->cells,
                      (float)request->n_tokens, kappa);
}

/* Every decode token chooses top_k experts of every layer. */
static bool are_counts_sound(const akini_union_rates_source_t *source,
                             const uint16_t *counts, uint32_t n_tokens)
{
    uint64_t expected = (uint64_t)n_tokens * source->top_k;
    for (uint32_t layer = 0; layer < source->n_layers; layer++) {
        const uint16_t *row = counts + (size_t)layer * source->n_experts;
        uint64_t sum = 0;
        for (uint32_t e = 0; e < source->n_experts; e++)
            sum += row[e];
        if (sum != expected)
            return false;
    }
    return true;
}

void akini_union_rates_observe(akini_union_rates_source_t *source,
                               const uint16_t *counts, uint32_t n_tokens)
{
    if (counts == NULL || n_tokens == 0 ||
        !are_counts_sound(source, counts, n_tokens))
        return;
    float scale = 1.0f / (AKINI_UNION_MEMORY_TOKENS + (float)n_tokens);
    for (size_t i = 0; i < source->cells; i++)
        source->prior[i] =
            (AKINI_UNION_MEMORY_TOKENS * source->prior[i] + (float)counts[i]) *
            scale;
}
