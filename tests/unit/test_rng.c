/* Random numbers: Philox4x32-10 against the published known answers. */
#include "base/rng.h"
#include "runner.h"

/* The rows "philox4x32 10" of kat_vectors in Random123 1.14: counter words,
 * key words, result. The third row is made of digits of pi. */
static const uint32_t known[3][10] = {
    {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
    {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff,
     0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
    {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0,
     0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
};

static uint64_t pair(const uint32_t *words)
{
    return (uint64_t)words[1] << 32 | words[0];
}

static void test_known_answers(void)
{
    for (int i = 0; i < 3; i++) {
        const uint64_t counter[2] = {pair(known[i]), pair(known[i] + 2)};
        uint32_t out[4];
        akin_rng_philox(pair(known[i] + 4), counter, out);
        for (int w = 0; w < 4; w++)
            CU_ASSERT_EQUAL(out[w], known[i][6 + w]);
        CU_ASSERT_EQUAL(
            akin_rng_u64(pair(known[i] + 4), counter[1], counter[0]),
            pair(known[i] + 6));
    }
}

static void test_uniform(void)
{
    /* The upper 53 bits of 0xe169c58d6627e8d5 over 2^53. */
    CU_ASSERT_EQUAL(akin_rng_uniform(0, 0, 0),
                    (double)0x1c2d38b1acc4fd * 0x1p-53);
    double sum = 0.0;
    double squares = 0.0;
    for (uint64_t i = 0; i < 100000; i++) {
        double u = akin_rng_uniform(7, 3, i);
        CU_ASSERT_FATAL(u >= 0.0 && u < 1.0);
        sum += u;
        squares += u * u;
    }
    /* Four standard errors of the mean and of the second moment. */
    CU_ASSERT_DOUBLE_EQUAL(sum / 1e5, 0.5, 0.00366);
    CU_ASSERT_DOUBLE_EQUAL(squares / 1e5, 1.0 / 3.0, 0.00378);
}

static void test_below(void)
{
    CU_ASSERT_EQUAL(akin_rng_below(1, 2, 3, 1), 0);
    CU_ASSERT_EQUAL(akin_rng_below(0, 0, 0, UINT64_C(1) << 32), 0xe169c58d);
    /* floor(0xe169c58d6627e8d5 * 1000 / 2^64). */
    CU_ASSERT_EQUAL(akin_rng_below(0, 0, 0, 1000), 880);
    CU_ASSERT_EQUAL(akin_rng_below(0, 0, 0, UINT64_MAX),
                    UINT64_C(0xe169c58d6627e8d4));
    double counts[10] = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t draw = akin_rng_below(42, 0, i, 10);
        CU_ASSERT_FATAL(draw < 10);
        counts[draw] += 1.0;
    }
    double chi = 0.0;
    for (int i = 0; i < 10; i++)
        chi += (counts[i] - 1e4) * (counts[i] - 1e4) / 1e4;
    /* The 99.9 % point of chi-square with 9 degrees of freedom. */
    CU_ASSERT(chi < 27.88);
}

static void test_streams_differ(void)
{
    CU_ASSERT_NOT_EQUAL(akin_rng_u64(5, 0, 1), akin_rng_u64(5, 1, 0));
    CU_ASSERT_NOT_EQUAL(akin_rng_u64(5, 0, 0), akin_rng_u64(6, 0, 0));
}

static const runner_test_t tests[] = {
    {"known answers", test_known_answers},
    {"uniform", test_uniform},
    {"below", test_below},
    {"streams differ", test_streams_differ},
};
RUNNER_MAIN("rng", tests)
