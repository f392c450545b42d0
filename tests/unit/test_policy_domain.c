/* Policy `domain`: how workers are shared, and where requests go. */
#include "runner.h"

#include "routing/policy.h"

#include <string.h>

enum { MAX_WORKERS = 16, MAX_DOMAINS = 8 };

/* A fit of which only the domains matter. */
typedef struct bed {
    akin_fit_t fit;
    akin_fit_domain_t domains[MAX_DOMAINS];
    uint32_t layer;
    float centroids[MAX_WORKERS];
    akin_policy_t *policy;
    uint64_t next_id;
} bed_t;

static void begin(bed_t *bed, uint32_t n_workers, uint32_t n_requests,
                  const akin_fit_domain_t *domains, uint32_t n_domains)
{
    memset(bed, 0, sizeof(*bed));
    for (uint32_t i = 0; i < n_domains; i++)
        bed->domains[i] = domains[i];
    for (uint32_t w = 0; w < n_workers; w++)
        bed->centroids[w] = 1.0f;
    bed->fit = (akin_fit_t){
        .n_layers = 1,
        .n_experts = 1,
        .n_clusters = n_workers,
        .n_requests = n_requests,
        .layers = &bed->layer,
        .n_masked = 1,
        .dim = 1,
        .centroids = bed->centroids,
        .domains = bed->domains,
        .n_domains = n_domains,
    };
    const akin_policy_params_t params = {
        .n_workers = n_workers,
        .n_layers = 1,
        .n_experts = 1,
        .top_k = 1,
        .fit = &bed->fit,
    };
    CU_ASSERT_EQUAL_FATAL(
        akin_policy_create("domain", &params, &bed->policy, NULL), AKIN_OK);
}

static uint32_t decide(bed_t *bed, const char *domain, const uint8_t *eligible)
{
    static const uint8_t all[MAX_WORKERS] = {1, 1, 1, 1, 1, 1, 1, 1,
                                             1, 1, 1, 1, 1, 1, 1, 1};
    const uint16_t count = 1;
    const akin_policy_request_t request = {
        .id = bed->next_id++,
        .counts = &count,
        .n_tokens = 1,
        .domain = domain,
    };
    uint32_t worker = 0;
    CU_ASSERT_EQUAL(akin_policy_decide(bed->policy, &request,
                                       eligible != NULL ? eligible : all,
                                       &worker),
                    AKIN_OK);
    return worker;
}

/* The workers that a label fills evenly, from the first to the last. */
static void expect_range(bed_t *bed, const char *domain, uint32_t first,
                         uint32_t n)
{
    for (uint32_t i = 0; i < 2 * n; i++)
        CU_ASSERT_EQUAL(decide(bed, domain, NULL), first + i % n);
    while (bed->next_id > 0)
        akin_policy_finish(bed->policy, --bed->next_id);
}

/* 8 workers, 100 requests. Exact shares: math 3.6, code 2.16, the rest 2.24
 * (chat has 12 < 100/8). Whole parts 3, 2, 2; the one left goes to math. */
static void test_shares(void)
{
    static char math[] = "math", code[] = "code", chat[] = "chat",
                misc[] = "poem";
    const akin_fit_domain_t domains[] = {
        {math, 45}, {code, 27}, {chat, 12}, {misc, 9}};
    bed_t bed;
    begin(&bed, 8, 100, domains, 4);
    expect_range(&bed, "math", 0, 4);
    expect_range(&bed, "code", 4, 2);
    expect_range(&bed, "chat", 6, 2);
    expect_range(&bed, "poem", 6, 2);
    expect_range(&bed, "never heard of", 6, 2);
    expect_range(&bed, "", 6, 2);
    expect_range(&bed, NULL, 6, 2);
    akin_policy_destroy(bed.policy);
}

/* Exactly N/K requests are enough for a worker of one's own; equal remainders
 * go by the fit's order, the rest comes last. */
static void test_ties(void)
{
    static char a[] = "a", b[] = "b", c[] = "c";
    const akin_fit_domain_t exact[] = {{b, 50}, {a, 25}, {c, 25}};
    bed_t bed;
    begin(&bed, 4, 0, exact, 3);
    expect_range(&bed, "b", 0, 2);
    expect_range(&bed, "a", 2, 1);
    expect_range(&bed, "c", 3, 1);
    akin_policy_destroy(bed.policy);
    /* 5 workers, 30 requests: 1 2/3 each; two of three get a second one. */
    const akin_fit_domain_t equal[] = {{c, 10}, {a, 10}, {b, 10}};
    begin(&bed, 5, 30, equal, 3);
    expect_range(&bed, "c", 0, 2);
    expect_range(&bed, "a", 2, 2);
    expect_range(&bed, "b", 4, 1);
    akin_policy_destroy(bed.policy);
}

/* Labels that leave nothing for the rest, and groups whose workers may not be
 * chosen: least in flight of all that may. */
static void test_borrows(void)
{
    static char a[] = "a", b[] = "b";
    const akin_fit_domain_t domains[] = {{a, 30}, {b, 10}};
    static const uint8_t not_b[4] = {1, 0, 1, 0}, none[4] = {0};
    bed_t bed;
    begin(&bed, 4, 40, domains, 2);
    CU_ASSERT_EQUAL(decide(&bed, "a", NULL), 0);
    CU_ASSERT_EQUAL(decide(&bed, "a", NULL), 1);
    CU_ASSERT_EQUAL(decide(&bed, "other", NULL), 2);
    CU_ASSERT_EQUAL(decide(&bed, "b", not_b), 0);
    CU_ASSERT_EQUAL(decide(&bed, "b", NULL), 3);
    CU_ASSERT_EQUAL(decide(&bed, "b", none), AKIN_ROUTING_NO_WORKER);
    akin_policy_destroy(bed.policy);
}

static void test_no_labels(void)
{
    bed_t bed;
    begin(&bed, 3, 0, NULL, 0);
    expect_range(&bed, "a", 0, 3);
    akin_policy_destroy(bed.policy);
    static char a[] = "a";
    const akin_fit_domain_t empty[] = {{a, 0}};
    begin(&bed, 3, 10, empty, 1);
    expect_range(&bed, "a", 0, 3);
    akin_policy_destroy(bed.policy);
    const akin_fit_domain_t one[] = {{a, UINT32_MAX}};
    begin(&bed, 3, 0, one, 1);
    expect_range(&bed, "a", 0, 3);
    akin_policy_destroy(bed.policy);
}

static const runner_test_t tests[] = {
    {"shares", test_shares},
    {"ties", test_ties},
    {"borrows", test_borrows},
    {"no labels", test_no_labels},
};

RUNNER_MAIN("policy domain", tests)
