/* Messages: sent with a number, handed over in the order of the numbers. */
#include "net/net_internal.h"

#include "base/log.h"

#include <inttypes.h>
#include <string.h>
#include <utlist.h>

static akin_status_t message_post(akini_peer_t *peer, uint16_t type,
                                  const void *payload, size_t bytes)
{
    akin_net_t *net = peer->net;
    if (peer->sends != NULL &&
        (peer->next_sequence - peer->sends->frame.sequence >=
             AKINI_WINDOW_MESSAGES ||
         peer->unsent_bytes + bytes >
             AKINI_UNSENT_BYTES + net->max_message_bytes))
        return AKIN_ERR_FULL;
    akini_item_t *item = akini_item_get(net, peer->rank, bytes);
    if (item == NULL)
        return AKIN_ERR_NOMEM;
    if (bytes > 0)
        memcpy(item->payload, payload, bytes);
    item->frame = (akini_frame_t){
        .type = type,
        .from = net->rank,
        .from_incarnation = net->incarnation,
        .to_incarnation = peer->incarnation,
        .sequence = peer->next_sequence,
        .length = bytes,
    };
    akin_status_t status = akini_peer_post(peer, item, AKINI_AM_MESSAGE,
                                           item->payload, bytes, &peer->sends);
    if (status != AKIN_OK)
        return status;
    peer->next_sequence++;
    return AKIN_OK;
}

akin_status_t akin_net_send(akin_net_t *net, uint32_t rank, uint16_t type,
                            const void *payload, size_t bytes)
{
    if (!akin_net_has_peer(net, rank))
        return AKIN_ERR_PEER;
    if (type > AKINI_FRAME_LAST_USER || bytes > net->max_message_bytes)
        return AKIN_ERR_RANGE;
    akin_status_t status =
        message_post(&net->peers[rank], type, payload, bytes);
    if (status != AKIN_OK)
        return status;
    net->stats.messages_sent++;
    net->stats.bytes_sent += bytes;
    return AKIN_OK;
}

int akin_net_has_unsent(const akin_net_t *net, uint32_t rank)
{
    return rank < net->n_ranks && net->peers[rank].sends != NULL;
}

akin_status_t akini_message_signal(akini_peer_t *peer, uint16_t type)
{
    return message_post(peer, type, NULL, 0);
}

void akini_stream_reset(akini_peer_t *peer, uint64_t incarnation)
{
    akini_stream_t *stream = &peer->stream;
    while (stream->held != NULL) {
        akini_item_t *item = stream->held;
        /* UCX may still write into an incomplete one. */
        if (item->complete)
            akini_item_put(item);
        else
            akini_item_enlist(item, &peer->net->adrift);
    }
    stream->n_held = 0;
    stream->next_sequence = 0;
    stream->incarnation = incarnation;
}

/* A stream with a hole that nothing can fill: its sender is lost. */
static void stream_fail(akini_peer_t *peer)
{
    if (peer->state == AKINI_PEER_UP &&
        peer->incarnation == peer->stream.incarnation) {
        akini_peer_fail(peer, AKIN_ERR_PEER);
        return;
    }
    peer->retired = peer->stream.incarnation;
    akini_stream_reset(peer, 0);
}

void akini_stream_advance(akini_peer_t *peer)
{
    akini_stream_t *stream = &peer->stream;
    /* While a predecessor is being closed, its loss has to be told first. */
    while (peer->state != AKINI_PEER_CLOSING && stream->held != NULL &&
           stream->held->complete &&
           stream->held->frame.sequence == stream->next_sequence) {
        stream->next_sequence++;
        stream->n_held--;
        akini_item_enlist(stream->held, &peer->net->ready);
    }
}

/* Whether a frame belongs to the life of its sender that is listened to; a
 * newer life ends the one before. */
static int stream_admit(akini_peer_t *peer, uint64_t incarnation)
{
    akini_stream_t *stream = &peer->stream;
    if (incarnation == stream->incarnation)
        return incarnation != 0;
    if (incarnation == 0 || incarnation <= peer->retired ||
        incarnation < stream->incarnation)
        return 0;
    if (peer->state == AKINI_PEER_UP) {
        AKIN_LOG(NET, INFO, "rank %u: its successor speaks",
                 (unsigned)peer->rank);
        akini_peer_fail(peer, AKIN_ERR_PEER);
    }
    akini_stream_reset(peer, incarnation);
    return 1;
}

/* Put an item into its place; mostly that is the end. */
static akin_status_t stream_insert(akini_peer_t *peer, akini_item_t *item)
{
    akini_stream_t *stream = &peer->stream;
    uint64_t sequence = item->frame.sequence;
    if (stream->n_held >= 2 * AKINI_WINDOW_MESSAGES)
        return AKIN_ERR_FULL;
    akini_item_t *before = stream->held != NULL ? stream->held->prev : NULL;
    while (before != NULL && before->frame.sequence > sequence)
        before = before == stream->held ? NULL : before->prev;
    if (before != NULL && before->frame.sequence == sequence)
        return AKIN_ERR_EXISTS;
    if (before != NULL)
        DL_APPEND_ELEM(stream->held, before, item);
    else
        DL_PREPEND(stream->held, item);
    item->list = &stream->held;
    stream->n_held++;
    return AKIN_OK;
}

