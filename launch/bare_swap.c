/* Bare swap: the shortest programs that move the bytes. */
#include "launch/bare_swap.h"

#include "base/clock.h"

#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

#define AM_HERE 1
#define LIMIT_NS (30 * AKIN_NS_PER_S)
/* Pieces of a swap lie while the next one comes. */
#define AGES 2u

struct akin_bare_swap {
    uint32_t rank;
    uint32_t n_ranks;
    size_t piece_bytes;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_mem_h memory;
    unsigned char *slab; /* [AGES + 1][n_ranks] pieces; the last age goes out */
    ucp_ep_h *peers;     /* [n_ranks] */
    ucp_rkey_h *rkeys;   /* [n_ranks] */
    uint64_t *addresses; /* [n_ranks] of their slabs */
    uint64_t *n_here;    /* [n_ranks] pieces that have come */
    uint64_t number;
    int *counts; /* [4][n_ranks] of MPI */
    int has_failed;
};

/* In front of worker address and memory key. */
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

static ucs_status_t on_here(void *arg, const void *header, size_t header_bytes,
                            void *data, size_t bytes,
                            const ucp_am_recv_param_t *param)
{
    akin_bare_swap_t *b = arg;
    uint32_t from = 0;
    (void)data;
    (void)bytes;
    (void)param;
    if (header_bytes == sizeof(from))
        memcpy(&from, header, sizeof(from));
    if (from < b->n_ranks)
        b->n_here[from]++;
    return UCS_OK;
}

static akin_status_t open_worker(akin_bare_swap_t *b, akin_error_t *err)
{
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = UCP_FEATURE_RMA | UCP_FEATURE_AM};
    const ucp_worker_params_t worker_params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE};
    const ucp_am_handler_param_t handler = {.field_mask =
                                                UCP_AM_HANDLER_PARAM_FIELD_ID |
                                                UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                            .id = AM_HERE,
                                            .cb = on_here,
                                            .arg = b};
    const ucp_mem_map_params_t map = {
        .field_mask =
            UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .length = (size_t)(AGES + 1) * b->n_ranks * b->piece_bytes,
        .flags = UCP_MEM_MAP_ALLOCATE};
    ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    ucs_status_t s = ucp_init(&params, NULL, &b->context);
    if (s != UCS_OK)
        return failed(err, "ucp_init", s);
    s = ucp_worker_create(b->context, &worker_params, &b->worker);
    if (s != UCS_OK)
        return failed(err, "ucp_worker_create", s);
    s = ucp_worker_set_am_recv_handler(b->worker, &handler);
    if (s != UCS_OK)
        return failed(err, "ucp_worker_set_am_recv_handler", s);
    s = ucp_mem_map(b->context, &map, &b->memory);
    if (s == UCS_OK)
        s = ucp_mem_query(b->memory, &attr);
    if (s != UCS_OK)
        return failed(err, "ucp_mem_map", s);
    b->slab = attr.address;
    /* No page is met for the first time during a measurement. */
    memset(b->slab, 1, map.length);
    return AKIN_OK;
}

static akin_status_t pack_identity(const akin_bare_swap_t *b,
                                   unsigned char **blob_p, size_t *bytes_p,
                                   akin_error_t *err)
{
    ucp_address_t *address = NULL;
    void *rkey = NULL;
    identity_t head = {.slab = (uint64_t)(uintptr_t)b->slab};
    size_t address_bytes = 0, rkey_bytes = 0;
    ucs_status_t s =
        ucp_worker_get_address(b->worker, &address, &address_bytes);
    if (s != UCS_OK)
        return failed(err, "ucp_worker_get_address", s);
    s = ucp_rkey_pack(b->context, b->memory, &rkey, &rkey_bytes);
    if (s != UCS_OK) {
        ucp_worker_release_address(b->worker, address);
        return failed(err, "ucp_rkey_pack", s);
    }
    head.address_bytes = address_bytes;
    head.rkey_bytes = rkey_bytes;
    *bytes_p = sizeof(head) + address_bytes + rkey_bytes;
    *blob_p = malloc(*bytes_p);
    if (*blob_p != NULL) {
        memcpy(*blob_p, &head, sizeof(head));
        memcpy(*blob_p + sizeof(head), address, address_bytes);
        memcpy(*blob_p + sizeof(head) + address_bytes, rkey, rkey_bytes);
    }
    ucp_rkey_buffer_release(rkey);
    ucp_worker_release_address(b->worker, address);
    return *blob_p != NULL
               ? AKIN_OK
               : akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
}

/* The blob comes from this same program. */
static akin_status_t connect_peer(akin_bare_swap_t *b, uint32_t r,
                                  const unsigned char *blob, akin_error_t *err)
{
    identity_t head;
    memcpy(&head, blob, sizeof(head));
    const void *address = blob + sizeof(head);
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = address};
    ucs_status_t s = ucp_ep_create(b->worker, &params, &b->peers[r]);
    if (s != UCS_OK)
        return failed(err, "ucp_ep_create", s);
    s = ucp_ep_rkey_unpack(
        b->peers[r], blob + sizeof(head) + head.address_bytes, &b->rkeys[r]);
    if (s != UCS_OK)
        return failed(err, "ucp_ep_rkey_unpack", s);
    b->addresses[r] = head.slab;
    return AKIN_OK;
}

