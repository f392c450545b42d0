/* Summary: the adders. */
#include "roles/summary.h"

#include "roles/summary_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* NULL stays NULL; 0 where memory is out. */
static int copy(char **to, const char *from)
{
    if (from == NULL)
        return 1;
    *to = strdup(from);
    return *to != NULL;
}

static int copy_worker(akini_summary_sums_t *to,
                       const akin_summary_worker_t *from)
{
    to->rank = from->rank;
    to->is_decode = from->role == NULL || strcmp(from->role, "decode") == 0;
    return copy(&to->name, from->name) && copy(&to->role, from->role) &&
           copy(&to->node, from->node) && copy(&to->transport, from->transport);
}

akin_status_t akin_summary_create(const akin_summary_params_t *params,
                                  akin_summary_t **summary_p)
{
    *summary_p = NULL;
    akin_summary_t *summary = calloc(1, sizeof(*summary));
    if (summary == NULL)
        return AKIN_ERR_NOMEM;
    summary->ep = params->ep == 0 ? 1 : params->ep;
    summary->prefill_ep =
        params->prefill_ep == 0 ? summary->ep : params->prefill_ep;
    summary->slowdown = params->slowdown;
    summary->start_ns = params->start_ns;
    summary->end_ns = params->start_ns;
    summary->unix_s = (int64_t)time(NULL);
    if (params->transports != NULL)
        summary->transports = *params->transports;
    if (!copy(&summary->model, params->model) ||
        !copy(&summary->policy, params->policy) ||
        !copy(&summary->policy_setting, params->policy_setting) ||
        !copy(&summary->engine, params->engine) ||
        !copy(&summary->modelled, params->modelled) ||
        !copy(&summary->kernel, params->kernel))
        goto err_destroy;
    akin_histogram_t **histograms[] = {
        &summary->ttft,    &summary->tpot,     &summary->itl,    &summary->e2el,
        &summary->routing, &summary->transfer, &summary->resumed};
    for (size_t i = 0; i < sizeof(histograms) / sizeof(histograms[0]); i++)
        if (akin_histogram_create(histograms[i]) != AKIN_OK)
            goto err_destroy;
    if (params->n_workers > 0) {
        summary->workers = calloc(params->n_workers, sizeof(*summary->workers));
        if (summary->workers == NULL)
            goto err_destroy;
    }
    summary->n_workers = params->n_workers;
    for (uint32_t i = 0; i < params->n_workers; i++)
        if (!copy_worker(&summary->workers[i], &params->workers[i]))
            goto err_destroy;
    if (akini_summary_load_create(summary, params->n_layers,
                                  params->n_experts) != AKIN_OK)
        goto err_destroy;
    *summary_p = summary;
    return AKIN_OK;

err_destroy:
    akin_summary_destroy(summary);
    return AKIN_ERR_NOMEM;
}

void akin_summary_destroy(akin_summary_t *summary)
{
    if (summary == NULL)
        return;
    for (uint32_t i = 0; i < summary->n_workers; i++) {
        free(summary->workers[i].name);
        free(summary->workers[i].role);
        free(summary->workers[i].node);
        free(summary->workers[i].transport);
    }
    free(summary->workers);
    akin_load_watch_destroy(summary->watch);
    akin_histogram_destroy(summary->ttft);
    akin_histogram_destroy(summary->tpot);
    akin_histogram_destroy(summary->itl);
    akin_histogram_destroy(summary->e2el);
    akin_histogram_destroy(summary->routing);
    akin_histogram_destroy(summary->transfer);
    akin_histogram_destroy(summary->resumed);
    free(summary->model);
    free(summary->policy);
    free(summary->policy_setting);
    free(summary->engine);
    free(summary->modelled);
    free(summary->kernel);
    free(summary);
}

static akini_summary_sums_t *get_worker(akin_summary_t *summary,
                                        uint32_t worker)
{
    return worker < summary->n_workers ? &summary->workers[worker] : NULL;
}

static void add_mean(akini_mean_t *mean, double value)
{
    mean->n++;
    mean->sum += value;
}

void akin_summary_add_request(akin_summary_t *summary,
                              const akin_summary_request_t *request)
{
    summary->completed++;
    summary->n_prompt_tokens += request->n_prompt_tokens;
    summary->n_output_tokens += request->n_output_tokens;
    if (request->last_ns > summary->end_ns)
        summary->end_ns = request->last_ns;
    if (request->first_ns == 0)
        return;
    akin_histogram_add(summary->ttft, request->first_ns - request->arrival_ns);
    akin_histogram_add(summary->e2el, request->last_ns - request->arrival_ns);
    if (request->n_output_tokens > 1)
        akin_histogram_add(summary->tpot,
                           (request->last_ns - request->first_ns) /
                               (int64_t)(request->n_output_tokens - 1));
}

