/* Message: packing and unpacking of what router and ranks tell each other when
 * ranks come and go. */
#include "roles/message.h"

#include <stdlib.h>

/* Smallest identity on the wire: rank and two lengths. */
#define IDENTITY_BYTES 12u

const char *akin_message_name(uint16_t type)
{
    static const char *const names[AKIN_MESSAGE_TYPES] = {
        [AKIN_MESSAGE_PREFILL] = "PREFILL",
        [AKIN_MESSAGE_PREFILLED] = "PREFILLED",
        [AKIN_MESSAGE_DECODE] = "DECODE",
        [AKIN_MESSAGE_TRANSFERRED] = "TRANSFERRED",
        [AKIN_MESSAGE_TOKENS] = "TOKENS",
        [AKIN_MESSAGE_STEP] = "STEP",
        [AKIN_MESSAGE_COUNTS] = "COUNTS",
        [AKIN_MESSAGE_RELEASE] = "RELEASE",
        [AKIN_MESSAGE_KEEP] = "KEEP",
        [AKIN_MESSAGE_CANCEL] = "CANCEL",
        [AKIN_MESSAGE_STOP] = "STOP",
        [AKIN_MESSAGE_STATS] = "STATS",
        [AKIN_MESSAGE_ROUTES] = "ROUTES",
        [AKIN_MESSAGE_EP_READY] = "EP_READY",
        [AKIN_MESSAGE_EP_STEP] = "EP_STEP",
        [AKIN_MESSAGE_EP_DONE] = "EP_DONE",
        [AKIN_MESSAGE_EP_END] = "EP_END",
        [AKIN_MESSAGE_PLACE] = "PLACE",
        [AKIN_MESSAGE_PLACED] = "PLACED",
        [AKIN_MESSAGE_JOIN] = "JOIN",
        [AKIN_MESSAGE_GROUP] = "GROUP",
        [AKIN_MESSAGE_READY] = "READY",
        [AKIN_MESSAGE_ASSUME] = "ASSUME",
        [AKIN_MESSAGE_ASSUMED] = "ASSUMED",
        [AKIN_MESSAGE_PEER] = "PEER",
        [AKIN_MESSAGE_PEERED] = "PEERED",
        [AKIN_MESSAGE_LOST] = "LOST",
        [AKIN_MESSAGE_LEASES] = "LEASES",
    };
    return type < AKIN_MESSAGE_TYPES && names[type] != NULL ? names[type] : "?";
}

static void pack_identity(akin_packer_t *p, const akin_message_identity_t *id)
{
    akin_packer_u32(p, id->rank);
    akin_packer_bytes(p, id->net, id->net_bytes);
    akin_packer_bytes(p, id->exchange, id->exchange_bytes);
}

static void unpack_identity(akin_unpacker_t *u, akin_message_identity_t *id)
{
    id->rank = akin_unpacker_u32(u);
    id->net = akin_unpacker_bytes(u, &id->net_bytes);
    id->exchange = akin_unpacker_bytes(u, &id->exchange_bytes);
    if (u->status == AKIN_OK && id->net_bytes == 0)
        u->status = AKIN_ERR_RANGE;
}

