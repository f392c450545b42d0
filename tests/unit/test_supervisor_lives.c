/* Supervisor: lives of a rank that was armed, and what they inherit. */
#include "supervisor_bed.h"

#define MINUTE (60 * AKIN_NS_PER_S)
#define MIB ((size_t)1 << 20)

#define LOST "rank 3 (decode) was lost: signal 9 (Killed); "

static bed_script_t script_of(int32_t max_lives, int64_t first_delay_ns)
{
    return (bed_script_t){
        .terms = {.max_lives = max_lives,
                  .window_ns = 10 * MINUTE,
                  .first_delay_ns = first_delay_ns,
                  .role = "decode"},
        .ticket = "ticket of rank 3",
        .ticket_bytes = 16,
    };
}

/* kill -9: the next life is there, with what the first one left, and the
 * launcher hears nothing. */
static void test_next_life(void)
{
    char text[1024];
    bed_script_t script = script_of(5, AKIN_NS_PER_S);
    script.lives[0] = (bed_life_t){.arms = 1, .waits = 1};
    script.lives[1] = (bed_life_t){.arms = 1};
    bed_t bed = bed_start(&script);
    bed_report_t first = bed_next(&bed);
    CU_ASSERT_EQUAL(first.number, 0);
    CU_ASSERT(!first.has_ticket && !first.input_ends);
    kill(first.pid, SIGKILL);
    bed_report_t second = bed_next(&bed);
    CU_ASSERT_EQUAL(second.number, 1);
    CU_ASSERT_EQUAL(second.is_last, 0);
    CU_ASSERT_EQUAL(second.delay_ns, 0);
    CU_ASSERT(second.pid != first.pid);
    CU_ASSERT_EQUAL(second.ticket_bytes, 16);
    CU_ASSERT_EQUAL(second.ticket_sum, bed_sum("ticket of rank 3", 16));
    CU_ASSERT(second.input_ends);
    CU_ASSERT_EQUAL(second.n_siblings, 1);
    CU_ASSERT_EQUAL(second.n_fds, first.n_fds);
    CU_ASSERT_EQUAL(bed_end(&bed, text, sizeof(text)), 0);
    CU_ASSERT_STRING_EQUAL(text, LOST "it is started anew\n");
}

/* Two lives in the window, then one that only tells of it. */
static void test_budget(void)
{
    char text[1024];
    bed_report_t lives[4];
    bed_script_t script = script_of(2, AKIN_NS_PER_S);
    for (int i = 0; i < BED_LIVES; i++)
        script.lives[i] = (bed_life_t){.arms = 1, .signal_number = SIGKILL};
    script.lives[3] = (bed_life_t){.code = 0};
    CU_ASSERT_EQUAL(bed_run(&script, lives, 4, text, sizeof(text)), 0);
    static const int64_t delays[] = {0, 0, AKIN_NS_PER_S, 0};
    for (uint32_t i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(lives[i].number, i);
        CU_ASSERT_EQUAL(lives[i].is_last, i == 3);
        CU_ASSERT_EQUAL(lives[i].delay_ns, delays[i]);
        CU_ASSERT_EQUAL(lives[i].has_ticket, i > 0);
    }
    CU_ASSERT_STRING_EQUAL(text, LOST
                           "it is started anew\n" LOST
                           "it is started anew in 1.0 s\n" LOST
                           "it was started anew 2 times in 10 min, now the job "
                           "goes on without it\n");
}

/* Lives that the window has left behind do not count. */
static void test_window(void)
{
    char text[1024];
    bed_report_t lives[4];
    bed_script_t script = script_of(1, AKIN_NS_PER_S);
    script.terms.window_ns = 1;
    for (int i = 0; i < 3; i++)
        script.lives[i] = (bed_life_t){.arms = 1, .signal_number = SIGKILL};
    CU_ASSERT_EQUAL(bed_run(&script, lives, 4, text, sizeof(text)), 0);
    CU_ASSERT(!lives[3].is_last && lives[3].number == 3);
    CU_ASSERT_STRING_EQUAL(text, LOST "it is started anew\n" LOST
                                      "it is started anew\n" LOST
                                      "it is started anew\n");
}

