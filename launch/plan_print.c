/* Plan print: libsmartcols draws the table. */
#include "launch/plan_print.h"

#include <libsmartcols.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int akin_plan_title(const akin_job_t *job, const akin_plan_t *plan, char *text,
                    size_t bytes)
{
    char spare[48] = "";
    if (job->n_spare > 0)
        (void)snprintf(spare, sizeof(spare), ", %u x %u spare", job->n_spare,
                       job->ep);
    return snprintf(text, bytes,
                    "%u ranks on %u %s: 1 router, %u x %u prefill, %u x %u "
                    "decode%s",
                    plan->n_ranks, plan->n_nodes,
                    plan->n_nodes == 1 ? "node" : "nodes", job->n_prefill,
                    job->prefill_ep, job->n_decode, job->ep, spare);
}

static const struct {
    const char *name;
    int is_number;
} columns[] = {{"RANK", 1}, {"ROLE", 0},    {"WORKER", 1},
               {"NODE", 0}, {"GPU", 1},     {"NIC", 0},
               {"NUMA", 1}, {"THREADS", 1}, {"CORES", 0}};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void set_text(struct libscols_line *line, size_t column,
                     const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void set_text(struct libscols_line *line, size_t column,
                     const char *format, ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    (void)scols_line_set_data(line, column, text);
}

static void fill_line(struct libscols_line *line, const akin_plan_t *plan,
                      const akin_plan_rank_t *r)
{
    char *cores = NULL;
    set_text(line, 0, "%u", r->rank);
    set_text(line, 1, "%s", akin_job_role_name(r->role));
    if (r->role == AKIN_JOB_ROUTER)
        set_text(line, 2, "-");
    else
        set_text(line, 2, "%u", r->worker);
    if (plan->hosts != NULL)
        set_text(line, 3, "%s", plan->hosts[r->node]);
    else
        set_text(line, 3, "node %u", r->node);
    if (r->gpu == AKIN_PLAN_NO_GPU)
        set_text(line, 4, "-");
    else
        set_text(line, 4, "%u", r->gpu);
    set_text(line, 5, "%s", r->nic[0] != '\0' ? r->nic : "-");
    set_text(line, 6, "%u", r->numa);
    set_text(line, 7, "%u", r->n_cores);
    if (hwloc_bitmap_list_asprintf(&cores, r->cores) >= 0)
        (void)scols_line_set_data(line, 8, cores);
    free(cores);
}

static void print_nodes(const akin_plan_t *plan, const akin_cluster_t *cluster,
                        FILE *stream)
{
    for (uint32_t n = 0; n < plan->n_nodes; n++) {
        const akin_node_t *node = cluster->nodes[n];
        uint32_t n_ranks = 0, n_gpus = 0, n_cores = 0;
        for (uint32_t r = 0; r < plan->n_ranks; r++) {
            const akin_plan_rank_t *rank = &plan->ranks[r];
            if (rank->node != n)
                continue;
            n_ranks++;
            n_gpus += rank->gpu != AKIN_PLAN_NO_GPU;
            n_cores += rank->n_cores;
        }
        if (plan->hosts != NULL)
            (void)fprintf(stream, "%s", plan->hosts[n]);
        else
            (void)fprintf(stream, "node %u", n);
        (void)fprintf(
            stream,
            ": %u ranks, %u of %u GPUs, %u threads, cores: %u, NICs: %u "
            "(%s)\n",
            n_ranks, n_gpus, node->n_gpus, n_cores, node->n_cores, node->n_nics,
            node->origin);
    }
}

akin_status_t akin_plan_print(const akin_job_t *job, const akin_plan_t *plan,
                              const akin_cluster_t *cluster, FILE *stream)
{
    char title[160];
    struct libscols_table *table = scols_new_table();
    if (table == NULL)
        return AKIN_ERR_NOMEM;
    akin_status_t status = AKIN_OK;
    (void)scols_table_set_stream(table, stream);
    (void)scols_table_set_termforce(table, SCOLS_TERMFORCE_NEVER);
    for (size_t c = 0; c < N_COLUMNS; c++)
        if (scols_table_new_column(table, columns[c].name, 0,
                                   columns[c].is_number ? SCOLS_FL_RIGHT : 0) ==
            NULL)
            status = AKIN_ERR_NOMEM;
    for (uint32_t r = 0; r < plan->n_ranks && status == AKIN_OK; r++) {
        struct libscols_line *line = scols_table_new_line(table, NULL);
        if (line != NULL)
            fill_line(line, plan, &plan->ranks[r]);
        else
            status = AKIN_ERR_NOMEM;
    }
    if (status == AKIN_OK) {
        (void)akin_plan_title(job, plan, title, sizeof(title));
        (void)fprintf(stream, "%s\n\n", title);
        (void)scols_print_table(table);
        (void)fputc('\n', stream);
        print_nodes(plan, cluster, stream);
        if (plan->shares_cores)
            (void)fputs("ranks share cores, as launch.oversubscribe allows\n",
                        stream);
    }
    scols_unref_table(table);
    return status;
}