static void pack_identities(akin_packer_t *p,
                            const akin_message_identity_t *ids, size_t n)
{
    akin_packer_u32(p, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        pack_identity(p, &ids[i]);
}

static akin_message_identity_t *unpack_identities(akin_unpacker_t *u,
                                                  size_t *n_p)
{
    const size_t n = akin_unpacker_u32(u);
    *n_p = 0;
    if (u->status == AKIN_OK && n > (u->bytes - u->position) / IDENTITY_BYTES)
        u->status = AKIN_ERR_FORMAT;
    if (u->status != AKIN_OK || n == 0)
        return NULL;
    akin_message_identity_t *ids = calloc(n, sizeof(*ids));
    if (ids == NULL) {
        u->status = AKIN_ERR_NOMEM;
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        unpack_identity(u, &ids[i]);
    *n_p = n;
    return ids;
}

void akin_message_pack_join(akin_packer_t *p, const akin_message_join_t *m)
{
    akin_packer_u32(p, m->life);
    akin_packer_u8(p, m->is_last);
    pack_identity(p, &m->identity);
}

akin_status_t akin_message_unpack_join(const void *data, size_t bytes,
                                       akin_message_join_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    *m = (akin_message_join_t){.life = akin_unpacker_u32(&u)};
    m->is_last = akin_unpacker_u8(&u);
    unpack_identity(&u, &m->identity);
    return akin_unpacker_finish(&u);
}

void akin_message_pack_group(akin_packer_t *p, const akin_message_group_t *m)
{
    pack_identities(p, m->ranks, m->n_ranks);
}

akin_status_t akin_message_unpack_group(const void *data, size_t bytes,
                                        akin_message_group_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    *m = (akin_message_group_t){0};
    m->ranks = unpack_identities(&u, &m->n_ranks);
    akin_status_t status = akin_unpacker_finish(&u);
    if (status == AKIN_OK && m->n_ranks == 0)
        status = AKIN_ERR_RANGE;
    if (status != AKIN_OK)
        akin_message_group_cleanup(m);
    return status;
}

void akin_message_group_cleanup(akin_message_group_t *m)
{
    free(m->ranks);
    *m = (akin_message_group_t){0};
}

void akin_message_pack_assume(akin_packer_t *p, const akin_message_assume_t *m)
{
    akin_packer_u8(p, m->is_prefill);
    akin_packer_u32(p, m->worker);
    akin_packer_u64(p, m->epoch);
    pack_identities(p, m->peers, m->n_peers);
    akin_packer_u32(p, (uint32_t)m->n_holders);
    for (size_t i = 0; i < m->n_holders; i++)
        akin_packer_u64(p, m->holders[i]);
}

akin_status_t akin_message_unpack_assume(const void *data, size_t bytes,
                                         akin_message_assume_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    *m = (akin_message_assume_t){.is_prefill = akin_unpacker_u8(&u)};
    m->worker = akin_unpacker_u32(&u);
    m->epoch = akin_unpacker_u64(&u);
    m->peers = unpack_identities(&u, &m->n_peers);
    m->n_holders = akin_unpacker_u32(&u);
    if (u.status == AKIN_OK &&
        m->n_holders > (u.bytes - u.position) / sizeof(*m->holders))
        u.status = AKIN_ERR_FORMAT;
    if (u.status == AKIN_OK && m->n_holders > 0) {
        m->holders = calloc(m->n_holders, sizeof(*m->holders));
        if (m->holders == NULL)
            u.status = AKIN_ERR_NOMEM;
    }
    for (size_t i = 0; u.status == AKIN_OK && i < m->n_holders; i++)
        m->holders[i] = akin_unpacker_u64(&u);
    akin_status_t status = akin_unpacker_finish(&u);
    if (status != AKIN_OK)
        akin_message_assume_cleanup(m);
    return status;
}

void akin_message_assume_cleanup(akin_message_assume_t *m)
{
    free(m->peers);
    free(m->holders);
    *m = (akin_message_assume_t){0};
}

void akin_message_pack_rank(akin_packer_t *p, const akin_message_rank_t *m)
{
    akin_packer_u32(p, m->rank);
    akin_packer_u64(p, m->incarnation);
    akin_packer_u32(p, (uint32_t)m->status);
}

akin_status_t akin_message_unpack_rank(const void *data, size_t bytes,
                                       akin_message_rank_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    *m = (akin_message_rank_t){.rank = akin_unpacker_u32(&u)};
    m->incarnation = akin_unpacker_u64(&u);
    m->status = (int32_t)akin_unpacker_u32(&u);
    return akin_unpacker_finish(&u);
}

void akin_message_pack_leases(akin_packer_t *p, const akin_message_leases_t *m)
{
    akin_packer_u32(p, m->n_blocks);
    akin_packer_u32(p, m->n_requests);
    akin_packer_u64(p, (uint64_t)m->oldest_ns);
    akin_packer_u64(p, m->n_expired);
}

akin_status_t akin_message_unpack_leases(const void *data, size_t bytes,
                                         akin_message_leases_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    *m = (akin_message_leases_t){.n_blocks = akin_unpacker_u32(&u)};
    m->n_requests = akin_unpacker_u32(&u);
    m->oldest_ns = (int64_t)akin_unpacker_u64(&u);
    m->n_expired = akin_unpacker_u64(&u);
    akin_status_t status = akin_unpacker_finish(&u);
    if (status == AKIN_OK && m->oldest_ns < 0)
        status = AKIN_ERR_RANGE;
    return status;
}
