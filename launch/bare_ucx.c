/* Bare UCX: a get, or a request and its answer by rendezvous. */
#include "launch/bare_ucx.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

#define AM_REQUEST 1
#define AM_DATA 2
#define LIMIT_NS (30 * AKIN_NS_PER_S)

struct akin_bare_ucx {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_mem_h memory;
    ucp_ep_h peer;
    ucp_rkey_h rkey;
    unsigned char *slab;
    size_t slab_bytes;
    uint64_t peer_slab;
    uint64_t asked_bytes;  /* owner: an answer is due */
    uint64_t wanted_bytes; /* reader: header of the request */
    int is_done;           /* reader: the data has arrived */
    ucs_status_t status;
};

/* The head of an identity; then the address and the key. */
typedef struct identity {
    uint64_t slab;
    uint64_t address_bytes;
    uint64_t rkey_bytes;
} identity_t;

static akin_status_t failed(akin_error_t *err, const char *call, ucs_status_t s)
{
    return akin_error_set(err, AKIN_ERR_UCX, "%s: %s", call,
                          ucs_status_string(s));
}

static void data_arrived(void *request, ucs_status_t status, size_t bytes,
                         void *arg)
{
    akin_bare_ucx_t *bare = arg;
    (void)bytes;
    if (request != NULL)
        ucp_request_free(request);
    bare->status = status;
    bare->is_done = 1;
}

static ucs_status_t on_request(void *arg, const void *header,
                               size_t header_bytes, void *data, size_t bytes,
                               const ucp_am_recv_param_t *param)
{
    akin_bare_ucx_t *bare = arg;
    (void)data;
    (void)bytes;
    (void)param;
    if (header_bytes == sizeof(bare->asked_bytes))
        memcpy(&bare->asked_bytes, header, header_bytes);
    return UCS_OK;
}

static ucs_status_t on_data(void *arg, const void *header, size_t header_bytes,
                            void *data, size_t bytes,
                            const ucp_am_recv_param_t *param)
{
    akin_bare_ucx_t *bare = arg;
    (void)header;
    (void)header_bytes;
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        memcpy(bare->slab, data, bytes);
        data_arrived(NULL, UCS_OK, bytes, bare);
        return UCS_OK;
    }
    const ucp_request_param_t receive = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMH,
        .cb.recv_am = data_arrived,
        .user_data = bare,
        .memh = bare->memory,
    };
    ucs_status_ptr_t request =
        ucp_am_recv_data_nbx(bare->worker, data, bare->slab, bytes, &receive);
    if (!UCS_PTR_IS_PTR(request))
        data_arrived(NULL, UCS_PTR_STATUS(request), bytes, bare);
    return UCS_OK;
}

static akin_status_t add_handler(akin_bare_ucx_t *bare, unsigned id,
                                 ucp_am_recv_callback_t handler,
                                 akin_error_t *err)
{
    const ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = id,
        .cb = handler,
        .arg = bare,
    };
    ucs_status_t s = ucp_worker_set_am_recv_handler(bare->worker, &param);
    return s == UCS_OK ? AKIN_OK
                       : failed(err, "ucp_worker_set_am_recv_handler", s);
}

static akin_status_t open_worker(akin_bare_ucx_t *bare, akin_error_t *err)
{
    ucp_config_t *config = NULL;
    ucs_status_t s = ucp_config_read(NULL, NULL, &config);
    if (s != UCS_OK)
        return failed(err, "ucp_config_read", s);
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = UCP_FEATURE_RMA | UCP_FEATURE_AM};
    s = ucp_init(&params, config, &bare->context);
    ucp_config_release(config);
    if (s != UCS_OK)
        return failed(err, "ucp_init", s);
    const ucp_worker_params_t worker_params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE};
    s = ucp_worker_create(bare->context, &worker_params, &bare->worker);
    if (s != UCS_OK)
        return failed(err, "ucp_worker_create", s);
    akin_status_t status = add_handler(bare, AM_REQUEST, on_request, err);
    return status != AKIN_OK ? status
                             : add_handler(bare, AM_DATA, on_data, err);
}

