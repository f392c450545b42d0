/* Replay statistics: what a replay adds up, and the result it gives. */
#include "routing/replay_statistics.h"

#include <math.h>
#include <stdlib.h>

akin_status_t akini_replay_statistics_init(akini_replay_statistics_t *of,
                                           uint32_t n)
{
    *of = (akini_replay_statistics_t){
        .tpots = calloc(n, sizeof(*of->tpots)),
    };
    return of->tpots != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
}

void akini_replay_statistics_cleanup(akini_replay_statistics_t *of)
{
    free(of->tpots);
}

void akini_replay_statistics_decision(akini_replay_statistics_t *of,
                                      const akin_policy_t *policy,
                                      uint32_t n_workers, uint32_t n_in_flight)
{
    uint32_t most = 0;
    for (uint32_t w = 0; w < n_workers; w++) {
        uint32_t n = akin_policy_in_flight(policy, w);
        most = n > most ? n : most;
    }
    const akin_policy_choice_t choice = akin_policy_last_choice(policy);
    of->spread += (double)most * n_workers / (double)n_in_flight;
    of->n_band += choice.n_band;
    of->similarity += choice.similarity;
    of->n_decisions++;
}

void akini_replay_statistics_step(akini_replay_statistics_t *of,
                                  const akini_replay_worker_t *worker)
{
    of->distinct += worker->distinct;
    of->busiest += worker->busiest;
    of->expected += worker->expected;
    of->busiest_squares += worker->busiest * worker->busiest;
    of->expected_squares += worker->expected * worker->expected;
    of->products += worker->expected * worker->busiest;
    of->n_tokens += worker->n_running;
    of->n_steps++;
}

/* Pearson's, of what the policy expected of the busiest rank and what was. */
static double correlation(const akini_replay_statistics_t *of)
{
    const double n = fmax((double)of->n_steps, 1.0);
    double e = of->expected / n, b = of->busiest / n;
    double variance =
        (of->expected_squares / n - e * e) * (of->busiest_squares / n - b * b);
    return variance > 0.0 ? (of->products / n - e * b) / sqrt(variance) : 0.0;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of sorted values, between the two nearest ones. */
static double percentile(const double *sorted, uint32_t n, double q)
{
    double at = q * (double)(n - 1);
    uint32_t low = (uint32_t)at;
    uint32_t high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}

void akini_replay_statistics_result(akini_replay_statistics_t *of,
                                    uint32_t n_layers, double seconds,
                                    akin_replay_result_t *result_p)
{
    const uint32_t n = of->n_tpots;
    const double steps = fmax((double)of->n_steps, 1.0);
    const double decisions = fmax((double)of->n_decisions, 1.0);
    double sum = 0.0;
    qsort(of->tpots, n, sizeof(*of->tpots), compare_doubles);
    for (uint32_t i = 0; i < n; i++)
        sum += of->tpots[i];
    *result_p = (akin_replay_result_t){
        .tpot_p50_s = percentile(of->tpots, n, 0.50),
        .tpot_mean_s = sum / (double)n,
        .tpot_p95_s = percentile(of->tpots, n, 0.95),
        .tpot_p99_s = percentile(of->tpots, n, 0.99),
        .distinct = of->distinct / steps / (double)n_layers,
        .busiest = of->busiest / steps / (double)n_layers,
        .predicted = of->expected / steps / (double)n_layers,
        .correlation = correlation(of),
        .batch = (double)of->n_tokens / steps,
        .spread = of->spread / decisions,
        .wait_s = of->wait_s / decisions,
        .seconds = seconds,
        .n_band = of->n_band / decisions,
        .similarity = of->similarity / decisions,
        .n_steps = of->n_steps,
        .n_tokens = of->n_tokens,
    };
    for (uint32_t i = 0; i < AKIN_REPLAY_PERCENTILES; i++)
        result_p->tpot_percentiles_s[i] =
            percentile(of->tpots, n, i / (AKIN_REPLAY_PERCENTILES - 1.0));
}
