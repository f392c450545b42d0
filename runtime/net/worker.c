/* Worker: starts UCX with its slab, and ends it. */
#include "net/net_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "net/ucx_log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#define DEFAULT_MAX_MESSAGE_BYTES ((size_t)16 << 20)
/* How long destroy waits for what was sent, and again for UCX to close. */
#define GRACE_NS AKIN_NS_PER_S
#define DROPS_LOGGED 10

void akini_net_drop(akin_net_t *net, const char *reason, uint32_t from)
{
    /* A broken or hostile peer must not fill the disk. */
    if (net->n_dropped++ >= DROPS_LOGGED)
        return;
    char who[24] = "an unknown sender";
    if (from < net->n_ranks)
        snprintf(who, sizeof(who), "rank %u", (unsigned)from);
    AKIN_LOG(NET, WARN, "%s from %s was dropped%s", reason, who,
             net->n_dropped == DROPS_LOGGED
                 ? "; what follows of this kind is not reported"
                 : "");
}

void akini_net_drop_late(akin_net_t *net, const akini_frame_t *frame)
{
    AKIN_LOG(NET, DEBUG, "rank %u: a late frame %s a process that is over",
             (unsigned)frame->from,
             frame->to_incarnation != net->incarnation ? "for" : "of");
    /* Signals carry nothing that could be missed. */
    if (frame->type == AKINI_FRAME_HEARTBEAT ||
        frame->type == AKINI_FRAME_GOODBYE)
        return;
    net->stats.messages_late++;
    net->n_visible++;
}

akin_status_t akini_net_accept(akin_net_t *net, const void *header,
                               size_t header_bytes, akini_frame_t *frame_p)
{
    akin_status_t status = akini_frame_unpack(header, header_bytes, frame_p);
    if (status != AKIN_OK) {
        akini_net_drop(net, "a header of another program or version",
                       UINT32_MAX);
        return status;
    }
    if (frame_p->from >= net->n_ranks || frame_p->from == net->rank) {
        akini_net_drop(net, "a frame of no rank of the job", frame_p->from);
        return AKIN_ERR_RANGE;
    }
    if (frame_p->to_incarnation != net->incarnation) {
        akini_net_drop_late(net, frame_p);
        return AKIN_ERR_PEER;
    }
    return AKIN_OK;
}

static akin_status_t ucx_failed(akin_error_t *err, const char *call,
                                ucs_status_t s)
{
    return akin_error_set(
        err, s == UCS_ERR_NO_MEMORY ? AKIN_ERR_NOMEM : AKIN_ERR_UCX, "%s: %s",
        call, ucs_status_string(s));
}

static akin_status_t context_open(akin_net_t *net, akin_error_t *err)
{
    /* Without it an endpoint with error handling leaves shared memory for tcp
     * without a word. */
    setenv("UCX_MM_ERROR_HANDLING", "y", 0);
    /* Else connecting to a host that does not answer takes minutes, in which
     * this rank does nothing. */
    setenv("UCX_TCP_CONN_NB", "y", 0);
    akini_ucx_log_hush();
    ucp_config_t *config = NULL;
    ucs_status_t s = ucp_config_read(NULL, NULL, &config);
    if (s != UCS_OK)
        return ucx_failed(err, "ucp_config_read", s);
    /* The heap would be the last resort, but it gives neither pages nor
     * zeros. */
    if (getenv("UCX_ALLOC_PRIO") == NULL &&
        ucp_config_modify(config, "ALLOC_PRIO",
                          "md:sysv,md:posix,huge,thp,md:*,mmap") != UCS_OK)
        AKIN_LOG(NET, DEBUG, "UCX does not take ALLOC_PRIO");
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES |
                      UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME,
        .features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
        .estimated_num_eps = net->n_ranks,
        .name = "akin",
    };
    s = ucp_init(&params, config, &net->context);
    ucp_config_release(config);
    return s == UCS_OK ? AKIN_OK : ucx_failed(err, "ucp_init", s);
}

