/* Route statistics against traces whose figures can be worked out. */
#include "runner.h"
#include "scratch_file.h"

#include "routing/route_statistics.h"
#include "routing/trace_writer.h"

#include <math.h>
#include <string.h>

enum { LAYERS = 2, EXPERTS = 16, TOP_K = 2, IDS = LAYERS * TOP_K, ROWS = 4 };

static char path[1024];

static akin_trace_writer_t *begin(void)
{
    akin_trace_writer_t *writer;
    akin_error_t err = {{0}};
    (void)snprintf(path, sizeof(path), "%s", scratch_path("t.json"));
    const akin_trace_writer_params_t params = {
        .path = path,
        .shape = {.n_layers = LAYERS, .n_experts = EXPERTS, .top_k = TOP_K},
    };
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_create(&params, &writer, &err),
                          AKIN_OK);
    return writer;
}

/* A request whose prompt rows are all of expert `prompt` and the next one, and
 * whose decode rows of `decode` and the next one, in every layer. */
static void append(akin_trace_writer_t *writer, const char *domain,
                   uint32_t n_prompt, uint16_t prompt, uint16_t decode)
{
    char id[16];
    uint16_t routes[ROWS * IDS];
    akin_error_t err = {{0}};
    (void)snprintf(id, sizeof(id), "%u", akin_trace_writer_count(writer));
    for (uint32_t i = 0; i < ROWS * IDS; i++)
        routes[i] = (uint16_t)((i / IDS < n_prompt ? prompt : decode) + i % 2);
    const akin_trace_record_t record = {.id = id,
                                        .domain = domain,
                                        .n_tokens = ROWS,
                                        .n_prompt = n_prompt,
                                        .arrival_s = -1.0};
    CU_ASSERT_EQUAL_FATAL(
        akin_trace_writer_append(writer, &record, routes, &err), AKIN_OK);
}

static akin_trace_t *finish(akin_trace_writer_t *writer)
{
    akin_trace_t *trace;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_finish(writer, &err), AKIN_OK);
    akin_trace_writer_destroy(writer);
    CU_ASSERT_EQUAL_FATAL(akin_trace_open(path, &trace, &err), AKIN_OK);
    scratch_remove(scratch_path("t.u8"));
    scratch_remove(path);
    return trace;
}

/*
 * Six requests of law decode on experts 0 and 1, six of code on 8 and 9, one
 * without a label on 4 and 5; the prompts use 14 and 15, which no batch may
 * show.
 */
static akin_trace_t *two_kinds(void)
{
    akin_trace_writer_t *writer = begin();
    for (int i = 0; i < 6; i++) {
        append(writer, "law", 2, 14, 0);
        append(writer, "code", 1, 14, 8);
    }
    append(writer, "", 3, 14, 4);
    /* No decode at all: counted, never drawn. */
    append(writer, "code", ROWS, 14, 0);
    return finish(writer);
}

