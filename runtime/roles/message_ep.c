/* Message: packing and unpacking of what the ranks of a worker tell each other
 * and, of its placement, the router. */
#include "roles/message.h"

#include <stdlib.h>

void akin_message_pack_ep_step(akin_packer_t *p,
                               const akin_message_ep_step_t *m)
{
    akin_packer_u64(p, m->number);
    akin_packer_u64(p, m->epoch);
}

akin_status_t akin_message_unpack_ep_step(const void *data, size_t bytes,
                                          akin_message_ep_step_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    m->number = akin_unpacker_u64(&u);
    m->epoch = akin_unpacker_u64(&u);
    return akin_unpacker_finish(&u);
}

void akin_message_pack_place(akin_packer_t *p, const akin_message_place_t *m)
{
    akin_packer_u64(p, m->epoch);
    akin_packer_u32(p, m->layer);
    akin_packer_u32(p, (uint32_t)m->n_holders);
    for (size_t i = 0; i < m->n_holders; i++)
        akin_packer_u64(p, m->holders[i]);
}

akin_status_t akin_message_unpack_place(const void *data, size_t bytes,
                                        akin_message_place_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    *m = (akin_message_place_t){.epoch = akin_unpacker_u64(&u)};
    m->layer = akin_unpacker_u32(&u);
    m->n_holders = akin_unpacker_u32(&u);
    if (u.status == AKIN_OK &&
        (m->n_holders == 0 ||
         m->n_holders > (u.bytes - u.position) / sizeof(*m->holders)))
        u.status = AKIN_ERR_FORMAT;
    if (u.status == AKIN_OK) {
        m->holders = calloc(m->n_holders, sizeof(*m->holders));
        if (m->holders == NULL)
            u.status = AKIN_ERR_NOMEM;
    }
    for (size_t i = 0; u.status == AKIN_OK && i < m->n_holders; i++)
        m->holders[i] = akin_unpacker_u64(&u);
    akin_status_t status = akin_unpacker_finish(&u);
    if (status != AKIN_OK)
        free(m->holders);
    return status;
}

void akin_message_pack_placed(akin_packer_t *p, const akin_message_placed_t *m)
{
    akin_packer_u64(p, m->epoch);
    akin_packer_u32(p, (uint32_t)m->status);
}

akin_status_t akin_message_unpack_placed(const void *data, size_t bytes,
                                         akin_message_placed_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    m->epoch = akin_unpacker_u64(&u);
    m->status = (int32_t)akin_unpacker_u32(&u);
    return akin_unpacker_finish(&u);
}