static akin_status_t map_slab(akin_bare_ucx_t *bare, akin_error_t *err)
{
    const ucp_mem_map_params_t params = {.field_mask =
                                             UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                                             UCP_MEM_MAP_PARAM_FIELD_FLAGS,
                                         .length = bare->slab_bytes,
                                         .flags = UCP_MEM_MAP_ALLOCATE};
    ucs_status_t s = ucp_mem_map(bare->context, &params, &bare->memory);
    if (s != UCS_OK)
        return failed(err, "ucp_mem_map", s);
    ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    s = ucp_mem_query(bare->memory, &attr);
    if (s != UCS_OK)
        return failed(err, "ucp_mem_query", s);
    bare->slab = attr.address;
    return AKIN_OK;
}

akin_status_t akin_bare_ucx_create(size_t slab_bytes, akin_bare_ucx_t **bare_p,
                                   akin_error_t *err)
{
    *bare_p = NULL;
    akin_bare_ucx_t *bare = calloc(1, sizeof(*bare));
    if (bare == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    bare->slab_bytes = slab_bytes;
    akin_status_t status = open_worker(bare, err);
    if (status == AKIN_OK)
        status = map_slab(bare, err);
    if (status != AKIN_OK) {
        akin_bare_ucx_destroy(bare);
        return status;
    }
    *bare_p = bare;
    return AKIN_OK;
}

static void close_peer(akin_bare_ucx_t *bare)
{
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                       .flags = UCP_EP_CLOSE_FLAG_FORCE};
    ucs_status_ptr_t request = ucp_ep_close_nbx(bare->peer, &param);
    if (!UCS_PTR_IS_PTR(request))
        return;
    int64_t limit_ns = akin_clock_now_ns() + AKIN_NS_PER_S;
    while (ucp_request_check_status(request) == UCS_INPROGRESS &&
           akin_clock_now_ns() < limit_ns)
        (void)ucp_worker_progress(bare->worker);
    ucp_request_free(request);
}

void akin_bare_ucx_destroy(akin_bare_ucx_t *bare)
{
    if (bare == NULL)
        return;
    if (bare->rkey != NULL)
        ucp_rkey_destroy(bare->rkey);
    if (bare->peer != NULL)
        close_peer(bare);
    if (bare->memory != NULL)
        (void)ucp_mem_unmap(bare->context, bare->memory);
    if (bare->worker != NULL)
        ucp_worker_destroy(bare->worker);
    if (bare->context != NULL)
        ucp_cleanup(bare->context);
    free(bare);
}

void *akin_bare_ucx_slab(const akin_bare_ucx_t *bare)
{
    return bare->slab;
}

