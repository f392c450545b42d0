/* Summary: names and values of the JSON, and the tables. */
#include "base/clock.h"
#include "roles/summary.h"
#include "runner.h"
#include "scratch_file.h"

#include <jansson.h>
#include <math.h>

#define MS AKIN_NS_PER_MS

static akin_summary_t *create(void)
{
    static const akin_summary_worker_t workers[] = {
        {.name = "prefill 0", .role = "prefill", .node = "n1", .rank = 1},
        {.name = "decode 0",
         .role = "decode",
         .node = "n1",
         .transport = "shm get",
         .rank = 2},
        {.name = "decode 1", .role = "decode", .rank = 3}};
    const akin_summary_params_t params = {.model = "tiny-moe",
                                          .policy = "union",
                                          .policy_setting = "auto",
                                          .engine = "cpu",
                                          .kernel = "avx2",
                                          .ep = 1,
                                          .workers = workers,
                                          .n_workers = 3,
                                          .start_ns = 1000 * MS};
    akin_summary_t *summary;
    CU_ASSERT_EQUAL_FATAL(akin_summary_create(&params, &summary), AKIN_OK);
    return summary;
}

/* Two requests: TTFT 10 and 30 ms, 5 and 1 tokens, the first in 50 ms; a run
 * of 2 s. */
static akin_summary_t *filled(void)
{
    akin_summary_t *s = create();
    const akin_summary_request_t requests[] = {
        {100, 5, 1100 * MS, 1110 * MS, 1150 * MS},
        {50, 1, 1200 * MS, 1230 * MS, 1230 * MS}};
    for (int i = 0; i < 2; i++)
        akin_summary_add_request(s, &requests[i]);
    akin_summary_add_failed(s);
    for (int i = 0; i < 4; i++)
        akin_summary_add_itl(s, 10 * MS);
    /* A prefill chunk must not count among the decode steps. */
    const akin_summary_step_t steps[] = {{500 * MS, 300, 8, -1},
                                         {100 * MS, 2, 3, 2},
                                         {300 * MS, 2, 5, 4},
                                         {200 * MS, 4, 7, -1},
                                         {400 * MS, 1000, -1, -1}};
    static const uint32_t of[] = {0, 1, 1, 2, 2};
    for (int i = 0; i < 5; i++)
        akin_summary_add_step(s, of[i], &steps[i]);
    for (int i = 1; i <= 100; i++)
        akin_summary_add_routing(s, i <= 75 ? 1 : 2, i * 1000);
    akin_summary_add_prefix(s, 0, 150, 48);
    const akin_summary_transfer_t transfer = {7, 7 << 20, 3, 2 * MS};
    akin_summary_add_transfer(s, 1, &transfer);
    akin_summary_add_transfer(s, 99, &transfer);
    akin_summary_add_refused(s, 2, AKIN_KV_REFUSAL_CHECKSUM, 2);
    akin_summary_add_refused(s, 1, AKIN_KV_REFUSAL_GENERATION, 1);
    akin_summary_add_refused(s, 1, AKIN_KV_REFUSAL_COUNT, 50);
    akin_summary_add_refused(s, 1, AKIN_KV_REFUSAL_NONE, 50);
    akin_summary_add_lost(s, 2, 4);
    akin_summary_end(s, 3000 * MS);
    return s;
}

static double number(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    if (!json_is_number(value))
        (void)fprintf(stderr, "no number %s\n", key);
    CU_ASSERT_FATAL(json_is_number(value));
    return json_number_value(value);
}

#define CHECK_NUMBER(json, key, expected)                                      \
    CU_ASSERT_DOUBLE_EQUAL(number(json, key), expected, 1e-9)

