/* Message: packing and unpacking of those that are a row of numbers. */
#include "roles/message.h"

#include <stdlib.h>

void akin_message_pack_transferred(akin_packer_t *p,
                                   const akin_message_transferred_t *m)
{
    akin_packer_u64(p, m->id);
    akin_packer_u32(p, (uint32_t)m->status);
    akin_packer_u8(p, m->refusal);
    akin_packer_u32(p, m->n_blocks);
    akin_packer_u32(p, m->n_shared);
    akin_packer_u64(p, m->bytes);
    akin_packer_u64(p, (uint64_t)m->ns);
}

akin_status_t akin_message_unpack_transferred(const void *data, size_t bytes,
                                              akin_message_transferred_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    *m = (akin_message_transferred_t){.id = akin_unpacker_u64(&u)};
    m->status = (int32_t)akin_unpacker_u32(&u);
    m->refusal = akin_unpacker_u8(&u);
    m->n_blocks = akin_unpacker_u32(&u);
    m->n_shared = akin_unpacker_u32(&u);
    m->bytes = akin_unpacker_u64(&u);
    m->ns = (int64_t)akin_unpacker_u64(&u);
    akin_status_t status = akin_unpacker_finish(&u);
    if (status == AKIN_OK && m->refusal >= AKIN_KV_REFUSAL_COUNT)
        status = AKIN_ERR_RANGE;
    return status;
}

void akin_message_pack_counts(akin_packer_t *p, const akin_message_counts_t *m)
{
    akin_packer_u32(p, m->n_tokens);
    akin_packer_u16s(p, m->counts, m->n_counts);
}

akin_status_t akin_message_unpack_counts(const void *data, size_t bytes,
                                         akin_message_counts_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    *m = (akin_message_counts_t){.n_tokens = akin_unpacker_u32(&u)};
    m->counts = akin_unpacker_u16s(&u, AKIN_MESSAGE_MAX_TOKENS, &m->n_counts);
    akin_status_t status = akin_unpacker_finish(&u);
    if (status != AKIN_OK)
        free(m->counts);
    return status;
}

void akin_message_pack_id(akin_packer_t *p, uint64_t id)
{
    akin_packer_u64(p, id);
}

akin_status_t akin_message_unpack_id(const void *data, size_t bytes,
                                     uint64_t *id_p)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    *id_p = akin_unpacker_u64(&u);
    return akin_unpacker_finish(&u);
}

void akin_message_pack_stats(akin_packer_t *p, const akin_message_stats_t *m)
{
    akin_packer_u64(p, m->steps);
    akin_packer_u64(p, m->busy_ns);
    akin_packer_u64(p, m->total_ns);
    akin_packer_u64(p, m->evictions);
    akin_packer_u64(p, m->reads_one_sided);
    akin_packer_u64(p, m->reads_rendezvous);
    akin_packer_u64(p, m->read_bytes);
    akin_packer_u64(p, m->leases_expired);
    akin_packer_u64(p, m->pinned_blocks);
    akin_packer_u64(p, m->messages_late);
}

akin_status_t akin_message_unpack_stats(const void *data, size_t bytes,
                                        akin_message_stats_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    m->steps = akin_unpacker_u64(&u);
    m->busy_ns = akin_unpacker_u64(&u);
    m->total_ns = akin_unpacker_u64(&u);
    m->evictions = akin_unpacker_u64(&u);
    m->reads_one_sided = akin_unpacker_u64(&u);
    m->reads_rendezvous = akin_unpacker_u64(&u);
    m->read_bytes = akin_unpacker_u64(&u);
    m->leases_expired = akin_unpacker_u64(&u);
    m->pinned_blocks = akin_unpacker_u64(&u);
    m->messages_late = akin_unpacker_u64(&u);
    return akin_unpacker_finish(&u);
}

void akin_message_pack_routes(akin_packer_t *p, const akin_message_routes_t *m)
{
    akin_packer_u64(p, m->id);
    akin_packer_u32(p, m->first);
    akin_packer_u32(p, m->n_tokens);
    akin_packer_u16s(p, m->routes, m->n_routes);
}

akin_status_t akin_message_unpack_routes(const void *data, size_t bytes,
                                         akin_message_routes_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    *m = (akin_message_routes_t){.id = akin_unpacker_u64(&u)};
    m->first = akin_unpacker_u32(&u);
    m->n_tokens = akin_unpacker_u32(&u);
    m->routes = akin_unpacker_u16s(&u, AKIN_MESSAGE_MAX_TOKENS, &m->n_routes);
    akin_status_t status = akin_unpacker_finish(&u);
    if (status == AKIN_OK && (m->n_tokens == 0 || m->n_routes == 0 ||
                              m->n_routes % m->n_tokens != 0))
        status = AKIN_ERR_RANGE;
    if (status != AKIN_OK)
        free(m->routes);
    return status;
}

void akin_message_pack_ep_done(akin_packer_t *p,
                               const akin_message_ep_done_t *m)
{
    akin_packer_u64(p, m->number);
    akin_packer_u8(p, m->has_work);
}

akin_status_t akin_message_unpack_ep_done(const void *data, size_t bytes,
                                          akin_message_ep_done_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    m->number = akin_unpacker_u64(&u);
    m->has_work = akin_unpacker_u8(&u);
    if (m->has_work > 1)
        u.status = AKIN_ERR_RANGE;
    return akin_unpacker_finish(&u);
}
