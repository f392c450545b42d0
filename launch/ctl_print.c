/* Ctl print: a line on the job, the table of its workers, what was lost. */
#include "launch/ctl_print.h"

#include "launch/command.h"

#include <errno.h>
#include <jansson.h>
#include <libsmartcols/libsmartcols.h>
#include <stdio.h>
#include <string.h>

static long long number(const json_t *object, const char *key)
{
    return (long long)json_integer_value(json_object_get(object, key));
}

static const char *word(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "?";
}

/* "1", "3-6": ranks of a group are consecutive. */
static void print_ranks(const json_t *ranks, char text[48])
{
    const size_t n = json_array_size(ranks);
    const long long first =
        (long long)json_integer_value(json_array_get(ranks, 0));
    if (n <= 1)
        (void)snprintf(text, 48, "%lld", first);
    else
        (void)snprintf(
            text, 48, "%lld-%lld", first,
            (long long)json_integer_value(json_array_get(ranks, n - 1)));
}

/* "3/32", or "3" without a bound. */
static void print_of(const json_t *object, const char *key, const char *limit,
                     char text[48])
{
    if (json_object_get(object, key) == NULL)
        (void)snprintf(text, 48, "-");
    else if (json_object_get(object, limit) == NULL)
        (void)snprintf(text, 48, "%lld", number(object, key));
    else
        (void)snprintf(text, 48, "%lld/%lld", number(object, key),
                       number(object, limit));
}

static int add_row(struct libscols_table *table, const char *name,
                   const json_t *worker)
{
    char ranks[48], life[48], requests[48], slots[48];
    struct libscols_line *line = scols_table_new_line(table, NULL);
    if (line == NULL)
        return 0;
    print_ranks(json_object_get(worker, "ranks"), ranks);
    (void)snprintf(life, sizeof(life), "%lld", number(worker, "life"));
    print_of(worker, "requests", "max_requests", requests);
    print_of(worker, "slots_reserved", "slots", slots);
    const char *const cells[] = {name, ranks,    word(worker, "state"),
                                 life, requests, slots};
    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
        if (scols_line_set_data(line, i, cells[i]) != 0)
            return 0;
    return 1;
}

static int fill(struct libscols_table *table, const json_t *status)
{
    static const char *const columns[] = {"worker", "ranks",    "state",
                                          "life",   "requests", "KV slots"};
    const json_t *workers = json_object_get(status, "workers");
    const json_t *spares = json_object_get(status, "spares");
    size_t i;
    const json_t *row;
    for (i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        if (scols_table_new_column(table, columns[i], 0,
                                   i < 3 ? 0 : SCOLS_FL_RIGHT) == NULL)
            return 0;
    json_array_foreach(workers, i, row)
    {
        if (!add_row(table, word(row, "name"), row))
            return 0;
    }
    json_array_foreach(spares, i, row)
    {
        const int is_spare = strcmp(word(row, "state"), "waiting") == 0;
        if (!add_row(table, is_spare ? "(spare)" : "(none)", row))
            return 0;
    }
    return 1;
}

static void print_requests(const json_t *status)
{
    const json_t *r = json_object_get(status, "requests");
    (void)printf("requests: %lld", number(r, "done"));
    if (json_is_integer(json_object_get(r, "total")))
        (void)printf(" of %lld", number(r, "total"));
    (void)printf(" done, %lld failed; %lld queued, %lld in prefill, %lld "
                 "wait for decode, %lld in transfer, %lld in decode\n",
                 number(r, "failed"), number(r, "queued"), number(r, "prefill"),
                 number(r, "routed"), number(r, "transfer"),
                 number(r, "decode"));
}

int akin_ctl_print_status(const json_t *status)
{
    struct libscols_table *table = scols_new_table();
    int failed = table == NULL || !fill(table, status);
    errno = 0;
    if (!failed) {
        (void)printf("%s, policy %s, up %.1f s, %s\n", word(status, "model"),
                     word(status, "policy"),
                     json_number_value(json_object_get(status, "uptime_s")),
                     word(status, "state"));
        print_requests(status);
        failed = scols_print_table(table) != 0;
        if (number(status, "deaths") > 0 || number(status, "retries") > 0)
            (void)printf("workers lost %lld, back %lld; requests begun again "
                         "%lld\n",
                         number(status, "deaths"), number(status, "recoveries"),
                         number(status, "retries"));
    }
    scols_unref_table(table);
    if (!failed && fflush(stdout) == 0)
        return AKIN_EXIT_OK;
    (void)fprintf(stderr, "akin: cannot print the status: %s\n",
                  errno != 0 ? strerror(errno) : "out of memory");
    return AKIN_EXIT_FAILED;
}
