/* Route generator: its traces have the statistics that were measured on real
 * models, and every draw is a function of seed and number alone. */
#include "runner.h"
#include "scratch_file.h"

#include "routing/route_generator.h"
#include "routing/route_statistics.h"
#include "routing/trace_writer.h"

#include <math.h>
#include <string.h>

static akin_route_generator_t *make(uint32_t n_layers, uint32_t n_experts,
                                    uint32_t top_k, const char *workload,
                                    uint64_t seed, double prompt, double output,
                                    double spread)
{
    const akin_route_generator_params_t params = {
        .n_layers = n_layers,
        .n_experts = n_experts,
        .top_k = top_k,
        .workload = akin_route_workload_find(workload),
        .seed = seed,
        .prompt_tokens = prompt,
        .output_tokens = output,
        .prompt_spread = spread,
        .output_spread = spread,
    };
    akin_route_generator_t *generator;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(
        akin_route_generator_create(&params, &generator, &err), AKIN_OK);
    return generator;
}

/* Figures of a trace. */
typedef struct figures {
    double correlation;
    double mixed; /* distinct experts, batch 16 */
    double same;
} figures_t;

static void measure(const akin_trace_t *trace, figures_t *f)
{
    akin_route_statistics_t *s;
    akin_route_correlation_t c;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_route_statistics_create(trace, 1, &s, &err),
                          AKIN_OK);
    f->mixed = akin_route_distinct(s, AKIN_ROUTE_LARGE, 16, 300);
    f->same = akin_route_distinct(s, AKIN_ROUTE_SAME_DOMAIN, 16, 300);
    akin_route_statistics_destroy(s);
    CU_ASSERT_EQUAL_FATAL(akin_route_correlate(trace, 0, &c, &err), AKIN_OK);
    f->correlation = c.mean;
}

/* A trace of 300 requests of 128 and 16 tokens. */
static void figures_of(uint32_t top_k, const char *workload, uint64_t seed,
                       figures_t *f)
{
    enum { LAYERS = 6, N_PROMPT = 128, N_OUTPUT = 32, REQUESTS = 300 };
    static uint16_t urn[LAYERS * AKIN_ROUTE_MAX_SLOTS];
    static uint16_t routes[(N_PROMPT + N_OUTPUT) * LAYERS * 8];
    const akin_route_workload_t *w = akin_route_workload_find(workload);
    akin_route_generator_t *g =
        make(LAYERS, 128, top_k, workload, seed, N_PROMPT, N_OUTPUT, 0.0);
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s", scratch_path("g.json"));
    const akin_trace_writer_params_t params = {
        .path = path,
        .shape = {.n_layers = LAYERS, .n_experts = 128, .top_k = top_k},
    };
    akin_trace_writer_t *writer;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_create(&params, &writer, &err),
                          AKIN_OK);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        akin_route_request_t r;
        akin_route_request_make(g, i, NULL, &r);
        CU_ASSERT_EQUAL(r.n_prompt, N_PROMPT);
        for (uint32_t t = 0; t < N_PROMPT + N_OUTPUT; t++) {
            if (t == 0 || t == N_PROMPT)
                akin_route_urn_fill(
                    g, &r, t == 0 ? AKIN_ROUTE_PREFILL : AKIN_ROUTE_DECODE,
                    urn);
            for (uint32_t l = 0; l < LAYERS; l++)
                akin_route_draw(g, &r, urn, t, l,
                                routes + (t * LAYERS + l) * top_k);
        }
        char id[16];
        (void)snprintf(id, sizeof(id), "%u", i);
        const akin_trace_record_t record = {.id = id,
                                            .domain = w->domains[r.domain].name,
                                            .n_tokens = N_PROMPT + N_OUTPUT,
                                            .n_prompt = N_PROMPT,
                                            .arrival_s = -1.0};
        CU_ASSERT_EQUAL_FATAL(
            akin_trace_writer_append(writer, &record, routes, &err), AKIN_OK);
    }
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_finish(writer, &err), AKIN_OK);
    akin_trace_writer_destroy(writer);
    akin_trace_t *trace;
    CU_ASSERT_EQUAL_FATAL(akin_trace_open(path, &trace, &err), AKIN_OK);
    scratch_remove(scratch_path("g.u8"));
    scratch_remove(path);
    measure(trace, f);
    akin_trace_close(trace);
    akin_route_generator_destroy(g);
}

