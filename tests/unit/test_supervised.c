/* Supervised: what a rank leaves in the memory of both, whenever it dies. */
#include "net/supervised.h"

#include "runner.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static akini_supervised_t supervised;
static unsigned char *large; /* [8 MiB] */

static int set_up(void)
{
    akin_error_t err = {{0}};
    if (large == NULL && (large = malloc(8 * MIB)) == NULL)
        return 0;
    for (size_t i = 0; i < 8 * MIB; i++)
        large[i] = (unsigned char)(i / 1000 + i);
    return akini_supervised_init(&supervised, &err) == AKIN_OK;
}

static akin_supervised_terms_t terms_of(int32_t n)
{
    akin_supervised_terms_t terms = {
        .max_lives = n,
        .window_ns = n,
        .first_delay_ns = n,
        .stall_ns = n,
        .start_timeout_ns = n,
    };
    memset(terms.role, 'a' + n % 26, sizeof(terms.role) - 1);
    return terms;
}

static int same_terms(const akin_supervised_terms_t *a,
                      const akin_supervised_terms_t *b)
{
    return a->max_lives == b->max_lives && a->window_ns == b->window_ns &&
           a->first_delay_ns == b->first_delay_ns &&
           a->stall_ns == b->stall_ns &&
           a->start_timeout_ns == b->start_timeout_ns &&
           strcmp(a->role, b->role) == 0;
}

/* Run `life` in a process of its own, which enters; returns its wait status. */
static int live(void (*life)(void))
{
    akini_supervised_begin(&supervised);
    fflush(stdout);
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        akini_supervised_enter(&supervised);
        life();
        _exit(0);
    }
    int status = 0;
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    return status;
}

static void expect_ticket(const void *ticket, size_t bytes)
{
    void *got = NULL;
    size_t got_bytes = 1;
    CU_ASSERT_EQUAL(akini_supervised_get_ticket(&supervised, &got, &got_bytes),
                    AKIN_OK);
    CU_ASSERT_EQUAL(got_bytes, bytes);
    CU_ASSERT_EQUAL(got == NULL, ticket == NULL);
    if (got != NULL && ticket != NULL && got_bytes == bytes)
        CU_ASSERT_EQUAL(memcmp(got, ticket, bytes), 0);
    free(got);
}

static void expect_armed(int is_armed, int32_t n)
{
    akini_supervised_signs_t signs = {0};
    const akin_supervised_terms_t terms = terms_of(n);
    akini_supervised_look(&supervised, &signs);
    CU_ASSERT_EQUAL(signs.is_armed, is_armed);
    if (n != 0)
        CU_ASSERT(same_terms(&signs.terms, &terms));
}

static void must_arm(int32_t n, const void *ticket, size_t bytes)
{
    const akin_supervised_terms_t terms = terms_of(n);
    if (akin_supervised_arm(&terms, ticket, bytes) != AKIN_OK)
        _exit(50);
}

static void life_arms_small(void)
{
    must_arm(1, "small", 5);
}

static void life_arms_anew(void)
{
    must_arm(2, NULL, 0);
}

static void life_arms_thrice(void)
{
    must_arm(3, large, 8 * MIB);
    must_arm(4, "tiny", 4);
    must_arm(5, large, 3 * MIB + 1);
}

static void life_arms_empty(void)
{
    must_arm(6, "", 0);
}

static void life_does_nothing(void)
{
}

static void test_tickets(void)
{
    CU_ASSERT_FATAL(set_up());
    expect_ticket(NULL, 0);
    CU_ASSERT_EQUAL(live(life_does_nothing), 0);
    expect_armed(0, 0);
    expect_ticket(NULL, 0);
    CU_ASSERT_EQUAL(live(life_arms_small), 0);
    expect_armed(1, 1);
    expect_ticket("small", 5);
    /* Terms and ticket stay for lives that are not armed. */
    CU_ASSERT_EQUAL(live(life_does_nothing), 0);
    expect_armed(0, 1);
    expect_ticket("small", 5);
    CU_ASSERT_EQUAL(live(life_arms_anew), 0);
    expect_armed(1, 2);
    expect_ticket("small", 5);
    CU_ASSERT_EQUAL(live(life_arms_thrice), 0);
    expect_armed(1, 5);
    expect_ticket(large, 3 * MIB + 1);
    CU_ASSERT_EQUAL(live(life_arms_empty), 0);
    expect_armed(1, 6);
    expect_ticket("", 0);
    akini_supervised_cleanup(&supervised);
    akini_supervised_cleanup(&supervised);
}

/* The kernel kills whoever writes a file beyond this, in the middle of it. */
static void limit_files(void)
{
    const struct rlimit limit = {.rlim_cur = MIB, .rlim_max = MIB};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(51);
}

static void life_dies_writing(void)
{
    limit_files();
    must_arm(7, large, 8 * MIB);
}

static void life_arms_and_dies_writing(void)
{
    must_arm(8, "before", 6);
    life_dies_writing();
}

