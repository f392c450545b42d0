/* Sim statistics: what a simulation adds up, and the result it gives. */
#include "routing/sim_statistics.h"

#include <math.h>
#include <stdlib.h>

/* Gaps from a microsecond to some 1,000 s, a bucket for every 0.1 %. */
#define SHORTEST_S 1e-6
#define BUCKETS_PER_E 1000.0
#define N_BUCKETS 20800u

akin_status_t akini_sim_statistics_init(akini_sim_statistics_t *of, uint32_t n)
{
    *of = (akini_sim_statistics_t){
        .ttft = calloc(n, sizeof(*of->ttft)),
        .tpot = calloc(n, sizeof(*of->tpot)),
        .gaps = calloc(N_BUCKETS, sizeof(*of->gaps)),
    };
    for (uint32_t p = 0; p < AKIN_SIM_PHASES; p++) {
        of->phase_tpot[p] = calloc(n, sizeof(**of->phase_tpot));
        if (of->phase_tpot[p] == NULL)
            return AKIN_ERR_NOMEM;
    }
    return of->ttft != NULL && of->tpot != NULL && of->gaps != NULL
               ? AKIN_OK
               : AKIN_ERR_NOMEM;
}

void akini_sim_statistics_cleanup(akini_sim_statistics_t *of)
{
    free(of->ttft);
    free(of->tpot);
    free(of->gaps);
    for (uint32_t p = 0; p < AKIN_SIM_PHASES; p++)
        free(of->phase_tpot[p]);
}

void akini_sim_statistics_end(akini_sim_statistics_t *of,
                              const akini_sim_request_t *request,
                              uint32_t phase)
{
    if (request->n_output > 1) {
        const double tpot =
            (request->token_s - request->first_s) / (request->n_output - 1);
        of->tpot[of->n_tpot++] = tpot;
        of->phase_tpot[phase][of->n_phase_tpot[phase]++] = tpot;
    }
    of->stay_s += request->token_s - request->arrival_s;
    of->n_stay++;
}

void akini_sim_statistics_step(akini_sim_statistics_t *of,
                               const akini_sim_worker_t *worker, uint32_t phase)
{
    of->distinct += worker->distinct;
    of->busiest += worker->busiest;
    of->batch += worker->n_running;
    of->n_steps++;
    of->n_copies += worker->has_copies;
    of->phase_distinct[phase] += worker->distinct;
    of->n_phase_steps[phase]++;
}

void akini_sim_statistics_gap(akini_sim_statistics_t *of, double seconds)
{
    if (seconds < of->last_gap_s || seconds > of->last_gap_s) {
        const double at =
            BUCKETS_PER_E * log(fmax(seconds, SHORTEST_S) / SHORTEST_S);
        of->last_gap_s = seconds;
        of->last_at = (uint32_t)fmin(at, N_BUCKETS - 1.0);
    }
    of->gaps[of->last_at]++;
    of->gap_s += seconds;
    of->n_gaps++;
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

/* What nothing was measured of. */
static const akin_sim_spread_t unknown = {(double)NAN, (double)NAN, (double)NAN,
                                          (double)NAN};

static double ratio(double sum, double n)
{
    return n > 0.0 ? sum / n : (double)NAN;
}

static akin_sim_spread_t spread_of(double *values, uint32_t n)
{
    akin_sim_spread_t spread = unknown;
    if (n == 0)
        return spread;
    spread.mean = 0.0;
    qsort(values, n, sizeof(*values), compare_doubles);
    for (uint32_t i = 0; i < n; i++)
        spread.mean += values[i];
    spread.mean /= (double)n;
    spread.p50 = percentile(values, n, 0.50);
    spread.p95 = percentile(values, n, 0.95);
    spread.p99 = percentile(values, n, 0.99);
    return spread;
}

/* Of values that spread_of() has sorted. */
static void take_percentiles(const double *sorted, uint32_t n, double *to)
{
    for (uint32_t i = 0; i < AKIN_SIM_PERCENTILES; i++)
        to[i] = n > 0 ? percentile(sorted, n, i / (AKIN_SIM_PERCENTILES - 1.0))
                      : (double)NAN;
}

/* Middle of the bucket in which a part q of the gaps, of which there are some,
 * ends. */
static double gap_percentile(const akini_sim_statistics_t *of, double q)
{
    uint64_t below = 0;
    uint32_t i = 0;
    while (i < N_BUCKETS - 1 &&
           (double)(below += of->gaps[i]) < q * (double)of->n_gaps)
        i++;
    return SHORTEST_S * exp((i + 0.5) / BUCKETS_PER_E);
}

void akini_sim_statistics_result(akini_sim_statistics_t *of, uint32_t n_layers,
                                 double window_s, akin_sim_result_t *result_p)
{
    const double steps = (double)of->n_steps;
    *result_p = (akin_sim_result_t){
        .ttft_s = spread_of(of->ttft, of->n_ttft),
        .tpot_s = spread_of(of->tpot, of->n_tpot),
        .itl_s = unknown,
        .queue_s = ratio(of->queue_s, of->n_ttft),
        .stay_s = ratio(of->stay_s, of->n_stay),
        .distinct = ratio(of->distinct, steps) / n_layers,
        .busiest = ratio(of->busiest, steps) / n_layers,
        .batch = ratio(of->batch, steps),
        .copies = ratio((double)of->n_copies, steps),
        .inside = ratio(of->area, window_s),
        .window_s = window_s,
        .n_steps = of->n_steps,
    };
    take_percentiles(of->ttft, of->n_ttft, result_p->ttft_percentiles_s);
    take_percentiles(of->tpot, of->n_tpot, result_p->tpot_percentiles_s);
    for (uint32_t p = 0; p < AKIN_SIM_PHASES; p++)
        result_p->phases[p] = (akin_sim_phase_t){
            .tpot_s = spread_of(of->phase_tpot[p], of->n_phase_tpot[p]),
            .distinct =
                ratio(of->phase_distinct[p], (double)of->n_phase_steps[p]) /
                n_layers,
        };
    if (of->n_gaps > 0)
        result_p->itl_s = (akin_sim_spread_t){
            .mean = of->gap_s / (double)of->n_gaps,
            .p50 = gap_percentile(of, 0.50),
            .p95 = gap_percentile(of, 0.95),
            .p99 = gap_percentile(of, 0.99),
        };
}