/* No life is to serve: only one that tells of it. */
static void test_none(void)
{
    char text[1024];
    bed_report_t lives[2];
    bed_script_t script = script_of(0, 0);
    script.lives[0] = (bed_life_t){.arms = 1, .code = 9};
    CU_ASSERT_EQUAL(bed_run(&script, lives, 2, text, sizeof(text)), 0);
    CU_ASSERT(lives[1].is_last && lives[1].number == 1);
    CU_ASSERT_EQUAL(lives[1].ticket_sum, bed_sum("ticket of rank 3", 16));
    CU_ASSERT_STRING_EQUAL(text, "rank 3 (decode) was lost: exit code 9; the "
                                 "job goes on without it\n");
    /* Nobody tells of that one, and the supervisor ends all the same. */
    script.lives[1] = (bed_life_t){.signal_number = SIGKILL};
    CU_ASSERT_EQUAL(bed_run(&script, lives, 2, text, sizeof(text)), 0);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(text, "rank 3 (decode): the process that was to report its loss "
                     "was lost, too: signal 9 (Killed)\n"));
}

/* A later life counts as a death whether it was armed or not; the rest that it
 * owed is taken before the next one. */
static void test_killed_again(void)
{
    char text[1024];
    bed_report_t lives[4];
    bed_script_t script = script_of(3, 200 * BED_MS);
    script.lives[0] = (bed_life_t){.arms = 1, .signal_number = SIGKILL};
    script.lives[1] = (bed_life_t){.signal_number = SIGKILL};
    script.lives[2] = (bed_life_t){.code = 4};
    int64_t begin_ns = akin_clock_now_ns();
    CU_ASSERT_EQUAL(bed_run(&script, lives, 4, text, sizeof(text)), 0);
    CU_ASSERT(akin_clock_now_ns() - begin_ns >= 200 * BED_MS);
    static const int64_t delays[] = {0, 0, 200 * BED_MS, 400 * BED_MS};
    for (uint32_t i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(lives[i].number, i);
        CU_ASSERT_EQUAL(lives[i].delay_ns, delays[i]);
        CU_ASSERT_EQUAL(lives[i].is_last, 0);
    }
    /* The third one is owed what is left of the second one's rest. */
    static const char begin[] =
        LOST "it is started anew\n" LOST "it is started anew in 0.2 s\n"
             "rank 3 (decode) was lost: exit code 4; it is started anew in ";
    CU_ASSERT_EQUAL_FATAL(strncmp(text, begin, sizeof(begin) - 1), 0);
    double seconds = strtod(text + sizeof(begin) - 1, NULL);
    CU_ASSERT(seconds > 0.399 && seconds < 0.601);
}

