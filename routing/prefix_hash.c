/* Prefix hash: ring of consistent hashing with a load gate. */
#include "routing/prefix_hash.h"

#include "routing/blake2b.h"
#include "routing/lanes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORKERS 65536u
#define MAX_NAME_BYTES 255
#define TOKEN_BYTES 4

typedef struct ring_node {
    uint64_t position;
    uint32_t worker;
} ring_node_t;

struct akin_prefix_router {
    uint32_t n_workers;
    size_t n_nodes;
    unsigned shift;      /* of a position: its bucket */
    uint32_t *first;     /* [buckets] first node at or after its begin */
    ring_node_t nodes[]; /* by position, then worker */
};

static int compare_nodes(const void *left, const void *right)
{
    const ring_node_t *a = left;
    const ring_node_t *b = right;
    if (a->position != b->position)
        return a->position < b->position ? -1 : 1;
    return (a->worker > b->worker) - (a->worker < b->worker);
}

/* Positions are hashes, so that about one node lies in each of as many equal
 * parts of the ring: a search reads two lines of memory, not twenty. */
static akin_status_t make_buckets(akin_prefix_router_t *router)
{
    size_t n_buckets = 2;
    router->shift = 63;
    while (n_buckets < router->n_nodes) {
        n_buckets *= 2;
        router->shift--;
    }
    router->first = calloc(n_buckets, sizeof(*router->first));
    if (router->first == NULL)
        return AKIN_ERR_NOMEM;
    size_t node = 0;
    for (size_t b = 0; b < n_buckets; b++) {
        const uint64_t begin = (uint64_t)b << router->shift;
        while (node < router->n_nodes && router->nodes[node].position < begin)
            node++;
        router->first[b] = (uint32_t)node;
    }
    return AKIN_OK;
}

akin_status_t akin_prefix_router_create(uint32_t n_workers,
                                        const char *const *names,
                                        akin_prefix_router_t **router_p,
                                        akin_error_t *err)
{
    *router_p = NULL;
    if (n_workers == 0 || n_workers > MAX_WORKERS)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "prefix ring: %" PRIu32
                              " prefill workers, must be 1 to %u",
                              n_workers, MAX_WORKERS);
    size_t n_nodes = (size_t)n_workers * AKIN_PREFIX_VIRTUAL_NODES;
    akin_prefix_router_t *router =
        malloc(sizeof(*router) + n_nodes * sizeof(router->nodes[0]));
    if (router == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM,
                              "prefix ring: out of memory for %" PRIu32
                              " prefill workers",
                              n_workers);
    router->n_workers = n_workers;
    router->n_nodes = n_nodes;
    router->first = NULL;

    ring_node_t *node = router->nodes;
    for (uint32_t w = 0; w < n_workers; w++) {
        char index[16];
        (void)snprintf(index, sizeof(index), "%" PRIu32, w);
        const char *name = names != NULL ? names[w] : index;
        if (strlen(name) > MAX_NAME_BYTES) {
            free(router);
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "prefix ring: the name of worker %" PRIu32
                                  " is longer than %d bytes",
                                  w, MAX_NAME_BYTES);
        }
        for (int v = 0; v < AKIN_PREFIX_VIRTUAL_NODES; v++, node++) {
            char key[MAX_NAME_BYTES + 16];
            int length = snprintf(key, sizeof(key), "%s#%d", name, v);
            node->position = akini_blake2b_64(key, (size_t)length);
            node->worker = w;
        }
    }
    qsort(router->nodes, n_nodes, sizeof(router->nodes[0]), compare_nodes);
    if (make_buckets(router) != AKIN_OK) {
        free(router);
        return akin_error_set(err, AKIN_ERR_NOMEM,
                              "prefix ring: out of memory for %" PRIu32
                              " prefill workers",
                              n_workers);
    }
    *router_p = router;
    return AKIN_OK;
}

