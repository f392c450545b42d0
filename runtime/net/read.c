/* Reads of a peer's slab: a get where the transport has one, else a request
 * that the owner answers by active-message rendezvous. */
#include "net/net_internal.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define FIRST_READS 64

/* One more read record, known to the table under its slot. */
static akini_read_t *read_grow(akin_net_t *net)
{
    if (net->n_reads == net->reads_capacity) {
        size_t capacity =
            net->reads_capacity != 0 ? 2 * net->reads_capacity : FIRST_READS;
        akini_read_t **reads =
            capacity <= UINT32_MAX
                ? realloc(net->reads, capacity * sizeof(*reads))
                : NULL;
        if (reads == NULL)
            return NULL;
        net->reads = reads;
        net->reads_capacity = capacity;
    }
    akini_read_t *read = calloc(1, sizeof(*read));
    if (read == NULL)
        return NULL;
    read->slot = (uint32_t)net->n_reads;
    net->reads[net->n_reads++] = read;
    return read;
}

/* The id says the slot and how often it was used, so that a late answer finds
 * no read but its own. */
static akini_read_t *read_create(akin_net_t *net, uint32_t rank, void *local,
                                 size_t bytes, akin_net_read_fn_t done,
                                 void *arg)
{
    akini_read_t *read = net->spare_reads;
    if (read != NULL)
        DL_DELETE(net->spare_reads, read);
    else
        read = read_grow(net);
    if (read == NULL)
        return NULL;
    read->net = net;
    read->uses++;
    read->rank = rank;
    read->state = AKINI_READ_WRITING;
    read->status = AKIN_OK;
    read->local = local;
    read->bytes = bytes;
    read->done = done;
    read->arg = arg;
    net->peers[rank].n_reads++;
    return read;
}

static uint64_t read_id(const akini_read_t *read)
{
    return (uint64_t)read->uses << 32 | read->slot;
}

static akini_read_t *read_find(const akin_net_t *net, uint64_t id)
{
    uint32_t slot = (uint32_t)id;
    if (slot >= net->n_reads || read_id(net->reads[slot]) != id)
        return NULL;
    return net->reads[slot];
}

static void read_destroy(akini_read_t *read)
{
    akin_net_t *net = read->net;
    net->peers[read->rank].n_reads--;
    read->state = AKINI_READ_FREE;
    DL_PREPEND(net->spare_reads, read);
}

/* The status is final; the owner learns it from inside poll. */
static void read_finish(akini_read_t *read, akin_status_t status)
{
    akin_net_t *net = read->net;
    read->state = AKINI_READ_DONE;
    read->status = status;
    DL_APPEND(net->finished, read);
    if (status == AKIN_OK)
        net->stats.read_bytes += read->bytes;
}

/* The status of a read that its peer will not serve any more. */
static akin_status_t read_loss(const akin_net_t *net)
{
    return net->closing_down ? AKIN_ERR_CANCELED : AKIN_ERR_PEER;
}

/* UCX will not touch `local` any more. */
static void read_written(akini_read_t *read, ucs_status_t status)
{
    akini_peer_t *peer = &read->net->peers[read->rank];
    read_finish(read, status == UCS_OK ? AKIN_OK : read_loss(peer->net));
    if (status != UCS_OK && peer->state == AKINI_PEER_UP) {
        AKIN_LOG(NET, INFO, "rank %u: read: %s", (unsigned)peer->rank,
                 ucs_status_string(status));
        akini_peer_fail(peer, AKIN_ERR_PEER);
    }
}

static void get_done(void *request, ucs_status_t status, void *arg)
{
    ucp_request_free(request);
    read_written(arg, status);
}

static void receive_done(void *request, ucs_status_t status, size_t bytes,
                         void *arg)
{
    akini_read_t *read = arg;
    ucp_request_free(request);
    if (status == UCS_OK && bytes != read->bytes)
        status = UCS_ERR_MESSAGE_TRUNCATED;
    read_written(read, status);
}

static int in_slab(const akin_net_t *net, const void *local, size_t bytes)
{
    uintptr_t base = (uintptr_t)net->slab;
    uintptr_t at = (uintptr_t)local;
    return net->slab != NULL && at >= base && bytes <= net->slab_bytes &&
           at - base <= net->slab_bytes - bytes;
}

