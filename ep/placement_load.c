/* Placement load: how many experts the busiest rank is expected to activate. */
#include "ep/placement_load.h"

#include <math.h>
#include <string.h>

/* Expected maximum of 0 to 64 standard normal variables: the integral of
 * n x phi(x) Phi(x)^(n - 1), rounded as in ALGORITHMS.md 6. */
static const double factors[AKIN_PLACEMENT_MAX_RANKS + 1] = {
    0.000, 0.000, 0.564, 0.846, 1.029, 1.163, 1.267, 1.352, 1.424, 1.485, 1.539,
    1.586, 1.629, 1.668, 1.703, 1.736, 1.766, 1.794, 1.820, 1.844, 1.867, 1.889,
    1.910, 1.929, 1.948, 1.965, 1.982, 1.998, 2.014, 2.029, 2.043, 2.056, 2.070,
    2.082, 2.095, 2.107, 2.118, 2.129, 2.140, 2.151, 2.161, 2.171, 2.180, 2.190,
    2.199, 2.208, 2.216, 2.225, 2.233, 2.241, 2.249, 2.257, 2.264, 2.272, 2.279,
    2.286, 2.293, 2.300, 2.306, 2.313, 2.319, 2.326, 2.332, 2.338, 2.344};

double akin_placement_load_factor(uint32_t n_ranks)
{
    return factors[n_ranks < AKIN_PLACEMENT_MAX_RANKS
                       ? n_ranks
                       : AKIN_PLACEMENT_MAX_RANKS];
}

void akin_placement_idle(const float *rates, size_t n, double batch,
                         float *idle)
{
    for (size_t i = 0; i < n; i++)
        idle[i] = (float)pow(1.0 - (double)rates[i], batch);
}

/* The experts of one layer. */
typedef struct layer {
    const float *idle;  /* [n_experts], or NULL: from the rates */
    const float *rates; /* [n_experts] */
    double batch;
    const uint64_t *holders; /* [n_experts] */
    uint32_t n_experts;
    uint32_t n_ranks;
} layer_t;

/* Distinct experts that the ranks serve: means and covariances. */
typedef struct loads {
    uint32_t n_ranks;
    double alone; /* sum of the variances of the single experts */
    uint32_t full[AKIN_PLACEMENT_MAX_RANKS]; /* with every expert active */
    double mu[AKIN_PLACEMENT_MAX_RANKS];
    double cov[AKIN_PLACEMENT_MAX_RANKS][AKIN_PLACEMENT_MAX_RANKS];
} loads_t;

static double active_chance(const layer_t *layer, uint32_t e)
{
    return 1.0 - (layer->idle != NULL
                      ? (double)layer->idle[e]
                      : pow(1.0 - (double)layer->rates[e], layer->batch));
}

/* Experts with one holder. Gives the numbers of holders of the others, bit
 * n - 1 for n. */
static uint64_t add_single(const layer_t *layer, loads_t *loads)
{
    uint64_t numbers = 0;
    for (uint32_t e = 0; e < layer->n_experts; e++) {
        const uint64_t held = layer->holders[e];
        if ((held & (held - 1)) != 0) {
            numbers |= UINT64_C(1) << (__builtin_popcountll(held) - 1);
            continue;
        }
        const uint32_t rank = (uint32_t)__builtin_ctzll(held);
        const double active = active_chance(layer, e);
        loads->full[rank]++;
        loads->mu[rank] += active;
        loads->alone += active * (1.0 - active);
        loads->cov[rank][rank] += active * (1.0 - active);
    }
    return numbers;
}

/* Of an expert's holders the two with the least mean: the others come too
 * late to matter. */
static void two_least(uint64_t held, const double *mu, uint32_t least[2])
{
    least[0] = (uint32_t)__builtin_ctzll(held);
    held &= held - 1;
    least[1] = (uint32_t)__builtin_ctzll(held);
    for (;;) {
        if (mu[least[1]] < mu[least[0]]) {
            const uint32_t other = least[0];
            least[0] = least[1];
            least[1] = other;
        }
        for (held &= held - 1; held != 0; held &= held - 1)
            if (mu[__builtin_ctzll(held)] < mu[least[1]])
                break;
        if (held == 0)
            return;
        least[1] = (uint32_t)__builtin_ctzll(held);
    }
}

/* The replica choice gives an active expert to the less loaded of two ranks.
 * With a normal difference of mean d and variance v that is the first one with
 * the chance Phi(d / sqrt(v)), close to (1 + d / w) / 2 for w^2 = d^2 + pi/2 v.
 * It pulls the two together: what a load has in common with the difference
 * moves to the other rank by the slope of that chance. */
