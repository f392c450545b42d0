/* Progress: rates, the text, and when to show it. */
#include "roles/progress.h"

#include "base/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TERMINAL_NS (AKIN_NS_PER_S / 10)
#define PLAIN_NS (5 * AKIN_NS_PER_S)
#define SMOOTH_S 5.0 /* time constant of the token rate */
#define LINE_BYTES 512
#define DEFAULT_COLUMNS 80
#define MAX_BAR 40
#define MIN_BAR 8

struct akin_progress {
    int fd;
    int terminal;
    akin_progress_counts_t start;
    int64_t start_ns;
    int64_t shown_ns; /* last time; the start at first */
    uint64_t shown_tokens;
    double rate; /* tokens per second; negative: unknown */
};

/* Append to a text that is cut at its size. */
static void add(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(char *text, size_t bytes, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text + used, bytes - used, format, args);
    va_end(args);
}

size_t akin_progress_text(const akin_progress_counts_t *counts,
                          double tokens_per_s, double left_s, char *text,
                          size_t bytes)
{
    if (bytes == 0)
        return 0;
    text[0] = '\0';
    add(text, bytes, "%" PRIu64, counts->done);
    if (counts->total > 0) {
        /* 100 % only when nothing is left. */
        double percent =
            floor(100.0 * (double)counts->done / (double)counts->total);
        if (counts->done < counts->total && percent > 99)
            percent = 99;
        add(text, bytes, "/%" PRIu64 " (%.0f%%)", counts->total,
            fmin(percent, 100));
    } else {
        add(text, bytes, " done");
    }
    if (counts->failed > 0)
        add(text, bytes, ", %" PRIu64 " failed", counts->failed);
    if (counts->running > 0)
        add(text, bytes, ", %" PRIu64 " running", counts->running);
    if (counts->waiting > 0)
        add(text, bytes, ", %" PRIu64 " waiting", counts->waiting);
    if (tokens_per_s >= 0)
        add(text, bytes, ", %.*f tok/s", tokens_per_s < 10 ? 1 : 0,
            tokens_per_s);
    if (left_s >= 0 && left_s < 1e9) {
        int64_t s = (int64_t)ceil(left_s);
        if (s >= 3600)
            add(text, bytes, ", %" PRId64 ":%02d:%02d left", s / 3600,
                (int)(s / 60 % 60), (int)(s % 60));
        else
            add(text, bytes, ", %d:%02d left", (int)(s / 60), (int)(s % 60));
    }
    return strlen(text);
}

akin_status_t akin_progress_create(int fd, const akin_progress_counts_t *counts,
                                   int64_t now_ns, akin_progress_t **progress_p)
{
    *progress_p = NULL;
    akin_progress_t *progress = calloc(1, sizeof(*progress));
    if (progress == NULL)
        return AKIN_ERR_NOMEM;
    const char *term = getenv("TERM");
    progress->fd = fd;
    progress->terminal =
        isatty(fd) && term != NULL && strcmp(term, "dumb") != 0;
    progress->start = *counts;
    progress->start_ns = now_ns;
    progress->shown_ns = now_ns;
    progress->shown_tokens = counts->tokens;
    progress->rate = -1;
    *progress_p = progress;
    return AKIN_OK;
}

static size_t columns(int fd)
{
    struct winsize size = {0};
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return DEFAULT_COLUMNS;
    return size.ws_col < LINE_BYTES / 2 ? size.ws_col : LINE_BYTES / 2;
}

/* The line for a terminal: back to its start, bar, text, clear the rest. */
static void draw(const akin_progress_t *progress,
                 const akin_progress_counts_t *counts, const char *text,
                 char *line)
{
    size_t width = columns(progress->fd) - 1;
    size_t n = strlen(text);
    size_t bar = 0;
    if (counts->total > 0 && n + MIN_BAR + 3 <= width) {
        bar = width - n - 3;
        if (bar > MAX_BAR)
            bar = MAX_BAR;
    }
    char marks[MAX_BAR + 1] = "";
    if (bar > 0) {
        uint64_t done =
            counts->done < counts->total ? counts->done : counts->total;
        size_t full =
            (size_t)((double)done / (double)counts->total * (double)bar);
        memset(marks, '.', bar);
        memset(marks, '#', full);
    }
    (void)snprintf(line, LINE_BYTES, "\r%s%s%s%.*s\x1b[K", bar > 0 ? "[" : "",
                   marks, bar > 0 ? "] " : "", (int)width, text);
}

static void show(akin_progress_t *progress,
                 const akin_progress_counts_t *counts, int64_t now_ns, int last)
{
    double dt = (double)(now_ns - progress->shown_ns) / 1e9;
    if (dt > 0 && counts->tokens >= progress->shown_tokens) {
        double rate = (double)(counts->tokens - progress->shown_tokens) / dt;
        double weight = 1.0 - exp(-dt / SMOOTH_S);
        progress->rate =
            progress->rate < 0
                ? rate
                : progress->rate + weight * (rate - progress->rate);
    }
    progress->shown_ns = now_ns;
    progress->shown_tokens = counts->tokens;

    double run_s = (double)(now_ns - progress->start_ns) / 1e9;
    double rate = progress->rate;
    double left_s = -1;
    if (last && run_s > 0)
        rate = (double)(counts->tokens - progress->start.tokens) / run_s;
    if (!last && counts->total > counts->done &&
        counts->done > progress->start.done)
        left_s = run_s * (double)(counts->total - counts->done) /
                 (double)(counts->done - progress->start.done);
    char text[LINE_BYTES / 2];
    char line[LINE_BYTES];
    (void)akin_progress_text(counts, rate, left_s, text, sizeof(text));
    if (progress->terminal)
        draw(progress, counts, text, line);
    else
        (void)snprintf(line, sizeof(line), "akin: %s", text);
    if (!progress->terminal || last)
        add(line, sizeof(line), "\n");
    ssize_t n = write(progress->fd, line, strlen(line));
    (void)n;
}

void akin_progress_update(akin_progress_t *progress,
                          const akin_progress_counts_t *counts, int64_t now_ns)
{
    if (now_ns - progress->shown_ns >=
        (progress->terminal ? TERMINAL_NS : PLAIN_NS))
        show(progress, counts, now_ns, 0);
}

void akin_progress_finish(akin_progress_t *progress,
                          const akin_progress_counts_t *counts, int64_t now_ns)
{
    if (progress == NULL)
        return;
    show(progress, counts, now_ns, 1);
    free(progress);
}