/* SIGTERM while the rest is taken: there is no rank, and none follows. */
static void test_over_in_between(void)
{
    char text[1024];
    bed_script_t script = script_of(5, 30 * AKIN_NS_PER_S);
    script.lives[0] = (bed_life_t){.arms = 1, .signal_number = SIGKILL};
    script.lives[1] = (bed_life_t){.arms = 1, .signal_number = SIGKILL};
    script.lives[2] = (bed_life_t){.code = 1};
    bed_t bed = bed_start(&script);
    for (int i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(bed_next(&bed).number, (uint32_t)i);
    /* The third one's rest is 8 s. */
    poll(NULL, 0, 100);
    kill(bed.pid, SIGUSR1);
    kill(bed.pid, SIGTERM);
    int64_t begin_ns = akin_clock_now_ns();
    CU_ASSERT_EQUAL(bed_end(&bed, text, sizeof(text)), 0);
    CU_ASSERT(akin_clock_now_ns() - begin_ns < 5 * AKIN_NS_PER_S);
}

/* A router that is gone, and an end in order: nothing follows, nothing is
 * said. */
static void test_ends(void)
{
    char text[1024];
    bed_report_t lives[2];
    bed_script_t script = script_of(5, 0);
    script.lives[0] =
        (bed_life_t){.arms = 1, .code = AKIN_SUPERVISOR_ROUTER_GONE};
    CU_ASSERT_EQUAL(bed_run(&script, lives, 1, text, sizeof(text)), 0);
    CU_ASSERT_STRING_EQUAL(text, "");
    script.lives[0].code = 0;
    CU_ASSERT_EQUAL(bed_run(&script, lives, 1, text, sizeof(text)), 0);
    CU_ASSERT_STRING_EQUAL(text, "");
    /* A life that finds it gone before it is armed. */
    script.lives[0] = (bed_life_t){.arms = 1, .signal_number = SIGKILL};
    script.lives[1] = (bed_life_t){.code = AKIN_SUPERVISOR_ROUTER_GONE};
    CU_ASSERT_EQUAL(bed_run(&script, lives, 2, text, sizeof(text)), 0);
    CU_ASSERT_STRING_EQUAL(text, LOST "it is started anew\n");
    /* One that could not be reached before may only seem to be gone. */
    script.terms.reach_timeout_ns = 60 * AKIN_NS_PER_S;
    script.lives[1].code = AKIN_SUPERVISOR_ROUTER_AWAY;
    script.lives[2] = (bed_life_t){.code = AKIN_SUPERVISOR_ROUTER_GONE};
    script.lives[3] = (bed_life_t){.arms = 1};
    bed_report_t many[4];
    CU_ASSERT_EQUAL(bed_run(&script, many, 4, text, sizeof(text)), 0);
    CU_ASSERT_EQUAL(many[3].number, 3);
    /* The rank had begun to end. */
    script.lives[0].ends = 1;
    CU_ASSERT_EQUAL(bed_run(&script, lives, 1, text, sizeof(text)), 0);
    CU_ASSERT_STRING_EQUAL(text, "rank 3 (decode) was lost while it ended: "
                                 "signal 9 (Killed)\n");
}

static void test_large_ticket(void)
{
    char text[1024];
    bed_report_t lives[3];
    bed_script_t script = script_of(5, 0);
    unsigned char *ticket = malloc(8 * MIB);
    CU_ASSERT_PTR_NOT_NULL_FATAL(ticket);
    for (size_t i = 0; i < 8 * MIB; i++)
        ticket[i] = (unsigned char)(i * 7 + i / 251);
    script.ticket = ticket;
    script.ticket_bytes = 8 * MIB;
    script.lives[0] = (bed_life_t){.arms = 1, .signal_number = SIGKILL};
    script.lives[1] = (bed_life_t){.arms = 1, .signal_number = SIGKILL};
    CU_ASSERT_EQUAL(bed_run(&script, lives, 3, text, sizeof(text)), 0);
    for (int i = 1; i < 3; i++) {
        CU_ASSERT_EQUAL(lives[i].ticket_bytes, 8 * MIB);
        CU_ASSERT_EQUAL(lives[i].ticket_sum, bed_sum(ticket, 8 * MIB));
    }
    free(ticket);
}

/* What a life leaves open or unreaped would show after twenty of them. */
static void test_twenty_lives(void)
{
    char text[4096];
    bed_report_t lives[22];
    bed_script_t script = script_of(20, 0);
    for (int i = 0; i < BED_LIVES; i++)
        script.lives[i] = (bed_life_t){.arms = 1, .signal_number = SIGKILL};
    CU_ASSERT_EQUAL(bed_run(&script, lives, 22, text, sizeof(text)), 0);
    for (uint32_t i = 0; i < 22; i++) {
        CU_ASSERT_EQUAL(lives[i].number, i);
        CU_ASSERT_EQUAL(lives[i].is_last, i == 21);
        CU_ASSERT_EQUAL(lives[i].n_fds, lives[0].n_fds);
        CU_ASSERT_EQUAL(lives[i].n_siblings, 1);
    }
}

static const runner_test_t tests[] = {
    {"another life follows a kill", test_next_life},
    {"the last life only tells of the loss", test_budget},
    {"the window slides", test_window},
    {"no lives to serve", test_none},
    {"later lives die before they are armed", test_killed_again},
    {"told to end between two lives", test_over_in_between},
    {"ends that nothing follows", test_ends},
    {"a ticket of 8 MiB", test_large_ticket},
    {"nothing adds up over twenty lives", test_twenty_lives},
};
RUNNER_MAIN("supervisor lives", tests)
