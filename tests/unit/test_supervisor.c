/* Supervisor: exit codes, signals, and nobody left behind. */
#include "supervisor_bed.h"

static const akin_supervised_terms_t none = {.max_lives = -1, .role = "decode"};

/* A rank that was not armed: its code is the supervisor's, and it has said why
 * itself. */
static void test_exit_codes(void)
{
    char text[1024];
    bed_report_t report;
    for (int passes = 0; passes < 2; passes++) {
        static const int codes[] = {0, 1, 3, AKIN_SUPERVISOR_ROUTER_GONE, 255};
        for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
            bed_script_t script = {.pass_exit_code = passes,
                                   .lives = {{.code = codes[i]}}};
            CU_ASSERT_EQUAL(bed_run(&script, &report, 1, text, sizeof(text)),
                            codes[i]);
            CU_ASSERT_STRING_EQUAL(text, "");
        }
    }
    CU_ASSERT(report.pid > 0);
    CU_ASSERT_EQUAL(report.number, 0);
    CU_ASSERT(!report.is_last && !report.has_ticket && report.delay_ns == 0);
    CU_ASSERT(!report.input_ends);
}

static void test_killed_early(void)
{
    char text[1024];
    bed_report_t report;
    bed_script_t script = {.lives = {{.signal_number = SIGKILL}}};
    CU_ASSERT_EQUAL(bed_run(&script, &report, 1, text, sizeof(text)), 137);
    CU_ASSERT_STRING_EQUAL(
        text, "rank 3 (worker) was lost: signal 9 (Killed); it did not serve "
              "yet: the job ends\n");
    script.lives[0].signal_number = SIGALRM;
    CU_ASSERT_EQUAL(bed_run(&script, &report, 1, text, sizeof(text)), 142);
}

/* The router: neither arming nor terms give it another life. */
static void test_router(void)
{
    char text[1024];
    bed_report_t report;
    bed_script_t script = {
        .pass_exit_code = 1,
        .terms = {.max_lives = 5, .role = "router"},
        .ticket = "x",
        .ticket_bytes = 1,
        .lives = {{.arms = 1, .signal_number = SIGKILL}},
    };
    CU_ASSERT_EQUAL(bed_run(&script, &report, 1, text, sizeof(text)), 137);
    CU_ASSERT_STRING_EQUAL(text,
                           "rank 3 (router) was lost: signal 9 (Killed)\n");
    script.lives[0] = (bed_life_t){.arms = 1, .code = 3};
    CU_ASSERT_EQUAL(bed_run(&script, &report, 1, text, sizeof(text)), 3);
    CU_ASSERT_STRING_EQUAL(text, "");
}

/* MPI is still up: as if the rank were not armed. */
static void test_no_lives(void)
{
    char text[1024];
    bed_report_t report;
    bed_script_t script = {
        .terms = none,
        .lives = {{.arms = 1, .signal_number = SIGKILL}},
    };
    CU_ASSERT_EQUAL(bed_run(&script, &report, 1, text, sizeof(text)), 137);
    CU_ASSERT_STRING_EQUAL(
        text, "rank 3 (decode) was lost: signal 9 (Killed); the job ends\n");
    script.lives[0] = (bed_life_t){.arms = 1, .code = 3};
    CU_ASSERT_EQUAL(bed_run(&script, &report, 1, text, sizeof(text)), 3);
    CU_ASSERT_STRING_EQUAL(text, "");
}

static void test_signals_once(void)
{
    char text[256];
    bed_script_t script = {.pass_exit_code = 1, .lives = {{.waits = 1}}};
    bed_t bed = bed_start(&script);
    bed_report_t report = bed_next(&bed);
    CU_ASSERT(report.pid > 0 && report.pid != bed.pid);
    /* To the supervisor alone, then to its whole group: one arrival each. */
    char byte = 0;
    kill(bed.pid, SIGUSR1);
    CU_ASSERT(read(bed.from_rank, &byte, 1) == 1 && byte == 'U');
    kill(-bed.pid, SIGUSR1);
    CU_ASSERT(read(bed.from_rank, &byte, 1) == 1 && byte == 'U');
    kill(-bed.pid, SIGTERM);
    CU_ASSERT(read(bed.from_rank, &byte, 1) == 1 && byte == 'T');
    CU_ASSERT_EQUAL(bed_end(&bed, text, sizeof(text)), 7);
    CU_ASSERT_STRING_EQUAL(text, "");
}

static void test_rank_dies_with_supervisor(void)
{
    char text[256];
    bed_script_t script = {.pass_exit_code = 1, .lives = {{.waits = 1}}};
    bed_t bed = bed_start(&script);
    CU_ASSERT(bed_next(&bed).pid > 0);
    kill(bed.pid, SIGKILL);
    /* The pipes end when the rank, their last writer, is gone. */
    CU_ASSERT_EQUAL(bed_end(&bed, text, sizeof(text)), -SIGKILL);
}

/* A SIGTERM that was passed on ends the row of lives, whatever the code. */
static void test_no_life_after_sigterm(void)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    for (int i = 0; i < 2; i++) {
        char text[256], byte = 0;
        bed_script_t script = {
            .terms = {.max_lives = 5, .role = "decode"},
            .lives = {{.arms = 1, .waits = 1}},
        };
        bed_t bed = bed_start(&script);
        CU_ASSERT(bed_next(&bed).pid > 0);
        kill(bed.pid, numbers[i]);
        if (numbers[i] == SIGTERM)
            CU_ASSERT(read(bed.from_rank, &byte, 1) == 1 && byte == 'T');
        CU_ASSERT_EQUAL(bed_end(&bed, text, sizeof(text)), 0);
        CU_ASSERT_STRING_EQUAL(
            text, numbers[i] == SIGTERM
                      ? "rank 3 (decode) was lost: exit code 7; the job ends, "
                        "it is not started anew\n"
                      : "rank 3 (decode) was lost: signal 2 (Interrupt); the "
                        "job ends, it is not started anew\n");
    }
}

/* Other signals do not: the next life gets them. */
static void test_life_after_sigusr1(void)
{
    char text[256], byte = 0;
    bed_script_t script = {
        .terms = {.max_lives = 5, .role = "decode"},
        .lives = {{.arms = 1, .waits = 1}, {.arms = 1, .waits = 1}},
    };
    bed_t bed = bed_start(&script);
    bed_report_t report = bed_next(&bed);
    kill(bed.pid, SIGUSR1);
    CU_ASSERT(read(bed.from_rank, &byte, 1) == 1 && byte == 'U');
    kill(report.pid, SIGKILL);
    report = bed_next(&bed);
    CU_ASSERT_EQUAL(report.number, 1);
    kill(bed.pid, SIGUSR1);
    CU_ASSERT(read(bed.from_rank, &byte, 1) == 1 && byte == 'U');
    kill(bed.pid, SIGTERM);
    CU_ASSERT(read(bed.from_rank, &byte, 1) == 1 && byte == 'T');
    CU_ASSERT_EQUAL(bed_end(&bed, text, sizeof(text)), 0);
}

static const runner_test_t tests[] = {
    {"exit codes of a rank that was not armed", test_exit_codes},
    {"killed before it was armed", test_killed_early},
    {"a router is not started anew", test_router},
    {"terms without lives", test_no_lives},
    {"signals arrive once", test_signals_once},
    {"the rank dies with its supervisor", test_rank_dies_with_supervisor},
    {"no life follows SIGTERM or SIGINT", test_no_life_after_sigterm},
    {"a life follows SIGUSR1", test_life_after_sigusr1},
};
RUNNER_MAIN("supervisor", tests)
