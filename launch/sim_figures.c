/* Sim figures: what a simulation shows of its runs. */
#include "launch/sim.h"

#include "routing/interval.h"

#define AT(member) offsetof(akin_sim_result_t, member)

/* Names and definitions of the times are those of vLLM's benchmark. */
const akin_sim_figure_t akin_sim_figures[] = {
    {"mean_ttft_ms", NULL, AT(ttft_s.mean), 1e3, 1, false, false},
    {"p50_ttft_ms", "TTFT p50", AT(ttft_s.p50), 1e3, 1, false, false},
    {"p95_ttft_ms", NULL, AT(ttft_s.p95), 1e3, 1, false, false},
    {"p99_ttft_ms", "p99", AT(ttft_s.p99), 1e3, 1, false, false},
    {"mean_tpot_ms", "TPOT mean", AT(tpot_s.mean), 1e3, 2, false, false},
    {"p50_tpot_ms", "p50", AT(tpot_s.p50), 1e3, 2, true, false},
    {"p95_tpot_ms", NULL, AT(tpot_s.p95), 1e3, 2, false, false},
    {"p99_tpot_ms", "p99", AT(tpot_s.p99), 1e3, 2, true, false},
    {"mean_itl_ms", NULL, AT(itl_s.mean), 1e3, 2, false, false},
    {"p50_itl_ms", "ITL p50", AT(itl_s.p50), 1e3, 2, false, false},
    {"p95_itl_ms", NULL, AT(itl_s.p95), 1e3, 2, false, false},
    {"p99_itl_ms", "p99", AT(itl_s.p99), 1e3, 2, false, false},
    {"queue_ms", NULL, AT(queue_s), 1e3, 2, false, false},
    {"stay_ms", NULL, AT(stay_s), 1e3, 1, false, false},
    {"distinct_experts", "experts", AT(distinct), 1.0, 2, true, false},
    {"busiest_rank_experts", NULL, AT(busiest), 1.0, 2, false, false},
    {"batch", "batch", AT(batch), 1.0, 1, false, false},
    {"requests_inside", NULL, AT(inside), 1.0, 1, false, false},
    {"window_s", NULL, AT(window_s), 1.0, 1, false, false},
    {"copies_percent", NULL, AT(copies), 100.0, 2, false, false},
    {"prefix_cached_percent", "cached %", AT(cached), 100.0, 1, false, true},
    {"deaths", "deaths", AT(deaths), 1.0, 1, false, true},
    {"rerun_requests", "rerun", AT(rerun), 1.0, 1, false, true},
    {"reprefilled_tokens", "tokens anew", AT(reprefilled_tokens), 1.0, 0, false,
     true},
};

const size_t akin_sim_n_figures =
    sizeof(akin_sim_figures) / sizeof(akin_sim_figures[0]);

static double value_of(const akin_sim_job_t *job, uint32_t which, uint32_t seed,
                       const akin_sim_figure_t *figure)
{
    const akin_sim_result_t *result =
        &job->results[(size_t)which * job->n_seeds + seed];
    const void *at = (const char *)result + figure->offset;
    return figure->scale * *(const double *)at;
}

double akin_sim_figure_mean(const akin_sim_job_t *job, uint32_t which,
                            const akin_sim_figure_t *figure, double *values,
                            double *half_width_p)
{
    for (uint32_t s = 0; s < job->n_seeds; s++)
        values[s] = value_of(job, which, s, figure);
    const akin_interval_t of = akin_interval_of(values, job->n_seeds);
    *half_width_p = of.half_width;
    return of.mean;
}

void akin_sim_phase_means(const akin_sim_job_t *job, uint32_t which,
                          uint32_t phase, double means[3])
{
    means[0] = means[1] = means[2] = 0.0;
    for (uint32_t s = 0; s < job->n_seeds; s++) {
        const akin_sim_phase_t *of =
            &job->results[(size_t)which * job->n_seeds + s].phases[phase];
        means[0] += 1e3 * of->tpot_s.p50 / job->n_seeds;
        means[1] += 1e3 * of->tpot_s.p99 / job->n_seeds;
        means[2] += of->distinct / job->n_seeds;
    }
}

double akin_sim_figure_change(const akin_sim_job_t *job, uint32_t which,
                              const akin_sim_figure_t *figure, double *values,
                              double *half_width_p)
{
    for (uint32_t s = 0; s < job->n_seeds; s++) {
        const double first = value_of(job, 0, s, figure);
        const double value = value_of(job, which, s, figure);
        const bool are_none = first <= 0.0 && value <= 0.0;
        values[s] = are_none ? 0.0 : 100.0 * (value / first - 1.0);
    }
    const akin_interval_t of = akin_interval_of(values, job->n_seeds);
    *half_width_p = of.half_width;
    return of.mean;
}
