/* Plan short: why workers do not fit on the nodes and what would help. */
#include "launch/plan_nodes.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_NODES = 65536 };

/* Whether a job would fit on n_nodes nodes; those beyond the ones there are
 * would be like the last. */
static akin_status_t try(const akin_job_t *job, const akini_plan_room_t *room,
                         uint32_t n_nodes)
{
    uint32_t *ranks = calloc(n_nodes, sizeof(*ranks));
    uint32_t *node_of = calloc(akin_job_n_ranks(job), sizeof(*node_of));
    akin_status_t status = AKIN_ERR_NOMEM;
    if (ranks != NULL && node_of != NULL) {
        for (uint32_t i = 0; i < n_nodes; i++)
            ranks[i] = room->ranks[i < room->n_nodes ? i : room->n_nodes - 1];
        /* A lone first node has given a core to the router. */
        if (job->n_gpus == 0 && room->n_nodes == 1)
            for (uint32_t i = 1; i < n_nodes; i++)
                ranks[i]++;
        const akini_plan_room_t more = {n_nodes, ranks, 0};
        status = akini_plan_spread(job, &more, node_of);
    }
    free(ranks);
    free(node_of);
    return status;
}

/* The least number of nodes that would do; 0: none. */
static akin_status_t find_nodes(const akin_job_t *job,
                                const akini_plan_room_t *room,
                                uint32_t *n_nodes_p)
{
    uint32_t low = room->n_nodes; /* too few */
    uint32_t high = low + akin_job_n_ranks(job);
    *n_nodes_p = 0;
    if (high < low || high > MAX_NODES)
        high = MAX_NODES;
    akin_status_t status = high > low ? try(job, room, high) : AKIN_ERR_FULL;
    if (status != AKIN_OK)
        return status == AKIN_ERR_FULL ? AKIN_OK : status;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        status = try(job, room, middle);
        if (status == AKIN_OK)
            high = middle;
        else if (status == AKIN_ERR_FULL)
            low = middle;
        else
            return status;
    }
    *n_nodes_p = high;
    return AKIN_OK;
}

/* The greatest number of decode workers that would do; 0: not even one. */
static akin_status_t find_decode(const akin_job_t *job,
                                 const akini_plan_room_t *room,
                                 uint32_t *n_decode_p)
{
    uint32_t low = 0, high = job->n_decode; /* too many */
    while (high - low > 1) {
        akin_job_t fewer = *job;
        fewer.n_decode = low + (high - low) / 2;
        const akin_status_t status = try(&fewer, room, room->n_nodes);
        if (status == AKIN_OK)
            low = fewer.n_decode;
        else if (status == AKIN_ERR_FULL)
            high = fewer.n_decode;
        else
            return status;
    }
    /* The search never asks for one. */
    if (low == 0 && job->n_decode > 1) {
        akin_job_t one = *job;
        one.n_decode = 1;
        const akin_status_t status = try(&one, room, room->n_nodes);
        if (status != AKIN_OK && status != AKIN_ERR_FULL)
            return status;
        low = status == AKIN_OK;
    }
    *n_decode_p = low;
    return AKIN_OK;
}

/* "raise cluster.nodes to 5, or lower roles.decode to 6" */
static void print_advice(uint32_t n_nodes, uint32_t n_decode, int has_gpus,
                         char *text, size_t room)
{
    char more[64] = "", fewer[64] = "";
    if (n_nodes > 0)
        (void)snprintf(more, sizeof(more), "raise cluster.nodes to %u",
                       n_nodes);
    if (n_decode > 0)
        (void)snprintf(fewer, sizeof(fewer), "%slower roles.decode to %u",
                       n_nodes == 0 ? ""
                       : has_gpus   ? ", or "
                                    : ", ",
                       n_decode);
    (void)snprintf(
        text, room, "%s%s%s%s", more, fewer,
        n_nodes == 0 && n_decode == 0 ? (has_gpus ? "lower roles.ep" : "") : "",
        has_gpus ? ""
        : n_nodes == 0 && n_decode == 0
            ? "set launch.oversubscribe = true"
            : ", or set launch.oversubscribe = true");
}

akin_status_t akini_plan_short(const akin_job_t *job,
                               const akini_plan_room_t *room, akin_error_t *err)
{
    const int has_gpus = job->n_gpus > 0;
    const uint32_t n_ranks = akin_job_n_ranks(job) - (has_gpus ? 1 : 0);
    const char *who = has_gpus ? "workers" : "job";
    const char *what = has_gpus ? "GPUs" : "cores";
    uint32_t n_nodes = 0, n_decode = 0;
    uint64_t there = has_gpus ? 0 : 1;
    for (uint32_t i = 0; i < room->n_nodes; i++)
        there += room->ranks[i];
    akin_status_t status = find_nodes(job, room, &n_nodes);
    if (status == AKIN_OK)
        status = find_decode(job, room, &n_decode);
    if (status != AKIN_OK)
        return status;
    char advice[192], nodes[96];
    print_advice(n_nodes, n_decode, has_gpus, advice, sizeof(advice));
    if (room->n_nodes == 1)
        (void)snprintf(nodes, sizeof(nodes), "1 node has %llu",
                       (unsigned long long)there);
    else if (has_gpus)
        (void)snprintf(nodes, sizeof(nodes), "%u nodes have %u each, %llu",
                       room->n_nodes, job->n_gpus, (unsigned long long)there);
    else
        (void)snprintf(nodes, sizeof(nodes), "%u nodes have %llu",
                       room->n_nodes, (unsigned long long)there);
    if (n_ranks > there)
        return akin_error_set(
            err, AKIN_ERR_CONFIG, "the %s%s %u ranks need %u %s, but %s: %s",
            who, has_gpus ? "'" : "'s", n_ranks, n_ranks, what, nodes, advice);
    return akin_error_set(
        err, AKIN_ERR_CONFIG,
        "the %s%s %u ranks do not fit, though %s %s: a worker's ranks (%u of "
        "prefill, %u of decode) stay on one node, and what these leave is too "
        "small: %s",
        who, has_gpus ? "'" : "'s", n_ranks, nodes, what, job->prefill_ep,
        job->ep, advice);
}
