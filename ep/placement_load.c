/* Placement load: how many experts the busiest rank is expected to activate. */
#include "ep/placement_load.h"

#include <math.h>

/* Expected maximum of n standard normal variables at powers of two; the first
 * five are those of ALGORITHMS.md 6. */
static const double factors[] = {0.0, .564, 1.029, 1.424, 1.766, 2.070, 2.344};

double akin_placement_load_factor(uint32_t n_ranks)
{
    if (n_ranks < 2)
        return 0.0;
    double at = log2((double)n_ranks);
    uint32_t below = (uint32_t)at;
    if (below >= sizeof(factors) / sizeof(factors[0]) - 1)
        return factors[sizeof(factors) / sizeof(factors[0]) - 1];
    return factors[below] +
           (at - below) * (factors[below + 1] - factors[below]);
}

void akin_placement_idle(const float *rates, size_t n, double batch,
                         float *idle)
{
    for (size_t i = 0; i < n; i++)
        idle[i] = (float)pow(1.0 - (double)rates[i], batch);
}

/* One layer summed up. */
typedef struct layer_sums {
    double mu[AKIN_PLACEMENT_MAX_RANKS];
    double var;
} layer_sums_t;

static inline void add_expert(layer_sums_t *sums, double idle, uint64_t held)
{
    const double active = 1.0 - idle;
    const double share = active / __builtin_popcountll(held);
    sums->var += active * idle;
    for (; held != 0; held &= held - 1)
        sums->mu[__builtin_ctzll(held)] += share;
}

static double maximum(const layer_sums_t *sums, uint32_t n_ranks)
{
    double sum = 0.0, squares = 0.0;
    for (uint32_t r = 0; r < n_ranks; r++) {
        sum += sums->mu[r];
        squares += sums->mu[r] * sums->mu[r];
    }
    const double mean = sum / n_ranks;
    const double spread = squares / n_ranks - mean * mean;
    return mean + akin_placement_load_factor(n_ranks) *
                      sqrt(sums->var / n_ranks + (spread > 0.0 ? spread : 0.0));
}

double akin_placement_load_layer(const float *idle, const uint64_t *holders,
                                 uint32_t n_experts, uint32_t n_ranks)
{
    layer_sums_t sums = {.var = 0.0};
    for (uint32_t e = 0; e < n_experts; e++)
        add_expert(&sums, (double)idle[e], holders[e]);
    return maximum(&sums, n_ranks);
}

double akin_placement_load(const akin_placement_t *placement, const float *idle)
{
    double sum = 0.0;
    for (uint32_t l = 0; l < placement->n_layers; l++)
        sum +=
            akin_placement_load_layer(idle + (size_t)l * placement->n_experts,
                                      akin_placement_layer(placement, l),
                                      placement->n_experts, placement->n_ranks);
    return sum;
}

double akin_placement_predict(const akin_placement_t *placement,
                              const float *rates, double batch)
{
    double sum = 0.0;
    for (uint32_t l = 0; l < placement->n_layers; l++) {
        const uint64_t *holders = akin_placement_layer(placement, l);
        const float *layer = rates + (size_t)l * placement->n_experts;
        layer_sums_t sums = {.var = 0.0};
        for (uint32_t e = 0; e < placement->n_experts; e++)
            add_expert(&sums, pow(1.0 - (double)layer[e], batch), holders[e]);
        sum += maximum(&sums, placement->n_ranks);
    }
    return sum;
}