static void test_numbers(void)
{
    akin_summary_t *s = filled();
    json_t *json = akin_summary_json(s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    CHECK_NUMBER(json, "duration", 2);
    CHECK_NUMBER(json, "completed", 2);
    CHECK_NUMBER(json, "failed", 1);
    CHECK_NUMBER(json, "num_prompts", 3);
    CHECK_NUMBER(json, "total_input_tokens", 150);
    CHECK_NUMBER(json, "total_output_tokens", 6);
    CHECK_NUMBER(json, "request_throughput", 1);
    CHECK_NUMBER(json, "output_throughput", 3);
    CHECK_NUMBER(json, "total_token_throughput", 78);
    CHECK_NUMBER(json, "mean_ttft_ms", 20);
    CHECK_NUMBER(json, "median_ttft_ms", 20);
    CHECK_NUMBER(json, "std_ttft_ms", 10);
    CHECK_NUMBER(json, "p99_ttft_ms", 29.8);
    /* Only the first request has a time per output token: 40 ms / 4. */
    CHECK_NUMBER(json, "mean_tpot_ms", 10);
    CHECK_NUMBER(json, "p99_itl_ms", 10);
    CHECK_NUMBER(json, "mean_e2el_ms", 40);
    CHECK_NUMBER(json, "percentile_relative_error", 0);
    CHECK_NUMBER(json, "steps", 4);
    CHECK_NUMBER(json, "distinct_experts_per_step", 5);
    CHECK_NUMBER(json, "max_rank_distinct_experts_per_step", 3);
    CHECK_NUMBER(json, "prefix_cache_hit_rate", 0.32);
    CHECK_NUMBER(json, "kv_blocks_moved", 14);
    CHECK_NUMBER(json, "kv_bytes_moved", 14 << 20);
    CHECK_NUMBER(json, "kv_blocks_shared", 6);
    CHECK_NUMBER(json, "times_lost", 1);
    CHECK_NUMBER(json, "requests_restarted", 4);
    const json_t *refused = json_object_get(json, "kv_blocks_refused");
    CHECK_NUMBER(refused, "total", 3);
    CHECK_NUMBER(refused, "checksum", 2);
    CHECK_NUMBER(refused, "generation", 1);
    CHECK_NUMBER(refused, "magic", 0);
    const json_t *routing = json_object_get(json, "routing_us");
    CHECK_NUMBER(routing, "count", 100);
    CHECK_NUMBER(routing, "p50", 50.5);
    CHECK_NUMBER(routing, "p99", 99.01);
    CHECK_NUMBER(json_object_get(json, "kv_transfer_ms"), "mean", 2);

    const json_t *batches = json_object_get(json, "distinct_experts_by_batch");
    CU_ASSERT_EQUAL_FATAL(json_array_size(batches), 3);
    CHECK_NUMBER(json_array_get(batches, 0), "batch", 2);
    CHECK_NUMBER(json_array_get(batches, 0), "steps", 2);
    CHECK_NUMBER(json_array_get(batches, 0), "distinct_experts", 4);
    CHECK_NUMBER(json_array_get(batches, 0), "step_ms", 200);
    CHECK_NUMBER(json_array_get(batches, 2), "batch", 1000);
    CU_ASSERT_EQUAL(json_is_null(json_object_get(json_array_get(batches, 2),
                                                 "distinct_experts")),
                    1);

    const json_t *workers = json_object_get(json, "workers");
    CU_ASSERT_EQUAL_FATAL(json_array_size(workers), 3);
    const json_t *prefill = json_array_get(workers, 0);
    const json_t *decode = json_array_get(workers, 1);
    CHECK_NUMBER(prefill, "idle_share", 0.75);
    CHECK_NUMBER(prefill, "tokens", 300);
    CHECK_NUMBER(prefill, "prefix_cache_hits", 48);
    CHECK_NUMBER(decode, "idle_share", 0.8);
    CHECK_NUMBER(decode, "mean_batch", 2);
    CHECK_NUMBER(decode, "routing_decisions", 75);
    CHECK_NUMBER(decode, "kv_blocks_moved", 7);
    CHECK_NUMBER(json_object_get(decode, "kv_blocks_refused"), "total", 1);
    CU_ASSERT_STRING_EQUAL(
        json_string_value(json_object_get(decode, "transport")), "shm get");
    json_decref(json);
    akin_summary_destroy(s);
}

static char *tables_of(akin_summary_t *s)
{
    const char *path = scratch_path("tables");
    FILE *file = fopen(path, "w");
    CU_ASSERT_EQUAL(akin_summary_print(s, file), AKIN_OK);
    (void)fclose(file);
    size_t bytes = 0;
    char *text = scratch_read(path, &bytes);
    scratch_remove(path);
    return text;
}

/* Bands and refits show where the policy has them, and only there. */
static void test_locality(void)
{
    static const char *const keys[] = {"mean_band_workers", "mean_similarity",
                                       "refits"};
    akin_summary_t *s = filled();
    akin_policy_refits_t refits = {0};
    akin_summary_add_choice(s, 0, 0.5);
    akin_summary_set_refits(s, &refits);
    json_t *json = akin_summary_json(s);
    for (int i = 0; i < 3; i++)
        CU_ASSERT_PTR_NULL(json_object_get(json, keys[i]));
    json_decref(json);
    char *text = tables_of(s);
    CU_ASSERT_PTR_NULL(strstr(text, "locality band"));
    CU_ASSERT_PTR_NULL(strstr(text, "refits"));
    free(text);

    akin_summary_add_choice(s, 1, 0.9);
    akin_summary_add_choice(s, 4, 0.6);
    refits.is_refitting = 1;
    refits.n_started = 1;
    akin_summary_set_refits(s, &refits);
    json = akin_summary_json(s);
    CHECK_NUMBER(json, "mean_band_workers", 2.5);
    CHECK_NUMBER(json, "mean_similarity", 0.75);
    const json_t *object = json_object_get(json, "refits");
    CHECK_NUMBER(object, "started", 1);
    CHECK_NUMBER(object, "installed", 0);
    CU_ASSERT(json_is_null(json_object_get(object, "centroid_age_s")));
    json_decref(json);
    text = tables_of(s);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "1, 0, 0"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "those of the fit file"));
    free(text);

    /* The run ends at 3 s. */
    refits = (akin_policy_refits_t){.is_refitting = 1,
                                    .n_started = 7,
                                    .n_installed = 5,
                                    .n_failed = 2,
                                    .installed_ns = 1750 * MS,
                                    .max_install_ns = 4200};
    akin_summary_set_refits(s, &refits);
    json = akin_summary_json(s);
    object = json_object_get(json, "refits");
    CHECK_NUMBER(object, "started", 7);
    CHECK_NUMBER(object, "installed", 5);
    CHECK_NUMBER(object, "failed", 2);
    CHECK_NUMBER(object, "centroid_age_s", 1.25);
    CHECK_NUMBER(object, "max_install_us", 4.2);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json, "policy")),
                           "union");
    CU_ASSERT_STRING_EQUAL(
        json_string_value(json_object_get(json, "policy_setting")), "auto");
    json_decref(json);
    text = tables_of(s);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "7, 5, 2"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "1.25"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "union (auto)"));
    free(text);
    akin_summary_destroy(s);
}

