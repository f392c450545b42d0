/* Router metrics: the figures of a run in which something is going on. */
#include "metrics_check.h"
#include "router_bed.h"

#include "roles/router_ctl.h"

#define N_PROMPT 20u

static checked_t checked;

static void read_metrics(const bed_t *b)
{
    char *text = akini_router_metrics(b->r);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    if (!check_read(&checked, text))
        (void)fprintf(stderr, "%s\n", checked.error);
    CU_ASSERT_STRING_EQUAL_FATAL(checked.error, "");
    if (getenv("AKIN_SHOW") != NULL)
        (void)fputs(text, stderr);
    free(text);
}

#define EXPECT(key, expected)                                                  \
    CU_ASSERT_DOUBLE_EQUAL(check_value(&checked, key), expected, 1e-9)

static void figures(void)
{
    bed_t b;
    FILE *file = fopen(scratch_path("in"), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    bed_write_request(file, "one", N_PROMPT, 3);
    bed_write_request(file, "two", N_PROMPT, 1);
    bed_write_request(file, "three", N_PROMPT, 4);
    (void)fputs("{}\n", file);
    CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
    bed_init(&b);
    read_metrics(&b);
    EXPECT("akin:num_requests_running", 0);
    EXPECT("akin:time_to_first_token_seconds_count", 0);
    EXPECT("akin:workers{role=\"decode\",state=\"serving\"}", 2);

    bed_turn(&b);
    akini_flight_t *one = akini_flight_find(b.r, 0);
    akini_flight_t *two = akini_flight_find(b.r, 1);
    bed_prefilled(&b, 1 + one->prefill, one->id, N_PROMPT);
    bed_prefilled(&b, 1 + two->prefill, two->id, N_PROMPT);
    akini_router_dispatch(b.r, b.now);
    bed_transferred(&b, 3 + one->decode, one->id, AKIN_OK);
    bed_token(&b, 3 + one->decode, one->id);
    read_metrics(&b);
    /* One generates, two has its only token, three is prefilled; the fourth
     * line was none. */
    EXPECT("akin:num_requests_running", 2);
    EXPECT("akin:num_requests_waiting", 0);
    EXPECT("akin:request_success_total", 1);
    EXPECT("akin:request_failure_total", 1);
    EXPECT("akin:prompt_tokens_total", N_PROMPT);
    EXPECT("akin:generation_tokens_total", 3);
    EXPECT("akin:time_to_first_token_seconds_count", 1);
    EXPECT("akin:inter_token_latency_seconds_count", 1);
    EXPECT("akin:request_retries_total", 0);
    /* 22 tokens are computed, in two of eight blocks. */
    EXPECT(one->decode == 0 ? "akin:kv_cache_usage_perc{worker=\"decode 0\"}"
                            : "akin:kv_cache_usage_perc{worker=\"decode 1\"}",
           0.25);
    const uint32_t lost = 3 + one->decode;
    akin_router_on_peer_lost(b.r, lost, AKIN_ERR_PEER);
    const akin_summary_leases_t leases = {7, 1500000000, 2};
    akin_summary_set_leases(b.r->summary, &leases);
    akin_summary_add_refused(b.r->summary, 2, AKIN_KV_REFUSAL_GENERATION, 5);
    akin_summary_add_recovered(b.r->summary, 3, 500000000);
    akin_summary_add_recovered(b.r->summary, 3, 750000000);
    akin_summary_add_late(b.r->summary, 11);
    read_metrics(&b);
    EXPECT("akin:num_requests_waiting", 1);
    EXPECT("akin:request_retries_total", 1);
    EXPECT("akin:workers{role=\"decode\",state=\"serving\"}", 1);
    EXPECT("akin:workers{role=\"decode\",state=\"lost\"}", 1);
    EXPECT("akin:workers{role=\"prefill\",state=\"serving\"}", 2);
    EXPECT("akin:kv_pinned_blocks", 7);
    EXPECT("akin:kv_oldest_lease_seconds", 1.5);
    EXPECT("akin:kv_leases_expired", 2);
    EXPECT("akin:kv_refused_blocks_total{reason=\"generation\"}", 5);
    EXPECT("akin:kv_refused_blocks_total{reason=\"checksum\"}", 0);
    EXPECT("akin:worker_deaths_total{worker=\"decode 0\"}", lost == 3);
    EXPECT("akin:worker_deaths_total{worker=\"decode 1\"}", lost == 4);
    EXPECT("akin:worker_deaths_total{worker=\"prefill 0\"}", 0);
    EXPECT("akin:worker_recoveries_total", 2);
    EXPECT("akin:worker_recovery_seconds_sum", 1.25);
    EXPECT("akin:worker_recovery_seconds_count", 2);
    EXPECT("akin:messages_late_total", 11);
    bed_cleanup(&b);
}

static const runner_test_t tests[] = {
    {"figures", figures},
};

RUNNER_MAIN("router_metrics", tests)
