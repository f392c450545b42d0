/* Supervisor bed: a supervisor in a process of its own, whose rank does life
 * by life what a script says and reports each of them. */
#ifndef AKIN_TESTS_UNIT_SUPERVISOR_BED_H
#define AKIN_TESTS_UNIT_SUPERVISOR_BED_H

#include "net/supervisor.h"

#include "base/clock.h"
#include "runner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BED_LIMIT_MS 20000
#define BED_MS AKIN_NS_PER_MS

/** What a life does, in this order. */
typedef struct bed_life {
    int arms;
    int pauses_ms;
    int ends; /* akin_supervised_end(end_limit_ns) */
    int64_t end_limit_ns;
    int signal_number; /* kills itself by it; 0: none */
    int waits;         /* for a signal, 60 s at most */
    int beats;         /* as it waits: every 5 ms, from another thread */
    int code;          /* exit code */
} bed_life_t;

#define BED_LIVES 6

typedef struct bed_script {
    akin_supervised_terms_t terms;
    const void *ticket;
    size_t ticket_bytes;
    int pass_exit_code;
    int64_t start_timeout_ns;
    bed_life_t lives[BED_LIVES]; /* the last one is that of all after it */
} bed_script_t;

/** What a life saw. */
typedef struct bed_report {
    pid_t pid;
    uint32_t number;
    int is_last;
    int64_t delay_ns;
    int has_ticket;
    size_t ticket_bytes;
    uint64_t ticket_sum;
    int n_fds;      /* open files */
    int n_siblings; /* children of the supervisor, itself among them */
    int input_ends; /* standard input is at its end */
} bed_report_t;

typedef struct bed {
    pid_t pid;
    int from_rank; /* reports; a byte for each signal */
    int messages;  /* standard error */
} bed_t;

static int bed_to_test;

static inline uint64_t bed_sum(const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes; i++)
        sum = sum * 31 + p[i];
    return sum;
}

static inline int bed_n_fds(void)
{
    int n = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder != NULL && readdir(folder) != NULL)
        n++;
    if (folder != NULL)
        closedir(folder);
    return n;
}

static inline int bed_n_siblings(void)
{
    char path[64], line[1024] = "";
    int n = 0;
    snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", (long)getppid(),
             (long)getppid());
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 1; /* a kernel without it */
    if (fgets(line, sizeof(line), file) != NULL)
        for (char *p = line; strtol(p, &p, 10) > 0;)
            n++;
    fclose(file);
    return n;
}

static inline void bed_on_signal(int number)
{
    char byte = number == SIGTERM ? 'T' : 'U';
    ssize_t n = write(bed_to_test, &byte, 1);
    (void)n;
    if (number == SIGTERM)
        _exit(7);
}

static inline void *bed_beat(void *arg)
{
    (void)arg;
    for (;;) {
        akin_supervised_beat();
        poll(NULL, 0, 5);
    }
    return NULL;
}

static inline int bed_rank_main(void *arg, const akin_supervisor_life_t *life)
{
    const bed_script_t *script = arg;
    const bed_life_t *plan =
        &script->lives[life->number < BED_LIVES ? life->number : BED_LIVES - 1];
    if (plan->waits) {
        /* No merging: each arrival writes its byte. */
        signal(SIGUSR1, bed_on_signal);
        signal(SIGTERM, bed_on_signal);
    }
    if (plan->arms &&
        akin_supervised_arm(&script->terms,
                            life->number == 0 ? script->ticket : NULL,
                            script->ticket_bytes) != AKIN_OK)
        return 90;
    if (plan->pauses_ms > 0)
        poll(NULL, 0, plan->pauses_ms);
    if (plan->ends)
        akin_supervised_end(plan->end_limit_ns);
    char byte;
    bed_report_t report;
    memset(&report, 0, sizeof(report));
    report.pid = getpid();
    report.number = life->number;
    report.is_last = life->is_last;
    report.delay_ns = life->delay_ns;
    report.has_ticket = life->ticket != NULL;
    report.ticket_bytes = life->ticket_bytes;
    report.ticket_sum = bed_sum(life->ticket, life->ticket_bytes);
    report.n_fds = bed_n_fds();
    report.n_siblings = bed_n_siblings();
    report.input_ends = read(STDIN_FILENO, &byte, 1) == 0;
    pthread_t thread;
    if (plan->beats && pthread_create(&thread, NULL, bed_beat, NULL) != 0)
        return 91;
    ssize_t n = write(bed_to_test, &report, sizeof(report));
    (void)n;
    if (plan->signal_number != 0)
        raise(plan->signal_number);
    for (int i = 0; plan->waits && i < 600; i++)
        poll(NULL, 0, 100);
    return plan->code;
}

