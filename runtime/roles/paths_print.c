/* Paths, print: what KV travels over, from host to host. */
#include "roles/paths.h"

#include <libsmartcols.h>
#include <stdlib.h>
#include <string.h>

#define MATRIX_HOSTS 8
/* Lines about single hosts, where there are too many for a matrix. */
#define EXCEPTIONS 10

/* Hosts that have ranks of a role, and the transports of each two hosts. */
typedef struct grid {
    const akini_paths_t *paths;
    const akin_transports_t *all;
    uint32_t n_rows, n_columns;
    uint32_t *rows;    /* [n_rows] hosts with prefill ranks */
    uint32_t *columns; /* [n_columns] with decode ranks */
    uint8_t *seen;     /* [n_hosts * n_hosts] a bit for each transport */
} grid_t;

/* A rank of a host, which has its name. */
static const char *host_name(const akini_paths_t *paths, uint32_t host)
{
    uint32_t rank = 0;
    while (paths->host_of[rank] != host)
        rank++;
    return paths->hosts[rank].name;
}

static uint32_t collect(const akini_paths_t *paths, akin_job_role_t role,
                        uint32_t *hosts)
{
    uint32_t first, n = 0;
    const uint32_t n_ranks = akini_paths_ranks(paths, role, &first);
    for (uint32_t r = first; r < first + n_ranks; r++) {
        uint32_t i = 0;
        while (i < n && hosts[i] != paths->host_of[r])
            i++;
        if (i == n)
            hosts[n++] = paths->host_of[r];
    }
    return n;
}

static uint8_t bit_of(const akin_transports_t *all, const char *lane)
{
    char name[sizeof(all->transports[0].name)];
    uint32_t i = 0;
    akini_lane_transport(lane, name, sizeof(name));
    while (i + 1 < all->n_transports &&
           strcmp(all->transports[i].name, name) != 0)
        i++;
    return (uint8_t)(1u << i);
}

static void see_pairs(grid_t *g)
{
    const akini_paths_t *paths = g->paths;
    uint32_t first_prefill, first_decode;
    const uint32_t n_prefill =
        akini_paths_ranks(paths, AKIN_JOB_PREFILL, &first_prefill);
    const uint32_t n_decode =
        akini_paths_ranks(paths, AKIN_JOB_DECODE, &first_decode);
    for (uint32_t p = 0; p < n_prefill; p++)
        for (uint32_t d = 0; d < n_decode; d++) {
            const akini_pair_t pair = {first_prefill + p, first_decode + d};
            const size_t at =
                (size_t)paths->host_of[pair.prefill] * paths->n_hosts +
                paths->host_of[pair.decode];
            g->seen[at] |=
                bit_of(g->all, akini_paths_lane(paths, &pair, AKIN_JOB_DECODE));
        }
}

/* "sysv, tcp" */
static void name_set(const akin_transports_t *all, uint8_t set, char *text,
                     size_t size)
{
    size_t n = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < all->n_transports; i++)
        if ((set & 1u << i) != 0 && n < size)
            n += (size_t)snprintf(text + n, size - n, "%s%s", n > 0 ? ", " : "",
                                  all->transports[i].name);
}

static uint8_t seen_at(const grid_t *g, uint32_t row, uint32_t column)
{
    return g
        ->seen[(size_t)g->rows[row] * g->paths->n_hosts + g->columns[column]];
}

static int fill_matrix(const grid_t *g, struct libscols_table *table)
{
    char text[AKIN_TRANSPORTS_MAX * 26];
    int failed =
        scols_table_new_column(table, "prefill \\ decode", 0, 0) == NULL;
    for (uint32_t c = 0; c < g->n_columns; c++)
        failed |= scols_table_new_column(
                      table, host_name(g->paths, g->columns[c]), 0, 0) == NULL;
    for (uint32_t r = 0; r < g->n_rows && !failed; r++) {
        struct libscols_line *line = scols_table_new_line(table, NULL);
        if (line == NULL)
            return 1;
        failed |=
            scols_line_set_data(line, 0, host_name(g->paths, g->rows[r])) != 0;
        for (uint32_t c = 0; c < g->n_columns; c++) {
            name_set(g->all, seen_at(g, r, c), text, sizeof(text));
            failed |= scols_line_set_data(line, c + 1, text) != 0;
        }
    }
    return failed;
}

