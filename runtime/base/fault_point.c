/* The points of this process: how often it came to each, and the actions that
 * wait there. */
#include "base/fault_point.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* More names than the project has: a process comes to a part of them. */
#define MAX_POINTS 256
#define MAX_NAME 48
/* "sleep-" and a number, or a shorter one. */
#define MAX_ACTION 24

typedef enum action {
    ACTION_KILL,
    ACTION_STOP,
    ACTION_SLEEP,
    ACTION_EXIT
} action_t;

typedef struct item {
    uint32_t rank;
    uint32_t life;
    char point[MAX_NAME];
    uint64_t number; /* of the visit, from 1 */
    action_t action;
    uint32_t value; /* milliseconds or exit code */
    char text[MAX_ACTION];
} item_t;

typedef struct point {
    char name[MAX_NAME];
    uint64_t n_visits;
    const char *logged_role; /* under which the first visit was logged */
} point_t;

/* Items do not change after the start; the lock is for the rest. */
static struct {
    atomic_int is_on;
    pthread_mutex_t lock;
    uint32_t rank;
    uint32_t life;
    const char *role;
    int log;
    item_t *items;
    size_t n_items;
    point_t points[MAX_POINTS];
    size_t n_points;
} faults = {.lock = PTHREAD_MUTEX_INITIALIZER, .log = -1};

/* Reads a decimal number and moves on; whether there was one up to `most`. */
static int take_number(const char **at, uint64_t most, uint64_t *value_p)
{
    const char *s = *at;
    uint64_t value = 0;
    for (; *s >= '0' && *s <= '9'; s++) {
        const uint64_t digit = (uint64_t)(*s - '0');
        if (digit > most || value > (most - digit) / 10)
            return 0;
        value = value * 10 + digit;
    }
    if (s == *at)
        return 0;
    *at = s;
    *value_p = value;
    return 1;
}

static int take_char(const char **at, char c)
{
    if (**at != c)
        return 0;
    (*at)++;
    return 1;
}

static int read_action(const char *text, item_t *item)
{
    static const struct {
        const char *name;
        action_t action;
        uint64_t most; /* of its number; 0: it has none */
    } actions[] = {{"kill", ACTION_KILL, 0},
                   {"stop", ACTION_STOP, 0},
                   {"sleep-", ACTION_SLEEP, UINT32_MAX},
                   {"exit-", ACTION_EXIT, 255}};
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        const size_t n = strlen(actions[i].name);
        if (strncmp(text, actions[i].name, n) != 0)
            continue;
        const char *end = text + n;
        uint64_t value = 0;
        if (actions[i].most > 0 && !take_number(&end, actions[i].most, &value))
            return 0;
        item->action = actions[i].action;
        item->value = (uint32_t)value;
        (void)snprintf(item->text, sizeof(item->text), "%s", text);
        return *end == '\0';
    }
    return 0;
}

/* RANK[.LIFE]:POINT#N=ACTION */
static int read_item(const char *text, item_t *item)
{
    uint64_t rank, life = 0;
    if (!take_number(&text, UINT32_MAX, &rank))
        return 0;
    if (take_char(&text, '.') && !take_number(&text, UINT32_MAX, &life))
        return 0;
    if (!take_char(&text, ':'))
        return 0;
    const size_t n = strcspn(text, "#");
    if (n == 0 || n >= sizeof(item->point))
        return 0;
    memcpy(item->point, text, n);
    item->point[n] = '\0';
    text += n;
    item->rank = (uint32_t)rank;
    item->life = (uint32_t)life;
    return take_char(&text, '#') &&
           take_number(&text, UINT64_MAX, &item->number) && item->number > 0 &&
           take_char(&text, '=') && read_action(text, item);
}

/* Reads all items and keeps those of this process. */
static akin_status_t read_items(const char *spec, akin_error_t *err)
{
    while (*spec != '\0') {
        const size_t n = strcspn(spec, ",");
        char text[2 * MAX_NAME + MAX_ACTION];
        item_t item;
        (void)snprintf(text, sizeof(text), "%.*s", (int)(n < 200 ? n : 200),
                       spec);
        if (n >= sizeof(text) || !read_item(text, &item))
            return akin_error_set(
                err, AKIN_ERR_CONFIG,
                "AKIN_FAULT: '%s' is not RANK[.LIFE]:POINT#N=ACTION with an "
                "ACTION of kill, stop, sleep-MS, exit-CODE and N >= 1",
                text);
        if (item.rank == faults.rank && item.life == faults.life) {
            item_t *items =
                realloc(faults.items, (faults.n_items + 1) * sizeof(*items));
            if (items == NULL)
                return akin_error_set(err, AKIN_ERR_NOMEM,
                                      "AKIN_FAULT: out of memory");
            items[faults.n_items++] = item;
            faults.items = items;
        }
        spec += n + (spec[n] == ',');
    }
    return AKIN_OK;
}

