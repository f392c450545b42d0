/* Report watch: what a file says of its workers over time, read or refused. */
#include "launch/report_watch.h"

#include "runner.h"

#include <math.h>
#include <string.h>

static const char good[] =
    "{'load': {'bin_s': 2, 'end_s': 5, 'n_workers': 9,"
    " 'workers': [[1, 0, 2], [3, 0, 2]]},"
    " 'experts': {'difference_bits': [0.25, 0.5], 'layer': 1,"
    " 'choices': [[1, 1, 6, 0], [0, 3, 1, 0]]}}";

/* The text with quotes as JSON has them, and `from` replaced. */
static json_t *parse(const char *from, const char *to)
{
    char text[1024];
    const char *at = strstr(good, from);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    const int n = snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good),
                           good, to, at + strlen(from));
    for (int i = 0; i < n; i++)
        if (text[i] == '\'')
            text[i] = '"';
    json_t *json = json_loads(text, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    return json;
}

static void test_read(void)
{
    akin_report_watch_t watch;
    char why[128];
    double shares[8];
    size_t order[4], rows[2];
    json_t *json = parse("", "");
    CU_ASSERT_EQUAL_FATAL(
        akin_report_watch_read(json, &watch, why, sizeof(why)), AKIN_OK);
    CU_ASSERT_EQUAL(watch.n_workers, 2);
    CU_ASSERT_EQUAL(watch.n_all, 9);
    CU_ASSERT_EQUAL(watch.n_bins, 3);
    CU_ASSERT_EQUAL(watch.loads[3], 3.0);
    CU_ASSERT_EQUAL(watch.difference[1], 0.5);
    /* 3 of 2 on average, then nobody, then both alike. */
    CU_ASSERT_DOUBLE_EQUAL(akin_report_watch_spread(&watch), 1.25, 1e-12);
    akin_report_watch_shares(&watch, shares);
    CU_ASSERT_DOUBLE_EQUAL(shares[2], 3.0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(shares[5], 3.0, 1e-12);
    /* Worker 0 has 2, 0 and, as nobody uses it, 3; worker 1 has 1. */
    akin_report_watch_rows(shares, 2, 4, rows);
    CU_ASSERT(rows[0] == 0 && rows[1] == 1);
    CU_ASSERT_EQUAL(akin_report_watch_order(shares, rows, 2, 4, order),
                    AKIN_OK);
    static const size_t expected[] = {2, 0, 3, 1};
    CU_ASSERT_EQUAL(memcmp(order, expected, sizeof(order)), 0);
    akin_report_watch_cleanup(&watch);
    json_decref(json);
}

/* Workers 0, 2 and 4 use expert 0, the others mostly expert 1: 3 is the most
 * like 4, as it uses expert 0 a little. */
static void test_rows(void)
{
    static const double shares[5 * 2] = {2.0, 0.0, 0.0, 2.0, 1.9,
                                         0.1, 0.2, 1.8, 1.8, 0.2};
    static const size_t expected[] = {0, 2, 4, 3, 1};
    size_t rows[5], order[2];
    akin_report_watch_rows(shares, 5, 2, rows);
    CU_ASSERT_EQUAL(memcmp(rows, expected, sizeof(rows)), 0);
    CU_ASSERT_EQUAL(akin_report_watch_order(shares, rows, 5, 2, order),
                    AKIN_OK);
    CU_ASSERT(order[0] == 0 && order[1] == 1);
}

static void test_absent(void)
{
    static const char *const texts[] = {"{}", "{\"load\": null}", "[]"};
    akin_report_watch_t watch;
    char why[128];
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        json_t *json = json_loads(texts[i], 0, NULL);
        CU_ASSERT_EQUAL(akin_report_watch_read(json, &watch, why, sizeof(why)),
                        AKIN_OK);
        CU_ASSERT_EQUAL(watch.n_workers, 0);
        CU_ASSERT(isnan(akin_report_watch_spread(&watch)));
        akin_report_watch_cleanup(&watch);
        json_decref(json);
    }
}

static void test_refused(void)
{
    static const struct {
        const char *from, *to, *why;
    } cases[] = {
        {"'bin_s': 2", "'bin_s': '2'", "load.bin_s is not a number"},
        {"'bin_s': 2", "'bin_s': -2", "load.bin_s is not a number from 0"},
        {"'bin_s': 2", "'bin_s': 0", "load.end_s is not in the last bin"},
        {"'end_s': 5", "'end_s': 7", "load.end_s is not in the last bin"},
        {"'end_s': 5", "'end_s': 4", "load.end_s is not in the last bin"},
        {"'n_workers': 9", "'n': 9", "load.n_workers is not a number"},
        {"[[1, 0, 2], [3, 0, 2]]", "{}", "load.workers is not a list"},
        {"[[1, 0, 2], [3, 0, 2]]", "[1, 2]", "load.workers is not a list"},
        {"[3, 0, 2]", "[3, 0]", "load.workers is not lists of one length"},
        {"[3, 0, 2]", "[3, 1e300, 2]", "load.workers is not made of numbers"},
        {"[3, 0, 2]", "[3, null, 2]", "load.workers is not made of numbers"},
        {"[0.25, 0.5]", "[[]]", "difference_bits is not made of numbers"},
        {"'layer': 1", "'layer': true", "experts.layer is not a number"},
        {", [0, 3, 1, 0]", "", "experts.choices is not as long as load"},
    };
    akin_report_watch_t watch;
    char why[128];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *json = parse(cases[i].from, cases[i].to);
        CU_ASSERT_EQUAL(akin_report_watch_read(json, &watch, why, sizeof(why)),
                        AKIN_ERR_FORMAT);
        if (strstr(why, cases[i].why) == NULL)
            (void)fprintf(stderr, "%s: %s\n", cases[i].to, why);
        CU_ASSERT_PTR_NOT_NULL(strstr(why, cases[i].why));
        CU_ASSERT_PTR_NULL(watch.loads);
        json_decref(json);
    }
}

static const runner_test_t tests[] = {
    {"read", test_read},
    {"rows", test_rows},
    {"absent", test_absent},
    {"refused", test_refused},
};

RUNNER_MAIN("report_watch", tests)
