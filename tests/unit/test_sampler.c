/* Sampler: against a slow reference in double, and by the statistics of its
 * draws. */
#include "engine/sampler.h"

#include "draw.h"
#include "kernel_paths.h"
#include "runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_VOCAB 64u

/* All tokens, best first, and how likely each is to be drawn: 0 for those that
 * a filter took out. */
typedef struct expected {
    uint32_t ids[MAX_VOCAB];
    double p[MAX_VOCAB]; /* by token id */
    double nearest_edge; /* how close a filter came to deciding otherwise */
    uint32_t n_kept;
} expected_t;

static const float *sort_logits;

static int best_first(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    if (sort_logits[i] != sort_logits[j])
        return sort_logits[i] > sort_logits[j] ? -1 : 1;
    return i < j ? -1 : i > j;
}

static void expect(const akin_sampling_t *s, const float *given,
                   const uint32_t *history, size_t n_history, uint32_t vocab,
                   expected_t *out)
{
    float logits[MAX_VOCAB];
    double weights[MAX_VOCAB], total = 0, kept = 0;
    for (uint32_t i = 0; i < vocab; i++) {
        int seen = 0;
        for (size_t h = 0; h < n_history; h++)
            seen |= history[h] == i;
        logits[i] = given[i];
        if (seen && s->repetition_penalty > 0)
            logits[i] = given[i] > 0 ? given[i] / s->repetition_penalty
                                     : given[i] * s->repetition_penalty;
        out->ids[i] = i;
        out->p[i] = 0;
    }
    sort_logits = logits;
    qsort(out->ids, vocab, sizeof(*out->ids), best_first);
    uint32_t n = s->top_k > 0 && s->top_k < vocab ? s->top_k : vocab;
    for (uint32_t i = 0; i < n; i++) {
        double lead = (double)logits[out->ids[i]] - (double)logits[out->ids[0]];
        weights[i] = exp(lead / (double)s->temperature);
        total += weights[i];
    }
    out->nearest_edge = 1;
    if (s->top_p > 0 && s->top_p < 1) {
        double cumulated = 0;
        for (uint32_t i = 0; i < n; i++) {
            cumulated += weights[i] / total;
            double edge = fabs(cumulated - (double)s->top_p);
            out->nearest_edge = fmin(out->nearest_edge, edge);
            if (cumulated >= (double)s->top_p)
                n = i + 1;
        }
    }
    out->n_kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        out->nearest_edge =
            fmin(out->nearest_edge, fabs(weights[i] - (double)s->min_p));
        if (weights[i] < (double)s->min_p)
            continue;
        out->n_kept++;
        out->p[out->ids[i]] = weights[i];
        kept += weights[i];
    }
    for (uint32_t i = 0; i < vocab; i++)
        out->p[i] /= kept;
}

static akin_sampler_t *create(const akin_kernels_t *kernels, uint32_t vocab)
{
    akin_sampler_t *sampler = NULL;
    CU_ASSERT_EQUAL_FATAL(akin_sampler_create(kernels, vocab, &sampler),
                          AKIN_OK);
    return sampler;
}

static const akin_kernels_t *best(void)
{
    return akin_kernels_of(akin_kernels_best());
}

static void greedy(void)
{
    akin_sampler_t *sampler = create(best(), 6);
    const akin_sampling_t s = {.seed = 7};
    const float ties[] = {1, 3, 2, 3, 3, -1};
    CU_ASSERT_EQUAL(akin_sampler_pick(sampler, &s, ties, NULL, 0, 0), 1);
    const float equal[] = {-2, -2, -2, -2, -2, -2};
    CU_ASSERT_EQUAL(akin_sampler_pick(sampler, &s, equal, NULL, 0, 9), 0);
    const float zeros[] = {-0.0f, 0.0f, -1, -1, -1, -1};
    CU_ASSERT_EQUAL(akin_sampler_pick(sampler, &s, zeros, NULL, 0, 9), 0);
    const float last[] = {1, 2, 3, 4, 5, 6};
    CU_ASSERT_EQUAL(akin_sampler_pick(sampler, &s, last, NULL, 0, 0), 5);

    /* Once for a token however often it was seen; up for positive logits only
     * by division, for negative ones by multiplication. */
    const uint32_t history[] = {5, 5, 5, 99};
    akin_sampling_t penal = {.repetition_penalty = 1.3f};
    CU_ASSERT_EQUAL(akin_sampler_pick(sampler, &penal, last, history, 4, 0),
                    4); /* 6 / 1.3 < 5 */
    penal.repetition_penalty = 1.15f;
    CU_ASSERT_EQUAL(akin_sampler_pick(sampler, &penal, last, history, 4, 0),
                    5); /* 6 / 1.15 > 5, though 6 / 1.15^3 is not */
    const float negative[] = {-9, -9, -9, -9, -2.1f, -2};
    CU_ASSERT_EQUAL(akin_sampler_pick(sampler, &penal, negative, history, 4, 0),
                    4);
    CU_ASSERT_EQUAL(last[5], 6.0f);
    akin_sampler_destroy(sampler);
    akin_sampler_destroy(NULL);
}

