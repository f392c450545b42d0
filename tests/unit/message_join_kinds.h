/* Message join kinds: golden bytes of the messages of ranks that come and go.
 */
#ifndef AKIN_TESTS_UNIT_MESSAGE_JOIN_KINDS_H
#define AKIN_TESTS_UNIT_MESSAGE_JOIN_KINDS_H

#include "roles/message.h"

#include <string.h>

static const akin_message_identity_t join_ids[] = {
    {.rank = 7,
     .net = "abc",
     .net_bytes = 3,
     .exchange = "xy",
     .exchange_bytes = 2},
    {.rank = 8, .net = "d", .net_bytes = 1},
};

static int same_identity(const akin_message_identity_t *a,
                         const akin_message_identity_t *b)
{
    return a->rank == b->rank && a->net_bytes == b->net_bytes &&
           memcmp(a->net, b->net, a->net_bytes) == 0 &&
           a->exchange_bytes == b->exchange_bytes &&
           (a->exchange_bytes == 0 ||
            memcmp(a->exchange, b->exchange, a->exchange_bytes) == 0);
}

#define ID_7 7, 0, 0, 0, 3, 0, 0, 0, 'a', 'b', 'c', 2, 0, 0, 0, 'x', 'y'
#define ID_8 8, 0, 0, 0, 1, 0, 0, 0, 'd', 0, 0, 0, 0

static const unsigned char join_bytes[] = {2, 0, 0, 0, 1, ID_7};

static void pack_join(akin_packer_t *p)
{
    const akin_message_join_t m = {
        .life = 2, .is_last = 1, .identity = join_ids[0]};
    akin_message_pack_join(p, &m);
}

static akin_status_t unpack_join(const void *data, size_t bytes, int *same_p)
{
    akin_message_join_t m;
    akin_status_t status = akin_message_unpack_join(data, bytes, &m);
    if (status == AKIN_OK)
        *same_p = m.life == 2 && m.is_last == 1 &&
                  same_identity(&m.identity, &join_ids[0]);
    return status;
}

static const unsigned char group_bytes[] = {2, 0, 0, 0, ID_7, ID_8};

static void pack_group(akin_packer_t *p)
{
    akin_message_identity_t ids[2] = {join_ids[0], join_ids[1]};
    const akin_message_group_t m = {.ranks = ids, .n_ranks = 2};
    akin_message_pack_group(p, &m);
}

static akin_status_t unpack_group(const void *data, size_t bytes, int *same_p)
{
    akin_message_group_t m;
    akin_status_t status = akin_message_unpack_group(data, bytes, &m);
    if (status != AKIN_OK)
        return status;
    *same_p = m.n_ranks == 2 && same_identity(&m.ranks[0], &join_ids[0]) &&
              same_identity(&m.ranks[1], &join_ids[1]);
    akin_message_group_cleanup(&m);
    return AKIN_OK;
}

static const unsigned char assume_bytes[] = {
    1, 3, 0, 0, 0, 9, 0, 0, 0, 0, 0,    0, 1, 1, 0, 0, 0, ID_8, 2,
    0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0x80, 1, 0, 0, 0, 0, 0, 0,    0};

static void pack_assume(akin_packer_t *p)
{
    akin_message_identity_t id = join_ids[1];
    uint64_t holders[] = {UINT64_C(0x8000000000000005), 1};
    const akin_message_assume_t m = {
        .is_prefill = 1,
        .worker = 3,
        .epoch = UINT64_C(0x0100000000000009),
        .peers = &id,
        .n_peers = 1,
        .holders = holders,
        .n_holders = 2,
    };
    akin_message_pack_assume(p, &m);
}

static akin_status_t unpack_assume(const void *data, size_t bytes, int *same_p)
{
    akin_message_assume_t m;
    akin_status_t status = akin_message_unpack_assume(data, bytes, &m);
    if (status != AKIN_OK)
        return status;
    *same_p = m.is_prefill == 1 && m.worker == 3 &&
              m.epoch == UINT64_C(0x0100000000000009) && m.n_peers == 1 &&
              same_identity(&m.peers[0], &join_ids[1]) && m.n_holders == 2 &&
              m.holders[0] == UINT64_C(0x8000000000000005) && m.holders[1] == 1;
    akin_message_assume_cleanup(&m);
    return AKIN_OK;
}

static const unsigned char rank_bytes[] = {
    7, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0x80, 0xfe, 0xff, 0xff, 0xff};

static void pack_rank(akin_packer_t *p)
{
    const akin_message_rank_t m = {
        .rank = 7, .incarnation = UINT64_C(0x8000000000000009), .status = -2};
    akin_message_pack_rank(p, &m);
}

static akin_status_t unpack_rank(const void *data, size_t bytes, int *same_p)
{
    akin_message_rank_t m;
    akin_status_t status = akin_message_unpack_rank(data, bytes, &m);
    if (status == AKIN_OK)
        *same_p = m.rank == 7 && m.status == -2 &&
                  m.incarnation == UINT64_C(0x8000000000000009);
    return status;
}

static const unsigned char leases_bytes[] = {
    4, 0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0x80};

static void pack_leases(akin_packer_t *p)
{
    const akin_message_leases_t m = {.n_blocks = 4,
                                     .n_requests = 2,
                                     .oldest_ns = INT64_C(0x0100000000000009),
                                     .n_expired = UINT64_C(0x8000000000000003)};
    akin_message_pack_leases(p, &m);
}

static akin_status_t unpack_leases(const void *data, size_t bytes, int *same_p)
{
    akin_message_leases_t m;
    akin_status_t status = akin_message_unpack_leases(data, bytes, &m);
    if (status == AKIN_OK)
        *same_p = m.n_blocks == 4 && m.n_requests == 2 &&
                  m.oldest_ns == INT64_C(0x0100000000000009) &&
                  m.n_expired == UINT64_C(0x8000000000000003);
    return status;
}

#endif
