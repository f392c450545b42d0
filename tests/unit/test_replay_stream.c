/* Tests of the replay stream: the order of requests. */
#include "runner.h"

#include "base/rng.h"
#include "routing/replay_stream.h"

#include <string.h>

enum { N = 12 };

static void init(akini_replay_stream_t *stream, uint32_t n, uint64_t seed)
{
    CU_ASSERT_EQUAL_FATAL(akini_replay_stream_init(stream, n, seed), AKIN_OK);
}

/* One at a time: every pass has each request once, in an order of its own. */
static void test_passes(void)
{
    akini_replay_stream_t stream;
    uint32_t last[N] = {0};
    init(&stream, N, 7);
    for (int pass = 0; pass < 20; pass++) {
        uint32_t order[N];
        int seen[N] = {0};
        for (uint32_t i = 0; i < N; i++) {
            order[i] = akini_replay_stream_take(&stream);
            CU_ASSERT_FATAL(order[i] < N);
            CU_ASSERT_EQUAL(seen[order[i]]++, 0);
            akini_replay_stream_put(&stream, order[i]);
        }
        CU_ASSERT_NOT_EQUAL(memcmp(order, last, sizeof(order)), 0);
        memcpy(last, order, sizeof(order));
    }
    akini_replay_stream_cleanup(&stream);
}

/* Requests that start and end at random: none starts while it runs, and none
 * is forgotten. */
static void test_no_copy(void)
{
    akini_replay_stream_t stream;
    uint32_t running[N], n_running = 0, n_taken[N] = {0};
    uint64_t draw = 0;
    init(&stream, N, 3);
    for (int i = 0; i < 12000; i++) {
        if (n_running < N - 1) {
            uint32_t next = akini_replay_stream_take(&stream);
            CU_ASSERT_FATAL(next < N);
            for (uint32_t j = 0; j < n_running; j++)
                CU_ASSERT_NOT_EQUAL(running[j], next);
            running[n_running++] = next;
            n_taken[next]++;
        }
        while (n_running > 0 && akin_rng_below(1, 2, draw++, 2) == 0) {
            uint32_t j = (uint32_t)akin_rng_below(1, 3, draw++, n_running);
            akini_replay_stream_put(&stream, running[j]);
            running[j] = running[--n_running];
        }
    }
    /* 12,000 starts, more or less evenly: the passes see to that. */
    for (uint32_t r = 0; r < N; r++)
        CU_ASSERT(n_taken[r] > 800 && n_taken[r] < 1200);
    akini_replay_stream_cleanup(&stream);
}

static void test_all_run(void)
{
    akini_replay_stream_t stream;
    int seen[3] = {0};
    init(&stream, 3, 1);
    for (int i = 0; i < 3; i++)
        seen[akini_replay_stream_take(&stream)]++;
    CU_ASSERT(seen[0] == 1 && seen[1] == 1 && seen[2] == 1);
    CU_ASSERT_EQUAL(akini_replay_stream_take(&stream), AKINI_STREAM_NONE);
    CU_ASSERT_EQUAL(akini_replay_stream_take(&stream), AKINI_STREAM_NONE);
    akini_replay_stream_put(&stream, 1);
    CU_ASSERT_EQUAL(akini_replay_stream_take(&stream), 1);
    CU_ASSERT_EQUAL(akini_replay_stream_take(&stream), AKINI_STREAM_NONE);
    akini_replay_stream_cleanup(&stream);
}

/* The first requests of a pass are drawn evenly. */
static void test_even(void)
{
    uint32_t n_first[4] = {0};
    for (uint64_t seed = 0; seed < 4000; seed++) {
        akini_replay_stream_t stream;
        init(&stream, 4, seed);
        n_first[akini_replay_stream_take(&stream)]++;
        akini_replay_stream_cleanup(&stream);
    }
    /* 1,000 each; 4.5 standard deviations are 123. */
    for (int r = 0; r < 4; r++)
        CU_ASSERT(n_first[r] > 877 && n_first[r] < 1123);
}

static void test_seeds(void)
{
    akini_replay_stream_t a, b, c;
    int n_other = 0;
    init(&a, N, 5);
    init(&b, N, 5);
    init(&c, N, 6);
    for (int i = 0; i < N; i++) {
        uint32_t next = akini_replay_stream_take(&a);
        CU_ASSERT_EQUAL(akini_replay_stream_take(&b), next);
        n_other += akini_replay_stream_take(&c) != next;
    }
    CU_ASSERT(n_other > 0);
    akini_replay_stream_cleanup(&a);
    akini_replay_stream_cleanup(&b);
    akini_replay_stream_cleanup(&c);
}

static const runner_test_t tests[] = {
    {"passes", test_passes},   {"no copy runs", test_no_copy},
    {"all run", test_all_run}, {"drawn evenly", test_even},
    {"seeds", test_seeds},
};

RUNNER_MAIN("replay stream", tests)