/* Sum of (seen - expected)^2 / expected over classes expected five times or
 * more, the rest put together; degrees of freedom in *df_p. */
static double chi_square(const uint32_t *seen, const double *p, uint32_t n,
                         double draws, double *df_p)
{
    double sum = 0, rest = 0, rest_p = 0;
    *df_p = -1;
    for (uint32_t i = 0; i < n; i++) {
        double expected = p[i] * draws;
        if (expected < 5) {
            rest += seen[i];
            rest_p += expected;
            continue;
        }
        sum += (seen[i] - expected) * (seen[i] - expected) / expected;
        *df_p += 1;
    }
    if (rest_p > 1) {
        sum += (rest - rest_p) * (rest - rest_p) / rest_p;
        *df_p += 1;
    }
    return sum;
}

/* Far beyond what chance gives: five deviations over the mean. */
static int is_plausible(double chi, double df)
{
    return df <= 0 ? chi < 1e-9 : chi < df + 5 * sqrt(2 * df) + 5;
}

#define DRAWS 4000u

/* Draw many positions: nothing outside the kept set, the rest as likely as it
 * should be. */
static void check_draws(akin_sampler_t *sampler, const akin_sampling_t *s,
                        const float *logits, uint32_t vocab,
                        const uint32_t *history, size_t n_history)
{
    expected_t e;
    uint32_t seen[MAX_VOCAB] = {0};
    unsigned outside = 0;
    expect(s, logits, history, n_history, vocab, &e);
    if (e.nearest_edge < 1e-5)
        return;
    for (uint32_t i = 0; i < DRAWS; i++) {
        uint32_t id =
            akin_sampler_pick(sampler, s, logits, history, n_history, i);
        outside += id >= vocab || e.p[id] == 0;
        seen[id < vocab ? id : 0]++;
    }
    double df, chi = chi_square(seen, e.p, vocab, DRAWS, &df);
    CU_ASSERT_EQUAL(outside, 0);
    CU_ASSERT(is_plausible(chi, df));
}

static void random_filters_on(const akin_kernels_t *kernels)
{
    for (uint32_t round = 0; round < 60; round++) {
        const uint32_t vocab = 1 + draw_below(1, round, MAX_VOCAB);
        float logits[MAX_VOCAB];
        uint32_t history[5];
        draw_floats(logits, vocab, round, 4.0);
        if (round % 4 == 0) /* ties */
            for (uint32_t i = 0; i < vocab; i++)
                logits[i] = roundf(logits[i]);
        for (uint32_t i = 0; i < 5; i++)
            history[i] = draw_below(2, 5 * round + i, MAX_VOCAB);
        const float tops[] = {0, 0.2f, 0.5f, 0.9f, 1};
        const akin_sampling_t s = {
            .temperature = 0.3f + (float)draw_below(3, round, 100) / 50,
            .top_k = draw_below(4, round, 3) * draw_below(5, round, 20),
            .top_p = tops[draw_below(6, round, 5)],
            .min_p = round % 3 == 0 ? 0.07f : 0,
            .repetition_penalty = round % 2 == 0 ? 1.4f : 0,
            .seed = round,
        };
        akin_sampler_t *sampler = create(kernels, vocab);
        check_draws(sampler, &s, logits, vocab, history, 5);
        akin_sampler_destroy(sampler);
    }
}

static void random_filters(void)
{
    kernel_paths_each(random_filters_on);
}

/* Which of up to five tokens are drawn, as a bit set. */
static uint32_t drawn(akin_sampling_t s, const double *p, uint32_t vocab)
{
    akin_sampler_t *sampler = create(best(), vocab);
    float logits[5];
    uint32_t set = 0;
    s.temperature = 1;
    for (uint32_t i = 0; i < vocab; i++)
        logits[i] = (float)log(p[i]);
    for (uint32_t i = 0; i < 500; i++)
        set |= 1u << akin_sampler_pick(sampler, &s, logits, NULL, 0, i);
    akin_sampler_destroy(sampler);
    return set;
}