static akin_status_t start_get(akini_peer_t *peer, akini_read_t *read,
                               uint64_t offset)
{
    akin_net_t *net = peer->net;
    ucp_request_param_t param = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = get_done,
        .user_data = read,
    };
    if (in_slab(net, read->local, read->bytes)) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
        param.memh = net->slab_memory;
    }
    ucs_status_ptr_t request =
        ucp_get_nbx(peer->endpoint, read->local, read->bytes,
                    peer->slab_address + offset, peer->rkey, &param);
    if (UCS_PTR_IS_PTR(request))
        return AKIN_OK;
    ucs_status_t s = UCS_PTR_STATUS(request);
    if (s == UCS_OK) {
        read_finish(read, AKIN_OK);
        return AKIN_OK;
    }
    read_destroy(read);
    if (s == UCS_ERR_NO_MEMORY)
        return AKIN_ERR_NOMEM;
    AKIN_LOG(NET, INFO, "rank %u: ucp_get_nbx: %s", (unsigned)peer->rank,
             ucs_status_string(s));
    akini_peer_fail(peer, AKIN_ERR_PEER);
    return AKIN_ERR_PEER;
}

static akin_status_t start_request(akini_peer_t *peer, akini_read_t *read,
                                   uint64_t offset)
{
    akin_net_t *net = peer->net;
    akini_item_t *item = akini_item_get(net, peer->rank, 0);
    if (item == NULL) {
        read_destroy(read);
        return AKIN_ERR_NOMEM;
    }
    item->frame = (akini_frame_t){
        .type = AKINI_FRAME_READ_REQUEST,
        .from = net->rank,
        .from_incarnation = net->incarnation,
        .to_incarnation = peer->incarnation,
        .sequence = read_id(read),
        .offset = offset,
        .length = read->bytes,
    };
    akin_status_t status = akini_peer_post(peer, item, AKINI_AM_READ_REQUEST,
                                           NULL, 0, &peer->others);
    if (status == AKIN_OK)
        read->state = AKINI_READ_WAITING;
    else
        read_destroy(read);
    return status;
}

akin_status_t akin_net_read(akin_net_t *net, uint32_t rank, uint64_t offset,
                            void *local, size_t bytes, akin_net_read_fn_t done,
                            void *arg)
{
    if (!akin_net_has_peer(net, rank))
        return AKIN_ERR_PEER;
    akini_peer_t *peer = &net->peers[rank];
    if (bytes == 0 || offset > peer->slab_bytes ||
        bytes > peer->slab_bytes - offset)
        return AKIN_ERR_RANGE;
    if (peer->n_reads >= AKINI_OPEN_READS)
        return AKIN_ERR_FULL;
    akini_read_t *read = read_create(net, rank, local, bytes, done, arg);
    if (read == NULL)
        return AKIN_ERR_NOMEM;
    akin_status_t status = peer->one_sided ? start_get(peer, read, offset)
                                           : start_request(peer, read, offset);
    uint64_t *count_p = peer->one_sided ? &net->stats.reads_one_sided
                                        : &net->stats.reads_rendezvous;
    *count_p += status == AKIN_OK;
    return status;
}

/* Owner: keep the request; the answer goes out from inside poll. */
ucs_status_t akini_read_request_arrived(void *arg, const void *header,
                                        size_t header_bytes, void *data,
                                        size_t bytes,
                                        const ucp_am_recv_param_t *param)
{
    akin_net_t *net = arg;
    akini_frame_t frame;
    (void)data;
    (void)param;
    if (akini_net_accept(net, header, header_bytes, &frame) != AKIN_OK)
        return UCS_OK;
    akini_item_t *item = NULL;
    if (frame.type == AKINI_FRAME_READ_REQUEST && bytes == 0 &&
        net->n_requests < AKINI_OPEN_READS)
        item = akini_item_get(net, frame.from, 0);
    if (item == NULL) {
        akini_net_drop(net, "a read request that cannot be taken in",
                       frame.from);
        return UCS_OK;
    }
    if (net->peers[frame.from].incarnation == frame.from_incarnation)
        net->peers[frame.from].watch.is_heard = 1;
    item->frame = frame;
    akini_item_enlist(item, &net->requests);
    net->n_requests++;
    return UCS_OK;
}

/* Turns the request in `item` into its answer and sends that. */
static void answer(akini_peer_t *peer, akini_item_t *item)
{
    akin_net_t *net = peer->net;
    uint64_t offset = item->frame.offset;
    uint64_t bytes = item->frame.length;
    int inside = bytes > 0 && offset <= net->slab_bytes &&
                 bytes <= net->slab_bytes - offset;
    item->frame = (akini_frame_t){
        .type = AKINI_FRAME_READ_DATA,
        .from = net->rank,
        .status = inside ? AKIN_OK : AKIN_ERR_RANGE,
        .from_incarnation = net->incarnation,
        .to_incarnation = peer->incarnation,
        .sequence = item->frame.sequence,
        .length = inside ? bytes : 0,
    };
    if (!inside)
        akini_net_drop(net, "a read request beyond the slab", peer->rank);
    const unsigned char *piece =
        inside ? (const unsigned char *)net->slab + offset : NULL;
    akin_status_t status =
        akini_peer_post(peer, item, AKINI_AM_READ_DATA, piece,
                        inside ? bytes : 0, &peer->others);
    /* An answer that cannot leave would keep the reader waiting for ever. */
    if (status != AKIN_OK)
        akini_peer_fail(peer, AKIN_ERR_PEER);
}

