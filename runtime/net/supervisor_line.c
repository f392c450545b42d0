/* Supervisor lines: their words. */
#include "net/supervisor_line.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

typedef struct text {
    char chars[256];
} text_t;

typedef struct span {
    char chars[40];
} span_t;

/* "10 min", "4.0 s" */
static span_t span(int64_t ns)
{
    const int64_t minute_ns = 60 * AKIN_NS_PER_S;
    const int64_t tenth_ns = AKIN_NS_PER_S / 10;
    span_t text;
    if (ns >= 60 * minute_ns && ns % (60 * minute_ns) == 0)
        (void)snprintf(text.chars, sizeof(text.chars), "%lld h",
                       (long long)(ns / (60 * minute_ns)));
    else if (ns >= minute_ns && ns % minute_ns == 0)
        (void)snprintf(text.chars, sizeof(text.chars), "%lld min",
                       (long long)(ns / minute_ns));
    else
        (void)snprintf(text.chars, sizeof(text.chars), "%.*f s",
                       ns < AKIN_NS_PER_S && ns % tenth_ns != 0 ? 3 : 1,
                       (double)ns / 1e9);
    return text;
}

/* "signal 9 (Killed)", "exit code 3" */
static text_t cause(int wait_status)
{
    text_t text;
    if (WIFSIGNALED(wait_status))
        (void)snprintf(text.chars, sizeof(text.chars), "signal %d (%s)",
                       WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
    else
        (void)snprintf(text.chars, sizeof(text.chars), "exit code %d",
                       WEXITSTATUS(wait_status));
    return text;
}

/* What comes after "was lost: signal 9 (Killed)". */
static text_t consequence(const akini_supervisor_line_t *line, akini_lost_t how)
{
    text_t text = {{0}};
    const char *words = "";
    switch (how) {
    case AKINI_LOST_EARLY:
        words = "; it did not serve yet: the job ends";
        break;
    case AKINI_LOST_WITH_MPI:
        words = "; the job ends";
        break;
    case AKINI_LOST_WHEN_OVER:
        words = "; the job ends, it is not started anew";
        break;
    case AKINI_LOST_FOLLOWED:
        if (line->delay_ns > 0)
            (void)snprintf(text.chars, sizeof(text.chars),
                           "; it is started anew in %s",
                           span(line->delay_ns).chars);
        words = "; it is started anew";
        break;
    case AKINI_LOST_FOR_GOOD:
        if (line->n_recent > 0)
            (void)snprintf(
                text.chars, sizeof(text.chars),
                "; it was started anew %u time%s%s%s, now the job goes on "
                "without it",
                (unsigned)line->n_recent, line->n_recent == 1 ? "" : "s",
                line->window_ns > 0 ? " in " : "",
                line->window_ns > 0 ? span(line->window_ns).chars : "");
        words = "; the job goes on without it";
        break;
    case AKINI_LOST_ROUTER:
    case AKINI_LOST_LAST:
    case AKINI_LOST_AT_END:
        break;
    }
    if (text.chars[0] == '\0')
        (void)snprintf(text.chars, sizeof(text.chars), "%s", words);
    return text;
}

void akini_supervisor_line_lost(const akini_supervisor_line_t *line,
                                akini_lost_t how)
{
    const text_t why = cause(line->wait_status);
    if (how == AKINI_LOST_LAST)
        AKIN_LOG(NET, ERROR,
                 "rank %d (%s): the process that was to report its loss was "
                 "lost, too: %s",
                 line->rank, line->role, why.chars);
    else
        AKIN_LOG(NET, ERROR, "rank %d (%s) was lost%s: %s%s", line->rank,
                 line->role, how == AKINI_LOST_AT_END ? " while it ended" : "",
                 why.chars, consequence(line, how).chars);
}

void akini_supervisor_line_killed(const akini_supervisor_line_t *line)
{
    const span_t limit = span(line->limit_ns);
    switch (line->phase) {
    case AKINI_LIFE_STARTS:
        AKIN_LOG(NET, ERROR, "rank %d (%s) did not %s in %s; killed",
                 line->rank, line->role,
                 line->is_last ? "report its loss" : "begin to serve",
                 limit.chars);
        break;
    case AKINI_LIFE_SERVES:
        AKIN_LOG(NET, ERROR,
                 "rank %d (%s) was stopped or hangs: no sign of life for %s; "
                 "killed",
                 line->rank, line->role, limit.chars);
        break;
    case AKINI_LIFE_ENDS:
        AKIN_LOG(NET, ERROR, "rank %d (%s) did not end in %s; killed",
                 line->rank, line->role, limit.chars);
        break;
    }
}

void akini_supervisor_line_away(const akini_supervisor_line_t *line,
                                int goes_on)
{
    const span_t limit = span(line->limit_ns);
    if (goes_on)
        AKIN_LOG(NET, WARN,
                 "rank %d (%s) does not reach the router: is a link cut? It "
                 "tries for %s",
                 line->rank, line->role, limit.chars);
    else
        AKIN_LOG(NET, ERROR,
                 "rank %d (%s) has not reached the router in %s; the job goes "
                 "on without it",
                 line->rank, line->role, limit.chars);
}