static akin_status_t print_matrix(const grid_t *g, FILE *file)
{
    struct libscols_table *table = scols_new_table();
    akin_status_t status = AKIN_ERR_NOMEM;
    if (table == NULL)
        return status;
    (void)fprintf(file, "akin: KV over %u hosts:\n", g->paths->n_hosts);
    if (scols_table_set_stream(table, file) == 0 && !fill_matrix(g, table))
        status = scols_print_table(table) == 0 ? AKIN_OK : AKIN_ERR_IO;
    scols_unref_table(table);
    return status;
}

/* What most of the hosts have between them is said once, and then which have
 * something else. */
static void print_exceptions(const grid_t *g, FILE *file)
{
    const akin_transports_t *all = g->all;
    uint32_t usual = 0;
    uint64_t n_others = 0;
    char text[AKIN_TRANSPORTS_MAX * 26];
    for (uint32_t i = 1; i < all->n_transports; i++)
        if (all->transports[i].n_pairs[AKIN_PAIR_BETWEEN] >
            all->transports[usual].n_pairs[AKIN_PAIR_BETWEEN])
            usual = i;
    for (uint32_t r = 0; r < g->n_rows; r++)
        for (uint32_t c = 0; c < g->n_columns; c++) {
            const uint8_t set = seen_at(g, r, c);
            if (g->rows[r] == g->columns[c] || set == 1u << usual)
                continue;
            if (n_others++ >= EXCEPTIONS)
                continue;
            name_set(all, set, text, sizeof(text));
            (void)fprintf(file, "akin:   but %s from %s to %s\n", text,
                          host_name(g->paths, g->rows[r]),
                          host_name(g->paths, g->columns[c]));
        }
    if (n_others > EXCEPTIONS)
        (void)fprintf(file, "akin:   and %llu more\n",
                      (unsigned long long)n_others - EXCEPTIONS);
}

static akin_status_t print_counts(const grid_t *g, FILE *file)
{
    static const char *const places[] = {"on one host", "between hosts"};
    (void)fprintf(file,
                  "akin: KV over %u hosts, pairs of a prefill and a "
                  "decode rank:\n",
                  g->paths->n_hosts);
    for (int place = AKIN_PAIR_PLACES - 1; place >= 0; place--)
        for (uint32_t i = 0; i < g->all->n_transports; i++) {
            const akin_transport_t *t = &g->all->transports[i];
            if (t->n_pairs[place] > 0)
                (void)fprintf(file, "akin:   %llu %s over %s\n",
                              (unsigned long long)t->n_pairs[place],
                              places[place], t->name);
        }
    print_exceptions(g, file);
    return ferror(file) ? AKIN_ERR_IO : AKIN_OK;
}

static akin_status_t print_line(const akin_transports_t *all, FILE *file)
{
    char text[AKIN_TRANSPORTS_MAX * 26];
    name_set(all, (uint8_t)((1u << all->n_transports) - 1), text, sizeof(text));
    return fprintf(file, "akin: KV over %s on one host\n", text) < 0
               ? AKIN_ERR_IO
               : AKIN_OK;
}

akin_status_t akini_paths_print(const akini_paths_t *paths,
                                const akin_transports_t *all, FILE *file)
{
    if (all->n_transports == 0)
        return AKIN_OK;
    if (paths->n_hosts == 1)
        return print_line(all, file);
    grid_t g = {.paths = paths, .all = all};
    akin_status_t status = AKIN_ERR_NOMEM;
    g.rows = calloc(paths->n_hosts, sizeof(*g.rows));
    g.columns = calloc(paths->n_hosts, sizeof(*g.columns));
    g.seen = calloc(paths->n_hosts, paths->n_hosts);
    if (g.rows != NULL && g.columns != NULL && g.seen != NULL) {
        g.n_rows = collect(paths, AKIN_JOB_PREFILL, g.rows);
        g.n_columns = collect(paths, AKIN_JOB_DECODE, g.columns);
        see_pairs(&g);
        status = g.n_rows <= MATRIX_HOSTS && g.n_columns <= MATRIX_HOSTS
                     ? print_matrix(&g, file)
                     : print_counts(&g, file);
    }
    free(g.rows);
    free(g.columns);
    free(g.seen);
    return status;
}
