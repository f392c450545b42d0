/* A net that only reads: from memory in the same process, in whatever order
 * and with whatever status the test wants. Stands in for runtime/net. */
#ifndef AKIN_TESTS_UNIT_FAKE_NET_H
#define AKIN_TESTS_UNIT_FAKE_NET_H

#include "net/net.h"

#include <string.h>

#define FAKE_READS 256

typedef struct fake_read {
    uint64_t offset;
    unsigned char *local;
    size_t bytes;
    akin_net_read_fn_t done;
    void *arg;
} fake_read_t;

struct akin_net {
    const unsigned char *remote; /* the peer's slab */
    size_t remote_bytes;
    fake_read_t reads[FAKE_READS]; /* started, not completed */
    uint32_t n_reads;
    int is_one_sided;
    uint32_t room;             /* more reads at a time: AKIN_ERR_FULL */
    uint32_t n_started;        /* since the beginning */
    uint32_t fail_number;      /* the read of this number, from 1, ... */
    akin_status_t fail_status; /* ... does not start */
};

akin_status_t akin_net_read(akin_net_t *net, uint32_t rank, uint64_t offset,
                            void *local, size_t bytes, akin_net_read_fn_t done,
                            void *arg)
{
    if (rank != 1)
        return AKIN_ERR_PEER;
    if (offset > net->remote_bytes || bytes > net->remote_bytes - offset)
        return AKIN_ERR_RANGE;
    if (net->n_reads >= net->room)
        return AKIN_ERR_FULL;
    if (net->n_started + 1 == net->fail_number)
        return net->fail_status;
    net->n_started++;
    net->reads[net->n_reads++] = (fake_read_t){.offset = offset,
                                               .local = local,
                                               .bytes = bytes,
                                               .done = done,
                                               .arg = arg};
    return AKIN_OK;
}

int akin_net_is_one_sided(const akin_net_t *net, uint32_t rank)
{
    return rank == 1 && net->is_one_sided;
}

/* Bytes arrive as far as they go, then the callback. */
static inline void fake_net_complete(akin_net_t *net, uint32_t i,
                                     akin_status_t status)
{
    fake_read_t read = net->reads[i];
    net->n_reads--;
    memmove(&net->reads[i], &net->reads[i + 1],
            (net->n_reads - i) * sizeof(read));
    size_t bytes = status == AKIN_OK ? read.bytes : read.bytes / 2;
    memcpy(read.local, net->remote + read.offset, bytes);
    read.done(read.arg, status);
}

static inline void fake_net_complete_all(akin_net_t *net, akin_status_t status)
{
    while (net->n_reads > 0)
        fake_net_complete(net, 0, status);
}

#endif