void akin_summary_add_failed(akin_summary_t *summary)
{
    summary->failed++;
}

void akin_summary_add_itl(akin_summary_t *summary, int64_t ns)
{
    akin_histogram_add(summary->itl, ns);
}

static void add_step(akini_summary_sums_t *sums,
                     const akin_summary_step_t *step)
{
    sums->n_steps++;
    sums->n_rows += step->n_rows;
    sums->busy_ns += (double)step->ns;
    if (step->n_distinct >= 0)
        add_mean(&sums->distinct, step->n_distinct);
    if (step->max_distinct >= 0)
        add_mean(&sums->max_distinct, step->max_distinct);
}

void akin_summary_add_step(akin_summary_t *summary, uint32_t worker,
                           const akin_summary_step_t *step)
{
    akini_summary_sums_t *sums = get_worker(summary, worker);
    if (sums != NULL)
        add_step(sums, step);
    if (step->n_rows == 0 || (sums != NULL && !sums->is_decode))
        return;
    add_step(&summary->run, step);
    uint32_t row = step->n_rows <= AKINI_SUMMARY_BATCHES
                       ? step->n_rows - 1
                       : AKINI_SUMMARY_BATCHES;
    akini_summary_batch_t *batch = &summary->batches[row];
    batch->n_steps++;
    batch->n_rows += step->n_rows;
    add_mean(&batch->step_ns, (double)step->ns);
    if (step->n_distinct >= 0)
        add_mean(&batch->distinct, step->n_distinct);
}

void akin_summary_add_routing(akin_summary_t *summary, uint32_t worker,
                              int64_t ns)
{
    akini_summary_sums_t *sums = get_worker(summary, worker);
    akin_histogram_add(summary->routing, ns);
    summary->run.n_chosen++;
    if (sums != NULL)
        sums->n_chosen++;
}

void akin_summary_add_choice(akin_summary_t *summary, uint32_t n_band,
                             double similarity)
{
    if (n_band == 0)
        return;
    add_mean(&summary->band, n_band);
    add_mean(&summary->similarity, similarity);
}

void akin_summary_add_prediction(akin_summary_t *summary, double expected,
                                 double observed)
{
    akini_summary_predictions_t *p = &summary->predictions;
    p->n++;
    p->x += expected;
    p->y += observed;
    p->xx += expected * expected;
    p->yy += observed * observed;
    p->xy += expected * observed;
    p->error += fabs(expected - observed);
}

double akini_summary_correlation(const akini_summary_predictions_t *p)
{
    const double n = (double)p->n;
    const double vx = n * p->xx - p->x * p->x, vy = n * p->yy - p->y * p->y;
    /* What rounding leaves of equal values is no variation. */
    if (vx <= 1e-9 * n * p->xx || vy <= 1e-9 * n * p->yy)
        return (double)NAN;
    return (n * p->xy - p->x * p->y) / sqrt(vx * vy);
}

void akin_summary_set_refits(akin_summary_t *summary,
                             const akin_policy_refits_t *refits)
{
    summary->refits = *refits;
}

void akin_summary_set_replaced(akin_summary_t *summary,
                               const akin_replacer_stats_t *replaced)
{
    summary->replaced = *replaced;
}

void akin_summary_add_prefix(akin_summary_t *summary, uint32_t worker,
                             uint64_t n_query_tokens, uint64_t n_hit_tokens)
{
    akini_summary_sums_t *sums = get_worker(summary, worker);
    summary->run.n_query_tokens += n_query_tokens;
    summary->run.n_hit_tokens += n_hit_tokens;
    if (sums == NULL)
        return;
    sums->n_query_tokens += n_query_tokens;
    sums->n_hit_tokens += n_hit_tokens;
}

void akin_summary_add_transfer(akin_summary_t *summary, uint32_t worker,
                               const akin_summary_transfer_t *transfer)
{
    akini_summary_sums_t *all[] = {&summary->run, get_worker(summary, worker)};
    for (size_t i = 0; i < 2 && all[i] != NULL; i++) {
        all[i]->n_blocks += transfer->n_blocks;
        all[i]->n_bytes += transfer->n_bytes;
        all[i]->n_shared += transfer->n_shared;
    }
    if (transfer->ns > 0)
        akin_histogram_add(summary->transfer, transfer->ns);
}

