/* The process that the launcher started: forks the rank and outlives it. */
#include "net/supervisor.h"

#include "base/clock.h"
#include "base/log.h"
#include "net/leftover.h"
#include "net/life_watch.h"
#include "net/respawn_policy.h"
#include "net/supervised.h"
#include "net/supervisor_line.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int forwarded[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

/* A launcher that is killed says nothing, so that it is looked after. */
#define LAUNCHER_LOOK_NS (5 * AKIN_NS_PER_S)
/* Between lives that do not reach their router. */
#define AWAY_NS AKIN_NS_PER_S
/* A link that comes back refuses at first what it will lead to. */
#define GONE_LIVES 5
/* A later life that starts takes some steps before it beats: stall_ns each. */
#define START_STALLS 3

typedef struct supervisor {
    const akin_supervisor_params_t *params;
    pid_t own;
    pid_t launcher; /* 0: gone */
    pid_t rank;     /* 0: none */
    int own_group;  /* whether the rank has a process group of its own */
    int is_over;    /* told to end, or the launcher is gone: no life follows */
    sigset_t watched;
    sigset_t mask; /* before */
    akini_supervised_t supervised;
    akini_supervised_signs_t signs;
    akini_respawn_policy_t policy;
    akini_life_watch_t watch;    /* of starts and ends */
    akini_life_watch_t silence;  /* between beats */
    akin_supervisor_life_t life; /* the latest; its ticket is the rank's */
    int64_t forked_ns;
    time_t forked_at; /* the same, by the time of day */
    int64_t next_ns;  /* when the next one may begin */
    int64_t away_ns;  /* since when lives do not reach the router; 0: they do */
    int n_gone;       /* lives since then that have found no router there */
    int is_killed;    /* by the supervisor, which has said so */
} supervisor_t;

/* Standard input belongs to the first life: what it had read is gone. */
static void empty_input(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd > STDIN_FILENO) {
        (void)dup2(fd, STDIN_FILENO);
        (void)close(fd);
    } else if (fd == STDIN_FILENO) {
        (void)fcntl(fd, F_SETFD, 0);
    }
}

