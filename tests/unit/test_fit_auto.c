/* Fit choice: planted domains are found, settings come from held-out replays,
 * and too few requests are said to be too few. */
#include "runner.h"
#include "scratch_file.h"

#include "base/rng.h"
#include "routing/fit_auto.h"
#include "routing/trace_writer.h"

#include <math.h>
#include <string.h>

enum {
    LAYERS = 4,
    EXPERTS = 32,
    TOP_K = 2,
    DOMAINS = 4,
    SHARE = EXPERTS / DOMAINS,
    PROMPT = 24,
    DECODE = 40,
    ROWS = PROMPT + DECODE,
    FLAT = 8 /* experts of the trace that uses all of them */
};

/* Three choices in four fall into the domain's own share of the experts. */
static void draw_routes(uint64_t request, uint32_t domain, uint16_t *routes)
{
    uint64_t index = 0;
    for (uint32_t row = 0; row < ROWS * LAYERS; row++) {
        for (uint32_t k = 0; k < TOP_K;) {
            int near = akin_rng_below(5, request, index++, 4) != 0;
            uint32_t e =
                near ? domain * SHARE +
                           (uint32_t)akin_rng_below(5, request, index++, SHARE)
                     : (uint32_t)akin_rng_below(5, request, index++, EXPERTS);
            if (k > 0 && routes[row * TOP_K] == e)
                continue;
            routes[row * TOP_K + k++] = (uint16_t)e;
        }
    }
}

static akin_trace_t *make_trace(uint32_t n_requests)
{
    static const char *const names[DOMAINS] = {"code", "law", "math", "prose"};
    static uint16_t routes[ROWS * LAYERS * TOP_K];
    char path[1024];
    akin_error_t err = {{0}};
    akin_trace_writer_t *writer = NULL;
    akin_trace_t *trace = NULL;
    (void)snprintf(path, sizeof(path), "%s", scratch_path("auto.json"));
    const akin_trace_writer_params_t params = {
        .path = path,
        .model = "planted",
        .shape = {.n_layers = LAYERS, .n_experts = EXPERTS, .top_k = TOP_K},
    };
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_create(&params, &writer, &err),
                          AKIN_OK);
    for (uint32_t i = 0; i < n_requests; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "%04u", i);
        const akin_trace_record_t record = {
            .id = id,
            .domain = names[i % DOMAINS],
            .n_tokens = ROWS,
            .n_prompt = PROMPT,
            .arrival_s = -1.0,
        };
        draw_routes(i, i % DOMAINS, routes);
        CU_ASSERT_EQUAL_FATAL(
            akin_trace_writer_append(writer, &record, routes, &err), AKIN_OK);
    }
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_finish(writer, &err), AKIN_OK);
    akin_trace_writer_destroy(writer);
    CU_ASSERT_EQUAL_FATAL(akin_trace_open(path, &trace, &err), AKIN_OK);
    scratch_remove(scratch_path("auto.u8"));
    scratch_remove(path);
    return trace;
}

static akin_status_t run(const akin_trace_t *trace, uint32_t n_clusters,
                         int only_count, akin_fit_t *fit,
                         akin_fit_auto_report_t *report)
{
    akin_error_t err = {{0}};
    akin_replay_set_t *set = NULL;
    akin_cost_t cost;
    akin_cost_init(&cost, LAYERS * EXPERTS, 0.0);
    CU_ASSERT_EQUAL_FATAL(akin_replay_set_create(trace, 0, 0, &set, &err),
                          AKIN_OK);
    const akin_fit_auto_params_t params = {
        .trace = trace,
        .set = set,
        .n_clusters = n_clusters,
        .seed = 3,
        .only_variant = only_count,
        .variant = AKIN_FIT_COUNT,
        .cost = cost.line,
    };
    akin_status_t status = akin_fit_auto(&params, fit, report, &err);
    akin_replay_set_destroy(set);
    return status;
}

/* One worker per domain: every cluster is a domain, both variants are tried,
 * and locality pays on requests that took no part in the fit. */
static void test_planted(void)
{
    akin_trace_t *trace = make_trace(96);
    akin_fit_t fit;
    akin_fit_auto_report_t report;
    CU_ASSERT_EQUAL_FATAL(run(trace, DOMAINS, 0, &fit, &report), AKIN_OK);
    CU_ASSERT(report.was_replayed);
    /* Half of the 48 held out, over 4 workers. */
    CU_ASSERT_EQUAL(report.in_flight, 6);
    CU_ASSERT_EQUAL(report.fit.purity, 1.0);
    for (uint32_t k = 0; k < DOMAINS; k++)
        CU_ASSERT_EQUAL(report.fit.sizes[k], 24);
    for (int v = 0; v < AKIN_FIT_AUTO_VARIANTS; v++) {
        const akin_fit_auto_outcome_t *o = &report.variants[v];
        CU_ASSERT(o->was_tried);
        /* Three pairs in four are of two domains and equally far apart but
         * for noise, which bounds the rank correlation. */
        CU_ASSERT(o->rho > 0.3);
        CU_ASSERT(o->pull[o->best_pull].mean.mean < -0.10);
        for (int i = 0; i < AKIN_FIT_AUTO_PULLS; i++)
            CU_ASSERT(o->pull[i].mean.mean + o->pull[i].p99.mean >=
                      o->pull[o->best_pull].mean.mean +
                          o->pull[o->best_pull].p99.mean);
    }
    const akin_fit_auto_outcome_t *best = &report.variants[report.chosen];
    CU_ASSERT_EQUAL(fit.variant, report.chosen);
    CU_ASSERT_EQUAL(fit.rho, best->rho);
    CU_ASSERT_EQUAL(fit.tau, akin_fit_auto_taus[best->best_tau]);
    CU_ASSERT_EQUAL(fit.pull, akin_fit_auto_pulls[best->best_pull]);
    CU_ASSERT_EQUAL(fit.n_domains, DOMAINS);
    akin_fit_auto_report_cleanup(&report);
    akin_fit_cleanup(&fit);
    akin_trace_close(trace);
}

