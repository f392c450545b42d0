/* Fit choice: tries the variants and settings of a fit on requests held out. */
#include "routing/fit_auto.h"

#include "base/clock.h"
#include "routing/replay_study.h"

#include <stdlib.h>

const double akin_fit_auto_taus[AKIN_FIT_AUTO_TAUS] = {0.02, 0.05, 0.1, 0.2,
                                                       0.3};
const double akin_fit_auto_pulls[AKIN_FIT_AUTO_PULLS] = {0.0, 0.08, 0.16, 0.32,
                                                         0.64};

enum {
    N_SEEDS = 5,
    MAX_IN_FLIGHT = 16,
    N_CASES = 1 + AKIN_FIT_AUTO_TAUS + AKIN_FIT_AUTO_PULLS
};

/* Requests per worker that half of the requests keep in flight without copies;
 * 0: too few to replay, or to fit. */
static uint32_t choose_in_flight(const akin_fit_auto_params_t *params)
{
    uint32_t n_fit = params->set->n_requests / 2;
    uint32_t n_held_out = params->set->n_requests - n_fit;
    if (params->n_clusters < 2 || n_fit < params->n_clusters)
        return 0;
    /* Half of the held-out ones, so that the order of the rest is random. */
    uint32_t in_flight = n_held_out / 2 / params->n_clusters;
    return in_flight < MAX_IN_FLIGHT ? in_flight : MAX_IN_FLIGHT;
}

static void set_cases(akin_replay_case_t cases[N_CASES])
{
    uint32_t n = 0;
    cases[n++] = (akin_replay_case_t){.policy = "jsq"};
    for (uint32_t i = 0; i < AKIN_FIT_AUTO_TAUS; i++)
        cases[n++] = (akin_replay_case_t){.policy = "eldr-static",
                                          .tau = akin_fit_auto_taus[i]};
    for (uint32_t i = 0; i < AKIN_FIT_AUTO_PULLS; i++)
        cases[n++] = (akin_replay_case_t){.policy = "union-pull",
                                          .pull = akin_fit_auto_pulls[i]};
}

static double score(const akin_fit_auto_gain_t *gain)
{
    return gain->mean.mean + gain->p99.mean;
}

static uint32_t least(const akin_fit_auto_gain_t *gains, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (score(&gains[i]) < score(&gains[best]))
            best = i;
    return best;
}

static akin_fit_auto_gain_t gain_of(const akin_replay_result_t *results,
                                    uint32_t c)
{
    double mean[N_SEEDS], p99[N_SEEDS];
    for (uint32_t s = 0; s < N_SEEDS; s++) {
        const akin_replay_result_t *r = &results[c * N_SEEDS + s];
        mean[s] = r->tpot_mean_s / results[s].tpot_mean_s - 1.0;
        p99[s] = r->tpot_p99_s / results[s].tpot_p99_s - 1.0;
    }
    return (akin_fit_auto_gain_t){
        .mean = akin_interval_of(mean, N_SEEDS),
        .p99 = akin_interval_of(p99, N_SEEDS),
    };
}

static akin_status_t try_variant(const akin_fit_auto_params_t *params,
                                 akin_fit_variant_t variant, uint32_t in_flight,
                                 akin_fit_auto_outcome_t *outcome,
                                 akin_error_t *err)
{
    akin_replay_case_t cases[N_CASES];
    akin_replay_result_t results[N_CASES * N_SEEDS];
    set_cases(cases);
    const akin_replay_study_params_t study = {
        .trace = params->trace,
        .set = params->set,
        .prompt_tokens = params->prompt_tokens,
        .cases = cases,
        .n_cases = N_CASES,
        .n_seeds = N_SEEDS,
        .seed = params->seed,
        .n_fit = params->set->n_requests / 2,
        .variant = variant,
        .replay =
            {
                .n_workers = params->n_clusters,
                .in_flight = in_flight,
                .cost = params->cost,
            },
    };
    akin_status_t status = akin_replay_study_run(&study, results, NULL, err);
    if (status != AKIN_OK)
        return status;
    for (uint32_t i = 0; i < AKIN_FIT_AUTO_TAUS; i++)
        outcome->band[i] = gain_of(results, 1 + i);
    for (uint32_t i = 0; i < AKIN_FIT_AUTO_PULLS; i++)
        outcome->pull[i] = gain_of(results, 1 + AKIN_FIT_AUTO_TAUS + i);
    outcome->best_tau = least(outcome->band, AKIN_FIT_AUTO_TAUS);
    outcome->best_pull = least(outcome->pull, AKIN_FIT_AUTO_PULLS);
    return AKIN_OK;
}

static int is_better(const akin_fit_auto_report_t *report,
                     const akin_fit_auto_outcome_t *a,
                     const akin_fit_auto_outcome_t *b)
{
    if (!b->was_tried)
        return 1;
    if (report->was_replayed)
        return score(&a->pull[a->best_pull]) < score(&b->pull[b->best_pull]);
    return a->rho > b->rho;
}