/* Runs in the rank; does not return. */
static void rank_run(supervisor_t *s)
{
    const akin_supervisor_params_t *params = s->params;
    /* The rank must not outlive its supervisor, which may be gone already. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != s->own)
        _exit(1);
    if (s->own_group)
        (void)setpgid(0, 0);
    void *ticket = NULL;
    if (s->life.number > 0) {
        empty_input();
        akin_status_t status = akini_supervised_get_ticket(
            &s->supervised, &ticket, &s->life.ticket_bytes);
        if (status != AKIN_OK) {
            AKIN_LOG(NET, ERROR,
                     "rank %d: what its first process left cannot be read: %s",
                     params->rank, akin_status_string(status));
            _exit(1);
        }
        s->life.ticket = ticket;
    }
    akini_supervised_enter(&s->supervised);
    if (params->set_signals != NULL)
        params->set_signals(params->arg);
    (void)sigprocmask(SIG_SETMASK, &s->mask, NULL);
    int code = params->rank_main(params->arg, &s->life);
    free(ticket);
    akini_respawn_policy_cleanup(&s->policy);
    exit(code);
}

/* Non-zero: a life has begun, the one that s->life says. */
static int rank_start(supervisor_t *s)
{
    akini_supervised_begin(&s->supervised);
    akini_supervised_look(&s->supervised, &s->signs);
    s->is_killed = 0;
    s->forked_ns = akin_clock_now_ns();
    s->forked_at = time(NULL);
    akini_life_watch_begin(&s->watch, s->forked_ns);
    akini_life_watch_begin(&s->silence, s->forked_ns);
    /* Or both would write what is still buffered. */
    (void)fflush(NULL);
    s->rank = fork();
    if (s->rank == 0)
        rank_run(s);
    if (s->rank > 0)
        return 1;
    s->rank = 0;
    return 0;
}

/* Wait for a signal, `wait_ns` at most, and pass it on. */
static void attend(supervisor_t *s, int64_t wait_ns)
{
    if (s->launcher != 0 && wait_ns > LAUNCHER_LOOK_NS)
        wait_ns = LAUNCHER_LOOK_NS;
    const struct timespec wait = {
        .tv_sec = (time_t)(wait_ns / AKIN_NS_PER_S),
        .tv_nsec = (long)(wait_ns % AKIN_NS_PER_S),
    };
    siginfo_t info;
    int number =
        sigtimedwait(&s->watched, &info, wait_ns < INT64_MAX ? &wait : NULL);
    /* PR_SET_PDEATHSIG would follow the thread of the launcher that forked,
     * which may end long before. */
    if (s->launcher != 0 && getppid() != s->launcher) {
        s->launcher = 0;
        s->is_over = 1;
        if (s->rank != 0)
            (void)kill(s->rank, SIGTERM);
    }
    if (number <= 0 || number == SIGCHLD)
        return;
    if (number == SIGINT || number == SIGTERM)
        s->is_over = 1;
    /* A terminal's signal has reached a rank in the same group. */
    if (s->rank != 0 && (s->own_group || info.si_code != SI_KERNEL))
        (void)kill(s->rank, number);
}

static int64_t start_limit(const supervisor_t *s)
{
    if (s->life.number == 0)
        return s->params->start_timeout_ns;
    int64_t limit_ns = s->signs.terms.start_timeout_ns;
    if (s->life.is_last &&
        (limit_ns <= 0 || limit_ns > AKIN_SUPERVISOR_LAST_LIMIT_NS))
        return AKIN_SUPERVISOR_LAST_LIMIT_NS;
    if (limit_ns <= 0 || limit_ns > INT64_MAX - s->life.delay_ns)
        return 0;
    return limit_ns + s->life.delay_ns;
}

static const char *role_of(const supervisor_t *s)
{
    if (s->signs.terms.role[0] != '\0')
        return s->signs.terms.role;
    return s->params->role != NULL ? s->params->role : "?";
}

/* Between two beats; 0: none. The first life starts inside MPI, without. */
static int64_t silence_limit(const supervisor_t *s)
{
    const int64_t stall_ns = s->signs.terms.stall_ns;
    if (s->signs.is_ending || s->life.is_last)
        return 0;
    if (s->signs.is_armed)
        return stall_ns;
    if (s->life.number == 0 || stall_ns > INT64_MAX / START_STALLS)
        return 0;
    return START_STALLS * stall_ns;
}

static void rank_kill(supervisor_t *s, const akini_life_look_t *at)
{
    if (s->is_killed)
        return;
    s->is_killed = 1;
    (void)kill(s->rank, SIGKILL);
    akini_supervisor_line_killed(&(akini_supervisor_line_t){
        .rank = s->params->rank,
        .role = role_of(s),
        .phase = at->phase,
        .is_last = s->life.is_last,
        .limit_ns = at->limit_ns,
    });
}

/* Look at the rank; kill it if a limit is over. Returns ns until the next
 * look. */
static int64_t look(supervisor_t *s)
{
    akini_supervised_look(&s->supervised, &s->signs);
    akini_life_look_t at = {
        .phase = AKINI_LIFE_STARTS,
        .limit_ns = start_limit(s),
        .now_ns = akin_clock_now_ns(),
    };
    if (s->signs.is_ending) {
        at.phase = AKINI_LIFE_ENDS;
        at.limit_ns = s->signs.end_limit_ns;
    } else if (s->signs.is_armed && !s->life.is_last) {
        at.limit_ns = 0;
    }
    const akini_life_look_t silence = {
        .phase = AKINI_LIFE_SERVES,
        .limit_ns = silence_limit(s),
        .has_beaten = s->signs.has_beaten,
        .now_ns = at.now_ns,
    };
    int64_t next_ns, silence_next_ns;
    if (akini_life_watch_look(&s->watch, &at, &next_ns))
        rank_kill(s, &at);
    if (akini_life_watch_look(&s->silence, &silence, &silence_next_ns))
        rank_kill(s, &silence);
    return next_ns < silence_next_ns ? next_ns : silence_next_ns;
}

/* Until the rank has ended; returns its wait status. */
static int attend_rank(supervisor_t *s)
{
    for (;;) {
        attend(s, look(s));
        int wait_status;
        if (waitpid(s->rank, &wait_status, WNOHANG) != s->rank)
            continue;
        /* What it had no time to remove itself. */
        if (WIFSIGNALED(wait_status))
            (void)akini_leftover_remove(s->rank, s->forked_at);
        s->rank = 0;
        /* What it told between the look and its end. */
        akini_supervised_look(&s->supervised, &s->signs);
        return wait_status;
    }
}

/* A life has not reached its router. Non-zero: another one tries. */
static int try_again(supervisor_t *s, const akini_supervisor_line_t *line)
{
    const int64_t now_ns = akin_clock_now_ns();
    const int64_t limit_ns = s->signs.terms.reach_timeout_ns;
    const int is_first = s->away_ns == 0;
    if (is_first) {
        s->away_ns = now_ns;
        s->n_gone = 0;
    }
    const int goes_on = now_ns - s->away_ns < limit_ns;
    if (!s->is_over && (is_first || !goes_on))
        akini_supervisor_line_away(line, goes_on);
    if (s->is_over || !goes_on)
        return 0;
    s->life.number++;
    s->next_ns = now_ns + AWAY_NS;
    return 1;
}

/* What follows the end of a rank. Non-zero: the life that s->life says; zero:
 * none, and `code` is the supervisor's. */
static int follow(supervisor_t *s, int wait_status, int *code_p)
{
    const akini_supervised_signs_t *signs = &s->signs;
    int code = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status)
                                        : WEXITSTATUS(wait_status);
    akini_supervisor_line_t line = {
        .rank = s->params->rank,
        .role = role_of(s),
        .wait_status = wait_status,
        .window_ns = signs->terms.window_ns,
    };
    const int is_armed = signs->is_armed || s->life.number > 0;
    if (s->params->pass_exit_code || !is_armed || signs->terms.max_lives < 0) {
        if (WIFSIGNALED(wait_status) && !s->is_killed)
            akini_supervisor_line_lost(&line, s->params->pass_exit_code
                                                  ? AKINI_LOST_ROUTER
                                              : is_armed ? AKINI_LOST_WITH_MPI
                                                         : AKINI_LOST_EARLY);
        *code_p = code;
        return 0;
    }
    *code_p = 0;
    const int is_gone =
        WIFEXITED(wait_status) && code == AKIN_SUPERVISOR_ROUTER_GONE;
    if (code == 0 || (is_gone && (s->away_ns == 0 || signs->is_armed ||
                                  ++s->n_gone > GONE_LIVES)))
        return 0;
    if (signs->is_armed)
        s->away_ns = 0;
    if (is_gone ||
        (WIFEXITED(wait_status) && code == AKIN_SUPERVISOR_ROUTER_AWAY &&
         s->life.number > 0)) {
        line.limit_ns = signs->terms.reach_timeout_ns;
        return try_again(s, &line);
    }
    if (s->life.is_last || signs->is_ending || s->is_over) {
        if (!s->is_killed)
            akini_supervisor_line_lost(&line, s->life.is_last ? AKINI_LOST_LAST
                                              : signs->is_ending
                                                  ? AKINI_LOST_AT_END
                                                  : AKINI_LOST_WHEN_OVER);
        return 0;
    }
    int64_t now_ns = akin_clock_now_ns();
    const akini_respawn_step_t step =
        akini_respawn_policy_step(&s->policy, &signs->terms, now_ns);
    /* A life that was lost before it had waited leaves that to its supervisor,
     * or ranks that cannot start would follow one another without a rest. */
    s->next_ns = now_ns;
    if (!signs->is_armed && !step.is_last &&
        s->forked_ns + s->life.delay_ns > now_ns)
        s->next_ns = s->forked_ns + s->life.delay_ns;
    s->life = (akin_supervisor_life_t){
        .number = s->life.number + 1,
        .is_last = step.is_last,
        .delay_ns = step.delay_ns,
    };
    line.delay_ns = s->next_ns - now_ns + step.delay_ns;
    line.n_recent = step.n_recent;
    akini_supervisor_line_lost(&line, step.is_last ? AKINI_LOST_FOR_GOOD
                                                   : AKINI_LOST_FOLLOWED);
    return 1;
}