static void add_shared(loads_t *loads, double active, uint64_t held)
{
    uint32_t least[2];
    two_least(held, loads->mu, least);
    const uint32_t a = least[0], b = least[1];
    double *of_a = loads->cov[a], *of_b = loads->cov[b];
    const double half_pi = 1.5707963267948966, least_var = 1e-3;
    const double d = loads->mu[b] - loads->mu[a];
    const double v = fmax(of_a[a] + of_b[b] - 2.0 * of_a[b], least_var);
    const double w2 = d * d + half_pi * v, w = sqrt(w2);
    const double to_a = active * 0.5 * (1.0 + d / w), to_b = active - to_a;
    const double slope = active * 0.5 * half_pi * v / (w2 * w);
    const double var_a = of_a[a], var_b = of_b[b], cov = of_a[b];
    for (uint32_t r = 0; r < loads->n_ranks; r++) {
        const double moved = slope * (of_b[r] - of_a[r]);
        of_a[r] += moved;
        of_b[r] -= moved;
        loads->cov[r][a] = of_a[r];
        loads->cov[r][b] = of_b[r];
    }
    of_a[a] = var_a + to_a * (1.0 - to_a) - 2.0 * slope * (var_a - cov);
    of_b[b] = var_b + to_b * (1.0 - to_b) - 2.0 * slope * (var_b - cov);
    of_a[b] = of_b[a] = cov + slope * v - to_a * to_b;
    loads->mu[a] += to_a;
    loads->mu[b] += to_b;
    loads->alone += active * (1.0 - active);
}

/* With every expert active. */
static void add_full(uint32_t *full, uint64_t held)
{
    uint32_t best = (uint32_t)__builtin_ctzll(held);
    for (held &= held - 1; held != 0; held &= held - 1)
        if (full[__builtin_ctzll(held)] < full[best])
            best = (uint32_t)__builtin_ctzll(held);
    full[best]++;
}

static void add_experts(const layer_t *layer, loads_t *loads)
{
    uint64_t numbers = add_single(layer, loads);
    for (; numbers != 0; numbers &= numbers - 1) {
        const int n_holders = __builtin_ctzll(numbers) + 1;
        for (uint32_t e = 0; e < layer->n_experts; e++) {
            const uint64_t held = layer->holders[e];
            if ((held & (held - 1)) != 0 &&
                __builtin_popcountll(held) == n_holders) {
                add_shared(loads, active_chance(layer, e), held);
                add_full(loads->full, held);
            }
        }
    }
}

/* Loads that the choice has levelled as far as it can differ by one expert and
 * are not normal: their variance is (n + 1) / (6 n) and their maximum (n - 1) /
 * (2 n) above their mean, less than the factor makes of that variance. */
static double whole_excess(double n, double factor)
{
    return factor * sqrt((n + 1.0) / (6.0 * n)) - (n - 1.0) / (2.0 * n);
}

/* Expected minimum of a bound and a normal variable. Three deviations below the
 * bound it does not show any more. */
static double below(double mean, double deviation, double bound)
{
    if (mean + 3.0 * deviation <= bound)
        return mean;
    if (deviation < 1e-9)
        return bound;
    const double root_2 = 1.4142135623730951, root_2_pi = 2.5066282746310002;
    const double t = (bound - mean) / deviation;
    return mean - deviation * (exp(-0.5 * t * t) / root_2_pi -
                               0.5 * t * erfc(t / root_2));
}

static double expected_maximum(const layer_t *layer)
{
    const uint32_t n_ranks = layer->n_ranks;
    loads_t loads;
    loads.n_ranks = n_ranks;
    loads.alone = 0.0;
    for (uint32_t r = 0; r < n_ranks; r++) {
        loads.mu[r] = 0.0;
        loads.full[r] = 0;
        memset(loads.cov[r], 0, n_ranks * sizeof(loads.cov[r][0]));
    }
    add_experts(layer, &loads);
    double sum = 0.0, squares = 0.0, var = 0.0, cov = 0.0, largest = 0.0;
    uint32_t full = 0;
    for (uint32_t r = 0; r < n_ranks; r++) {
        sum += loads.mu[r];
        squares += loads.mu[r] * loads.mu[r];
        largest = fmax(largest, loads.mu[r]);
        full = loads.full[r] > full ? loads.full[r] : full;
        var += loads.cov[r][r];
        for (uint32_t other = 0; other < r; other++)
            cov += loads.cov[r][other];
    }
    if (n_ranks == 1)
        return sum;
    const double n = n_ranks, mean = sum / n;
    const double spread = squares / n - mean * mean;
    const double own = var / n - 2.0 * cov / (n * (n - 1.0));
    const double factor = akin_placement_load_factor(n_ranks);
    const double levelled =
        loads.alone > 0.0 ? fmax(1.0 - own * n / loads.alone, 0.0) : 0.0;
    /* The maximum of 2 to 16 normal variables deviates by .83 to .54. */
    const double of_maximum = 0.65;
    const double deviation = sqrt(fmax(own + spread, 0.0));
    const double estimate =
        mean + factor * deviation - levelled * whole_excess(n, factor);
    return fmax(largest, below(estimate, of_maximum * deviation, full));
}

double akin_placement_load_layer(const float *idle, const uint64_t *holders,
                                 uint32_t n_experts, uint32_t n_ranks)
{
    const layer_t layer = {
        .idle = idle,
        .holders = holders,
        .n_experts = n_experts,
        .n_ranks = n_ranks,
    };
    return expected_maximum(&layer);
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
        const layer_t layer = {
            .rates = rates + (size_t)l * placement->n_experts,
            .batch = batch,
            .holders = akin_placement_layer(placement, l),
            .n_experts = placement->n_experts,
            .n_ranks = placement->n_ranks,
        };
        sum += expected_maximum(&layer);
    }
    return sum;
}