/* A run in which nothing happened has no number that is none. */
static void test_empty(void)
{
    akin_summary_t *s = create();
    akin_summary_end(s, 0);
    json_t *json = akin_summary_json(s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    CHECK_NUMBER(json, "mean_ttft_ms", 0);
    CHECK_NUMBER(json, "request_throughput", 0);
    CHECK_NUMBER(json, "prefix_cache_hit_rate", 0);
    CU_ASSERT(number(json, "duration") > 0);
    json_decref(json);
    FILE *null = fopen("/dev/null", "w");
    CU_ASSERT_EQUAL(akin_summary_print(s, null), AKIN_OK);
    (void)fclose(null);
    akin_summary_destroy(s);
    akin_summary_destroy(NULL);
}

static void test_file(void)
{
    akin_summary_t *s = filled();
    const char *path = scratch_path("summary.json");
    akin_error_t err = {{0}};
    scratch_write(path, "old", 3);
    CU_ASSERT_EQUAL(akin_summary_write_json(s, path, &err), AKIN_OK);
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    CHECK_NUMBER(json, "completed", 2);
    json_decref(json);
    /* Nothing but the file is left in the folder: it can be removed. */
    scratch_remove(path);
    CU_ASSERT_STRING_EQUAL(scratch_folder, "");
    CU_ASSERT_EQUAL(akin_summary_write_json(s, "/nonexistent/s.json", &err),
                    AKIN_ERR_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/nonexistent/s.json"));
    akin_summary_destroy(s);
}

static void test_tables(void)
{
    akin_summary_t *s = filled();
    char *text = tables_of(s);
    static const char *const parts[] = {"requests answered",
                                        "KV blocks refused: checksum",
                                        "workers lost",
                                        "time to first token",
                                        "29.800",
                                        "decode 1",
                                        "shm get",
                                        "prefix cache hits, % of prompt tokens",
                                        "3-4",
                                        "257 and more"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        CU_ASSERT_PTR_NOT_NULL(strstr(text, parts[i]));
        if (strstr(text, parts[i]) == NULL)
            (void)fprintf(stderr, "no \"%s\" in\n%s", parts[i], text);
    }
    if (getenv("AKIN_SHOW") != NULL)
        (void)fputs(text, stderr);
    free(text);
    FILE *full = fopen("/dev/full", "w");
    CU_ASSERT_EQUAL(akin_summary_print(s, full), AKIN_ERR_IO);
    (void)fclose(full);
    akin_summary_destroy(s);
}

/* Three steps: what was expected and what came. */
static void predictions(void)
{
    akin_summary_t *s = create();
    json_t *json = akin_summary_json(s);
    CU_ASSERT_PTR_NULL(
        json_object_get(json, "predicted_max_rank_distinct_experts"));
    json_decref(json);
    static const double pairs[][2] = {{1, 2}, {2, 4}, {3, 5}};
    for (size_t i = 0; i < 3; i++)
        akin_summary_add_prediction(s, pairs[i][0], pairs[i][1]);
    json = akin_summary_json(s);
    const json_t *p =
        json_object_get(json, "predicted_max_rank_distinct_experts");
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(p, "steps")), 3);
    CU_ASSERT_DOUBLE_EQUAL(
        json_number_value(json_object_get(p, "mean_expected")), 2.0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(
        json_number_value(json_object_get(p, "mean_observed")), 11.0 / 3,
        1e-12);
    CU_ASSERT_DOUBLE_EQUAL(
        json_number_value(json_object_get(p, "mean_absolute_error")), 5.0 / 3,
        1e-12);
    /* 3 / sqrt(2 * 14 / 3) */
    CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_object_get(p, "correlation")),
                           0.981980506061966, 1e-12);
    json_decref(json);
    akin_summary_destroy(s);
    /* What does not vary has no correlation. */
    s = create();
    akin_summary_add_prediction(s, 0.1, 1);
    akin_summary_add_prediction(s, 0.1, 2);
    json = akin_summary_json(s);
    p = json_object_get(json, "predicted_max_rank_distinct_experts");
    CU_ASSERT(json_is_null(json_object_get(p, "correlation")));
    json_decref(json);
    akin_summary_destroy(s);
}