/** A supervisor in a process group of its own, as launchers start it. */
static inline bed_t bed_start(bed_script_t *script)
{
    int rank_fds[2], error_fds[2], input_fds[2];
    CU_ASSERT_EQUAL_FATAL(pipe2(rank_fds, O_CLOEXEC), 0);
    CU_ASSERT_EQUAL_FATAL(pipe2(error_fds, O_CLOEXEC), 0);
    CU_ASSERT_EQUAL_FATAL(pipe2(input_fds, O_CLOEXEC), 0);
    CU_ASSERT_EQUAL_FATAL(write(input_fds[1], "input", 5), 5);
    fflush(stdout);
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        setpgid(0, 0);
        bed_to_test = rank_fds[1];
        dup2(input_fds[0], STDIN_FILENO);
        dup2(error_fds[1], STDERR_FILENO);
        const akin_supervisor_params_t params = {
            .rank_main = bed_rank_main,
            .arg = script,
            .rank = 3,
            .role = "worker",
            .pass_exit_code = script->pass_exit_code,
            .start_timeout_ns = script->start_timeout_ns,
        };
        int n_fds = bed_n_fds();
        int code = akin_supervisor_run(&params);
        /* Nothing is left behind: no child to wait for, no file. */
        if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
            code = 99;
        if (bed_n_fds() != n_fds)
            code = 98;
        _exit(code);
    }
    close(rank_fds[1]);
    close(error_fds[1]);
    close(input_fds[0]);
    close(input_fds[1]);
    return (bed_t){
        .pid = pid, .from_rank = rank_fds[0], .messages = error_fds[0]};
}

static inline int bed_readable(int fd)
{
    struct pollfd event = {.fd = fd, .events = POLLIN};
    return poll(&event, 1, BED_LIMIT_MS) == 1;
}

/** The next life; all zero if none came. */
static inline bed_report_t bed_next(const bed_t *bed)
{
    bed_report_t report;
    memset(&report, 0, sizeof(report));
    CU_ASSERT_FATAL(bed_readable(bed->from_rank));
    if (read(bed->from_rank, &report, sizeof(report)) != sizeof(report))
        memset(&report, 0, sizeof(report));
    return report;
}

/** Bytes until the pipe ends, at most size - 1. */
static inline size_t bed_drain(int fd, char *text, size_t size)
{
    size_t n = 0;
    ssize_t got = 1;
    while (n + 1 < size && got > 0 && bed_readable(fd)) {
        got = read(fd, text + n, size - 1 - n);
        if (got > 0)
            n += (size_t)got;
    }
    text[n] = '\0';
    close(fd);
    return n;
}

/** Exit code of the supervisor, or minus its signal; `text` gets its lines,
 * each from "rank 3 (" on. Nobody speaks any more. */
static inline int bed_end(const bed_t *bed, char *text, size_t size)
{
    int status = 0;
    char raw[4096];
    bed_drain(bed->messages, raw, sizeof(raw));
    while (waitpid(bed->pid, &status, 0) < 0 && errno == EINTR)
        ;
    text[0] = '\0';
    size_t used = 0;
    char *left;
    for (char *line = strtok_r(raw, "\n", &left); line != NULL;
         line = strtok_r(NULL, "\n", &left)) {
        const char *body = strstr(line, "rank 3 (");
        int n = snprintf(text + used, size - used, "%s\n",
                         body != NULL ? body : line);
        used += n > 0 && (size_t)n < size - used ? (size_t)n : 0;
    }
    char rest[16];
    CU_ASSERT_EQUAL(bed_drain(bed->from_rank, rest, sizeof(rest)), 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/** As a whole, for scripts that end by themselves; `reports` get the first
 * n_reports lives, and no other came. */
static inline int bed_run(bed_script_t *script, bed_report_t *reports,
                          size_t n_reports, char *text, size_t size)
{
    bed_t bed = bed_start(script);
    for (size_t i = 0; i < n_reports; i++)
        reports[i] = bed_next(&bed);
    return bed_end(&bed, text, size);
}

#endif
