/* Peers: endpoints to other ranks, from joining to the word that they are
 * lost. */
#include "net/net_internal.h"

#include "base/log.h"

#include <string.h>
#include <utlist.h>

/* UCX calls this once when an endpoint has failed, from inside progress. */
static void endpoint_failed(void *arg, ucp_ep_h endpoint, ucs_status_t status)
{
    akini_peer_t *peer = arg;
    if (peer->state != AKINI_PEER_UP || peer->endpoint != endpoint)
        return;
    AKIN_LOG(NET, INFO, "rank %u: %s", (unsigned)peer->rank,
             ucs_status_string(status));
    akini_peer_fail(peer, AKIN_ERR_PEER);
}

/* An endpoint that nobody saw: nothing is outstanding on it. */
static void endpoint_discard(ucp_ep_h endpoint)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_EP_CLOSE_FLAG_FORCE,
    };
    ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint, &param);
    if (UCS_PTR_IS_PTR(request))
        ucp_request_free(request);
}

static akin_status_t peer_connect(akini_peer_t *peer,
                                  const akini_identity_t *id, akin_error_t *err)
{
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = id->address,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = endpoint_failed, .arg = peer},
    };
    ucp_ep_h endpoint = NULL;
    ucs_status_t s = ucp_ep_create(peer->net->worker, &params, &endpoint);
    if (s != UCS_OK)
        return akin_error_set(err,
                              s == UCS_ERR_NO_MEMORY     ? AKIN_ERR_NOMEM
                              : s == UCS_ERR_UNREACHABLE ? AKIN_ERR_NOT_FOUND
                                                         : AKIN_ERR_UCX,
                              "rank %u: ucp_ep_create: %s",
                              (unsigned)peer->rank, ucs_status_string(s));
    ucp_rkey_h rkey = NULL;
    if (id->rkey_bytes != 0) {
        s = ucp_ep_rkey_unpack(endpoint, id->rkey, &rkey);
        if (s != UCS_OK) {
            endpoint_discard(endpoint);
            return akin_error_set(err, AKIN_ERR_UCX,
                                  "rank %u: ucp_ep_rkey_unpack: %s",
                                  (unsigned)peer->rank, ucs_status_string(s));
        }
    }
    peer->endpoint = endpoint;
    peer->rkey = rkey;
    return AKIN_OK;
}

akin_status_t akin_net_add_peer(akin_net_t *net, uint32_t rank,
                                const void *blob, size_t bytes,
                                akin_error_t *err)
{
    if (rank >= net->n_ranks || rank == net->rank)
        return akin_error_set(
            err, AKIN_ERR_RANGE, "rank %u is %s", (unsigned)rank,
            rank == net->rank ? "this rank itself" : "not in the job");
    akini_identity_t id;
    akin_status_t status = akini_identity_unpack(blob, bytes, &id, err);
    if (status != AKIN_OK)
        return akin_error_prefix(err, status, "rank %u: ", (unsigned)rank);
    if (id.rank != rank)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "rank %u: the identity is that of rank %u",
                              (unsigned)rank, (unsigned)id.rank);
    akini_peer_t *peer = &net->peers[rank];
    if (peer->state == AKINI_PEER_UP)
        return akin_error_set(err, AKIN_ERR_EXISTS,
                              "rank %u is connected already", (unsigned)rank);
    if (peer->state == AKINI_PEER_CLOSING)
        return akin_error_set(err, AKIN_ERR_BUSY,
                              "rank %u is being closed; add it after peer_lost",
                              (unsigned)rank);
    if (id.incarnation <= peer->retired ||
        id.incarnation < peer->stream.incarnation)
        return akin_error_set(err, AKIN_ERR_PEER,
                              "rank %u: the identity is that of a lost process",
                              (unsigned)rank);
    status = peer_connect(peer, &id, err);
    if (status != AKIN_OK)
        return status;
    peer->state = AKINI_PEER_UP;
    peer->incarnation = id.incarnation;
    peer->slab_address = id.slab_address;
    peer->slab_bytes = id.slab_bytes;
    peer->next_sequence = 0;
    peer->unsent_bytes = 0;
    peer->close_posted = 0;
    peer->close_done = 0;
    peer->watch = (akini_watch_t){0};
    /* It may have spoken before it was added: that stream goes on. */
    if (peer->stream.incarnation != id.incarnation)
        akini_stream_reset(peer, id.incarnation);
    akini_path_choose(peer);
    return AKIN_OK;
}

int akin_net_has_peer(const akin_net_t *net, uint32_t rank)
{
    return rank < net->n_ranks && net->peers[rank].state == AKINI_PEER_UP;
}

uint64_t akin_net_peer_incarnation(const akin_net_t *net, uint32_t rank)
{
    return akin_net_has_peer(net, rank) ? net->peers[rank].incarnation : 0;
}