void akin_prefix_router_destroy(akin_prefix_router_t *router)
{
    if (router == NULL)
        return;
    free(router->first);
    free(router);
}

static uint32_t least_loaded(const akin_prefix_router_t *router,
                             const uint32_t *loads, const uint8_t *eligible)
{
    uint32_t best = AKIN_ROUTING_NO_WORKER;
    for (uint32_t w = 0; w < router->n_workers; w++)
        if (eligible[w] != 0 &&
            (best == AKIN_ROUTING_NO_WORKER || loads[w] < loads[best]))
            best = w;
    return best;
}

/* Index of the first node at or after a position; the ring wraps. */
static size_t find_node(const akin_prefix_router_t *router, uint64_t position)
{
    size_t node = router->first[position >> router->shift];
    while (node < router->n_nodes && router->nodes[node].position < position)
        node++;
    return node == router->n_nodes ? 0 : node;
}

/* Owner of a position. Prompts of a lost worker spread over the others, and
 * everybody else keeps its own. At least one worker is eligible. */
static uint32_t find_owner(const akin_prefix_router_t *router,
                           uint64_t position, const uint8_t *eligible)
{
    size_t i = find_node(router, position);
    while (eligible[router->nodes[i].worker] == 0)
        i = i + 1 == router->n_nodes ? 0 : i + 1;
    return router->nodes[i].worker;
}

/* Of the eligible workers, whose number it gives. */
AKINI_CLONES static uint64_t sum_loads(const uint32_t *loads,
                                       const uint8_t *eligible, uint32_t n,
                                       uint64_t *sum_p)
{
    uint32_t n_eligible = 0;
    uint64_t sum = 0;
    for (uint32_t w = 0; w < n; w++) {
        const uint32_t is_eligible = eligible[w] != 0;
        n_eligible += is_eligible;
        sum += loads[w] & (0u - is_eligible);
    }
    *sum_p = sum;
    return n_eligible;
}

static uint32_t decide(const akin_prefix_router_t *router, const void *prefix,
                       size_t bytes, const uint32_t *loads,
                       const uint8_t *eligible)
{
    uint64_t sum;
    const uint64_t n_eligible =
        sum_loads(loads, eligible, router->n_workers, &sum);
    if (bytes == 0 || n_eligible == 0)
        return least_loaded(router, loads, eligible);
    uint32_t owner =
        find_owner(router, akini_blake2b_64(prefix, bytes), eligible);
    /* load <= 1.25 (sum + 1) / P in integers; the bounds on P and on a load
     * keep both sides below 2^51. */
    return 4 * n_eligible * loads[owner] <= 5 * (sum + 1)
               ? owner
               : least_loaded(router, loads, eligible);
}

void akin_prefix_router_decide(const akin_prefix_router_t *router,
                               const uint32_t *tokens, size_t n_tokens,
                               const uint32_t *loads, const uint8_t *eligible,
                               uint32_t *worker_p)
{
    uint8_t prefix[AKIN_PREFIX_HASH_BYTES];
    size_t most = sizeof(prefix) / TOKEN_BYTES;
    size_t n = n_tokens < most ? n_tokens : most;
    for (size_t i = 0; i < n; i++)
        for (size_t byte = 0; byte < TOKEN_BYTES; byte++)
            prefix[i * TOKEN_BYTES + byte] = (uint8_t)(tokens[i] >> 8 * byte);
    *worker_p = decide(router, prefix, n * TOKEN_BYTES, loads, eligible);
}

void akin_prefix_router_decide_text(const akin_prefix_router_t *router,
                                    const char *text, size_t bytes,
                                    const uint32_t *loads,
                                    const uint8_t *eligible, uint32_t *worker_p)
{
    size_t n = bytes < AKIN_PREFIX_HASH_BYTES ? bytes : AKIN_PREFIX_HASH_BYTES;
    *worker_p = decide(router, text, n, loads, eligible);
}