/* Wait, until somebody says that it is over. */
static void pause_until(supervisor_t *s, int64_t until_ns)
{
    for (;;) {
        int64_t left_ns = until_ns - akin_clock_now_ns();
        if (left_ns <= 0 || s->is_over)
            return;
        attend(s, left_ns);
    }
}

/* Life after life; returns the exit code. */
static int supervise(supervisor_t *s)
{
    if (!rank_start(s)) {
        AKIN_LOG(NET, ERROR, "rank %d (%s): fork: %s", s->params->rank,
                 role_of(s), strerror(errno));
        return 1;
    }
    for (;;) {
        int code;
        int wait_status = attend_rank(s);
        if (!follow(s, wait_status, &code))
            return code;
        pause_until(s, s->next_ns);
        if (s->is_over)
            return 0;
        if (!rank_start(s)) {
            AKIN_LOG(NET, ERROR,
                     "rank %d (%s) cannot be started anew: fork: %s; the job "
                     "goes on without it",
                     s->params->rank, role_of(s), strerror(errno));
            return 0;
        }
    }
}

int akin_supervisor_run(const akin_supervisor_params_t *params)
{
    supervisor_t s = {
        .params = params,
        .own = getpid(),
        .launcher = getppid(),
        /* Launchers and kill(1) signal a whole process group. In one of its
         * own the rank gets such a signal once, from here. On a terminal it has
         * to stay in the foreground group, or reading would stop it. */
        .own_group = !isatty(STDIN_FILENO),
    };
    akin_error_t err = {{0}};
    if (akini_supervised_init(&s.supervised, &err) != AKIN_OK) {
        AKIN_LOG(NET, ERROR, "rank %d (%s): %s", params->rank, role_of(&s),
                 err.text);
        return 1;
    }
    (void)sigemptyset(&s.watched);
    (void)sigaddset(&s.watched, SIGCHLD);
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
        (void)sigaddset(&s.watched, forwarded[i]);
    /* An inherited SIG_IGN would reap the rank unseen. */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigprocmask(SIG_BLOCK, &s.watched, &s.mask);
    int code = supervise(&s);
    (void)sigprocmask(SIG_SETMASK, &s.mask, NULL);
    akini_respawn_policy_cleanup(&s.policy);
    akini_supervised_cleanup(&s.supervised);
    return code;
}