static akin_status_t open_log(const char *path, akin_error_t *err)
{
    if (path == NULL || *path == '\0')
        return AKIN_OK;
    faults.log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (faults.log < 0)
        return akin_error_set(err, AKIN_ERR_CONFIG, "AKIN_FAULT_LOG: %s: %s",
                              path, strerror(errno));
    return AKIN_OK;
}

static void reset(void)
{
    atomic_store(&faults.is_on, 0);
    free(faults.items);
    faults.items = NULL;
    faults.n_items = 0;
    faults.n_points = 0;
    if (faults.log >= 0)
        (void)close(faults.log);
    faults.log = -1;
}

akin_status_t akin_fault_points_init(uint32_t rank, uint32_t life,
                                     const char *role, akin_error_t *err)
{
    reset();
    faults.rank = rank;
    faults.life = life;
    faults.role = role;
    const char *spec = getenv("AKIN_FAULT");
    akin_status_t status = read_items(spec != NULL ? spec : "", err);
    if (status == AKIN_OK)
        status = open_log(getenv("AKIN_FAULT_LOG"), err);
    if (status != AKIN_OK)
        reset();
    else
        atomic_store(&faults.is_on, faults.n_items > 0 || faults.log >= 0);
    return status;
}

void akin_fault_points_set_role(const char *role)
{
    (void)pthread_mutex_lock(&faults.lock);
    faults.role = role;
    (void)pthread_mutex_unlock(&faults.lock);
}

/* A line leaves in one write, so that those of several processes do not mix,
 * and before an action that nothing comes after. */
static void write_log(const char *role, const char *point, const char *action)
{
    char line[MAX_NAME + MAX_ACTION + 64];
    const int n =
        snprintf(line, sizeof(line), "%u.%u %.32s %s%s%s\n", faults.rank,
                 faults.life, role, point, *action != '\0' ? " " : "", action);
    if (faults.log >= 0 && write(faults.log, line, (size_t)n) != n)
        abort();
}

static point_t *find_point(const char *name)
{
    for (size_t i = 0; i < faults.n_points; i++)
        if (strcmp(faults.points[i].name, name) == 0)
            return &faults.points[i];
    /* A visit that is not counted would let a test pass for nothing. */
    if (faults.n_points == MAX_POINTS)
        abort();
    point_t *point = &faults.points[faults.n_points++];
    *point = (point_t){{0}, 0, NULL};
    (void)snprintf(point->name, sizeof(point->name), "%s", name);
    return point;
}

static void act(const item_t *item)
{
    struct timespec left = {
        .tv_sec = (time_t)(item->value / 1000),
        .tv_nsec = (long)(item->value % 1000) * 1000000L,
    };
    switch (item->action) {
    case ACTION_KILL:
        (void)kill(getpid(), SIGKILL);
        for (;;)
            (void)pause();
    case ACTION_STOP:
        (void)kill(getpid(), SIGSTOP);
        break;
    case ACTION_SLEEP:
        while (nanosleep(&left, &left) != 0 && errno == EINTR)
            continue;
        break;
    case ACTION_EXIT:
        _exit((int)item->value);
    }
}

void akin_fault_point(const char *place, const char *detail)
{
    if (!atomic_load_explicit(&faults.is_on, memory_order_acquire))
        return;
    char name[MAX_NAME];
    (void)snprintf(name, sizeof(name), "%s%s%s", place,
                   detail != NULL ? "." : "", detail != NULL ? detail : "");
    (void)pthread_mutex_lock(&faults.lock);
    point_t *point = find_point(name);
    const uint64_t number = ++point->n_visits;
    const char *role = faults.role;
    if (point->logged_role != role) {
        point->logged_role = role;
        write_log(role, name, "");
    }
    (void)pthread_mutex_unlock(&faults.lock);
    for (size_t i = 0; i < faults.n_items; i++) {
        const item_t *item = &faults.items[i];
        if (item->number == number && strcmp(item->point, name) == 0) {
            write_log(role, name, item->text);
            act(item);
        }
    }
}
