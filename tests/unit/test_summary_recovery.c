/* Summary: what losses cost, and what they left behind. */
#include "base/clock.h"
#include "roles/summary.h"
#include "runner.h"
#include "scratch_file.h"

#include <jansson.h>

#define MS AKIN_NS_PER_MS

static akin_summary_t *create(void)
{
    static const akin_summary_worker_t workers[] = {
        {.name = "prefill 0", .role = "prefill", .rank = 1},
        {.name = "decode 0", .role = "decode", .rank = 2}};
    const akin_summary_params_t params = {
        .workers = workers, .n_workers = 2, .start_ns = 1000 * MS};
    akin_summary_t *summary;
    CU_ASSERT_EQUAL_FATAL(akin_summary_create(&params, &summary), AKIN_OK);
    return summary;
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

/* A run without a loss: the object is there, with nothing measured, and people
 * are spared the table. Pinned blocks alone are no news: every run has some. */
static void undisturbed(void)
{
    akin_summary_t *s = create();
    const akin_summary_leases_t states[] = {{40, 900 * MS, 0}, {0, 0, 0}};
    for (int i = 0; i < 2; i++)
        akin_summary_set_leases(s, &states[i]);
    json_t *json = akin_summary_json(s);
    const json_t *r = json_object_get(json, "recovery");
    static const char *const zeros[] = {
        "deaths",        "recoveries",    "retries",        "requests_resumed",
        "messages_late", "pinned_blocks", "oldest_lease_s", "leases_expired"};
    for (size_t i = 0; i < sizeof(zeros) / sizeof(zeros[0]); i++)
        CHECK_NUMBER(r, zeros[i], 0);
    CHECK_NUMBER(r, "max_pinned_blocks", 40);
    CHECK_NUMBER(r, "max_oldest_lease_s", 0.9);
    CU_ASSERT(json_is_null(
        json_object_get(json_object_get(r, "recovery_s"), "mean")));
    CU_ASSERT(
        json_is_null(json_object_get(json_object_get(r, "resumed_ms"), "p50")));
    json_decref(json);
    char *text = tables_of(s);
    CU_ASSERT_PTR_NULL(strstr(text, "recovery"));
    CU_ASSERT_PTR_NULL(strstr(text, "lease"));
    free(text);
    akin_summary_destroy(s);
}

/* Two deaths, of which one worker came back in 0.5 s and the other in 2 s;
 * their five requests went on after 100 to 500 ms. */
static void disturbed(void)
{
    akin_summary_t *s = create();
    akin_summary_add_lost(s, 1, 5);
    akin_summary_add_lost(s, 0, 0);
    akin_summary_add_recovered(s, 1, 500 * MS);
    akin_summary_add_recovered(s, 0, 2000 * MS);
    for (int i = 5; i > 0; i--) {
        akin_summary_add_retry(s);
        akin_summary_add_resumed(s, i * 100 * MS);
    }
    akin_summary_add_retry(s);
    const akin_summary_leases_t states[] = {
        {12, 300 * MS, 0}, {96, 31000 * MS, 1}, {2, 500 * MS, 3}};
    for (int i = 0; i < 3; i++)
        akin_summary_set_leases(s, &states[i]);
    akin_summary_add_late(s, 7);
    akin_summary_add_late(s, 2);
    json_t *json = akin_summary_json(s);
    const json_t *r = json_object_get(json, "recovery");
    CHECK_NUMBER(r, "deaths", 2);
    CHECK_NUMBER(r, "recoveries", 2);
    CHECK_NUMBER(json_object_get(r, "recovery_s"), "mean", 1.25);
    CHECK_NUMBER(json_object_get(r, "recovery_s"), "max", 2);
    CHECK_NUMBER(r, "retries", 6);
    CHECK_NUMBER(r, "requests_resumed", 5);
    CHECK_NUMBER(json_object_get(r, "resumed_ms"), "p50", 300);
    CHECK_NUMBER(json_object_get(r, "resumed_ms"), "max", 500);
    CHECK_NUMBER(r, "messages_late", 9);
    CHECK_NUMBER(r, "pinned_blocks", 2);
    CHECK_NUMBER(r, "max_pinned_blocks", 96);
    CHECK_NUMBER(r, "oldest_lease_s", 0.5);
    CHECK_NUMBER(r, "max_oldest_lease_s", 31);
    CHECK_NUMBER(r, "leases_expired", 3);
    CHECK_NUMBER(json, "times_lost", 2);
    CHECK_NUMBER(json, "requests_restarted", 5);
    const json_t *workers = json_object_get(json, "workers");
    CHECK_NUMBER(json_array_get(workers, 1), "times_lost", 1);
    CHECK_NUMBER(json_array_get(workers, 1), "times_recovered", 1);
    json_decref(json);
    char *text = tables_of(s);
    static const char *const parts[] = {"workers lost, and requests that they",
                                        "2, 5",
                                        "1.25, 2.00",
                                        "300.0, 500.0",
                                        "dead ranks",
                                        "2, 96",
                                        "0.50, 31.00"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        CU_ASSERT_PTR_NOT_NULL(strstr(text, parts[i]));
        if (strstr(text, parts[i]) == NULL)
            (void)fprintf(stderr, "no \"%s\" in\n%s", parts[i], text);
    }
    if (getenv("AKIN_SHOW") != NULL)
        (void)fputs(text, stderr);
    free(text);
    akin_summary_destroy(s);
}

/* What is left behind is told although nothing was lost: blocks that stay
 * pinned at the end. */
static void left_behind(void)
{
    akin_summary_t *s = create();
    const akin_summary_leases_t leases = {3, 1500 * MS, 0};
    akin_summary_set_leases(s, &leases);
    char *text = tables_of(s);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "3, 3"));
    CU_ASSERT_PTR_NULL(strstr(text, "workers lost"));
    CU_ASSERT_PTR_NULL(strstr(text, "next token"));
    free(text);
    /* A worker that nobody knows counts for the run. */
    akin_summary_add_recovered(s, 99, 1);
    json_t *json = akin_summary_json(s);
    CHECK_NUMBER(json_object_get(json, "recovery"), "recoveries", 1);
    json_decref(json);
    akin_summary_destroy(s);
}

static const runner_test_t tests[] = {
    {"undisturbed", undisturbed},
    {"disturbed", disturbed},
    {"left_behind", left_behind},
};

RUNNER_MAIN("summary_recovery", tests)
