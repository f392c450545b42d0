/* Metrics: the text, as an independent reader understands it. */
#include "metrics_check.h"
#include "roles/metrics.h"
#include "runner.h"

static checked_t checked;

static char *finish(akin_metrics_t *m)
{
    char *text;
    CU_ASSERT_EQUAL_FATAL(akin_metrics_finish(m, &text), AKIN_OK);
    return text;
}

static akin_metrics_t *create(void)
{
    akin_metrics_t *m;
    CU_ASSERT_EQUAL_FATAL(akin_metrics_create(&m), AKIN_OK);
    return m;
}

static void plain(void)
{
    akin_metrics_t *m = create();
    akin_metrics_begin(m, "akin:a_total", AKIN_METRICS_COUNTER, "Some a.");
    akin_metrics_add(m, NULL, NULL, NULL, 9007199254740991.0);
    akin_metrics_begin(m, "akin:b", AKIN_METRICS_GAUGE, "Some b.");
    akin_metrics_add(m, NULL, "worker", "decode 1", 0.125);
    static const char *const labels[2] = {"role", "state"};
    static const char *const texts[2] = {"decode", "lost"};
    akin_metrics_add_two(m, labels, texts, -3);
    akin_metrics_begin(m, "akin:c_seconds", AKIN_METRICS_SUMMARY, "Some c.");
    akin_metrics_add(m, "_sum", NULL, NULL, 1.0 / 3);
    akin_metrics_add(m, "_count", NULL, NULL, 2);
    char *text = finish(m);
    CU_ASSERT_STRING_EQUAL(text, "# HELP akin:a_total Some a.\n"
                                 "# TYPE akin:a_total counter\n"
                                 "akin:a_total 9007199254740991\n"
                                 "# HELP akin:b Some b.\n"
                                 "# TYPE akin:b gauge\n"
                                 "akin:b{worker=\"decode 1\"} 0.125\n"
                                 "akin:b{role=\"decode\",state=\"lost\"} -3\n"
                                 "# HELP akin:c_seconds Some c.\n"
                                 "# TYPE akin:c_seconds summary\n"
                                 "akin:c_seconds_sum 0.333333333333\n"
                                 "akin:c_seconds_count 2\n");
    CU_ASSERT(check_read(&checked, text));
    CU_ASSERT_EQUAL(checked.n, 5);
    free(text);
    text = finish(create());
    CU_ASSERT_STRING_EQUAL(text, "");
    free(text);
}

/* Whatever a label or a help text has in it, it comes out as it was. */
static void escapes(void)
{
    static const char nasty[] = "a\"b\\c\nd}e{f,g=\"h\\n\\\"";
    akin_metrics_t *m = create();
    akin_metrics_begin(m, "x", AKIN_METRICS_GAUGE, "one\ntwo \\ \"three\"");
    akin_metrics_add(m, NULL, "l", nasty, (double)NAN);
    akin_metrics_add(m, NULL, "l", "", (double)INFINITY);
    akin_metrics_add(m, NULL, "l", "-", -(double)INFINITY);
    char *text = finish(m);
    CU_ASSERT(check_read(&checked, text));
    if (checked.error[0] != '\0')
        (void)fprintf(stderr, "%s\n", checked.error);
    CU_ASSERT_EQUAL_FATAL(checked.n, 3);
    CU_ASSERT_STRING_EQUAL(checked.samples[0].label, nasty);
    CU_ASSERT(isnan(checked.samples[0].value));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "{l=\"\"} +Inf\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "{l=\"-\"} -Inf\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "# HELP x one\\ntwo \\\\ \"three\"\n"));
    free(text);
}

static void histogram(void)
{
    static const int64_t ms[] = {1, 2, 30, 30, 99, 700, 2000, 3000000};
    akin_histogram_t *h;
    CU_ASSERT_EQUAL_FATAL(akin_histogram_create(&h), AKIN_OK);
    akin_metrics_t *m = create();
    akin_metrics_begin(m, "none", AKIN_METRICS_HISTOGRAM, "Nothing.");
    akin_metrics_add_histogram(m, h);
    for (size_t i = 0; i < sizeof(ms) / sizeof(ms[0]); i++)
        akin_histogram_add(h, ms[i] * 1000000);
    akin_metrics_begin(m, "some", AKIN_METRICS_HISTOGRAM, "Something.");
    akin_metrics_add_histogram(m, h);
    char *text = finish(m);
    CU_ASSERT(check_read(&checked, text));
    CU_ASSERT_EQUAL(check_value(&checked, "none_count"), 0);
    CU_ASSERT_EQUAL(check_value(&checked, "none_bucket{le=\"+Inf\"}"), 0);
    static const struct {
        const char *le;
        double n;
    } buckets[] = {{"0.001", 1}, {"0.005", 2}, {"0.02", 2}, {"0.04", 4},
                   {"0.08", 4},  {"0.1", 5},   {"0.5", 5},  {"0.75", 6},
                   {"1", 6},     {"2.5", 7},   {"2560", 7}, {"+Inf", 8}};
    for (size_t i = 0; i < sizeof(buckets) / sizeof(buckets[0]); i++) {
        char key[64];
        (void)snprintf(key, sizeof(key), "some_bucket{le=\"%s\"}",
                       buckets[i].le);
        CU_ASSERT_EQUAL(check_value(&checked, key), buckets[i].n);
    }
    CU_ASSERT_EQUAL(check_value(&checked, "some_count"), 8);
    CU_ASSERT_DOUBLE_EQUAL(check_value(&checked, "some_sum"), 3002.862, 1e-6);
    free(text);
    akin_histogram_destroy(h);
}

/* The reader itself refuses what is wrong. */
static void reader(void)
{
    static const char *const wrong[] = {
        "x 1\n",
        "# TYPE x counter\nx 1\n",
        "# HELP x h\n# TYPE x counter\nx 1",
        "# HELP x h\n# TYPE x counter\nx 1\nx 1\n",
        "# HELP x h\n# TYPE x counter\ny 1\n",
        "# HELP x h\n# TYPE x counter\nx{a=\"\\t\"} 1\n",
        "# HELP x h\n# TYPE x counter\nx{a=\"b} 1\n",
        "# HELP x h\n# TYPE x counter\nx -1\n",
        "# HELP x h\n# TYPE x count\nx 1\n",
        "# HELP x h\n# TYPE x counter\n# HELP x h\n",
        "# HELP x h\n# TYPE x histogram\nx_bucket{le=\"+Inf\"} 1\nx_count 2\n",
        "# HELP x h\n# TYPE x histogram\nx_bucket{le=\"1\"} 2\nx_count 2\n"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CU_ASSERT_FALSE(check_read(&checked, wrong[i]));
}

static const runner_test_t tests[] = {
    {"plain", plain},
    {"escapes", escapes},
    {"histogram", histogram},
    {"reader", reader},
};

RUNNER_MAIN("metrics", tests)