static void replaced(void)
{
    akin_summary_t *s = create();
    json_t *json = akin_summary_json(s);
    CU_ASSERT_PTR_NULL(json_object_get(json, "replacements"));
    json_decref(json);
    akin_replacer_stats_t stats = {.mode = AKIN_REPLACE_ON,
                                   .n_considered = 9,
                                   .n_proposed = 4,
                                   .n_applied = 3,
                                   .n_dropped = 1,
                                   .n_moved = 17,
                                   .n_bytes = 3 * 1048576 / 2,
                                   .gain_s = 0.25};
    akin_summary_set_replaced(s, &stats);
    json = akin_summary_json(s);
    const json_t *r = json_object_get(json, "replacements");
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(r, "mode")), "on");
    CHECK_NUMBER(r, "considered", 9);
    CHECK_NUMBER(r, "proposed", 4);
    CHECK_NUMBER(r, "applied", 3);
    CHECK_NUMBER(r, "dropped", 1);
    CHECK_NUMBER(r, "experts_moved", 17);
    CHECK_NUMBER(r, "bytes_moved", 1572864);
    CHECK_NUMBER(r, "predicted_gain_s", 0.25);
    json_decref(json);
    char *text = tables_of(s);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "applied, dropped"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "17, 1.5"));
    free(text);
    stats.mode = AKIN_REPLACE_DRY_RUN;
    akin_summary_set_replaced(s, &stats);
    text = tables_of(s);
    CU_ASSERT_PTR_NULL(strstr(text, "applied, dropped"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "did not move"));
    free(text);
    akin_summary_destroy(s);
}

static const runner_test_t tests[] = {
    {"predictions", predictions}, {"numbers", test_numbers},
    {"locality", test_locality},  {"empty", test_empty},
    {"replaced", replaced},       {"file", test_file},
    {"tables", test_tables},
};

RUNNER_MAIN("summary", tests)