/* Sets worked out by hand. */
static void filters(void)
{
    static const double p[] = {0.5, 0.3, 0.2}, q[] = {0.1, 0.4, 0.2, 0.3};
    static const double equal[] = {0.2, 0.2, 0.2, 0.2, 0.2};
    CU_ASSERT_EQUAL(drawn((akin_sampling_t){.top_p = 0}, p, 3), 7);
    CU_ASSERT_EQUAL(drawn((akin_sampling_t){.top_p = 1}, p, 3), 7);
    CU_ASSERT_EQUAL(drawn((akin_sampling_t){.top_p = 0.01f}, p, 3), 1);
    CU_ASSERT_EQUAL(drawn((akin_sampling_t){.top_p = 0.49f}, p, 3), 1);
    /* The token that crosses p stays. */
    CU_ASSERT_EQUAL(drawn((akin_sampling_t){.top_p = 0.51f}, p, 3), 3);
    CU_ASSERT_EQUAL(drawn((akin_sampling_t){.top_p = 0.79f}, p, 3), 3);
    CU_ASSERT_EQUAL(drawn((akin_sampling_t){.top_p = 0.81f}, p, 3), 7);
    CU_ASSERT_EQUAL(drawn((akin_sampling_t){.top_k = 2}, q, 4), 10);
    CU_ASSERT_EQUAL(drawn((akin_sampling_t){.top_k = 4}, q, 4), 15);
    CU_ASSERT_EQUAL(drawn((akin_sampling_t){.top_k = 400}, q, 4), 15);
    /* Top-p counts what top-k left: 0.4 / 0.7 is over a half. */
    CU_ASSERT_EQUAL(drawn((akin_sampling_t){.top_k = 2, .top_p = 0.55f}, q, 4),
                    2);
    CU_ASSERT_EQUAL(drawn((akin_sampling_t){.top_p = 0.55f}, q, 4), 10);
    CU_ASSERT_EQUAL(drawn((akin_sampling_t){.min_p = 0.45f}, q, 4), 14);
    CU_ASSERT_EQUAL(drawn((akin_sampling_t){.min_p = 0.99f}, q, 4), 2);
    /* Of equal tokens the lowest ids. */
    CU_ASSERT_EQUAL(drawn((akin_sampling_t){.top_k = 2}, equal, 5), 3);
    CU_ASSERT_EQUAL(drawn((akin_sampling_t){.top_p = 0.5f}, equal, 5), 7);
    CU_ASSERT_EQUAL(drawn((akin_sampling_t){.min_p = 0.9f}, equal, 5), 31);
}

/* Top-p over a wide, flat distribution, whose kept set is long. */
static void wide_top_p(void)
{
    enum { VOCAB = 5000, WIDE_DRAWS = 500 };
    static float logits[VOCAB];
    static akin_candidate_t sorted[VOCAB];
    static int kept[VOCAB];
    akin_sampler_t *sampler = create(best(), VOCAB);
    const akin_sampling_t s = {.temperature = 1, .top_p = 0.8f, .seed = 3};
    double total = 0, cumulated = 0;
    uint32_t n = 0, outside = 0, beyond = 0;
    draw_floats(logits, VOCAB, 11, 0.5);
    for (uint32_t i = 0; i < VOCAB; i++)
        total += exp((double)logits[i]);
    akin_sampler_top(logits, VOCAB, VOCAB, sorted);
    for (; cumulated < 0.8 * total; n++) {
        cumulated += exp((double)sorted[n].logit);
        kept[sorted[n].id] = n < 1024 ? 1 : 2;
    }
    CU_ASSERT(n > 3000 && n < 4500);
    for (uint32_t i = 0; i < WIDE_DRAWS; i++) {
        uint32_t id = akin_sampler_pick(sampler, &s, logits, NULL, 0, i);
        outside += kept[id] == 0;
        beyond += kept[id] == 2;
    }
    /* One token may sit on the edge itself. */
    CU_ASSERT(outside <= 1);
    CU_ASSERT(beyond > WIDE_DRAWS / 2);
    akin_sampler_destroy(sampler);
}

