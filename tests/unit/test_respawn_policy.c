/* Respawn policy: budgets, windows and delays. */
#include "net/respawn_policy.h"

#include "base/clock.h"
#include "runner.h"

#define S AKIN_NS_PER_S
#define MINUTE (60 * S)

/* A death at each of these seconds. */
static void deaths(akini_respawn_policy_t *policy,
                   const akin_supervised_terms_t *terms, const int64_t *at_s,
                   size_t n, akini_respawn_step_t *steps)
{
    for (size_t i = 0; i < n; i++)
        steps[i] = akini_respawn_policy_step(policy, terms, at_s[i] * S);
}

/* 5 in 10 minutes, delays of 0, 1, 2, 4 and 8 s, then the last one. */
static void test_five(void)
{
    akini_respawn_policy_t policy = {0};
    const akin_supervised_terms_t terms = {
        .max_lives = 5, .window_ns = 10 * MINUTE, .first_delay_ns = S};
    static const int64_t at_s[] = {1000, 1001, 1002, 1005, 1010, 1599, 1601};
    /* At 1601 s those of 1000 and 1001 s do not count any more. */
    static const uint32_t recent[] = {0, 1, 2, 3, 4, 5, 3};
    static const int64_t delays_s[] = {0, 1, 2, 4, 8, 0, 4};
    akini_respawn_step_t steps[7];
    deaths(&policy, &terms, at_s, 7, steps);
    for (uint32_t i = 0; i < 7; i++) {
        CU_ASSERT_EQUAL(steps[i].is_last, i == 5);
        CU_ASSERT_EQUAL(steps[i].n_recent, recent[i]);
        CU_ASSERT_EQUAL(steps[i].delay_ns, delays_s[i] * S);
    }
    akini_respawn_policy_cleanup(&policy);
    CU_ASSERT_EQUAL(policy.n_started, 0);
}

/* The bound of the window: a life counts for window_ns, not longer. */
static void test_window_bound(void)
{
    akini_respawn_policy_t policy = {0};
    const akin_supervised_terms_t terms = {.max_lives = 1, .window_ns = 10};
    CU_ASSERT_EQUAL(akini_respawn_policy_step(&policy, &terms, 100).is_last, 0);
    CU_ASSERT_EQUAL(akini_respawn_policy_step(&policy, &terms, 109).is_last, 1);
    CU_ASSERT_EQUAL(akini_respawn_policy_step(&policy, &terms, 110).is_last, 0);
    CU_ASSERT_EQUAL(akini_respawn_policy_step(&policy, &terms, 119).is_last, 1);
    akini_respawn_policy_cleanup(&policy);
}

/* Delays neither pass 8 s nor overflow. */
static void test_delays(void)
{
    akini_respawn_policy_t policy = {0};
    akin_supervised_terms_t terms = {.max_lives = 1000, .first_delay_ns = 1};
    int64_t expected = 1;
    for (int i = 0; i < 200; i++) {
        int64_t got = akini_respawn_policy_step(&policy, &terms, i).delay_ns;
        CU_ASSERT_EQUAL(got, i == 0 ? 0 : expected);
        if (i > 0)
            expected = expected * 2 < 8 * S ? expected * 2 : 8 * S;
    }
    terms.first_delay_ns = INT64_MAX;
    CU_ASSERT_EQUAL(akini_respawn_policy_step(&policy, &terms, 200).delay_ns,
                    8 * S);
    terms.first_delay_ns = 0;
    CU_ASSERT_EQUAL(akini_respawn_policy_step(&policy, &terms, 201).delay_ns,
                    0);
    akini_respawn_policy_cleanup(&policy);
}

/* Without a window all lives count, however long ago. */
static void test_no_window(void)
{
    akini_respawn_policy_t policy = {0};
    const akin_supervised_terms_t terms = {.max_lives = 2};
    static const int64_t at_s[] = {0, 1000000, 2000000};
    akini_respawn_step_t steps[3];
    deaths(&policy, &terms, at_s, 3, steps);
    CU_ASSERT(!steps[0].is_last && !steps[1].is_last && steps[2].is_last);
    CU_ASSERT_EQUAL(steps[2].n_recent, 2);
    akini_respawn_policy_cleanup(&policy);
}

/* Zero, and what no rank should say: the next one is the last. */
static void test_none(void)
{
    akini_respawn_policy_t policy = {0};
    akin_supervised_terms_t terms = {.max_lives = 0, .window_ns = -5};
    CU_ASSERT_EQUAL(akini_respawn_policy_step(&policy, &terms, 0).is_last, 1);
    terms.max_lives = INT32_MIN;
    CU_ASSERT_EQUAL(akini_respawn_policy_step(&policy, &terms, 1).is_last, 1);
    CU_ASSERT_EQUAL(policy.n_started, 0);
    /* A rank whose terms change begins with what it had. */
    terms = (akin_supervised_terms_t){.max_lives = 1, .first_delay_ns = -1};
    akini_respawn_step_t step = akini_respawn_policy_step(&policy, &terms, 2);
    CU_ASSERT(!step.is_last && step.delay_ns == 0);
    CU_ASSERT_EQUAL(akini_respawn_policy_step(&policy, &terms, 3).is_last, 1);
    akini_respawn_policy_cleanup(&policy);
}

static const runner_test_t tests[] = {
    {"five in ten minutes", test_five},
    {"the window's bound", test_window_bound},
    {"delays", test_delays},
    {"no window", test_no_window},
    {"no lives", test_none},
};
RUNNER_MAIN("respawn policy", tests)