/* Prompt and decode correlate by 0.70 to 0.92; batches of one domain touch
 * 17-21 % fewer experts with tasks, 3-10 % fewer with languages. With six
 * layers and 300 requests a point of error is granted. */
static void test_published_bands(void)
{
    static const struct {
        const char *workload;
        uint32_t top_k;
        double low, high;
    } cases[] = {{"task", 8, 0.16, 0.22},
                 {"task", 4, 0.16, 0.22},
                 {"language", 8, 0.03, 0.10},
                 {"language", 4, 0.03, 0.10}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        figures_t f;
        figures_of(cases[i].top_k, cases[i].workload, 11 + i, &f);
        const double fewer = 1.0 - f.same / f.mixed;
        printf("\n    %s, top %u: correlation %.3f, batch 16: %.1f, of one "
               "domain %.1f, %.1f %% fewer",
               cases[i].workload, cases[i].top_k, f.correlation, f.mixed,
               f.same, 100.0 * fewer);
        CU_ASSERT(f.correlation > 0.70 && f.correlation < 0.92);
        CU_ASSERT(fewer > cases[i].low && fewer < cases[i].high);
        /* Qwen3-30B-A3B on MGSM touches 56.7 in mixed batches of 16, where
         * uniform choices would touch 82.4. */
        if (cases[i].top_k == 8)
            CU_ASSERT_DOUBLE_EQUAL(f.mixed, 56.7, 5.0);
    }
}

/* A workload without any preference is uniform: 128 (1 - (1 - 1/16)^16) = 82.4
 * distinct experts in a batch, whatever the domain, but for the urns, which are
 * finite: requests repeat themselves, batches of different ones do not. */
static void test_uniform(void)
{
    akin_route_workload_t w = {.name = "uniform",
                               .domains = {{"a", 1.0}},
                               .n_domains = 1,
                               .n_topics = 1};
    const akin_route_generator_params_t params = {
        .n_layers = 8, .n_experts = 128, .top_k = 8, .workload = &w};
    akin_route_generator_t *g;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_route_generator_create(&params, &g, &err),
                          AKIN_OK);
    uint32_t distinct = 0;
    for (uint32_t b = 0; b < 100; b++) {
        for (uint32_t l = 0; l < 8; l++) {
            uint8_t seen[128] = {0};
            for (uint32_t i = 0; i < 16; i++) {
                akin_route_request_t r;
                uint16_t experts[8];
                akin_route_request_make(g, b * 16 + i, NULL, &r);
                akin_route_draw(g, &r, NULL, 130, l, experts);
                for (int j = 0; j < 8; j++)
                    seen[experts[j]] = 1;
            }
            for (int e = 0; e < 128; e++)
                distinct += seen[e];
        }
    }
    /* Four standard errors of 800 batches, of some 3 experts each. */
    CU_ASSERT_DOUBLE_EQUAL(distinct / 800.0,
                           128.0 * (1.0 - pow(15.0 / 16.0, 16.0)), 0.43);
    akin_route_generator_destroy(g);
}

/* Odd shapes: rows of different experts inside the model, and the same with
 * and without the urn, in any order. */