static akin_status_t connect_all(akin_bare_swap_t *b, akin_boot_t *boot,
                                 akin_error_t *err)
{
    unsigned char *blob = NULL, *blobs = NULL;
    size_t bytes = 0, *offsets = NULL;
    akin_status_t status = pack_identity(b, &blob, &bytes, err);
    status = akin_boot_agree(boot, status, err);
    if (status == AKIN_OK)
        status = akin_boot_exchange(boot, blob, bytes, &blobs, &offsets, err);
    for (uint32_t r = 0; status == AKIN_OK && r < b->n_ranks; r++)
        if (r != b->rank)
            status = connect_peer(b, r, blobs + offsets[r], err);
    free(blob);
    free(blobs);
    free(offsets);
    return status;
}

akin_status_t akin_bare_swap_create(akin_boot_t *boot, size_t piece_bytes,
                                    akin_bare_swap_t **bare_p,
                                    akin_error_t *err)
{
    *bare_p = NULL;
    akin_bare_swap_t *b = calloc(1, sizeof(*b));
    akin_status_t own = AKIN_ERR_NOMEM;
    if (b != NULL) {
        b->rank = akin_boot_rank(boot);
        b->n_ranks = akin_boot_size(boot);
        b->piece_bytes = (piece_bytes + 63) / 64 * 64;
        b->peers = calloc(b->n_ranks, sizeof(*b->peers));
        b->rkeys = calloc(b->n_ranks, sizeof(*b->rkeys));
        b->addresses = calloc(b->n_ranks, sizeof(*b->addresses));
        b->n_here = calloc(b->n_ranks, sizeof(*b->n_here));
        b->counts = calloc((size_t)b->n_ranks * 4, sizeof(*b->counts));
        if (b->peers != NULL && b->rkeys != NULL && b->addresses != NULL &&
            b->n_here != NULL && b->counts != NULL)
            own = open_worker(b, err);
    }
    akin_status_t status = akin_boot_agree(boot, own, err);
    if (own == AKIN_OK && status == AKIN_OK)
        status = akin_boot_agree(boot, connect_all(b, boot, err), err);
    if (status != AKIN_OK) {
        akin_bare_swap_destroy(b);
        return status;
    }
    *bare_p = b;
    return AKIN_OK;
}

void akin_bare_swap_destroy(akin_bare_swap_t *b)
{
    if (b == NULL)
        return;
    for (uint32_t r = 0; b->rkeys != NULL && r < b->n_ranks; r++)
        if (b->rkeys[r] != NULL)
            ucp_rkey_destroy(b->rkeys[r]);
    if (b->memory != NULL)
        (void)ucp_mem_unmap(b->context, b->memory);
    if (b->worker != NULL)
        ucp_worker_destroy(b->worker);
    if (b->context != NULL)
        ucp_cleanup(b->context);
    free(b->peers);
    free(b->rkeys);
    free(b->addresses);
    free(b->n_here);
    free(b->counts);
    free(b);
}

static void done(void *request, ucs_status_t status, void *arg)
{
    akin_bare_swap_t *b = arg;
    b->has_failed |= status != UCS_OK;
    ucp_request_free(request);
}

static int all_here(const akin_bare_swap_t *b)
{
    for (uint32_t r = 0; r < b->n_ranks; r++)
        if (r != b->rank && b->n_here[r] < b->number)
            return 0;
    return 1;
}

akin_status_t akin_bare_swap_ucx(akin_bare_swap_t *b, const size_t *sizes)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = done,
                                 .user_data = b};
    const size_t n = b->n_ranks;
    const uint64_t place =
        (b->number++ % AGES * n + b->rank) * (uint64_t)b->piece_bytes;
    for (uint32_t i = 1; i < n; i++) {
        const uint32_t r = (uint32_t)((b->rank + i) % n);
        const unsigned char *from = b->slab + (AGES * n + r) * b->piece_bytes;
        if (sizes[r] > 0 && UCS_PTR_IS_ERR(ucp_put_nbx(
                                b->peers[r], from, sizes[r],
                                b->addresses[r] + place, b->rkeys[r], &param)))
            return AKIN_ERR_UCX;
        if (ucp_worker_fence(b->worker) != UCS_OK ||
            UCS_PTR_IS_ERR(ucp_am_send_nbx(b->peers[r], AM_HERE, &b->rank,
                                           sizeof(b->rank), NULL, 0, &param)))
            return AKIN_ERR_UCX;
    }
    const int64_t limit_ns = akin_clock_now_ns() + LIMIT_NS;
    while (!all_here(b)) {
        if (ucp_worker_progress(b->worker) != 0)
            continue;
        /* Ranks may share cores. */
        (void)sched_yield();
        if (akin_clock_now_ns() > limit_ns)
            return AKIN_ERR_TIMEOUT;
    }
    return b->has_failed ? AKIN_ERR_UCX : AKIN_OK;
}

akin_status_t akin_bare_swap_mpi(akin_bare_swap_t *b, const size_t *sizes,
                                 const size_t *sizes_in)
{
    const size_t n = b->n_ranks;
    int *out = b->counts, *out_at = out + n, *in = out_at + n, *in_at = in + n;
    for (size_t r = 0; r < n; r++) {
        out[r] = r != b->rank ? (int)sizes[r] : 0;
        in[r] = r != b->rank ? (int)sizes_in[r] : 0;
        out_at[r] = in_at[r] = (int)(r * b->piece_bytes);
    }
    int code =
        MPI_Alltoallv(b->slab + AGES * n * b->piece_bytes, out, out_at,
                      MPI_BYTE, b->slab, in, in_at, MPI_BYTE, MPI_COMM_WORLD);
    return code == MPI_SUCCESS ? AKIN_OK : AKIN_ERR_MPI;
}