static akin_status_t handler_set(akin_net_t *net, unsigned id,
                                 ucp_am_recv_callback_t handler,
                                 akin_error_t *err)
{
    const ucp_am_handler_param_t param = {
        .field_mask =
            UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
            UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = id,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = handler,
        .arg = net,
    };
    ucs_status_t s = ucp_worker_set_am_recv_handler(net->worker, &param);
    return s == UCS_OK ? AKIN_OK
                       : ucx_failed(err, "ucp_worker_set_am_recv_handler", s);
}

static akin_status_t worker_open(akin_net_t *net, akin_error_t *err)
{
    /* One thread at a time, not always the one that created it. */
    const ucp_worker_params_t params = {
        .field_mask =
            UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED,
        .flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK,
    };
    ucs_status_t s = ucp_worker_create(net->context, &params, &net->worker);
    if (s != UCS_OK)
        return ucx_failed(err, "ucp_worker_create", s);
    s = ucp_worker_get_efd(net->worker, &net->worker_fd);
    if (s != UCS_OK)
        return ucx_failed(err, "ucp_worker_get_efd", s);
    akin_status_t status =
        handler_set(net, AKINI_AM_MESSAGE, akini_message_arrived, err);
    if (status == AKIN_OK)
        status = handler_set(net, AKINI_AM_READ_REQUEST,
                             akini_read_request_arrived, err);
    if (status == AKIN_OK)
        status =
            handler_set(net, AKINI_AM_READ_DATA, akini_read_data_arrived, err);
    return status;
}

static akin_status_t slab_map(akin_net_t *net, size_t bytes, akin_error_t *err)
{
    if (bytes == 0)
        return AKIN_OK;
    const ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .length = bytes,
        .flags = UCP_MEM_MAP_ALLOCATE,
    };
    ucs_status_t s = ucp_mem_map(net->context, &params, &net->slab_memory);
    if (s != UCS_OK)
        return akin_error_set(err, AKIN_ERR_NOMEM,
                              "slab of %zu bytes: ucp_mem_map: %s; is there "
                              "room in memory and in /dev/shm?",
                              bytes, ucs_status_string(s));
    ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    s = ucp_mem_query(net->slab_memory, &attr);
    if (s != UCS_OK)
        return ucx_failed(err, "ucp_mem_query", s);
    net->slab = attr.address;
    net->slab_bytes = bytes;
    return AKIN_OK;
}

/* What create made, in reverse; destroy has ended everything else. */
static void net_free(akin_net_t *net)
{
    if (net->worker != NULL)
        ucp_worker_destroy(net->worker);
    /* From here on UCX writes nowhere. */
    akini_reads_cancel(net);
    if (net->slab_memory != NULL)
        ucp_mem_unmap(net->context, net->slab_memory);
    if (net->context != NULL)
        ucp_cleanup(net->context);
    if (net->wake_fd >= 0)
        close(net->wake_fd);
    for (uint32_t r = 0; net->peers != NULL && r < net->n_ranks; r++) {
        while (net->peers[r].sends != NULL)
            akini_item_put(net->peers[r].sends);
        while (net->peers[r].others != NULL)
            akini_item_put(net->peers[r].others);
        while (net->peers[r].stream.held != NULL)
            akini_item_put(net->peers[r].stream.held);
    }
    while (net->ready != NULL)
        akini_item_put(net->ready);
    while (net->requests != NULL)
        akini_item_put(net->requests);
    while (net->adrift != NULL)
        akini_item_put(net->adrift);
    akini_item_pool_cleanup(net);
    free(net->peers);
    free(net);
}