static void test_draws(void)
{
    static const uint32_t shapes[][3] = {
        {3, 8, 2}, {2, 1, 1}, {1, 40, 40}, {1, 300, 128}, {2, 4096, 8}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const uint32_t n_experts = shapes[i][1], top_k = shapes[i][2];
        akin_route_generator_t *g =
            make(shapes[i][0], n_experts, top_k, "language", 5, 6.0, 6.0, 0.0);
        akin_route_request_t r;
        akin_route_request_make(g, 77, NULL, &r);
        uint16_t urn[2][3 * AKIN_ROUTE_MAX_SLOTS];
        akin_route_urn_fill(g, &r, AKIN_ROUTE_PREFILL, urn[0]);
        akin_route_urn_fill(g, &r, AKIN_ROUTE_DECODE, urn[1]);
        for (uint32_t t = 12; t-- > 0;) {
            for (uint32_t l = 0; l < shapes[i][0]; l++) {
                uint16_t a[AKIN_ROUTE_MAX_TOP_K], b[AKIN_ROUTE_MAX_TOP_K];
                uint8_t seen[4096] = {0};
                uint32_t n_bad = 0;
                akin_route_draw(g, &r, urn[t >= 6], t, l, a);
                akin_route_draw(g, &r, NULL, t, l, b);
                CU_ASSERT(memcmp(a, b, top_k * sizeof(*a)) == 0);
                for (uint32_t j = 0; j < top_k; j++)
                    n_bad += a[j] >= n_experts || seen[a[j]]++ > 0;
                CU_ASSERT_EQUAL(n_bad, 0);
            }
        }
        /* Another generator of the seed draws the same, one of another seed
         * something else. */
        uint32_t n_same = 0;
        for (uint64_t seed = 5; seed < 7; seed++) {
            akin_route_generator_t *h = make(shapes[i][0], n_experts, top_k,
                                             "language", seed, 6.0, 6.0, 0.0);
            uint16_t a[AKIN_ROUTE_MAX_TOP_K], b[AKIN_ROUTE_MAX_TOP_K];
            for (uint32_t t = 0; t < 12; t++) {
                akin_route_draw(g, &r, NULL, t, 0, a);
                akin_route_draw(h, &r, NULL, t, 0, b);
                n_same += memcmp(a, b, top_k * sizeof(*a)) == 0;
            }
            CU_ASSERT(n_same == 12 || seed == 6);
            akin_route_generator_destroy(h);
        }
        CU_ASSERT(n_same < 24 || n_experts == 1);
        akin_route_generator_destroy(g);
    }
}

/* What the rates say is what many tokens choose. */
static void test_rates(void)
{
    enum { TOKENS = 4000, LAYERS = 2, EXPERTS = 64, TOP_K = 6 };
    static float rates[LAYERS * EXPERTS];
    static uint16_t urn[LAYERS * AKIN_ROUTE_MAX_SLOTS];
    akin_route_workload_t w = *akin_route_workload_find("task");
    w.near = 0.0;
    const akin_route_generator_params_t params = {.n_layers = LAYERS,
                                                  .n_experts = EXPERTS,
                                                  .top_k = TOP_K,
                                                  .workload = &w,
                                                  .output_tokens = TOKENS};
    akin_route_generator_t *g;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_route_generator_create(&params, &g, &err),
                          AKIN_OK);
    akin_route_request_t r;
    akin_route_request_make(g, 3, NULL, &r);
    akin_route_rates(g, &r, AKIN_ROUTE_DECODE, rates);
    akin_route_urn_fill(g, &r, AKIN_ROUTE_DECODE, urn);
    double worst = 0.0;
    for (uint32_t l = 0; l < LAYERS; l++) {
        uint32_t counts[EXPERTS] = {0};
        double sum = 0.0;
        for (uint32_t t = 0; t < TOKENS; t++) {
            uint16_t experts[TOP_K];
            akin_route_draw(g, &r, urn, r.n_prompt + t, l, experts);
            for (uint32_t j = 0; j < TOP_K; j++)
                counts[experts[j]]++;
        }
        for (uint32_t e = 0; e < EXPERTS; e++) {
            const double rate = (double)rates[l * EXPERTS + e];
            sum += rate;
            worst = fmax(worst, fabs((double)counts[e] / TOKENS - rate));
        }
        CU_ASSERT_DOUBLE_EQUAL(sum, TOP_K, 1e-4);
    }
    /* Four standard errors of 4,000 tokens are 0.03. */
    CU_ASSERT(worst < 0.035);
    akin_route_generator_destroy(g);
}