static void keyed_draws(void)
{
    enum { VOCAB = 50, POSITIONS = 200 };
    float logits[VOCAB];
    uint32_t first[POSITIONS];
    unsigned changed = 0, same_seed = 0;
    draw_floats(logits, VOCAB, 4, 1.0);
    akin_sampler_t *a = create(best(), VOCAB), *b = create(best(), VOCAB);
    const akin_sampling_t s = {.temperature = 1, .seed = 5};
    akin_sampling_t other = {
        .temperature = 2, .top_p = 0.7f, .repetition_penalty = 2, .seed = 6};
    for (uint32_t i = 0; i < POSITIONS; i++)
        first[i] = akin_sampler_pick(a, &s, logits, NULL, 0, i);
    for (uint32_t i = POSITIONS; i-- > 0;) {
        (void)akin_sampler_pick(b, &other, logits, first, 10, i);
        changed += akin_sampler_pick(b, &s, logits, NULL, 0, i) != first[i];
    }
    CU_ASSERT_EQUAL(changed, 0);
    other = s;
    other.seed = 6;
    for (uint32_t i = 0; i < POSITIONS; i++)
        same_seed +=
            akin_sampler_pick(a, &other, logits, NULL, 0, i) == first[i];
    CU_ASSERT(same_seed < POSITIONS / 5);
    /* Positions of more than 32 bits are positions of their own. */
    unsigned same = 0;
    for (uint64_t i = 0; i < POSITIONS; i++)
        same += akin_sampler_pick(a, &s, logits, NULL, 0,
                                  i + (UINT64_C(1) << 32)) == first[i];
    CU_ASSERT(same < POSITIONS / 5);
    akin_sampler_destroy(a);
    akin_sampler_destroy(b);
}

/* Draws at neighbouring positions, and by neighbouring seeds, as pairs. */
static void independent_draws(void)
{
    enum { VOCAB = 4 };
    static const float logits[VOCAB] = {0.5f, 0, -0.3f, 0.1f};
    akin_sampling_t s = {.temperature = 1};
    expected_t e;
    akin_sampler_t *sampler = create(best(), VOCAB);
    double p[VOCAB * VOCAB], df;
    uint32_t by_position[VOCAB * VOCAB] = {0}, by_seed[VOCAB * VOCAB] = {0};
    expect(&s, logits, NULL, 0, VOCAB, &e);
    for (uint32_t i = 0; i < VOCAB * VOCAB; i++)
        p[i] = e.p[i / VOCAB] * e.p[i % VOCAB];
    for (uint32_t i = 0; i < DRAWS; i++) {
        s.seed = 99;
        uint32_t a = akin_sampler_pick(sampler, &s, logits, NULL, 0, 2 * i);
        uint32_t b = akin_sampler_pick(sampler, &s, logits, NULL, 0, 2 * i + 1);
        by_position[a * VOCAB + b]++;
        s.seed = 2 * i;
        a = akin_sampler_pick(sampler, &s, logits, NULL, 0, 17);
        s.seed = 2 * i + 1;
        b = akin_sampler_pick(sampler, &s, logits, NULL, 0, 17);
        by_seed[a * VOCAB + b]++;
    }
    double chi = chi_square(by_position, p, VOCAB * VOCAB, DRAWS, &df);
    CU_ASSERT_EQUAL(df, 15);
    CU_ASSERT(chi < 37.7); /* one in a thousand */
    CU_ASSERT(chi_square(by_seed, p, VOCAB * VOCAB, DRAWS, &df) < 37.7);
    akin_sampler_destroy(sampler);
}

static void extreme_temperatures(void)
{
    static const float logits[] = {1, 2, 2.001f, -30};
    akin_sampler_t *sampler = create(best(), 4);
    akin_sampling_t s = {.temperature = 1e-6f};
    unsigned wrong = 0;
    for (uint32_t i = 0; i < 100; i++)
        wrong += akin_sampler_pick(sampler, &s, logits, NULL, 0, i) != 2;
    s.temperature = 1e-42f; /* subnormal */
    for (uint32_t i = 0; i < 100; i++)
        wrong += akin_sampler_pick(sampler, &s, logits, NULL, 0, i) != 2;
    CU_ASSERT_EQUAL(wrong, 0);
    s.temperature = 1e30f;
    check_draws(sampler, &s, logits, 4, NULL, 0);
    akin_sampler_destroy(sampler);
}

static const runner_test_t tests[] = {
    {"greedy: ties and penalty", greedy},
    {"random filters against a reference", random_filters},
    {"filters by hand", filters},
    {"top-p over thousands of tokens", wide_top_p},
    {"draws keyed by seed and position", keyed_draws},
    {"draws are independent", independent_draws},
    {"temperatures near nothing and without end", extreme_temperatures},
};

RUNNER_MAIN("sampler", tests)
