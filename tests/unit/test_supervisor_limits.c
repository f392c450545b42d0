/* Supervisor: ranks that are stopped, hang, do not start or do not end. */
#include "supervisor_bed.h"

#define STALL AKIN_NS_PER_S

#define STALLED(span)                                                          \
    "rank 3 (decode) was stopped or hangs: no sign of life for " span          \
    "; killed\n"
#define ANEW "rank 3 (decode) was lost: signal 9 (Killed); it is started anew\n"

static bed_script_t script_of(int64_t stall_ns)
{
    return (bed_script_t){
        .terms = {.max_lives = 5, .stall_ns = stall_ns, .role = "decode"}};
}

/* A rank that beats lives for many times the limit, until it is stopped. */
static void test_stopped(void)
{
    char text[1024];
    bed_script_t script = script_of(STALL);
    script.lives[0] = (bed_life_t){.arms = 1, .beats = 1, .waits = 1};
    bed_t bed = bed_start(&script);
    bed_report_t first = bed_next(&bed);
    poll(NULL, 0, 2 * (int)(STALL / BED_MS));
    CU_ASSERT_EQUAL(kill(first.pid, 0), 0);
    kill(first.pid, SIGSTOP);
    bed_report_t second = bed_next(&bed);
    CU_ASSERT_EQUAL(second.number, 1);
    CU_ASSERT_EQUAL(bed_end(&bed, text, sizeof(text)), 0);
    CU_ASSERT_STRING_EQUAL(text, STALLED("1.0 s") ANEW);
}

/* A rank that runs but does not beat is as good as stopped. */
static void test_hangs(void)
{
    char text[1024];
    bed_report_t lives[2];
    bed_script_t script = script_of(STALL);
    script.lives[0] = (bed_life_t){.arms = 1, .waits = 1};
    int64_t begin_ns = akin_clock_now_ns();
    CU_ASSERT_EQUAL(bed_run(&script, lives, 2, text, sizeof(text)), 0);
    CU_ASSERT(akin_clock_now_ns() - begin_ns >= STALL);
    CU_ASSERT_EQUAL(lives[1].number, 1);
    CU_ASSERT_STRING_EQUAL(text, STALLED("1.0 s") ANEW);
}

/* A supervisor that was stopped itself for longer than the limit gives the
 * rank the rest of it. */
static void test_supervisor_stopped(void)
{
    char text[1024];
    bed_script_t script = script_of(1600 * BED_MS);
    script.lives[0] = (bed_life_t){.arms = 1, .waits = 1};
    bed_t bed = bed_start(&script);
    bed_report_t first = bed_next(&bed);
    kill(bed.pid, SIGSTOP);
    poll(NULL, 0, 2000);
    kill(bed.pid, SIGCONT);
    poll(NULL, 0, 100);
    /* SIGTERM gives it an end that says that it was alive. */
    kill(first.pid, SIGTERM);
    char byte = 0;
    CU_ASSERT(read(bed.from_rank, &byte, 1) == 1 && byte == 'T');
    bed_report_t second = bed_next(&bed);
    CU_ASSERT_EQUAL(second.number, 1);
    CU_ASSERT_EQUAL(bed_end(&bed, text, sizeof(text)), 0);
    CU_ASSERT_STRING_EQUAL(text, "rank 3 (decode) was lost: exit code 7; it is "
                                 "started anew\n");
}

/* A first life that does not come to serve: the job is to end. */
static void test_first_start(void)
{
    char text[1024];
    bed_report_t life;
    bed_script_t script = script_of(0);
    script.start_timeout_ns = 300 * BED_MS;
    script.lives[0] = (bed_life_t){.waits = 1};
    CU_ASSERT_EQUAL(bed_run(&script, &life, 1, text, sizeof(text)), 137);
    CU_ASSERT_STRING_EQUAL(text, "rank 3 (worker) did not begin to serve in "
                                 "0.3 s; killed\n");
    /* Once it serves there is no such limit. */
    script.lives[0].arms = 1;
    bed_t bed = bed_start(&script);
    life = bed_next(&bed);
    poll(NULL, 0, 600);
    kill(bed.pid, SIGTERM);
    char byte = 0;
    CU_ASSERT(read(bed.from_rank, &byte, 1) == 1 && byte == 'T');
    CU_ASSERT_EQUAL(bed_end(&bed, text, sizeof(text)), 0);
    CU_ASSERT_PTR_NULL(strstr(text, "killed"));
}