akin_status_t akin_net_create(const akin_net_params_t *params,
                              akin_net_t **net_p, akin_error_t *err)
{
    *net_p = NULL;
    if (params->n_ranks == 0 || params->rank >= params->n_ranks ||
        params->events.message == NULL)
        return akin_error_set(
            err, AKIN_ERR_INVALID, "net: rank %u of %u, or no message callback",
            (unsigned)params->rank, (unsigned)params->n_ranks);
    akin_net_t *net = calloc(1, sizeof(*net));
    if (net == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "net: out of memory");
    net->rank = params->rank;
    net->n_ranks = params->n_ranks;
    net->max_message_bytes = params->max_message_bytes != 0
                                 ? params->max_message_bytes
                                 : DEFAULT_MAX_MESSAGE_BYTES;
    net->events = params->events;
    /* A later life of a rank, which its supervisor starts on the same host, has
     * a greater number: unlike the time of day, this clock is never set back.
     */
    net->incarnation = (uint64_t)akin_clock_now_ns();
    net->pulse.due_ns = INT64_MAX;
    net->wake_fd = -1;
    akin_status_t status = AKIN_OK;
    net->peers = calloc(net->n_ranks, sizeof(*net->peers));
    if (net->peers == NULL) {
        status = akin_error_set(err, AKIN_ERR_NOMEM, "net: out of memory");
        goto err_free;
    }
    for (uint32_t r = 0; r < net->n_ranks; r++) {
        net->peers[r].net = net;
        net->peers[r].rank = r;
    }
    net->watch_fd = -1;
    net->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (net->wake_fd < 0) {
        status = akin_error_set(err, akin_status_from_errno(errno),
                                "eventfd: %s", strerror(errno));
        goto err_free;
    }
    status = context_open(net, err);
    if (status == AKIN_OK)
        status = worker_open(net, err);
    if (status == AKIN_OK)
        status = slab_map(net, params->slab_bytes, err);
    if (status != AKIN_OK)
        goto err_free;
    *net_p = net;
    return AKIN_OK;
err_free:
    net_free(net);
    return status;
}

static void flushed(void *request, ucs_status_t status, void *arg)
{
    akin_net_t *net = arg;
    (void)status;
    ucp_request_free(request);
    net->n_flushing--;
}

/* Part from the peers: what was sent is on its way when this returns, or a
 * second has passed. */
static void say_goodbye(akin_net_t *net)
{
    ucp_request_param_t param = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = flushed,
        .user_data = net,
    };
    int64_t deadline_ns = akin_clock_now_ns() + GRACE_NS;
    for (uint32_t r = 0; r < net->n_ranks; r++) {
        akini_peer_t *peer = &net->peers[r];
        if (peer->state != AKINI_PEER_UP ||
            akini_message_signal(peer, AKINI_FRAME_GOODBYE) != AKIN_OK)
            continue;
        ucs_status_ptr_t request = ucp_ep_flush_nbx(peer->endpoint, &param);
        net->n_flushing += (uint32_t)UCS_PTR_IS_PTR(request);
    }
    const struct timespec pause = {.tv_nsec = AKIN_NS_PER_MS / 5};
    int waiting = 1;
    while (waiting && akin_clock_now_ns() < deadline_ns) {
        if (akin_net_poll(net) == 0)
            nanosleep(&pause, NULL);
        waiting = net->n_flushing > 0;
        for (uint32_t r = 0; r < net->n_ranks && !waiting; r++)
            waiting = net->peers[r].sends != NULL;
    }
    /* A flush that is still open ends when its endpoint is closed by force. */
    for (uint32_t r = 0; r < net->n_ranks; r++)
        akini_peer_fail(&net->peers[r], AKIN_ERR_CANCELED);
    deadline_ns = akin_clock_now_ns() + GRACE_NS;
    while ((net->n_closing > 0 || net->n_flushing > 0) &&
           akin_clock_now_ns() < deadline_ns)
        if (akin_net_poll(net) == 0)
            nanosleep(&pause, NULL);
}

void akin_net_destroy(akin_net_t *net)
{
    if (net == NULL)
        return;
    net->closing_down = 1;
    say_goodbye(net);
    net_free(net);
}

void *akin_net_slab(const akin_net_t *net)
{
    return net->slab;
}

void akin_net_stats(const akin_net_t *net, akin_net_stats_t *stats_p)
{
    *stats_p = net->stats;
}
