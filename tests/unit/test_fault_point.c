/* Fault point: which visit of which process an item is for, what it does, and
 * what the log says of it. Every case is a process of its own. */
#include "base/fault_point.h"

#include "runner.h"

#ifdef AKIN_FAULTS

#include "scratch_file.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>

#define N_THREADS 4
#define N_VISITS 5000

static void must(int ok)
{
    if (!ok)
        _exit(99);
}

static void init(uint32_t rank, uint32_t life, const char *role)
{
    akin_error_t err = {{0}};
    must(akin_fault_points_init(rank, life, role, &err) == AKIN_OK);
}

/* Runs a function in a child with these items and a new log; its wait status.
 * A child that stops is continued. */
static int in_child(const char *items, void (*run)(void), int *n_stops_p)
{
    const char *log = scratch_path("log");
    (void)unlink(log);
    CU_ASSERT_EQUAL(setenv("AKIN_FAULT", items, 1), 0);
    CU_ASSERT_EQUAL(setenv("AKIN_FAULT_LOG", log, 1), 0);
    (void)fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        run();
        _exit(0);
    }
    int status = 0, n_stops = 0;
    while (waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status)) {
        n_stops++;
        CU_ASSERT_EQUAL(kill(child, SIGCONT), 0);
    }
    if (n_stops_p != NULL)
        *n_stops_p = n_stops;
    return status;
}

static void expect_log(const char *expected)
{
    size_t bytes;
    char *text = scratch_read(scratch_path("log"), &bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    CU_ASSERT_STRING_EQUAL(text, expected);
    free(text);
    scratch_remove(scratch_path("log"));
}

static void visit_thrice(void)
{
    AKIN_FAULT_POINT("mid-step", NULL); /* before the start: no visit */
    init(3, 1, "decode");
    AKIN_FAULT_POINT("mid-step", NULL);
    AKIN_FAULT_POINT("before-send", "TOKENS");
    AKIN_FAULT_POINT("mid-step", NULL);
    AKIN_FAULT_POINT("before-send", "TOKENS");
    AKIN_FAULT_POINT("mid-step", NULL);
}

static void test_kill(void)
{
    const int status = in_child("3.1:mid-step#2=kill", visit_thrice, NULL);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    expect_log("3.1 decode mid-step\n3.1 decode before-send.TOKENS\n"
               "3.1 decode mid-step kill\n");
}

static void test_exit(void)
{
    const int status =
        in_child("3.1:before-send.TOKENS#2=exit-42", visit_thrice, NULL);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    expect_log("3.1 decode mid-step\n3.1 decode before-send.TOKENS\n"
               "3.1 decode before-send.TOKENS exit-42\n");
}

static void test_stop(void)
{
    int n_stops;
    const int status = in_child("3.1:mid-step#1=stop,3.1:mid-step#3=stop",
                                visit_thrice, &n_stops);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CU_ASSERT_EQUAL(n_stops, 2);
    expect_log("3.1 decode mid-step\n3.1 decode mid-step stop\n"
               "3.1 decode before-send.TOKENS\n3.1 decode mid-step stop\n");
}

static void visit_and_look(void)
{
    struct timespec begin, end;
    must(clock_gettime(CLOCK_MONOTONIC, &begin) == 0);
    visit_thrice();
    must(clock_gettime(CLOCK_MONOTONIC, &end) == 0);
    const int64_t ns = (int64_t)(end.tv_sec - begin.tv_sec) * 1000000000 +
                       (end.tv_nsec - begin.tv_nsec);
    must(ns >= 30000000);
}

/* Several items at one visit are done in their order. */
static void test_sleep(void)
{
    const int status =
        in_child("3.1:mid-step#2=sleep-20,3.1:mid-step#2=sleep-10,"
                 "3.1:mid-step#3=sleep-0",
                 visit_and_look, NULL);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect_log("3.1 decode mid-step\n3.1 decode before-send.TOKENS\n"
               "3.1 decode mid-step sleep-20\n3.1 decode mid-step sleep-10\n"
               "3.1 decode mid-step sleep-0\n");
}

/* Items of other ranks, other lives, other points and later visits. */
static void test_others(void)
{
    const int status =
        in_child("3:mid-step#1=kill,3.2:mid-step#1=kill,2.1:mid-step#1=kill,"
                 "31.1:mid-step#1=kill,3.1:mid-ste#1=kill,"
                 "3.1:mid-step.#1=kill,3.1:before-send#1=kill,"
                 "3.1:mid-step#4=kill",
                 visit_thrice, NULL);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect_log("3.1 decode mid-step\n3.1 decode before-send.TOKENS\n");
}

static void change_role(void)
{
    init(7, 0, "spare");
    AKIN_FAULT_POINT("after-receive", "ASSUME");
    AKIN_FAULT_POINT("before-send", "STATS");
    akin_fault_points_set_role("prefill");
    AKIN_FAULT_POINT("before-send", "STATS");
    AKIN_FAULT_POINT("before-send", "STATS");
}

/* Visits are counted on; what a role came to is told of every role. */
static void test_role(void)
{
    const int status =
        in_child("7:before-send.STATS#3=exit-1", change_role, NULL);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    expect_log("7.0 spare after-receive.ASSUME\n7.0 spare before-send.STATS\n"
               "7.0 prefill before-send.STATS\n"
               "7.0 prefill before-send.STATS exit-1\n");
}

static void *visit_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < N_VISITS; i++)
        AKIN_FAULT_POINT("mid-step", NULL);
    return NULL;
}