static void test_repeatable(void)
{
    akin_trace_t *trace = make_trace(32);
    akin_fit_t fit[2];
    akin_fit_auto_report_t report[2];
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(run(trace, DOMAINS, 0, &fit[i], &report[i]),
                              AKIN_OK);
    CU_ASSERT_EQUAL(fit[0].variant, fit[1].variant);
    CU_ASSERT_EQUAL(fit[0].tau, fit[1].tau);
    CU_ASSERT_EQUAL(fit[0].pull, fit[1].pull);
    CU_ASSERT_EQUAL_FATAL(fit[0].dim, fit[1].dim);
    CU_ASSERT(memcmp(fit[0].centroids, fit[1].centroids,
                     DOMAINS * fit[0].dim * sizeof(float)) == 0);
    for (int i = 0; i < 2; i++) {
        akin_fit_auto_report_cleanup(&report[i]);
        akin_fit_cleanup(&fit[i]);
    }
    akin_trace_close(trace);
}

/* Ten requests cannot be halved for eight workers: the settings stay open. */
static void test_too_few(void)
{
    akin_trace_t *trace = make_trace(10);
    akin_fit_t fit;
    akin_fit_auto_report_t report;
    CU_ASSERT_EQUAL_FATAL(run(trace, 8, 1, &fit, &report), AKIN_OK);
    CU_ASSERT_EQUAL(report.was_replayed, 0);
    CU_ASSERT_EQUAL(fit.variant, AKIN_FIT_COUNT);
    CU_ASSERT_EQUAL(report.variants[AKIN_FIT_COUNT_IDF].was_tried, 0);
    CU_ASSERT(isnan(fit.tau) && isnan(fit.pull));
    akin_fit_auto_report_cleanup(&report);
    akin_fit_cleanup(&fit);
    /* More workers than requests is an error, and leaves nothing behind. */
    CU_ASSERT_EQUAL(run(trace, 11, 1, &fit, &report), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NULL(fit.centroids);
    akin_trace_close(trace);
}

/* A trace whose requests all use every expert of every layer, each about as
 * often: nothing is rare, so that count_idf has no signature to offer. */
static akin_trace_t *make_flat_trace(void)
{
    static uint16_t routes[ROWS * LAYERS * TOP_K];
    char path[1024];
    akin_error_t err = {{0}};
    akin_trace_writer_t *writer = NULL;
    akin_trace_t *trace = NULL;
    (void)snprintf(path, sizeof(path), "%s", scratch_path("flat.json"));
    const akin_trace_writer_params_t params = {
        .path = path,
        .shape = {.n_layers = LAYERS, .n_experts = FLAT, .top_k = TOP_K},
    };
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_create(&params, &writer, &err),
                          AKIN_OK);
    for (uint32_t i = 0; i < 32; i++) {
        const char id[] = {(char)('A' + i), '\0'};
        const akin_trace_record_t record = {
            .id = id, .n_tokens = ROWS, .n_prompt = PROMPT};
        for (uint32_t row = 0; row < ROWS * LAYERS; row++) {
            const uint32_t e = row / LAYERS < FLAT
                                   ? row / LAYERS
                                   : (uint32_t)akin_rng_below(9, i, row, FLAT);
            routes[row * TOP_K] = (uint16_t)e;
            routes[row * TOP_K + 1] = (uint16_t)((e + 1) % FLAT);
        }
        CU_ASSERT_EQUAL_FATAL(
            akin_trace_writer_append(writer, &record, routes, &err), AKIN_OK);
    }
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_finish(writer, &err), AKIN_OK);
    akin_trace_writer_destroy(writer);
    CU_ASSERT_EQUAL_FATAL(akin_trace_open(path, &trace, &err), AKIN_OK);
    scratch_remove(scratch_path("flat.u8"));
    scratch_remove(path);
    return trace;
}

/* The variant that cannot be had is left out with its reason, not the fit. */
static void test_one_variant_left(void)
{
    akin_trace_t *trace = make_flat_trace();
    akin_fit_t fit;
    akin_fit_auto_report_t report;
    CU_ASSERT_EQUAL_FATAL(run(trace, 2, 0, &fit, &report), AKIN_OK);
    CU_ASSERT_EQUAL(fit.variant, AKIN_FIT_COUNT);
    CU_ASSERT(report.variants[AKIN_FIT_COUNT].was_tried);
    CU_ASSERT_STRING_EQUAL(report.variants[AKIN_FIT_COUNT].refusal.text, "");
    CU_ASSERT_EQUAL(report.variants[AKIN_FIT_COUNT_IDF].was_tried, 0);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(report.variants[AKIN_FIT_COUNT_IDF].refusal.text, "is zero"));
    akin_fit_auto_report_cleanup(&report);
    akin_fit_cleanup(&fit);
    /* What both variants refuse is an error. */
    CU_ASSERT_EQUAL(run(trace, 33, 0, &fit, &report), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NULL(fit.centroids);
    akin_trace_close(trace);
}

static const runner_test_t tests[] = {
    {"planted domains", test_planted},
    {"the same again", test_repeatable},
    {"too few requests", test_too_few},
    {"one variant left", test_one_variant_left},
};

RUNNER_MAIN("fit_auto", tests)