void akin_summary_add_reads(akin_summary_t *summary, uint32_t worker,
                            const akin_summary_reads_t *reads)
{
    akini_summary_sums_t *all[] = {&summary->run, get_worker(summary, worker)};
    for (size_t i = 0; i < 2 && all[i] != NULL; i++) {
        all[i]->reads.n_one_sided += reads->n_one_sided;
        all[i]->reads.n_rendezvous += reads->n_rendezvous;
        all[i]->reads.n_bytes += reads->n_bytes;
    }
}

void akin_summary_add_refused(akin_summary_t *summary, uint32_t worker,
                              akin_kv_refusal_t reason, uint64_t n_blocks)
{
    akini_summary_sums_t *sums = get_worker(summary, worker);
    if ((unsigned)reason >= (unsigned)AKIN_KV_REFUSAL_COUNT ||
        reason == AKIN_KV_REFUSAL_NONE)
        return;
    summary->run.refused[reason] += n_blocks;
    if (sums != NULL)
        sums->refused[reason] += n_blocks;
}

void akin_summary_add_lost(akin_summary_t *summary, uint32_t worker,
                           uint64_t n_requests)
{
    akini_summary_sums_t *all[] = {&summary->run, get_worker(summary, worker)};
    for (size_t i = 0; i < 2 && all[i] != NULL; i++) {
        all[i]->n_lost++;
        all[i]->n_restarted += n_requests;
    }
}

void akin_summary_add_retry(akin_summary_t *summary)
{
    summary->recovery.n_retries++;
}

void akin_summary_add_recovered(akin_summary_t *summary, uint32_t worker,
                                int64_t ns)
{
    akini_summary_recovery_t *r = &summary->recovery;
    akini_summary_sums_t *sums = get_worker(summary, worker);
    summary->run.n_recovered++;
    if (sums != NULL)
        sums->n_recovered++;
    add_mean(&r->recovered_ns, (double)ns);
    if (ns > r->max_recovered_ns)
        r->max_recovered_ns = ns;
}

void akin_summary_add_resumed(akin_summary_t *summary, int64_t ns)
{
    akin_histogram_add(summary->resumed, ns);
}

void akin_summary_set_leases(akin_summary_t *summary,
                             const akin_summary_leases_t *leases)
{
    akini_summary_recovery_t *r = &summary->recovery;
    r->leases = *leases;
    if (leases->n_blocks > r->max_blocks)
        r->max_blocks = leases->n_blocks;
    if (leases->oldest_ns > r->max_oldest_ns)
        r->max_oldest_ns = leases->oldest_ns;
}

void akin_summary_add_late(akin_summary_t *summary, uint64_t n_messages)
{
    summary->recovery.n_late += n_messages;
}

void akin_summary_end(akin_summary_t *summary, int64_t now_ns)
{
    if (now_ns > summary->end_ns)
        summary->end_ns = now_ns;
}

double akini_summary_duration_s(const akin_summary_t *summary)
{
    int64_t ns = summary->end_ns - summary->start_ns;
    return (double)(ns > 0 ? ns : 1) / 1e9;
}

double akini_summary_centroid_age_s(const akin_summary_t *summary)
{
    if (summary->refits.n_installed == 0)
        return -1;
    return (double)(summary->end_ns - summary->refits.installed_ns) / 1e9;
}

double akini_summary_idle_share(const akin_summary_t *summary,
                                const akini_summary_sums_t *worker)
{
    double busy = worker->busy_ns / 1e9 / akini_summary_duration_s(summary);
    return busy < 1 ? 1 - busy : 0;
}

int akini_summary_has_recovery(const akin_summary_t *summary)
{
    const akini_summary_recovery_t *r = &summary->recovery;
    return summary->run.n_lost > 0 || summary->run.n_recovered > 0 ||
           r->n_retries > 0 || r->n_late > 0 || r->leases.n_blocks > 0 ||
           r->leases.n_expired > 0 ||
           akin_histogram_count(summary->resumed) > 0;
}

uint64_t akini_summary_refused(const akini_summary_sums_t *sums)
{
    uint64_t n = 0;
    for (int i = 0; i < AKIN_KV_REFUSAL_COUNT; i++)
        n += sums->refused[i];
    return n;
}
