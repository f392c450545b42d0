/* Supervisor lines: their words. */
#include "net/supervisor_line.h"

#include "base/clock.h"
#include "runner.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define S AKIN_NS_PER_S

static char text[1024];
static int kept, ends[2];

static void catch_begin(void)
{
    kept = dup(STDERR_FILENO);
    CU_ASSERT_FATAL(kept >= 0 && pipe(ends) == 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
}

/* What was written, from the rank on. */
static const char *catch_end(void)
{
    dup2(kept, STDERR_FILENO);
    close(kept);
    ssize_t n = read(ends[0], text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    close(ends[0]);
    const char *body = strstr(text, "rank 7");
    return body != NULL ? body : text;
}

static const char *lost(akini_supervisor_line_t line, akini_lost_t how)
{
    line.rank = 7;
    line.role = "prefill";
    catch_begin();
    akini_supervisor_line_lost(&line, how);
    return catch_end();
}

static const char *killed(akini_supervisor_line_t line)
{
    line.rank = 7;
    line.role = "prefill";
    catch_begin();
    akini_supervisor_line_killed(&line);
    return catch_end();
}

/* A wait status holds the signal in its low byte, the code above. */
#define LOST(...) ((akini_supervisor_line_t){.wait_status = 9, __VA_ARGS__})
#define WAS_LOST "rank 7 (prefill) was lost: signal 9 (Killed)"

static void test_lost(void)
{
    const akini_supervisor_line_t plain = LOST(.rank = 0);
    CU_ASSERT_STRING_EQUAL(lost(plain, AKINI_LOST_ROUTER), WAS_LOST "\n");
    CU_ASSERT_STRING_EQUAL(lost(plain, AKINI_LOST_EARLY),
                           WAS_LOST "; it did not serve yet: the job ends\n");
    CU_ASSERT_STRING_EQUAL(lost(plain, AKINI_LOST_WITH_MPI),
                           WAS_LOST "; the job ends\n");
    CU_ASSERT_STRING_EQUAL(lost(plain, AKINI_LOST_WHEN_OVER),
                           WAS_LOST "; the job ends, it is not started anew\n");
    CU_ASSERT_STRING_EQUAL(
        lost(plain, AKINI_LOST_AT_END),
        "rank 7 (prefill) was lost while it ended: signal 9 (Killed)\n");
    CU_ASSERT_STRING_EQUAL(lost(plain, AKINI_LOST_FOLLOWED),
                           WAS_LOST "; it is started anew\n");
    CU_ASSERT_STRING_EQUAL(lost(LOST(.delay_ns = 2 * S), AKINI_LOST_FOLLOWED),
                           WAS_LOST "; it is started anew in 2.0 s\n");
    CU_ASSERT_STRING_EQUAL(
        lost((akini_supervisor_line_t){.wait_status = 3 << 8},
             AKINI_LOST_FOLLOWED),
        "rank 7 (prefill) was lost: exit code 3; it is started anew\n");
}

static void test_lost_for_good(void)
{
    CU_ASSERT_STRING_EQUAL(
        lost(LOST(.window_ns = 600 * S), AKINI_LOST_FOR_GOOD),
        WAS_LOST "; the job goes on without it\n");
    CU_ASSERT_STRING_EQUAL(
        lost(LOST(.window_ns = 600 * S, .n_recent = 5), AKINI_LOST_FOR_GOOD),
        WAS_LOST "; it was started anew 5 times in 10 min, "
                 "now the job goes on without it\n");
    CU_ASSERT_STRING_EQUAL(
        lost(LOST(.window_ns = 7200 * S, .n_recent = 1), AKINI_LOST_FOR_GOOD),
        WAS_LOST "; it was started anew 1 time in 2 h, now "
                 "the job goes on without it\n");
    CU_ASSERT_STRING_EQUAL(
        lost(LOST(.n_recent = UINT32_MAX), AKINI_LOST_FOR_GOOD),
        WAS_LOST "; it was started anew 4294967295 times, "
                 "now the job goes on without it\n");
}

static void test_killed(void)
{
    CU_ASSERT_STRING_EQUAL(
        killed((akini_supervisor_line_t){.phase = AKINI_LIFE_SERVES,
                                         .limit_ns = 4 * S}),
        "rank 7 (prefill) was stopped or hangs: no sign of life for 4.0 s; "
        "killed\n");
    CU_ASSERT_STRING_EQUAL(
        killed((akini_supervisor_line_t){.phase = AKINI_LIFE_STARTS,
                                         .limit_ns = 90 * S}),
        "rank 7 (prefill) did not begin to serve in 90.0 s; killed\n");
    CU_ASSERT_STRING_EQUAL(
        killed((akini_supervisor_line_t){
            .phase = AKINI_LIFE_STARTS, .is_last = 1, .limit_ns = 30 * S}),
        "rank 7 (prefill) did not report its loss in 30.0 s; killed\n");
    CU_ASSERT_STRING_EQUAL(killed((akini_supervisor_line_t){
                               .phase = AKINI_LIFE_ENDS, .limit_ns = S / 4}),
                           "rank 7 (prefill) did not end in 0.250 s; killed\n");
}

static const runner_test_t tests[] = {
    {"lost", test_lost},
    {"lost for good", test_lost_for_good},
    {"killed", test_killed},
};
RUNNER_MAIN("supervisor line", tests)
