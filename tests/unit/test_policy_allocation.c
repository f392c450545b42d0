/* A router in its steady state decides without a call for memory. */
#include "planted_fit.h"
#include "runner.h"

#include "routing/policy.h"

#include <stdlib.h>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) &&                    \
    !defined(__SANITIZE_THREAD__)
#define COUNTS_CALLS 1
#else
#define COUNTS_CALLS 0
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#undef COUNTS_CALLS
#define COUNTS_CALLS 0
#endif
#endif

static unsigned n_calls;

#if COUNTS_CALLS
/* In the place of the C library's, which stay reachable by these names. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    n_calls++;
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    n_calls++;
    return __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
    n_calls++;
    return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    n_calls++;
    return __libc_memalign(alignment, bytes);
}
#endif

enum { WORKERS = 9, IN_FLIGHT = 40, REQUESTS = 30 };

static const planted_shape_t shape = {6, 48, 4, 6};

static void decide(akin_policy_t *policy, uint64_t id)
{
    static uint16_t counts[REQUESTS][6 * 48];
    static const uint8_t eligible[WORKERS] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    if (id < REQUESTS)
        planted_counts(&shape, 5, id, 80, counts[id]);
    const akin_policy_request_t request = {
        .id = id, .counts = counts[id % REQUESTS], .n_tokens = 80};
    uint32_t worker;
    CU_ASSERT_EQUAL_FATAL(
        akin_policy_decide(policy, &request, eligible, &worker), AKIN_OK);
    if (id >= IN_FLIGHT)
        akin_policy_finish(policy, id - IN_FLIGHT);
}

static void test_steady_state(void)
{
    static const char *const names[] = {"jsq", "p2c", "eldr-static", "union",
                                        "union-band"};
    akin_fit_t fit = planted_fit(&shape, WORKERS);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const akin_policy_params_t params = {
            .n_workers = WORKERS,
            .n_layers = shape.n_layers,
            .n_experts = shape.n_experts,
            .top_k = shape.top_k,
            .fit = &fit,
            .tau = 0.1,
        };
        akin_policy_t *policy;
        CU_ASSERT_EQUAL_FATAL(
            akin_policy_create(names[i], &params, &policy, NULL), AKIN_OK);
        unsigned before_start = n_calls;
        for (uint64_t id = 0; id < 200; id++)
            decide(policy, id);
        CU_ASSERT(!COUNTS_CALLS || n_calls > before_start);
        unsigned before = n_calls;
        for (uint64_t id = 200; id < 1200; id++)
            decide(policy, id);
        CU_ASSERT_EQUAL(n_calls, before);
        akin_policy_destroy(policy);
    }
    akin_fit_cleanup(&fit);
}

static const runner_test_t tests[] = {
    {"steady state", test_steady_state},
};

RUNNER_MAIN("policy_allocation", tests)