/* Fit all requests with a variant; keep it if it is the best so far. */
static akin_status_t fit_variant(const akin_fit_auto_params_t *params,
                                 const akin_calibration_t *calibration,
                                 akin_fit_variant_t variant, akin_fit_t *fit,
                                 akin_fit_auto_report_t *report,
                                 akin_error_t *err)
{
    const akin_fit_make_params_t make = {
        .calibration = calibration,
        .n_clusters = params->n_clusters,
        .variant = variant,
        .seed = params->seed,
    };
    akin_fit_t made;
    akin_fit_report_t made_report;
    akin_status_t status = akin_fit_make(&make, &made, &made_report, err);
    if (status != AKIN_OK)
        return status;
    akin_fit_auto_outcome_t *outcome = &report->variants[variant];
    outcome->rho = made_report.rho;
    outcome->n_masked = made_report.n_masked;
    if (report->was_replayed)
        status = try_variant(params, variant, report->in_flight, outcome, err);
    if (status == AKIN_OK &&
        is_better(report, outcome, &report->variants[report->chosen])) {
        akin_fit_cleanup(fit);
        akin_fit_report_cleanup(&report->fit);
        *fit = made;
        report->fit = made_report;
        report->chosen = variant;
    } else {
        akin_fit_cleanup(&made);
        akin_fit_report_cleanup(&made_report);
    }
    outcome->was_tried = status == AKIN_OK;
    return status;
}

static akin_status_t fit_variants(const akin_fit_auto_params_t *params,
                                  const akin_calibration_t *calibration,
                                  akin_fit_t *fit,
                                  akin_fit_auto_report_t *report,
                                  akin_error_t *err)
{
    for (int v = 0; v < AKIN_FIT_AUTO_VARIANTS; v++) {
        akin_fit_auto_outcome_t *outcome = &report->variants[v];
        if (params->only_variant && v != (int)params->variant)
            continue;
        akin_status_t status =
            fit_variant(params, calibration, (akin_fit_variant_t)v, fit, report,
                        &outcome->refusal);
        if (status != AKIN_OK && status != AKIN_ERR_INVALID)
            return akin_error_set(err, status, "%s", outcome->refusal.text);
    }
    if (report->variants[report->chosen].was_tried)
        return AKIN_OK;
    /* What is wrong with the plain variant is wrong with both. */
    const int v = params->only_variant ? (int)params->variant : AKIN_FIT_COUNT;
    return akin_error_set(err, AKIN_ERR_INVALID, "%s",
                          report->variants[v].refusal.text);
}

static akin_status_t calibrate(const akin_fit_auto_params_t *params,
                               akin_calibration_t **calibration_p,
                               akin_error_t *err)
{
    const akin_replay_set_t *set = params->set;
    uint32_t *records = malloc(set->n_requests * sizeof(*records));
    if (records == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "fit: out of memory");
    for (uint32_t i = 0; i < set->n_requests; i++)
        records[i] = set->requests[i].record;
    const akin_calibration_params_t which = {
        .records = records,
        .n_records = set->n_requests,
        .prompt_tokens = params->prompt_tokens,
    };
    akin_status_t status =
        akin_calibration_create(params->trace, &which, calibration_p, err);
    free(records);
    return status;
}

void akin_fit_auto_report_cleanup(akin_fit_auto_report_t *report)
{
    if (report == NULL)
        return;
    akin_fit_report_cleanup(&report->fit);
    *report = (akin_fit_auto_report_t){0};
}

akin_status_t akin_fit_auto(const akin_fit_auto_params_t *params,
                            akin_fit_t *fit, akin_fit_auto_report_t *report,
                            akin_error_t *err)
{
    int64_t begin = akin_clock_now_ns();
    akin_calibration_t *calibration = NULL;
    *fit = (akin_fit_t){0};
    *report = (akin_fit_auto_report_t){
        .in_flight = choose_in_flight(params),
        .n_seeds = N_SEEDS,
    };
    report->was_replayed = report->in_flight > 0;
    akin_status_t status = calibrate(params, &calibration, err);
    if (status == AKIN_OK)
        status = fit_variants(params, calibration, fit, report, err);
    akin_calibration_destroy(calibration);
    if (status != AKIN_OK) {
        akin_fit_cleanup(fit);
        akin_fit_auto_report_cleanup(report);
        return status;
    }
    if (report->was_replayed) {
        const akin_fit_auto_outcome_t *best = &report->variants[report->chosen];
        fit->tau = akin_fit_auto_taus[best->best_tau];
        fit->pull = akin_fit_auto_pulls[best->best_pull];
    }
    report->seconds =
        (double)(akin_clock_now_ns() - begin) / (double)AKIN_NS_PER_S;
    return AKIN_OK;
}