/* The payload of a rendezvous message is there. */
static void received(void *request, ucs_status_t status, size_t bytes,
                     void *arg)
{
    akini_item_t *item = arg;
    akini_peer_t *peer = &item->net->peers[item->rank];
    ucp_request_free(request);
    if (item->list == &item->net->adrift) {
        akini_item_put(item);
        return;
    }
    item->complete = 1;
    if (status != UCS_OK || bytes != item->frame.length) {
        AKIN_LOG(NET, INFO, "rank %u: receive: %s", (unsigned)peer->rank,
                 ucs_status_string(status));
        stream_fail(peer);
        return;
    }
    akini_stream_advance(peer);
}

/* Bring the payload into the item, now or later. */
static akin_status_t message_fetch(akini_item_t *item, void *data, size_t bytes,
                                   const ucp_am_recv_param_t *param)
{
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
        if (bytes > 0)
            memcpy(item->payload, data, bytes);
        item->complete = 1;
        return AKIN_OK;
    }
    const ucp_request_param_t receive = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv_am = received,
        .user_data = item,
    };
    ucs_status_ptr_t request = ucp_am_recv_data_nbx(
        item->net->worker, data, item->payload, bytes, &receive);
    if (UCS_PTR_IS_PTR(request))
        return AKIN_OK;
    item->complete = 1;
    return UCS_PTR_STATUS(request) == UCS_OK ? AKIN_OK : AKIN_ERR_UCX;
}

ucs_status_t akini_message_arrived(void *arg, const void *header,
                                   size_t header_bytes, void *data,
                                   size_t bytes,
                                   const ucp_am_recv_param_t *param)
{
    akin_net_t *net = arg;
    akini_frame_t frame;
    if (akini_net_accept(net, header, header_bytes, &frame) != AKIN_OK)
        return UCS_OK;
    akini_peer_t *peer = &net->peers[frame.from];
    if (!stream_admit(peer, frame.from_incarnation)) {
        akini_net_drop_late(net, &frame);
        return UCS_OK;
    }
    peer->watch.is_heard = 1;
    if (frame.length != bytes || bytes > net->max_message_bytes) {
        akini_net_drop(net, "a message of a wrong length", frame.from);
        stream_fail(peer);
        return UCS_OK;
    }
    if (frame.sequence < peer->stream.next_sequence) {
        akini_net_drop(net, "a message with a used number", frame.from);
        return UCS_OK;
    }
    akini_item_t *item = akini_item_get(net, frame.from, bytes);
    if (item == NULL) {
        akini_net_drop(net, "for want of memory, a message", frame.from);
        stream_fail(peer);
        return UCS_OK;
    }
    item->frame = frame;
    akin_status_t status = stream_insert(peer, item);
    if (status == AKIN_ERR_EXISTS) {
        akini_net_drop(net, "a message with a used number", frame.from);
        akini_item_put(item);
        return UCS_OK;
    }
    if (status == AKIN_OK)
        status = message_fetch(item, data, bytes, param);
    else
        akini_item_put(item);
    if (status != AKIN_OK) {
        akini_net_drop(net, "a message that cannot be taken in", frame.from);
        stream_fail(peer);
        return UCS_OK;
    }
    akini_stream_advance(peer);
    return UCS_OK;
}

/* A message of the net itself. */
static void signal_take(akini_peer_t *peer, const akini_frame_t *frame)
{
    akin_net_t *net = peer->net;
    if (frame->type == AKINI_FRAME_HEARTBEAT) {
        net->stats.heartbeats_received++;
        net->pulse.is_called = 1;
    } else if (frame->type == AKINI_FRAME_GOODBYE &&
               peer->incarnation == frame->from_incarnation) {
        akini_peer_fail(peer, AKIN_ERR_CANCELED);
        /* UCX may have seen the end of the connection first. */
        peer->loss = AKIN_ERR_CANCELED;
    }
}

int akini_messages_dispatch(akin_net_t *net)
{
    int n = 0;
    while (net->ready != NULL) {
        akini_item_t *item = net->ready;
        akini_item_unlist(item);
        n++;
        if (net->closing_down) {
            akini_item_put(item);
            continue;
        }
        if (item->frame.type > AKINI_FRAME_LAST_USER) {
            signal_take(&net->peers[item->rank], &item->frame);
        } else {
            net->n_visible++;
            net->stats.messages_received++;
            net->stats.bytes_received += item->frame.length;
            net->events.message(net->events.arg, item->rank, item->frame.type,
                                item->payload, item->frame.length);
        }
        akini_item_put(item);
    }
    return n;
}
