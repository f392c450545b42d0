/* Packing and unpacking of a ticket. */
#include "roles/ticket.h"

#include "net/wire.h"

#include <string.h>

static void pack_text(akin_packer_t *p, const char *text)
{
    akin_packer_bytes(p, text, strlen(text) + 1);
}

akin_status_t akini_ticket_pack(const akini_ticket_t *ticket, void **data_p,
                                size_t *bytes_p)
{
    akin_packer_t p = {0};
    *data_p = NULL;
    *bytes_p = 0;
    akin_packer_u32(&p, ticket->rank);
    akin_packer_u32(&p, ticket->host_ranks);
    pack_text(&p, ticket->job);
    pack_text(&p, ticket->kernel);
    pack_text(&p, ticket->placements);
    akin_packer_bytes(&p, ticket->router, ticket->router_bytes);
    if (p.status != AKIN_OK) {
        akin_packer_cleanup(&p);
        return AKIN_ERR_NOMEM;
    }
    *data_p = p.data;
    *bytes_p = p.bytes;
    return AKIN_OK;
}

static const char *unpack_text(akin_unpacker_t *u)
{
    size_t bytes;
    const char *text = akin_unpacker_bytes(u, &bytes);
    if (u->status == AKIN_OK && (bytes == 0 || text[bytes - 1] != '\0'))
        u->status = AKIN_ERR_FORMAT;
    return u->status == AKIN_OK ? text : "";
}

akin_status_t akini_ticket_unpack(const void *data, size_t bytes,
                                  akini_ticket_t *ticket_p)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    *ticket_p = (akini_ticket_t){.rank = akin_unpacker_u32(&u)};
    ticket_p->host_ranks = akin_unpacker_u32(&u);
    ticket_p->job = unpack_text(&u);
    ticket_p->kernel = unpack_text(&u);
    ticket_p->placements = unpack_text(&u);
    ticket_p->router = akin_unpacker_bytes(&u, &ticket_p->router_bytes);
    return akin_unpacker_finish(&u);
}
