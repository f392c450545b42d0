/* Log: levels by subsystem, one write(2) per line. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 2048
#define CUT_MARK "..."

static const char *const level_names[] = {"error", "warn", "info", "debug",
                                          "trace"};
#define LEVEL_COUNT (sizeof(level_names) / sizeof(level_names[0]))

static const char *const subsystem_names[] = {
#define AKIN_LOG_NAME(name, text) text,
    AKIN_LOG_SUBSYSTEMS(AKIN_LOG_NAME)
#undef AKIN_LOG_NAME
};

/* Static storage starts at zero, which must mean "warn": what is kept is the
 * level's distance from it. */
static atomic_int level_above_warn[AKIN_LOG_SUB_COUNT];

/* Who writes, in words that are each read and written whole, so that no lock
 * can be held by a thread that a fork leaves behind. A line that is written
 * while the identity changes may mix the two. */
#define ROLE_BYTES 16
#define ROLE_WORDS (ROLE_BYTES / sizeof(uint64_t))
static atomic_int rank_inverted; /* ~rank; 0: no rank is printed */
static _Atomic(uint64_t) role_words[ROLE_WORDS];

/* Index of a word of `length` bytes in a list of names, -1 if absent. */
static int name_index(const char *const *names, size_t n, const char *word,
                      size_t length)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(names[i]) == length && memcmp(names[i], word, length) == 0)
            return (int)i;
    return -1;
}

static akin_status_t bad_item(const char *item, size_t length,
                              akin_error_t *err)
{
    char known[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < AKIN_LOG_SUB_COUNT && used < sizeof(known); i++) {
        int n = snprintf(known + used, sizeof(known) - used, "%s%s",
                         i == 0 ? "" : ", ", subsystem_names[i]);
        if (n > 0)
            used += (size_t)n;
    }
    return akin_error_set(
        err, AKIN_ERR_CONFIG,
        "AKIN_LOG: \"%.*s\" is neither a level (error, warn, info, debug, "
        "trace) nor subsystem=level; subsystems: %s",
        (int)(length < 64 ? length : 64), item, known);
}

akin_status_t akin_log_configure(const char *spec, akin_error_t *err)
{
    if (spec == NULL || spec[0] == '\0')
        return AKIN_OK;
    int levels[AKIN_LOG_SUB_COUNT];
    for (int i = 0; i < AKIN_LOG_SUB_COUNT; i++)
        levels[i] = atomic_load(&level_above_warn[i]);
    for (const char *item = spec;;) {
        size_t length = strcspn(item, ",");
        const char *equals = memchr(item, '=', length);
        int first = 0;
        int last = AKIN_LOG_SUB_COUNT - 1;
        const char *word = item;
        if (equals != NULL) {
            first = name_index(subsystem_names, AKIN_LOG_SUB_COUNT, item,
                               (size_t)(equals - item));
            last = first;
            word = equals + 1;
        }
        int level = name_index(level_names, LEVEL_COUNT, word,
                               length - (size_t)(word - item));
        if (first < 0 || level < 0)
            return bad_item(item, length, err);
        for (int i = first; i <= last; i++)
            levels[i] = level - AKIN_LOG_WARN;
        if (item[length] == '\0')
            break;
        item += length + 1;
    }
    for (int i = 0; i < AKIN_LOG_SUB_COUNT; i++)
        atomic_store(&level_above_warn[i], levels[i]);
    return AKIN_OK;
}

void akin_log_identify(int rank, const char *role)
{
    uint64_t words[ROLE_WORDS] = {0};
    if (role != NULL)
        memcpy(words, role, strnlen(role, ROLE_BYTES - 1));
    for (size_t i = 0; i < ROLE_WORDS; i++)
        atomic_store(&role_words[i], words[i]);
    atomic_store(&rank_inverted, rank < 0 ? 0 : ~rank);
}

/* "rank 3 decode ", without what is not known. */
static void identity_format(char *buffer, size_t bytes)
{
    uint64_t words[ROLE_WORDS];
    char role[ROLE_BYTES];
    for (size_t i = 0; i < ROLE_WORDS; i++)
        words[i] = atomic_load(&role_words[i]);
    memcpy(role, words, sizeof(role));
    role[ROLE_BYTES - 1] = '\0';
    int number = atomic_load(&rank_inverted);
    char rank[24] = "";
    if (number != 0)
        (void)snprintf(rank, sizeof(rank), "rank %d ", ~number);
    (void)snprintf(buffer, bytes, "%s%s%s", rank, role,
                   role[0] != '\0' ? " " : "");
}

int akin_log_enabled(akin_log_subsystem_t subsystem, akin_log_level_t level)
{
    return (int)level - AKIN_LOG_WARN <=
           atomic_load_explicit(&level_above_warn[subsystem],
                                memory_order_relaxed);
}

/* A short write or a signal may split a line, a full pipe may drop it; a log
 * never blocks its program for more than the write itself. */
static void write_line(const char *line, size_t length)
{
    while (length > 0) {
        ssize_t n = write(STDERR_FILENO, line, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        line += n;
        length -= (size_t)n;
    }
}

void akin_log_write(akin_log_subsystem_t subsystem, akin_log_level_t level,
                    const char *format, ...)
{
    int errno_kept = errno;
    char line[LINE_BYTES];
    struct timespec now;
    struct tm local;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)localtime_r(&now.tv_sec, &local);
    char identity[48];
    identity_format(identity, sizeof(identity));
    int head = snprintf(
        line, sizeof(line), "%02d:%02d:%02d.%03d %-5s %s%s: ", local.tm_hour,
        local.tm_min, local.tm_sec, (int)(now.tv_nsec / 1000000),
        level_names[level], identity, subsystem_names[subsystem]);
    size_t used = head > 0 ? (size_t)head : 0;
    /* The last byte is kept for the newline. */
    size_t room = sizeof(line) - 1 - used;
    va_list args;
    va_start(args, format);
    int body = vsnprintf(line + used, room, format, args);
    va_end(args);
    size_t length = used;
    if (body > 0 && (size_t)body < room)
        length += (size_t)body;
    else if (body > 0) {
        length += room - 1;
        memcpy(line + length - strlen(CUT_MARK), CUT_MARK, strlen(CUT_MARK));
    }
    /* A call is a line: text of a peer or a file may not forge another. */
    for (size_t i = used; i < length; i++)
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    line[length++] = '\n';
    write_line(line, length);
    errno = errno_kept;
}
