/* Plan: which rank runs on which node, GPU, NIC and cores. */
#include "launch/plan.h"

#include "launch/plan_nodes.h"
#include "launch/plan_seats.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static akin_status_t alloc_hosts(uint32_t n, akin_plan_t *plan)
{
    plan->hosts = calloc(n, sizeof(*plan->hosts));
    return plan->hosts != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
}

/* cluster.hosts, a name for each node. */
static akin_status_t split_hosts(const char *list, uint32_t n_nodes,
                                 akin_plan_t *plan, akin_error_t *err)
{
    uint32_t n = 0;
    akin_status_t status = alloc_hosts(n_nodes, plan);
    for (const char *c = list; c != NULL && status == AKIN_OK;) {
        const char *comma = strchr(c, ',');
        size_t length = comma != NULL ? (size_t)(comma - c) : strlen(c);
        while (length > 0 && isspace((unsigned char)*c)) {
            c++;
            length--;
        }
        while (length > 0 && isspace((unsigned char)c[length - 1]))
            length--;
        if (length == 0)
            status = akin_error_set(err, AKIN_ERR_CONFIG,
                                    "cluster.hosts: name %u is empty in \"%s\"",
                                    n + 1, list);
        else if (n < n_nodes && (plan->hosts[n] = strndup(c, length)) == NULL)
            status = AKIN_ERR_NOMEM;
        n++;
        c = comma != NULL ? comma + 1 : NULL;
    }
    if (status == AKIN_OK && n != n_nodes)
        status = akin_error_set(err, AKIN_ERR_CONFIG,
                                "cluster.hosts names %u node%s, but "
                                "cluster.nodes is %u: name each of them",
                                n, n == 1 ? "" : "s", n_nodes);
    return status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Ranks of two nodes on one machine would get the same cores and GPUs. Names
 * stand between quotes in scripts. */
static akin_status_t check_hosts(const akin_plan_t *plan, akin_error_t *err)
{
    const char **names = calloc(plan->n_nodes, sizeof(*names));
    akin_status_t status = AKIN_OK;
    if (names == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t i = 0; i < plan->n_nodes && status == AKIN_OK; i++) {
        names[i] = plan->hosts[i];
        if (strpbrk(names[i], " \t\n'\"\\=") != NULL)
            status = akin_error_set(err, AKIN_ERR_CONFIG,
                                    "cluster.hosts: %s is not the name of a "
                                    "host",
                                    names[i]);
    }
    if (status != AKIN_OK) {
        free(names);
        return status;
    }
    qsort(names, plan->n_nodes, sizeof(*names), compare_names);
    for (uint32_t i = 1; i < plan->n_nodes && status == AKIN_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = akin_error_set(err, AKIN_ERR_CONFIG,
                                    "node %s is named twice among the job's "
                                    "%u hosts: name each node once",
                                    names[i], plan->n_nodes);
    free(names);
    return status;
}

static akin_status_t copy_hosts(const akin_plan_params_t *params,
                                akin_plan_t *plan, akin_error_t *err)
{
    const char *list = params->job->hosts;
    akin_status_t status = AKIN_OK;
    if (params->hosts != NULL) {
        status = alloc_hosts(params->n_nodes, plan);
        for (uint32_t i = 0; i < params->n_nodes && status == AKIN_OK; i++)
            if ((plan->hosts[i] = strdup(params->hosts[i])) == NULL)
                status = AKIN_ERR_NOMEM;
    } else if (list != NULL && list[0] != '\0') {
        status = split_hosts(list, params->n_nodes, plan, err);
    }
    if (status == AKIN_OK && plan->hosts != NULL)
        status = check_hosts(plan, err);
    return status;
}

static akin_status_t check_nodes(const akin_plan_params_t *params,
                                 akin_error_t *err)
{
    for (uint32_t i = 0; i < params->n_nodes; i++)
        if (params->nodes[i]->n_cores == 0)
            return akin_error_set(err, AKIN_ERR_CONFIG,
                                  "node %u (%.200s) has no cores", i,
                                  params->nodes[i]->origin);
        else if (params->nodes[i]->n_gpus < params->job->n_gpus)
            return akin_error_set(
                err, AKIN_ERR_CONFIG,
                "node %u (%.200s) has %u GPU%s, but cluster.gpus is %u: lower "
                "it, or give the topology of a node that has them",
                i, params->nodes[i]->origin, params->nodes[i]->n_gpus,
                params->nodes[i]->n_gpus == 1 ? "" : "s", params->job->n_gpus);
    return AKIN_OK;
}

static akin_status_t fill_ranks(const akin_job_t *job, akin_plan_t *plan)
{
    plan->ranks = calloc(plan->n_ranks, sizeof(*plan->ranks));
    if (plan->ranks == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        const akin_job_place_t place = akin_job_place(job, r);
        plan->ranks[r] = (akin_plan_rank_t){.rank = r,
                                            .role = place.role,
                                            .worker = place.worker,
                                            .gpu = AKIN_PLAN_NO_GPU,
                                            .cores = hwloc_bitmap_alloc()};
        if (plan->ranks[r].cores == NULL)
            return AKIN_ERR_NOMEM;
    }
    return AKIN_OK;
}

/* Room for workers' ranks: GPUs, or cores, of which the router needs one. */
static void fill_room(const akin_plan_params_t *params, uint32_t *ranks)
{
    for (uint32_t i = 0; i < params->n_nodes; i++) {
        ranks[i] = params->job->n_gpus;
        if (ranks[i] == 0)
            ranks[i] = params->nodes[i]->n_cores - (i == 0 ? 1 : 0);
    }
}

static akin_status_t place_ranks(const akin_plan_params_t *params,
                                 akin_plan_t *plan, akin_error_t *err)
{
    const akin_job_t *job = params->job;
    uint32_t *ranks = calloc(params->n_nodes, sizeof(*ranks));
    uint32_t *node_of = calloc(plan->n_ranks, sizeof(*node_of));
    akin_status_t status = AKIN_ERR_NOMEM;
    if (ranks != NULL && node_of != NULL) {
        akini_plan_room_t room = {params->n_nodes, ranks, 0};
        fill_room(params, ranks);
        status = akini_plan_spread(job, &room, node_of);
        if (status == AKIN_ERR_FULL && job->n_gpus == 0 && job->oversubscribe) {
            room.is_unbounded = 1;
            if (ranks[0] == 0)
                ranks[0] = 1;
            status = akini_plan_spread(job, &room, node_of);
        }
        if (status == AKIN_ERR_FULL)
            status = akini_plan_short(job, &room, err);
        for (uint32_t r = 0; r < plan->n_ranks && status == AKIN_OK; r++)
            plan->ranks[r].node = node_of[r];
    }
    free(ranks);
    free(node_of);
    return status;
}

akin_status_t akin_plan_make(const akin_plan_params_t *params,
                             akin_plan_t *plan_p, akin_error_t *err)
{
    akin_plan_t plan = {.n_ranks = akin_job_n_ranks(params->job),
                        .n_nodes = params->n_nodes};
    akin_status_t status = AKIN_OK;
    if (params->n_nodes == 0)
        status = akin_error_set(err, AKIN_ERR_CONFIG,
                                "the job has no nodes to run on");
    if (status == AKIN_OK)
        status = copy_hosts(params, &plan, err);
    if (status == AKIN_OK)
        status = check_nodes(params, err);
    if (status == AKIN_OK)
        status = fill_ranks(params->job, &plan);
    if (status == AKIN_OK)
        status = place_ranks(params, &plan, err);
    for (uint32_t i = 0; i < params->n_nodes && status == AKIN_OK; i++)
        status = akini_plan_seat(params, i, &plan, err);
    if (status == AKIN_ERR_NOMEM)
        (void)akin_error_set(err, status, "no memory for the plan");
    if (status != AKIN_OK)
        akin_plan_cleanup(&plan);
    else
        *plan_p = plan;
    return status;
}

void akin_plan_cleanup(akin_plan_t *plan)
{
    for (uint32_t r = 0; plan->ranks != NULL && r < plan->n_ranks; r++)
        hwloc_bitmap_free(plan->ranks[r].cores);
    for (uint32_t i = 0; plan->hosts != NULL && i < plan->n_nodes; i++)
        free(plan->hosts[i]);
    free(plan->ranks);
    free(plan->hosts);
    *plan = (akin_plan_t){0};
}