static void visit_from_threads(void)
{
    pthread_t threads[N_THREADS];
    init(0, 0, "router");
    for (int i = 0; i < N_THREADS; i++)
        must(pthread_create(&threads[i], NULL, visit_often, NULL) == 0);
    for (int i = 0; i < N_THREADS; i++)
        must(pthread_join(threads[i], NULL) == 0);
    AKIN_FAULT_POINT("mid-step", NULL);
}

/* No visit of several threads is lost or counted twice. */
static void test_threads(void)
{
    const int status = in_child("0:mid-step#20001=exit-5,"
                                "0:mid-step#20000=sleep-0",
                                visit_from_threads, NULL);
    CU_ASSERT_EQUAL(N_THREADS * N_VISITS, 20000);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    expect_log("0.0 router mid-step\n0.0 router mid-step sleep-0\n"
               "0.0 router mid-step exit-5\n");
}

/* Several processes of a job write to one log. */
static void share_log(void)
{
    pid_t children[N_THREADS];
    for (uint32_t i = 0; i < N_THREADS; i++) {
        children[i] = fork();
        must(children[i] >= 0);
        if (children[i] > 0)
            continue;
        init(i, 0, "decode");
        for (int j = 0; j < 100; j++) {
            char detail[16];
            (void)snprintf(detail, sizeof(detail), "%d", j);
            AKIN_FAULT_POINT("place", detail);
        }
        _exit(0);
    }
    for (uint32_t i = 0; i < N_THREADS; i++) {
        int status;
        must(waitpid(children[i], &status, 0) == children[i] && status == 0);
    }
}

static void test_shared_log(void)
{
    const int status = in_child("", share_log, NULL);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    size_t bytes;
    char *text = scratch_read(scratch_path("log"), &bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    int n[N_THREADS] = {0};
    char *rest = text;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        unsigned rank = N_THREADS;
        int place = -1;
        char end = 0;
        CU_ASSERT_EQUAL(
            sscanf(line, "%u.0 decode place.%d%c", &rank, &place, &end), 2);
        CU_ASSERT_FATAL(rank < N_THREADS);
        CU_ASSERT_EQUAL(place, n[rank]);
        n[rank]++;
    }
    for (int i = 0; i < N_THREADS; i++)
        CU_ASSERT_EQUAL(n[i], 100);
    free(text);
    scratch_remove(scratch_path("log"));
}

static void test_bad_items(void)
{
    static const char *const bad[] = {
        "x",
        "3",
        "3:",
        "3:mid-step",
        "3:mid-step#1",
        "3:mid-step#1=",
        "3:#1=kill",
        "3:mid-step=kill",
        "3:mid-step#0=kill",
        "3:mid-step#=kill",
        "3:mid-step#-1=kill",
        "3:mid-step#1=kil",
        "3:mid-step#1=kills",
        "3:mid-step#1=sleep",
        "3:mid-step#1=sleep-",
        "3:mid-step#1=sleep-1s",
        "3:mid-step#1=sleep-4294967296",
        "3:mid-step#1=exit-256",
        "3:mid-step#99999999999999999999=kill",
        "-3:mid-step#1=kill",
        "4294967296:mid-step#1=kill",
        "3.:mid-step#1=kill",
        "3.x:mid-step#1=kill",
        ".1:mid-step#1=kill",
        " 3:mid-step#1=kill",
        "3:a-name-that-is-longer-than-any-point-of-the-project#1=kill",
        ",3:mid-step#1=kill",
    };
    CU_ASSERT_EQUAL(unsetenv("AKIN_FAULT_LOG"), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[256];
        akin_error_t err = {{0}};
        (void)snprintf(text, sizeof(text), "1:good#1=kill,%s", bad[i]);
        CU_ASSERT_EQUAL(setenv("AKIN_FAULT", text, 1), 0);
        CU_ASSERT_EQUAL(akin_fault_points_init(3, 0, "decode", &err),
                        AKIN_ERR_CONFIG);
        (void)snprintf(text, sizeof(text), "'%.*s'", (int)strcspn(bad[i], ","),
                       bad[i]);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, text));
    }
    /* After a refusal no point does anything. */
    AKIN_FAULT_POINT("good", NULL);
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(setenv("AKIN_FAULT", "", 1), 0);
    CU_ASSERT_EQUAL(setenv("AKIN_FAULT_LOG", "/no/such/folder/log", 1), 0);
    CU_ASSERT_EQUAL(akin_fault_points_init(3, 0, "decode", &err),
                    AKIN_ERR_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/no/such/folder/log"));
}

static const runner_test_t tests[] = {
    {"kill", test_kill},
    {"exit", test_exit},
    {"stop", test_stop},
    {"sleep", test_sleep},
    {"items for others", test_others},
    {"change of role", test_role},
    {"visits of several threads", test_threads},
    {"one log of several processes", test_shared_log},
    {"bad items", test_bad_items},
};

RUNNER_MAIN("fault point", tests)

#else

int main(void)
{
    (void)puts("fault points are not built in (AKIN_FAULTS)");
    return RUNNER_SKIP;
}

#endif