/* Later ones: another life follows, and the last one has its limit, too. */
static void test_later_start(void)
{
    char text[1024];
    bed_report_t lives[3];
    bed_script_t script = script_of(0);
    script.terms.max_lives = 1;
    script.terms.start_timeout_ns = 300 * BED_MS;
    script.lives[0] = (bed_life_t){.arms = 1, .signal_number = SIGKILL};
    script.lives[1] = (bed_life_t){.waits = 1, .beats = 1};
    script.lives[2] = (bed_life_t){.waits = 1};
    CU_ASSERT_EQUAL(bed_run(&script, lives, 3, text, sizeof(text)), 0);
    CU_ASSERT(lives[2].is_last);
    CU_ASSERT_STRING_EQUAL(
        text, ANEW "rank 3 (decode) did not begin to serve in 0.3 s; "
                   "killed\n"
                   "rank 3 (decode) was lost: signal 9 (Killed); it was "
                   "started anew 1 time, now the job goes on without it\n"
                   "rank 3 (decode) did not report its loss in 0.3 s; "
                   "killed\n");
}

/* A later one that stops on its way is not waited for until its time is up. */
static void test_silent_start(void)
{
    char text[1024];
    bed_report_t lives[3];
    bed_script_t script = script_of(300 * BED_MS);
    script.terms.start_timeout_ns = 60 * AKIN_NS_PER_S;
    script.lives[0] =
        (bed_life_t){.arms = 1, .beats = 1, .signal_number = SIGKILL};
    script.lives[1] = (bed_life_t){.waits = 1};
    script.lives[2] = (bed_life_t){.arms = 1};
    int64_t begin_ns = akin_clock_now_ns();
    CU_ASSERT_EQUAL(bed_run(&script, lives, 3, text, sizeof(text)), 0);
    CU_ASSERT(akin_clock_now_ns() - begin_ns < 30 * AKIN_NS_PER_S);
    CU_ASSERT_STRING_EQUAL(
        text, ANEW "rank 3 (decode) was stopped or hangs: no sign of life for "
                   "0.9 s; killed\n" ANEW);
}

/* A rank that ends need not beat, but has to be gone in time. */
static void test_end(void)
{
    char text[1024];
    bed_report_t life;
    bed_script_t script = script_of(100 * BED_MS);
    script.lives[0] = (bed_life_t){
        .arms = 1, .ends = 1, .end_limit_ns = 500 * BED_MS, .waits = 1};
    int64_t begin_ns = akin_clock_now_ns();
    CU_ASSERT_EQUAL(bed_run(&script, &life, 1, text, sizeof(text)), 0);
    CU_ASSERT(akin_clock_now_ns() - begin_ns >= 500 * BED_MS);
    CU_ASSERT_STRING_EQUAL(text,
                           "rank 3 (decode) did not end in 0.5 s; killed\n");
    /* The router's: its code tells of it. */
    script.pass_exit_code = 1;
    CU_ASSERT_EQUAL(bed_run(&script, &life, 1, text, sizeof(text)), 137);
}

/* A limit that comes while the supervisor sleeps for 5 s wakes it. */
static void test_end_wakes(void)
{
    char text[1024];
    bed_report_t life;
    bed_script_t script = script_of(0);
    script.lives[0] = (bed_life_t){.arms = 1,
                                   .pauses_ms = 300,
                                   .ends = 1,
                                   .end_limit_ns = 200 * BED_MS,
                                   .waits = 1};
    int64_t begin_ns = akin_clock_now_ns();
    CU_ASSERT_EQUAL(bed_run(&script, &life, 1, text, sizeof(text)), 0);
    CU_ASSERT(akin_clock_now_ns() - begin_ns < 4 * AKIN_NS_PER_S);
    CU_ASSERT_STRING_EQUAL(text,
                           "rank 3 (decode) did not end in 0.2 s; killed\n");
}

static const runner_test_t tests[] = {
    {"a stopped rank", test_stopped},
    {"a rank that does not beat", test_hangs},
    {"a stopped supervisor blames nobody", test_supervisor_stopped},
    {"a first life that does not start", test_first_start},
    {"later lives that do not start", test_later_start},
    {"a later life that stops on its way", test_silent_start},
    {"a rank that does not end", test_end},
    {"a limit wakes the supervisor", test_end_wakes},
};
RUNNER_MAIN("supervisor limits", tests)