void akin_net_drop_peer(akin_net_t *net, uint32_t rank)
{
    if (rank < net->n_ranks)
        akini_peer_fail(&net->peers[rank], AKIN_ERR_PEER);
}

void akini_peer_fail(akini_peer_t *peer, akin_status_t status)
{
    if (peer->state != AKINI_PEER_UP)
        return;
    akin_net_t *net = peer->net;
    peer->state = AKINI_PEER_CLOSING;
    peer->loss = status;
    peer->retired = peer->incarnation;
    akini_watch_end(peer);
    net->n_closing++;
    /* UCX still holds these; their callbacks free them. */
    while (peer->sends != NULL)
        akini_item_enlist(peer->sends, &net->adrift);
    while (peer->others != NULL)
        akini_item_enlist(peer->others, &net->adrift);
    if (peer->stream.incarnation == peer->incarnation)
        akini_stream_reset(peer, 0);
    akini_reads_abandon(peer);
}

/* UCX is done with an item that went out. */
static void sent(void *request, ucs_status_t status, void *arg)
{
    akini_item_t *item = arg;
    akin_net_t *net = item->net;
    akini_peer_t *peer = &net->peers[item->rank];
    ucp_request_free(request);
    int adrift = item->list == &net->adrift;
    if (item->list == &peer->sends) {
        peer->unsent_bytes -= item->frame.length;
        if (item->frame.type == AKINI_FRAME_HEARTBEAT)
            peer->watch.n_unsent--;
        else
            net->n_visible++;
    }
    akini_item_put(item);
    /* What was accepted has to arrive, or else the peer is lost. */
    if (status != UCS_OK && !adrift) {
        AKIN_LOG(NET, INFO, "rank %u: send: %s", (unsigned)peer->rank,
                 ucs_status_string(status));
        akini_peer_fail(peer, AKIN_ERR_PEER);
    }
}

akin_status_t akini_peer_post(akini_peer_t *peer, akini_item_t *item,
                              unsigned am_id, const void *payload, size_t bytes,
                              akini_item_t **list)
{
    akini_frame_pack(&item->frame, item->wire);
    const ucp_request_param_t param = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = sent,
        .user_data = item,
    };
    ucs_status_ptr_t request =
        ucp_am_send_nbx(peer->endpoint, am_id, item->wire, sizeof(item->wire),
                        payload, bytes, &param);
    if (UCS_PTR_IS_PTR(request)) {
        akini_item_enlist(item, list);
        if (list == &peer->sends)
            peer->unsent_bytes += bytes;
        peer->watch.n_unsent += item->frame.type == AKINI_FRAME_HEARTBEAT;
        return AKIN_OK;
    }
    ucs_status_t s = UCS_PTR_STATUS(request);
    akini_item_put(item);
    if (s == UCS_OK)
        return AKIN_OK;
    if (s == UCS_ERR_NO_MEMORY)
        return AKIN_ERR_NOMEM;
    AKIN_LOG(NET, INFO, "rank %u: ucp_am_send_nbx: %s", (unsigned)peer->rank,
             ucs_status_string(s));
    akini_peer_fail(peer, AKIN_ERR_PEER);
    return AKIN_ERR_PEER;
}

static void closed(void *request, ucs_status_t status, void *arg)
{
    akini_peer_t *peer = arg;
    (void)status;
    ucp_request_free(request);
    peer->close_done = 1;
}

static void post_close(akini_peer_t *peer)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .flags = UCP_EP_CLOSE_FLAG_FORCE,
        .cb.send = closed,
        .user_data = peer,
    };
    peer->close_posted = 1;
    ucs_status_ptr_t request = ucp_ep_close_nbx(peer->endpoint, &param);
    if (!UCS_PTR_IS_PTR(request))
        peer->close_done = 1;
}

int akini_peers_settle(akin_net_t *net)
{
    int n = 0;
    for (uint32_t r = 0; net->n_closing > 0 && r < net->n_ranks; r++) {
        akini_peer_t *peer = &net->peers[r];
        if (peer->state != AKINI_PEER_CLOSING)
            continue;
        if (!peer->close_posted) {
            post_close(peer);
            n++;
        }
        if (!peer->close_done || peer->n_reads > 0)
            continue;
        if (peer->rkey != NULL)
            ucp_rkey_destroy(peer->rkey);
        peer->rkey = NULL;
        peer->endpoint = NULL;
        peer->incarnation = 0;
        peer->state = AKINI_PEER_NONE;
        net->n_closing--;
        net->n_visible++;
        n++;
        if (!net->closing_down && net->events.peer_lost != NULL)
            net->events.peer_lost(net->events.arg, r, peer->loss);
        /* A successor may have spoken meanwhile. */
        akini_stream_advance(peer);
    }
    return n;
}
