/* Local group: the ranks of a group as threads, each with an exchange. */
#ifndef AKIN_TESTS_UNIT_LOCAL_GROUP_H
#define AKIN_TESTS_UNIT_LOCAL_GROUP_H

#include "base/clock.h"
#include "ep/exchange_local.h"
#include "ep/group.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define LOCAL_GROUP_MAX 8u
#define LOCAL_GROUP_TIMEOUT_NS (20 * AKIN_NS_PER_S)

typedef struct local_group {
    uint32_t n_ranks;
    akin_ep_local_t *local;
    akin_ep_exchange_t *exchanges[LOCAL_GROUP_MAX];
    akin_ep_group_t *groups[LOCAL_GROUP_MAX];
} local_group_t;

/* A test cannot go on without its group. */
static inline void local_group_need(akin_status_t status,
                                    const akin_error_t *err)
{
    if (status == AKIN_OK)
        return;
    (void)fprintf(stderr, "group: %s: %s\n", akin_status_string(status),
                  err->text);
    exit(2);
}

static inline void local_group_init(local_group_t *g,
                                    const akin_placement_t *placement,
                                    int64_t timeout_ns)
{
    akin_error_t err = {{0}};
    *g = (local_group_t){.n_ranks = placement->n_ranks};
    local_group_need(akin_ep_local_create(g->n_ranks, &g->local), &err);
    for (uint32_t r = 0; r < g->n_ranks; r++) {
        local_group_need(
            akin_ep_exchange_local_create(g->local, r, &g->exchanges[r]), &err);
        const akin_ep_group_params_t params = {.exchange = g->exchanges[r],
                                               .placement = placement,
                                               .timeout_ns = timeout_ns};
        local_group_need(akin_ep_group_create(&params, &g->groups[r], &err),
                         &err);
    }
}

static inline void local_group_cleanup(local_group_t *g)
{
    for (uint32_t r = 0; r < g->n_ranks; r++) {
        akin_ep_group_destroy(g->groups[r]);
        akin_ep_exchange_destroy(g->exchanges[r]);
    }
    akin_ep_local_destroy(g->local);
}

/** Call a function on one thread per rank; args is [n_ranks] of `bytes`. */
static inline void local_group_each(uint32_t n_ranks, void *(*run)(void *),
                                    void *args, size_t bytes)
{
    pthread_t threads[LOCAL_GROUP_MAX];
    for (uint32_t r = 0; r < n_ranks; r++)
        if (pthread_create(&threads[r], NULL, run, (char *)args + r * bytes) !=
            0)
            abort();
    for (uint32_t r = 0; r < n_ranks; r++)
        pthread_join(threads[r], NULL);
}

#endif
