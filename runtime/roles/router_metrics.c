/* The router's state as metrics, with the names that vLLM has where it has such
 * a figure. */
#include "roles/router_ctl.h"

#include "roles/metrics.h"
#include "roles/summary_state.h"

static void one(akin_metrics_t *m, const char *name, akin_metrics_type_t type,
                const char *help, double value)
{
    akin_metrics_begin(m, name, type, help);
    akin_metrics_add(m, NULL, NULL, NULL, value);
}

static void count(akin_metrics_t *m, const char *name, const char *help,
                  uint64_t value)
{
    one(m, name, AKIN_METRICS_COUNTER, help, (double)value);
}

static void gauge(akin_metrics_t *m, const char *name, const char *help,
                  double value)
{
    one(m, name, AKIN_METRICS_GAUGE, help, value);
}

static void times(akin_metrics_t *m, const char *name, const char *help,
                  const akin_histogram_t *histogram)
{
    akin_metrics_begin(m, name, AKIN_METRICS_HISTOGRAM, help);
    akin_metrics_add_histogram(m, histogram);
}

static void add_requests(akin_metrics_t *m, const akin_router_t *r)
{
    const akin_summary_t *s = r->summary;
    gauge(m, "akin:num_requests_running",
          "Requests that are prefilled, moved or decoded.",
          r->n_in[AKINI_FLIGHT_PREFILL] + r->n_in[AKINI_FLIGHT_TRANSFER] +
              r->n_in[AKINI_FLIGHT_DECODE]);
    gauge(m, "akin:num_requests_waiting",
          "Requests that wait for a prefill or a decode worker.",
          r->n_in[AKINI_FLIGHT_QUEUED] + r->n_in[AKINI_FLIGHT_ROUTED]);
    count(m, "akin:request_success_total", "Requests that were answered.",
          s->completed);
    count(m, "akin:request_failure_total",
          "Requests that ended with an error line.", s->failed);
    count(m, "akin:request_retries_total",
          "Requests that began again, for whatever reason.",
          s->recovery.n_retries);
    count(m, "akin:prompt_tokens_total",
          "Prompt tokens of the requests that were answered.",
          s->n_prompt_tokens);
    count(m, "akin:generation_tokens_total", "Tokens that were generated.",
          r->counts.tokens);
    times(m, "akin:time_to_first_token_seconds",
          "From a request's arrival to its first token.", s->ttft);
    times(m, "akin:inter_token_latency_seconds",
          "From one token of a request to its next one.", s->itl);
    times(m, "akin:request_time_per_output_token_seconds",
          "Mean time between the tokens of a request.", s->tpot);
    times(m, "akin:e2e_request_latency_seconds",
          "From a request's arrival to its last token.", s->e2el);
}

static void add_usage(akin_metrics_t *m, const akin_router_t *r)
{
    const akin_job_t *job = r->params.job;
    akin_metrics_begin(m, "akin:kv_cache_usage_perc", AKIN_METRICS_GAUGE,
                       "KV slots of a decode worker that are promised to its "
                       "requests; 1 is all of them.");
    for (uint32_t w = job->n_prefill; w < job->n_prefill + job->n_decode; w++) {
        akini_worker_view_t view;
        akini_router_view(r, w, &view);
        akin_metrics_add(m, NULL, "worker", view.name,
                         view.n_slots == 0
                             ? 0
                             : (double)view.n_reserved / (double)view.n_slots);
    }
}

static void add_kv(akin_metrics_t *m, const akin_router_t *r)
{
    const akin_summary_t *s = r->summary;
    const akin_summary_leases_t *leases = &s->recovery.leases;
    add_usage(m, r);
    count(m, "akin:prefix_cache_queries_total",
          "Prompt tokens that were looked for in prefix caches.",
          s->run.n_query_tokens);
    count(m, "akin:prefix_cache_hits_total",
          "Prompt tokens that were found in prefix caches.",
          s->run.n_hit_tokens);
    count(m, "akin:kv_blocks_moved_total",
          "KV blocks that decode workers took over.", s->run.n_blocks);
    count(m, "akin:kv_bytes_moved_total", "Bytes of those.", s->run.n_bytes);
    gauge(m, "akin:kv_pinned_blocks",
          "KV blocks that prefill workers keep under a lease.",
          (double)leases->n_blocks);
    gauge(m, "akin:kv_oldest_lease_seconds", "Age of the oldest lease.",
          (double)leases->oldest_ns / 1e9);
    gauge(m, "akin:kv_leases_expired",
          "Leases that ended unreleased, of the prefill ranks that live.",
          (double)leases->n_expired);
    akin_metrics_begin(m, "akin:kv_refused_blocks_total", AKIN_METRICS_COUNTER,
                       "KV blocks that failed a check and were not used.");
    for (int i = AKIN_KV_REFUSAL_NONE + 1; i < AKIN_KV_REFUSAL_COUNT; i++)
        akin_metrics_add(m, NULL, "reason",
                         akin_kv_refusal_string((akin_kv_refusal_t)i),
                         (double)s->run.refused[i]);
}

static void add_states(akin_metrics_t *m, const akin_router_t *r)
{
    static const char *const labels[2] = {"role", "state"};
    const akin_job_t *job = r->params.job;
    uint32_t n[2][AKINI_WORKER_STATES] = {{0}};
    for (uint32_t w = 0; w < job->n_prefill + job->n_decode; w++) {
        akini_worker_view_t view;
        akini_router_view(r, w, &view);
        n[w >= job->n_prefill][view.state]++;
    }
    akin_metrics_begin(m, "akin:workers", AKIN_METRICS_GAUGE,
                       "Workers by what they are at.");
    for (int role = 0; role < 2; role++)
        for (int state = 0; state < AKINI_WORKER_STATES; state++) {
            const char *const texts[2] = {
                role == 0 ? "prefill" : "decode",
                akini_worker_state_name((akini_worker_state_t)state)};
            akin_metrics_add_two(m, labels, texts, n[role][state]);
        }
}

static void add_recovery(akin_metrics_t *m, const akin_router_t *r)
{
    const akin_summary_t *s = r->summary;
    const akini_summary_recovery_t *recovery = &s->recovery;
    akin_metrics_begin(m, "akin:worker_deaths_total", AKIN_METRICS_COUNTER,
                       "How often a worker was lost.");
    for (uint32_t i = 0; i < s->n_workers; i++) {
        char name[32];
        akini_router_worker_name(r, i, name);
        akin_metrics_add(m, NULL, "worker", name, (double)s->workers[i].n_lost);
    }
    count(m, "akin:worker_recoveries_total", "Lost workers that served again.",
          s->run.n_recovered);
    akin_metrics_begin(m, "akin:worker_recovery_seconds", AKIN_METRICS_SUMMARY,
                       "From a worker's loss until it served again.");
    akin_metrics_add(m, "_sum", NULL, NULL, recovery->recovered_ns.sum / 1e9);
    akin_metrics_add(m, "_count", NULL, NULL, (double)recovery->recovered_ns.n);
    times(m, "akin:request_resume_seconds",
          "From the loss of its worker to a request's next token.", s->resumed);
    count(m, "akin:messages_late_total",
          "Messages of or for dead processes that were dropped.",
          recovery->n_late);
}

char *akini_router_metrics(const akin_router_t *r)
{
    akin_metrics_t *m;
    char *text;
    if (akin_metrics_create(&m) != AKIN_OK)
        return NULL;
    add_requests(m, r);
    add_kv(m, r);
    add_states(m, r);
    add_recovery(m, r);
    return akin_metrics_finish(m, &text) == AKIN_OK ? text : NULL;
}
