/* Supervisor: exit codes, losses, signals, and nobody left behind. */
#include "net/supervisor.h"

#include "base/clock.h"
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct rank {
    int code;          /* exit code */
    int signal_number; /* kills itself by it; 0: none */
    int to_test;       /* pipe: pid, then one byte per SIGUSR1 */
    int waits;         /* until SIGTERM */
} rank_t;

static int signal_pipe;

static void on_signal(int number)
{
    char byte = number == SIGTERM ? 'T' : 'U';
    ssize_t n = write(signal_pipe, &byte, 1);
    (void)n;
    if (number == SIGTERM)
        _exit(7);
}

static int rank_main(void *arg)
{
    const rank_t *rank = arg;
    signal_pipe = rank->to_test;
    if (rank->waits) {
        /* No SA_RESTART and no merging: each arrival writes its byte. */
        signal(SIGUSR1, on_signal);
        signal(SIGTERM, on_signal);
    }
    pid_t pid = getpid();
    ssize_t n = write(rank->to_test, &pid, sizeof(pid));
    (void)n;
    if (rank->signal_number != 0)
        raise(rank->signal_number);
    for (int i = 0; rank->waits && i < 200; i++)
        poll(NULL, 0, 100);
    return rank->code;
}

/* A supervisor in a process group of its own, as launchers start it. */
static pid_t start(rank_t *rank, int pass_exit_code, int *from_rank,
                   int *messages)
{
    int pipe_fds[2], error_fds[2];
    CU_ASSERT_EQUAL_FATAL(pipe2(pipe_fds, O_CLOEXEC), 0);
    CU_ASSERT_EQUAL_FATAL(pipe2(error_fds, O_CLOEXEC), 0);
    rank->to_test = pipe_fds[1];
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        int null = open("/dev/null", O_RDONLY);
        dup2(null, STDIN_FILENO);
        dup2(error_fds[1], STDERR_FILENO);
        const akin_supervisor_params_t params = {
            .rank_main = rank_main,
            .arg = rank,
            .rank = 3,
            .role = "decode",
            .pass_exit_code = pass_exit_code,
        };
        int code = akin_supervisor_run(&params);
        /* The rank was reaped: there is no child to wait for. */
        if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
            code = 99;
        _exit(code);
    }
    close(pipe_fds[1]);
    close(error_fds[1]);
    *from_rank = pipe_fds[0];
    *messages = error_fds[0];
    return pid;
}

static int wait_code(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static pid_t rank_pid(int from_rank)
{
    pid_t pid = 0;
    CU_ASSERT_EQUAL(read(from_rank, &pid, sizeof(pid)), sizeof(pid));
    return pid;
}

/* Bytes until the pipe ends, at most size - 1. */
static size_t drain(int fd, char *text, size_t size)
{
    size_t n = 0;
    ssize_t got;
    while (n + 1 < size && (got = read(fd, text + n, size - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    close(fd);
    return n;
}

static int run(rank_t rank, int pass_exit_code, char *text, size_t size)
{
    int from_rank, messages;
    pid_t pid = start(&rank, pass_exit_code, &from_rank, &messages);
    int code = wait_code(pid);
    rank_pid(from_rank);
    close(from_rank);
    drain(messages, text, size);
    return code;
}

static void test_exit_codes(void)
{
    char text[1024];
    CU_ASSERT_EQUAL(run((rank_t){.code = 0}, 0, text, sizeof(text)), 0);
    CU_ASSERT_STRING_EQUAL(text, "");
    CU_ASSERT_EQUAL(run((rank_t){.code = 3}, 1, text, sizeof(text)), 3);
    CU_ASSERT_STRING_EQUAL(text, "");
    CU_ASSERT_EQUAL(run((rank_t){.code = 3}, 0, text, sizeof(text)), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "rank 3 (decode)"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "exit code 3"));
}

static void test_killed(void)
{
    char text[1024];
    rank_t rank = {.signal_number = SIGKILL};
    CU_ASSERT_EQUAL(run(rank, 0, text, sizeof(text)), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "rank 3 (decode)"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "signal 9"));
    CU_ASSERT_EQUAL(run(rank, 1, text, sizeof(text)), 137);
}

static void test_signals_once(void)
{
    rank_t rank = {.waits = 1};
    int from_rank, messages;
    char text[256];
    pid_t pid = start(&rank, 1, &from_rank, &messages);
    pid_t child = rank_pid(from_rank);
    CU_ASSERT(child > 0 && child != pid);
    /* To the supervisor alone, then to its whole group: one arrival each. */
    char byte = 0;
    kill(pid, SIGUSR1);
    CU_ASSERT(read(from_rank, &byte, 1) == 1 && byte == 'U');
    kill(-pid, SIGUSR1);
    CU_ASSERT(read(from_rank, &byte, 1) == 1 && byte == 'U');
    kill(-pid, SIGTERM);
    CU_ASSERT_EQUAL(wait_code(pid), 7);
    CU_ASSERT_EQUAL(drain(from_rank, text, sizeof(text)), 1);
    CU_ASSERT_STRING_EQUAL(text, "T");
    drain(messages, text, sizeof(text));
}

static void test_rank_dies_with_supervisor(void)
{
    rank_t rank = {.waits = 1};
    int from_rank, messages;
    char text[256];
    pid_t pid = start(&rank, 1, &from_rank, &messages);
    CU_ASSERT(rank_pid(from_rank) > 0);
    kill(pid, SIGKILL);
    CU_ASSERT_EQUAL(wait_code(pid), -SIGKILL);
    /* The pipe ends when the rank, its last writer, is gone. */
    struct pollfd fd = {.fd = from_rank, .events = POLLIN};
    CU_ASSERT_EQUAL(poll(&fd, 1, 10000), 1);
    CU_ASSERT_EQUAL(drain(from_rank, text, sizeof(text)), 0);
    drain(messages, text, sizeof(text));
}

static const runner_test_t tests[] = {
    {"exit codes", test_exit_codes},
    {"killed rank", test_killed},
    {"signals arrive once", test_signals_once},
    {"the rank dies with its supervisor", test_rank_dies_with_supervisor},
};
RUNNER_MAIN("supervisor", tests)
