/* Life watch: limits, and whose time counts. */
#include "net/life_watch.h"

#include "runner.h"

/* One look; `next` is what the watch asks for. */
static int look(akini_life_watch_t *watch, akini_life_phase_t phase,
                int64_t limit_ns, int has_beaten, int64_t now_ns, int64_t *next)
{
    const akini_life_look_t at = {
        .phase = phase,
        .limit_ns = limit_ns,
        .has_beaten = has_beaten,
        .now_ns = now_ns,
    };
    return akini_life_watch_look(watch, &at, next);
}

/* A rank that falls silent right after a look is found between one and one and
 * a quarter of the limit later, with looks on time. */
static void test_silent(void)
{
    akini_life_watch_t watch;
    int64_t next;
    akini_life_watch_begin(&watch, 1000);
    CU_ASSERT_EQUAL(look(&watch, AKINI_LIFE_SERVES, 400, 1, 1000, &next), 0);
    CU_ASSERT_EQUAL(next, 100);
    CU_ASSERT_EQUAL(look(&watch, AKINI_LIFE_SERVES, 400, 1, 1100, &next), 0);
    int n_looks = 0;
    int64_t now = 1100;
    do {
        now += next;
        n_looks++;
    } while (!look(&watch, AKINI_LIFE_SERVES, 400, 0, now, &next));
    CU_ASSERT_EQUAL(now, 1500);
    CU_ASSERT_EQUAL(n_looks, 4);
}

/* One beat in a limit is enough, for ever. */
static void test_beats(void)
{
    akini_life_watch_t watch;
    int64_t next = 100, now = 0;
    akini_life_watch_begin(&watch, now);
    int n_over = 0;
    for (int i = 0; i < 1000; i++) {
        now += next;
        n_over += look(&watch, AKINI_LIFE_SERVES, 400, i % 4 == 0, now, &next);
    }
    CU_ASSERT_EQUAL(n_over, 0);
}

/* Time in which the watcher did not run counts as one look: a quarter. */
static void test_own_absence(void)
{
    akini_life_watch_t watch;
    int64_t next, now = 0;
    akini_life_watch_begin(&watch, now);
    CU_ASSERT_EQUAL(look(&watch, AKINI_LIFE_SERVES, 400, 1, now, &next), 0);
    for (int i = 0; i < 3; i++) {
        now += 1000000;
        CU_ASSERT_EQUAL(look(&watch, AKINI_LIFE_SERVES, 400, 0, now, &next), 0);
        CU_ASSERT_EQUAL(next, 100);
    }
    now += 99;
    CU_ASSERT_EQUAL(look(&watch, AKINI_LIFE_SERVES, 400, 0, now, &next), 0);
    CU_ASSERT_EQUAL(next, 1);
    CU_ASSERT_EQUAL(look(&watch, AKINI_LIFE_SERVES, 400, 0, now + 1, &next), 1);
}

/* Looks that come early, as after a signal, add up what passed, no more. */
static void test_early_looks(void)
{
    akini_life_watch_t watch;
    int64_t next, now = 0;
    akini_life_watch_begin(&watch, now);
    CU_ASSERT_EQUAL(look(&watch, AKINI_LIFE_SERVES, 400, 1, now, &next), 0);
    while (!look(&watch, AKINI_LIFE_SERVES, 400, 0, now, &next))
        now += 7;
    CU_ASSERT_EQUAL(now, 406);
}

/* A start and an end are not drawn out by beats; each phase begins anew. */
static void test_phases(void)
{
    akini_life_watch_t watch;
    int64_t next, now = 0;
    akini_life_watch_begin(&watch, now);
    for (; now < 400; now += 100)
        CU_ASSERT_EQUAL(look(&watch, AKINI_LIFE_STARTS, 400, 1, now, &next), 0);
    akini_life_watch_t other = watch;
    CU_ASSERT_EQUAL(look(&other, AKINI_LIFE_STARTS, 400, 1, now, &next), 1);
    CU_ASSERT_EQUAL(look(&watch, AKINI_LIFE_SERVES, 400, 0, now, &next), 0);
    for (int i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(
            look(&watch, AKINI_LIFE_SERVES, 400, 0, now += 100, &next), 0);
    CU_ASSERT_EQUAL(look(&watch, AKINI_LIFE_ENDS, 400, 0, now, &next), 0);
    for (int i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(
            look(&watch, AKINI_LIFE_ENDS, 400, 1, now += 100, &next), 0);
    CU_ASSERT_EQUAL(look(&watch, AKINI_LIFE_ENDS, 400, 1, now + 100, &next), 1);
}

/* No limit: no look is due, and what passed does not count later. */
static void test_no_limit(void)
{
    akini_life_watch_t watch;
    int64_t next;
    akini_life_watch_begin(&watch, 0);
    CU_ASSERT_EQUAL(look(&watch, AKINI_LIFE_SERVES, 0, 0, 5000, &next), 0);
    CU_ASSERT_EQUAL(next, INT64_MAX);
    CU_ASSERT_EQUAL(look(&watch, AKINI_LIFE_SERVES, -1, 0, 9000, &next), 0);
    CU_ASSERT_EQUAL(look(&watch, AKINI_LIFE_SERVES, 4, 0, 9000, &next), 0);
    CU_ASSERT_EQUAL(next, 1);
    /* The largest and the smallest limits. */
    CU_ASSERT_EQUAL(look(&watch, AKINI_LIFE_SERVES, INT64_MAX, 0, 9001, &next),
                    0);
    CU_ASSERT(next > INT64_MAX / 4 - 2 && next <= INT64_MAX / 4 + 1);
    CU_ASSERT_EQUAL(look(&watch, AKINI_LIFE_ENDS, 1, 0, 9001, &next), 0);
    CU_ASSERT_EQUAL(look(&watch, AKINI_LIFE_ENDS, 1, 0, 9002, &next), 1);
}

static const runner_test_t tests[] = {
    {"a silent rank", test_silent},
    {"a beat in each limit", test_beats},
    {"the watcher's own absence", test_own_absence},
    {"early looks", test_early_looks},
    {"phases", test_phases},
    {"no limit", test_no_limit},
};
RUNNER_MAIN("life watch", tests)