static void test_distinct(void)
{
    akin_trace_t *trace = two_kinds();
    akin_route_statistics_t *s;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_route_statistics_create(trace, 7, &s, &err),
                          AKIN_OK);
    uint32_t n;
    const akin_route_domain_t *domains = akin_route_domains(s, &n);
    CU_ASSERT_EQUAL_FATAL(n, 3);
    CU_ASSERT_STRING_EQUAL(domains[0].name, "code");
    CU_ASSERT_EQUAL(domains[0].n_records, 7);
    CU_ASSERT_STRING_EQUAL(domains[1].name, "law");
    CU_ASSERT_EQUAL(domains[1].n_records, 6);
    CU_ASSERT_EQUAL(domains[2].n_records, 1);

    CU_ASSERT_EQUAL(akin_route_distinct(s, AKIN_ROUTE_ANY, 1, 50), 2.0);
    CU_ASSERT_EQUAL(akin_route_distinct(s, AKIN_ROUTE_SAME_DOMAIN, 6, 50), 2.0);
    /* All thirteen with decode are of three kinds. */
    CU_ASSERT_EQUAL(akin_route_distinct(s, AKIN_ROUTE_ANY, 13, 50), 6.0);
    CU_ASSERT(isnan(akin_route_distinct(s, AKIN_ROUTE_ANY, 14, 50)));
    CU_ASSERT(isnan(akin_route_distinct(s, AKIN_ROUTE_LARGE, 7, 50)));
    CU_ASSERT(isnan(akin_route_distinct(s, AKIN_ROUTE_SAME_DOMAIN, 7, 50)));
    /* Two of twelve are of one kind with chance 5/11: 2 + 2 x 6/11 experts. The
     * bound is four standard errors of 4,000 draws. */
    double pair = akin_route_distinct(s, AKIN_ROUTE_LARGE, 2, 4000);
    CU_ASSERT_DOUBLE_EQUAL(pair, 2.0 + 12.0 / 11.0, 0.064);
    CU_ASSERT_EQUAL(akin_route_distinct(s, AKIN_ROUTE_LARGE, 2, 4000), pair);
    akin_route_statistics_destroy(s);
    CU_ASSERT_EQUAL_FATAL(akin_route_statistics_create(trace, 8, &s, &err),
                          AKIN_OK);
    CU_ASSERT_NOT_EQUAL(akin_route_distinct(s, AKIN_ROUTE_LARGE, 2, 4000),
                        pair);
    akin_route_statistics_destroy(s);
    akin_trace_close(trace);
}

/*
 * Prompt on {0, 1}, decode on {0, 1}: 1. On {0, 1} and {1, 2}: of 16 cells 2
 * have the rate, 1 in common; (1/16 - 1/64) / (1/8 x 7/8) = 3/7. On disjoint
 * pairs: -(1/64) / (7/64) = -1/7.
 */
static void test_correlation(void)
{
    akin_trace_writer_t *writer = begin();
    akin_route_correlation_t c;
    akin_error_t err = {{0}};
    append(writer, "", 1, 0, 0);
    append(writer, "", 2, 0, 1);
    append(writer, "", 3, 0, 2);
    append(writer, "", ROWS, 0, 0);
    append(writer, "", 0, 0, 5);
    akin_trace_t *trace = finish(writer);
    CU_ASSERT_EQUAL_FATAL(akin_route_correlate(trace, 0, &c, &err), AKIN_OK);
    CU_ASSERT_EQUAL(c.n_requests, 3);
    CU_ASSERT_EQUAL(c.n_stand_in, 0);
    CU_ASSERT_DOUBLE_EQUAL(c.mean, (1.0 + 3.0 / 7.0 - 1.0 / 7.0) / 3.0, 1e-12);
    /* Both layers choose alike. */
    CU_ASSERT_DOUBLE_EQUAL(c.layer_min, c.mean, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(c.layer_max, c.mean, 1e-12);
    /* The last one is decode throughout; its first row stands in. */
    CU_ASSERT_EQUAL_FATAL(akin_route_correlate(trace, 1, &c, &err), AKIN_OK);
    CU_ASSERT_EQUAL(c.n_requests, 4);
    CU_ASSERT_EQUAL(c.n_stand_in, 1);
    CU_ASSERT_DOUBLE_EQUAL(c.mean, (2.0 + 2.0 / 7.0) / 4.0, 1e-12);
    CU_ASSERT_EQUAL_FATAL(akin_route_correlate(trace, ROWS, &c, &err), AKIN_OK);
    CU_ASSERT_EQUAL(c.n_requests, 3);
    akin_trace_close(trace);

    writer = begin();
    append(writer, "", ROWS, 0, 0);
    trace = finish(writer);
    CU_ASSERT_EQUAL_FATAL(akin_route_correlate(trace, 0, &c, &err), AKIN_OK);
    CU_ASSERT(isnan(c.mean));
    CU_ASSERT_EQUAL(c.n_requests, 0);
    akin_trace_close(trace);
}

static const runner_test_t tests[] = {
    {"distinct experts", test_distinct},
    {"correlation", test_correlation},
};

RUNNER_MAIN("route statistics", tests)