akin_status_t akin_bare_ucx_identity(const akin_bare_ucx_t *bare, void **blob_p,
                                     size_t *bytes_p, akin_error_t *err)
{
    ucp_address_t *address = NULL;
    size_t address_bytes = 0, rkey_bytes = 0;
    void *rkey = NULL;
    ucs_status_t s =
        ucp_worker_get_address(bare->worker, &address, &address_bytes);
    if (s != UCS_OK)
        return failed(err, "ucp_worker_get_address", s);
    s = ucp_rkey_pack(bare->context, bare->memory, &rkey, &rkey_bytes);
    if (s != UCS_OK) {
        ucp_worker_release_address(bare->worker, address);
        return failed(err, "ucp_rkey_pack", s);
    }
    const identity_t head = {.slab = (uint64_t)(uintptr_t)bare->slab,
                             .address_bytes = address_bytes,
                             .rkey_bytes = rkey_bytes};
    size_t bytes = sizeof(head) + address_bytes + rkey_bytes;
    unsigned char *blob = malloc(bytes);
    if (blob != NULL) {
        memcpy(blob, &head, sizeof(head));
        memcpy(blob + sizeof(head), address, address_bytes);
        memcpy(blob + sizeof(head) + address_bytes, rkey, rkey_bytes);
    }
    ucp_rkey_buffer_release(rkey);
    ucp_worker_release_address(bare->worker, address);
    if (blob == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    *blob_p = blob;
    *bytes_p = bytes;
    return AKIN_OK;
}

akin_status_t akin_bare_ucx_connect(akin_bare_ucx_t *bare, const void *blob,
                                    size_t bytes, akin_error_t *err)
{
    identity_t head;
    if (bytes < sizeof(head))
        return akin_error_set(err, AKIN_ERR_FORMAT, "identity cut off");
    memcpy(&head, blob, sizeof(head));
    if (bytes != sizeof(head) + head.address_bytes + head.rkey_bytes)
        return akin_error_set(err, AKIN_ERR_FORMAT, "identity cut off");
    const unsigned char *at = (const unsigned char *)blob + sizeof(head);
    const void *address = at;
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = address};
    ucs_status_t s = ucp_ep_create(bare->worker, &params, &bare->peer);
    if (s != UCS_OK)
        return failed(err, "ucp_ep_create", s);
    s = ucp_ep_rkey_unpack(bare->peer, at + head.address_bytes, &bare->rkey);
    if (s != UCS_OK)
        return failed(err, "ucp_ep_rkey_unpack", s);
    bare->peer_slab = head.slab;
    return AKIN_OK;
}

static void answered(void *request, ucs_status_t status, void *arg)
{
    (void)status;
    (void)arg;
    ucp_request_free(request);
}

void akin_bare_ucx_progress(akin_bare_ucx_t *bare)
{
    (void)ucp_worker_progress(bare->worker);
    if (bare->asked_bytes == 0)
        return;
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_FLAGS |
                        UCP_OP_ATTR_FIELD_MEMH,
        .cb.send = answered,
        .flags = UCP_AM_SEND_FLAG_RNDV,
        .memh = bare->memory};
    size_t bytes = bare->asked_bytes < bare->slab_bytes ? bare->asked_bytes
                                                        : bare->slab_bytes;
    bare->asked_bytes = 0;
    (void)ucp_am_send_nbx(bare->peer, AM_DATA, NULL, 0, bare->slab, bytes,
                          &param);
}

static void got(void *request, ucs_status_t status, void *arg)
{
    data_arrived(request, status, 0, arg);
}

akin_status_t akin_bare_ucx_read(akin_bare_ucx_t *bare, size_t bytes,
                                 int one_sided)
{
    bare->is_done = 0;
    ucs_status_ptr_t request;
    if (one_sided) {
        const ucp_request_param_t param = {.op_attr_mask =
                                               UCP_OP_ATTR_FIELD_CALLBACK |
                                               UCP_OP_ATTR_FIELD_USER_DATA |
                                               UCP_OP_ATTR_FIELD_MEMH,
                                           .cb.send = got,
                                           .user_data = bare,
                                           .memh = bare->memory};
        request = ucp_get_nbx(bare->peer, bare->slab, bytes, bare->peer_slab,
                              bare->rkey, &param);
        if (!UCS_PTR_IS_PTR(request))
            data_arrived(NULL, UCS_PTR_STATUS(request), bytes, bare);
    } else {
        const ucp_request_param_t param = {
            .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = answered};
        bare->wanted_bytes = bytes;
        request = ucp_am_send_nbx(bare->peer, AM_REQUEST, &bare->wanted_bytes,
                                  sizeof(bare->wanted_bytes), NULL, 0, &param);
        if (UCS_PTR_IS_ERR(request))
            return AKIN_ERR_UCX;
    }
    int64_t limit_ns = akin_clock_now_ns() + LIMIT_NS;
    while (!bare->is_done) {
        if (ucp_worker_progress(bare->worker) == 0 &&
            akin_clock_now_ns() > limit_ns)
            return AKIN_ERR_TIMEOUT;
    }
    return bare->status == UCS_OK ? AKIN_OK : AKIN_ERR_UCX;
}