int akini_reads_answer(akin_net_t *net)
{
    int n = 0;
    akini_item_t *item, *after;
    DL_FOREACH_SAFE(net->requests, item, after)
    {
        akini_peer_t *peer = &net->peers[item->rank];
        uint64_t incarnation = item->frame.from_incarnation;
        int is_present =
            peer->state == AKINI_PEER_UP && incarnation == peer->incarnation;
        /* A reader may ask before this rank has added it. */
        if (!is_present && incarnation > peer->retired &&
            incarnation > peer->incarnation)
            continue;
        akini_item_unlist(item);
        net->n_requests--;
        n++;
        if (is_present) {
            answer(peer, item);
            continue;
        }
        akini_net_drop_late(net, &item->frame);
        akini_item_put(item);
    }
    return n;
}

/* Reader: the answer to a request. */
ucs_status_t akini_read_data_arrived(void *arg, const void *header,
                                     size_t header_bytes, void *data,
                                     size_t bytes,
                                     const ucp_am_recv_param_t *param)
{
    akin_net_t *net = arg;
    akini_frame_t frame;
    if (akini_net_accept(net, header, header_bytes, &frame) != AKIN_OK)
        return UCS_OK;
    akini_peer_t *peer = &net->peers[frame.from];
    if (frame.from_incarnation <= peer->retired) {
        akini_net_drop_late(net, &frame);
        return UCS_OK;
    }
    akini_read_t *read = read_find(net, frame.sequence);
    if (read == NULL || read->state != AKINI_READ_WAITING ||
        read->rank != frame.from || frame.type != AKINI_FRAME_READ_DATA ||
        peer->incarnation != frame.from_incarnation) {
        akini_net_drop(net, "an answer to no read", frame.from);
        return UCS_OK;
    }
    peer->watch.is_heard = 1;
    if (frame.status != AKIN_OK) {
        read_finish(read, AKIN_ERR_RANGE);
        return UCS_OK;
    }
    if (bytes != read->bytes || frame.length != bytes) {
        akini_net_drop(net, "an answer of a wrong length", frame.from);
        read_finish(read, AKIN_ERR_FORMAT);
        return UCS_OK;
    }
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
        memcpy(read->local, data, bytes);
        read_finish(read, AKIN_OK);
        return UCS_OK;
    }
    const ucp_request_param_t receive = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv_am = receive_done,
        .user_data = read,
    };
    read->state = AKINI_READ_WRITING;
    ucs_status_ptr_t request =
        ucp_am_recv_data_nbx(net->worker, data, read->local, bytes, &receive);
    if (!UCS_PTR_IS_PTR(request))
        read_written(read, UCS_PTR_STATUS(request));
    return UCS_OK;
}

void akini_reads_abandon(akini_peer_t *peer)
{
    akin_net_t *net = peer->net;
    for (size_t i = 0; peer->n_reads > 0 && i < net->n_reads; i++) {
        akini_read_t *read = net->reads[i];
        if (read->rank == peer->rank && read->state == AKINI_READ_WAITING)
            read_finish(read, read_loss(net));
    }
}

/* Tell the owner. Reads that a callback starts and that finish at once wait
 * for the next round, so that one round is bounded. */
int akini_reads_dispatch(akin_net_t *net)
{
    int n = 0;
    akini_read_t *finished = net->finished;
    net->finished = NULL;
    while (finished != NULL) {
        akini_read_t *read = finished;
        DL_DELETE(finished, read);
        akin_net_read_fn_t done = read->done;
        void *arg = read->arg;
        akin_status_t status = read->status;
        read_destroy(read);
        n++;
        net->n_visible++;
        done(arg, status);
    }
    return n;
}

void akini_reads_cancel(akin_net_t *net)
{
    for (size_t i = 0; i < net->n_reads; i++)
        if (net->reads[i]->state == AKINI_READ_WAITING ||
            net->reads[i]->state == AKINI_READ_WRITING)
            read_finish(net->reads[i], AKIN_ERR_CANCELED);
    akini_reads_dispatch(net);
    for (size_t i = 0; i < net->n_reads; i++)
        free(net->reads[i]);
    free(net->reads);
    net->reads = NULL;
    net->n_reads = 0;
    net->reads_capacity = 0;
    net->spare_reads = NULL;
}
