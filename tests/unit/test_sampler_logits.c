/* Sampler: ranks and sums of logits, ranges of the parameters, seeds. */
#include "engine/sampler.h"

#include "draw.h"
#include "runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void top(void)
{
    enum { MAX = 300 };
    float logits[MAX];
    akin_candidate_t got[MAX + 10];
    unsigned wrong = 0;
    for (uint32_t vocab = 1; vocab <= MAX; vocab += 23) {
        /* Few distinct values, so that there are many ties. */
        for (uint32_t i = 0; i < vocab; i++)
            logits[i] = (float)draw_below(vocab, i, 40) - 20.0f;
        for (uint32_t n = 0; n <= vocab + 10; n += 1 + n / 5) {
            uint32_t kept = n < vocab ? n : vocab;
            memset(got, 0xff, sizeof(got));
            akin_sampler_top(logits, vocab, n, got);
            /* The number of tokens before each one is its rank. */
            for (uint32_t r = 0; r < kept; r++) {
                uint32_t before = 0;
                for (uint32_t i = 0; i < vocab; i++)
                    before += logits[i] > got[r].logit ||
                              (i < got[r].id && logits[i] == got[r].logit);
                wrong += got[r].id >= vocab || before != r ||
                         logits[got[r].id] != got[r].logit;
            }
            wrong += got[kept].id != UINT32_MAX;
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void log_sum_exp(void)
{
    enum { MAX = 5000 };
    static float logits[MAX];
    for (uint32_t vocab = 1; vocab <= MAX; vocab = vocab * 3 + 1) {
        draw_floats(logits, vocab, vocab, 20.0);
        long double sum = 0;
        for (uint32_t i = 0; i < vocab; i++)
            sum += expl((long double)logits[i]);
        double exact = (double)logl(sum);
        CU_ASSERT(fabs(akin_sampler_log_sum_exp(logits, vocab) - exact) <
                  1e-12 * (1 + fabs(exact)));
    }
    /* Neither overflow nor underflow, far from zero on either side. */
    const float high[] = {1e4f, 1e4f, 1e4f, 1e4f};
    const float low[] = {-1e30f, -1e30f};
    CU_ASSERT(fabs(akin_sampler_log_sum_exp(high, 4) - (1e4 + log(4))) < 1e-11);
    CU_ASSERT(akin_sampler_log_sum_exp(low, 2) == (double)-1e30f);
    CU_ASSERT(akin_sampler_log_sum_exp(high, 1) == 1e4);
    /* The probabilities that logprobs stand for add up to one. */
    double total = 0, lse = akin_sampler_log_sum_exp(logits, MAX);
    for (uint32_t i = 0; i < MAX; i++)
        total += exp((double)logits[i] - lse);
    CU_ASSERT(fabs(total - 1) < 1e-11);
}

static void refuse(akin_sampling_t s, const char *field)
{
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_sampling_check(&s, &err), AKIN_ERR_RANGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, field));
}

static void ranges(void)
{
    static const akin_sampling_t good[] = {
        {0},
        {.temperature = 1e-30f, .top_p = 1, .min_p = 0.999f},
        {.temperature = 1e30f, .top_p = 1e-30f, .top_k = UINT32_MAX},
        {.repetition_penalty = 0.1f, .seed = UINT64_MAX},
    };
    akin_error_t err = {{0}};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        CU_ASSERT_EQUAL(akin_sampling_check(&good[i], &err), AKIN_OK);
    static const float bad[] = {-0.001f, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refuse((akin_sampling_t){.temperature = bad[i]}, "temperature");
        refuse((akin_sampling_t){.top_p = bad[i]}, "top_p");
        refuse((akin_sampling_t){.min_p = bad[i]}, "min_p");
        refuse((akin_sampling_t){.repetition_penalty = bad[i]},
               "repetition_penalty");
    }
    refuse((akin_sampling_t){.top_p = 1.001f}, "top_p");
    refuse((akin_sampling_t){.min_p = 1}, "min_p");
}

/* Equal ids have equal seeds, others have others. */
static void seeds(void)
{
    enum { COUNT = 2000 };
    static uint64_t seen[COUNT];
    unsigned equal = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        char id[32];
        (void)snprintf(id, sizeof(id), "request-%u", i);
        seen[i] = akin_sampling_seed_from_id(id);
        equal += seen[i] != akin_sampling_seed_from_id(id);
        for (uint32_t j = 0; j < i; j++)
            equal += seen[i] == seen[j];
    }
    CU_ASSERT_EQUAL(equal, 0);
    CU_ASSERT_NOT_EQUAL(akin_sampling_seed_from_id(""),
                        akin_sampling_seed_from_id("0"));
}

static const runner_test_t tests[] = {
    {"the best tokens in order", top},
    {"log of the sum of exponentials", log_sum_exp},
    {"ranges of the parameters", ranges},
    {"seeds from ids", seeds},
};

RUNNER_MAIN("sampler logits", tests)
