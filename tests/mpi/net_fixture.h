/* Net fixture: ranks that are connected to each other, then without MPI. */
#ifndef AKIN_TESTS_MPI_NET_FIXTURE_H
#define AKIN_TESTS_MPI_NET_FIXTURE_H

#include "base/clock.h"
#include "net/boot.h"
#include "net/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No wait of a test is longer than this. */
#define FIXTURE_LIMIT_NS (30 * AKIN_NS_PER_S)

static int fixture_failures;
static uint32_t fixture_rank;

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "rank %u: %s:%d: %s\n", (unsigned)fixture_rank,    \
                    __FILE__, __LINE__, #condition);                           \
            fixture_failures++;                                                \
        }                                                                      \
    } while (0)

#define CHECK_FATAL(condition)                                                 \
    do {                                                                       \
        CHECK(condition);                                                      \
        if (fixture_failures > 0)                                              \
            exit(1);                                                           \
    } while (0)

/* A byte that depends on its place and its owner. */
static inline unsigned char fixture_byte(uint32_t owner, uint64_t place)
{
    uint64_t x = (place + 1) * UINT64_C(0x9e3779b97f4a7c15) + owner * 77u;
    return (unsigned char)(x >> 56);
}

static inline void fixture_fill(unsigned char *to, size_t bytes, uint32_t owner,
                                uint64_t place)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = fixture_byte(owner, place + i);
}

static inline size_t fixture_wrong(const unsigned char *at, size_t bytes,
                                   uint32_t owner, uint64_t place)
{
    size_t wrong = 0;
    for (size_t i = 0; i < bytes; i++)
        wrong += at[i] != fixture_byte(owner, place + i);
    return wrong;
}

/* Wait while the condition does not hold, up to the limit. */
#define WAIT_FOR(net, condition)                                               \
    do {                                                                       \
        int64_t until_ns = akin_clock_now_ns() + FIXTURE_LIMIT_NS;             \
        while (!(condition) && akin_clock_now_ns() < until_ns) {               \
            akin_status_t waited = akin_net_wait(net, until_ns);               \
            CHECK_FATAL(waited == AKIN_OK || waited == AKIN_ERR_TIMEOUT);      \
        }                                                                      \
        CHECK_FATAL(condition);                                                \
    } while (0)

/* "tcp" as first argument: nothing but tcp for the net; MPI has started by
 * then and keeps what it has. */
static inline int fixture_is_tcp(int argc, char **argv)
{
    int tcp = argc > 1 && strcmp(argv[1], "tcp") == 0;
    if (tcp)
        setenv("UCX_TLS", "tcp", 1);
    return tcp;
}

static inline void fixture_ok(akin_status_t status, const akin_error_t *err)
{
    if (status != AKIN_OK)
        fprintf(stderr, "rank %u: %s\n", (unsigned)fixture_rank, err->text);
    CHECK_FATAL(status == AKIN_OK);
}

static inline akin_boot_t *fixture_boot(void)
{
    akin_error_t err = {{0}};
    akin_boot_t *boot = NULL;
    fixture_ok(akin_boot_start(&boot, &err), &err);
    fixture_rank = akin_boot_rank(boot);
    return boot;
}

/* A net that knows all ranks of the job; MPI has ended when it returns. */
static inline akin_net_t *
fixture_connect(akin_boot_t *boot, akin_net_events_t events, size_t slab_bytes)
{
    akin_error_t err = {{0}};
    akin_net_t *net = NULL;
    const akin_net_params_t params = {
        .rank = akin_boot_rank(boot),
        .n_ranks = akin_boot_size(boot),
        .slab_bytes = slab_bytes,
        .events = events,
    };
    fixture_ok(akin_net_create(&params, &net, &err), &err);
    void *blob = NULL;
    size_t bytes = 0;
    fixture_ok(akin_net_identity(net, &blob, &bytes, &err), &err);
    unsigned char *blobs = NULL;
    size_t *offsets = NULL;
    fixture_ok(akin_boot_exchange(boot, blob, bytes, &blobs, &offsets, &err),
               &err);
    for (uint32_t r = 0; r < params.n_ranks; r++)
        if (r != params.rank)
            fixture_ok(akin_net_add_peer(net, r, blobs + offsets[r],
                                         offsets[r + 1] - offsets[r], &err),
                       &err);
    free(blob);
    free(blobs);
    free(offsets);
    fixture_ok(akin_boot_barrier(boot, &err), &err);
    akin_boot_finish(boot);
    return net;
}

#endif