/* A ticket that is half written is not there, and its terms neither. */
static void test_killed_while_writing(void)
{
    CU_ASSERT_FATAL(set_up());
    int status = live(life_dies_writing);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
    expect_armed(0, 0);
    expect_ticket(NULL, 0);
    status = live(life_arms_and_dies_writing);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
    expect_armed(1, 8);
    expect_ticket("before", 6);
    /* And again, over what the dead one left. */
    status = live(life_dies_writing);
    CU_ASSERT(WIFSIGNALED(status));
    expect_armed(0, 8);
    expect_ticket("before", 6);
    CU_ASSERT_EQUAL(live(life_arms_small), 0);
    expect_armed(1, 1);
    expect_ticket("small", 5);
    akini_supervised_cleanup(&supervised);
}

static void life_cannot_write(void)
{
    signal(SIGXFSZ, SIG_IGN);
    limit_files();
    const akin_supervised_terms_t terms = terms_of(9);
    _exit(akin_supervised_arm(&terms, large, 8 * MIB) == AKIN_ERR_IO ? 0 : 52);
}

/* A call that fails changes nothing. */
static void test_cannot_write(void)
{
    CU_ASSERT_FATAL(set_up());
    CU_ASSERT_EQUAL(live(life_arms_small), 0);
    CU_ASSERT_EQUAL(live(life_cannot_write), 0);
    expect_armed(0, 1);
    expect_ticket("small", 5);
    akini_supervised_cleanup(&supervised);
}

static void life_beats_and_ends(void)
{
    akin_supervised_beat();
    akin_supervised_end(1234);
}

static void life_ends_some_day(void)
{
    akin_supervised_end(-7);
}

static void test_beat_and_end(void)
{
    CU_ASSERT_FATAL(set_up());
    akini_supervised_signs_t signs = {0};
    CU_ASSERT_EQUAL(live(life_beats_and_ends), 0);
    akini_supervised_look(&supervised, &signs);
    CU_ASSERT(signs.has_beaten && signs.is_ending && !signs.is_armed);
    CU_ASSERT_EQUAL(signs.end_limit_ns, 1234);
    /* A look takes the beat. */
    akini_supervised_look(&supervised, &signs);
    CU_ASSERT(!signs.has_beaten && signs.is_ending);
    CU_ASSERT_EQUAL(live(life_does_nothing), 0);
    akini_supervised_look(&supervised, &signs);
    CU_ASSERT(!signs.has_beaten && !signs.is_ending);
    CU_ASSERT_EQUAL(live(life_ends_some_day), 0);
    akini_supervised_look(&supervised, &signs);
    CU_ASSERT(signs.is_ending && signs.end_limit_ns == 0);
    /* To be armed is a sign of life. */
    CU_ASSERT_EQUAL(live(life_arms_small), 0);
    akini_supervised_look(&supervised, &signs);
    CU_ASSERT(signs.has_beaten && signs.is_armed);
    akini_supervised_cleanup(&supervised);
}

#define N_CHANGES 40000

static void life_changes_its_terms(void)
{
    for (int32_t n = 1; n <= N_CHANGES; n++)
        must_arm(n, NULL, 0);
}

/* Whoever looks while the terms change sees old or new ones, never some of
 * both. */
static void test_changing_terms(void)
{
    CU_ASSERT_FATAL(set_up());
    akini_supervised_begin(&supervised);
    fflush(stdout);
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        akini_supervised_enter(&supervised);
        life_changes_its_terms();
        _exit(0);
    }
    int status = 1;
    int32_t n = 0;
    int n_wrong = 0, is_over;
    akini_supervised_signs_t signs = {0};
    do {
        is_over = waitpid(pid, &status, WNOHANG) == pid;
        akini_supervised_look(&supervised, &signs);
        const akin_supervised_terms_t terms = terms_of(signs.terms.max_lives);
        n_wrong += signs.terms.max_lives < n;
        n_wrong +=
            signs.terms.max_lives > 0 && !same_terms(&signs.terms, &terms);
        n = signs.terms.max_lives;
    } while (!is_over);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_EQUAL(n_wrong, 0);
    CU_ASSERT_EQUAL(n, N_CHANGES);
    akini_supervised_cleanup(&supervised);
}

/* Without a supervisor nothing happens. */
static void test_alone(void)
{
    const akin_supervised_terms_t terms = terms_of(1);
    CU_ASSERT_EQUAL(akin_supervised_arm(&terms, "x", 1), AKIN_OK);
    akin_supervised_beat();
    akin_supervised_end(1);
    free(large);
    large = NULL;
}

static const runner_test_t tests[] = {
    {"tickets and terms", test_tickets},
    {"killed while it writes the ticket", test_killed_while_writing},
    {"a ticket that cannot be written", test_cannot_write},
    {"beats and ends", test_beat_and_end},
    {"terms that change under the look", test_changing_terms},
    {"without a supervisor", test_alone},
};
RUNNER_MAIN("supervised", tests)