static void test_requests(void)
{
    const akin_route_workload_t *w = akin_route_workload_find("task");
    akin_route_generator_t *g = make(1, 8, 2, "task", 9, 200.0, 100.0, 0.6);
    akin_route_generator_t *other =
        make(1, 8, 2, "task", 10, 200.0, 100.0, 0.6);
    const double one[4] = {0.0, 0.0, 3.0, 0.0};
    uint32_t domains[4] = {0}, n_same = 0;
    double prompt = 0.0, output = 0.0;
    enum { N = 20000 };
    for (uint32_t i = 0; i < N; i++) {
        akin_route_request_t r, q;
        akin_route_request_make(g, i, NULL, &r);
        domains[r.domain]++;
        prompt += r.n_prompt;
        output += r.n_output;
        akin_route_request_make(other, i, NULL, &q);
        n_same += q.domain == r.domain && q.n_prompt == r.n_prompt;
        /* Another mix moves the requests of other domains alone. */
        akin_route_request_make(g, i, one, &q);
        CU_ASSERT_EQUAL(q.domain, 2);
        if (r.domain == 2)
            CU_ASSERT(q.topic == r.topic && q.n_prompt == r.n_prompt);
    }
    /* Four standard errors. */
    for (uint32_t d = 0; d < 4; d++)
        CU_ASSERT_DOUBLE_EQUAL(domains[d] / (double)N, w->domains[d].share,
                               0.0131);
    CU_ASSERT_DOUBLE_EQUAL(prompt / N, 200.0, 4.0);
    CU_ASSERT_DOUBLE_EQUAL(output / N, 100.0, 2.0);
    CU_ASSERT(n_same < N / 100);
    akin_route_generator_destroy(g);
    akin_route_generator_destroy(other);
}

static void test_refused(void)
{
    akin_route_workload_t w = *akin_route_workload_find("task");
    const akin_route_generator_params_t good = {
        .n_layers = 1, .n_experts = 8, .top_k = 2, .workload = &w};
    akin_route_generator_params_t p = good;
    akin_route_generator_t *g;
    akin_error_t err = {{0}};
    p.top_k = 9;
    CU_ASSERT_EQUAL(akin_route_generator_create(&p, &g, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NULL(g);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "8 experts, top-9"));
    p = good;
    p.prompt_tokens = (double)NAN;
    CU_ASSERT_EQUAL(akin_route_generator_create(&p, &g, &err),
                    AKIN_ERR_INVALID);
    p = good;
    p.output_tokens = 40000.0;
    CU_ASSERT_EQUAL(akin_route_generator_create(&p, &g, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "output tokens"));
    p = good;
    p.output_spread = -1.0;
    CU_ASSERT_EQUAL(akin_route_generator_create(&p, &g, &err),
                    AKIN_ERR_INVALID);
    w.domains[0].share += 0.1;
    CU_ASSERT_EQUAL(akin_route_generator_create(&good, &g, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "add up to 1.1000"));
    w = *akin_route_workload_find("task");
    w.n_topics = 17;
    CU_ASSERT_EQUAL(akin_route_generator_create(&good, &g, &err),
                    AKIN_ERR_INVALID);
    w = *akin_route_workload_find("task");
    w.popular = (double)INFINITY;
    CU_ASSERT_EQUAL(akin_route_generator_create(&good, &g, &err),
                    AKIN_ERR_INVALID);
}

static const runner_test_t tests[] = {
    {"published bands", test_published_bands},
    {"uniform choices", test_uniform},
    {"draws", test_draws},
    {"rates", test_rates},
    {"requests", test_requests},
    {"refused parameters", test_refused},
};

RUNNER_MAIN("route generator", tests)
