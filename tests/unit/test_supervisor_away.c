/* Supervisor: lives that do not reach their router try again for a while, and
 * are not counted. */
#include "supervisor_bed.h"

#define LOST "rank 3 (decode) was lost: signal 9 (Killed); it is started anew\n"

static bed_script_t script_of(int64_t reach_timeout_ns)
{
    return (bed_script_t){
        .terms = {.max_lives = 1,
                  .window_ns = 600 * AKIN_NS_PER_S,
                  .reach_timeout_ns = reach_timeout_ns,
                  .role = "decode"},
        .ticket = "ticket of rank 3",
        .ticket_bytes = 16,
        .lives[0] = {.arms = 1, .signal_number = SIGKILL},
    };
}

/* Only one life may be started anew; those that are away take nothing of it,
 * and keep what the first one left. */
static void test_returns(void)
{
    char text[1024];
    bed_report_t lives[5];
    bed_script_t script = script_of(60 * AKIN_NS_PER_S);
    script.lives[1] = (bed_life_t){.code = AKIN_SUPERVISOR_ROUTER_AWAY};
    script.lives[2] = script.lives[1];
    script.lives[3] = (bed_life_t){.arms = 1, .signal_number = SIGKILL};
    int64_t begin_ns = akin_clock_now_ns();
    CU_ASSERT_EQUAL(bed_run(&script, lives, 5, text, sizeof(text)), 0);
    CU_ASSERT(akin_clock_now_ns() - begin_ns > 2 * AKIN_NS_PER_S - BED_MS);
    for (uint32_t i = 1; i < 5; i++) {
        CU_ASSERT_EQUAL(lives[i].number, i);
        CU_ASSERT_EQUAL(lives[i].is_last, i == 4);
        CU_ASSERT_EQUAL(lives[i].ticket_sum, bed_sum("ticket of rank 3", 16));
    }
    CU_ASSERT_STRING_EQUAL(
        text,
        LOST "rank 3 (decode) does not reach the router: is a link cut? It "
             "tries for 1 min\n"
             "rank 3 (decode) was lost: signal 9 (Killed); it was started anew "
             "1 time in 10 min, now the job goes on without it\n");
}

/* Time is over. */
static void test_gives_up(void)
{
    char text[1024];
    bed_report_t lives[4];
    bed_script_t script = script_of(1500 * BED_MS);
    for (int i = 1; i < BED_LIVES; i++)
        script.lives[i] = (bed_life_t){.code = AKIN_SUPERVISOR_ROUTER_AWAY};
    /* At 0, 1 and 2 s. */
    CU_ASSERT_EQUAL(bed_run(&script, lives, 4, text, sizeof(text)), 0);
    CU_ASSERT_EQUAL(lives[3].number, 3);
    CU_ASSERT_STRING_EQUAL(
        text,
        LOST "rank 3 (decode) does not reach the router: is a link cut? It "
             "tries for 1.5 s\n"
             "rank 3 (decode) has not reached the router in 1.5 s; the job "
             "goes on without it\n");
    script.terms.reach_timeout_ns = 0;
    CU_ASSERT_EQUAL(bed_run(&script, lives, 2, text, sizeof(text)), 0);
}

/* A job that is told to end does not wait for a link. */
static void test_told_to_end(void)
{
    char text[1024];
    bed_script_t script = script_of(60 * AKIN_NS_PER_S);
    for (int i = 1; i < BED_LIVES; i++)
        script.lives[i] = (bed_life_t){.code = AKIN_SUPERVISOR_ROUTER_AWAY};
    bed_t bed = bed_start(&script);
    for (uint32_t i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(bed_next(&bed).number, i);
    poll(NULL, 0, 100);
    kill(bed.pid, SIGTERM);
    CU_ASSERT_EQUAL(bed_end(&bed, text, sizeof(text)), 0);
}

/* To a first life the code means nothing. */
static void test_first_life(void)
{
    char text[1024];
    bed_report_t life;
    bed_script_t script = script_of(60 * AKIN_NS_PER_S);
    script.lives[0] = (bed_life_t){.code = AKIN_SUPERVISOR_ROUTER_AWAY};
    CU_ASSERT_EQUAL(bed_run(&script, &life, 1, text, sizeof(text)),
                    AKIN_SUPERVISOR_ROUTER_AWAY);
}

static const runner_test_t tests[] = {
    {"the router is reached again", test_returns},
    {"it is not, in time", test_gives_up},
    {"told to end", test_told_to_end},
    {"a first life", test_first_life},
};
RUNNER_MAIN("supervisor away", tests)
