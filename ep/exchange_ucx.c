/* UCX exchange: small pieces go in a message; for others the message says where
 * in the sender's memory the receiver reads them, without the sender's help. */
#include "ep/exchange_ucx.h"

#include "base/clock.h"
#include "ep/piece_buffer.h"
#include "net/net.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SLOT_BYTES ((size_t)2 << 20)
/* Sleeping and waking takes ten times as long as a small swap itself. */
#define DEFAULT_SPIN_NS (50 * AKIN_NS_PER_US)
#define PAGE_BYTES ((size_t)4096)
/* A message of this size is quicker than a notice and a read. */
#define INLINE_BYTES ((size_t)4 << 10)
/* Bounds what a broken rank can make this one allocate. */
#define MAX_MESSAGE_BYTES ((size_t)1 << 30)
/* A slot may be filled anew when every rank has begun the next swap. */
#define SENT_AGES 2u
#define FAREWELL_NS AKIN_NS_PER_S
/* UCX wakes nobody when a message that it could not send at once may go on. */
#define UNSENT_WAIT_NS (100 * AKIN_NS_PER_US)

/* The type of a message: what it is, and the low bits of the swap's number. */
#define NUMBER_BITS 14
#define NUMBER_MASK ((1u << NUMBER_BITS) - 1u)
enum { KIND_INLINE = 0, KIND_NOTICE, KIND_FAREWELL };

/* Payload of a notice. */
typedef struct notice {
    uint64_t offset; /* in the sender's memory */
    uint64_t bytes;
} notice_t;

/* A piece of one age from one rank. */
typedef struct arrival {
    struct ucx_exchange *exchange;
    uint32_t from;
    int is_here;
    akin_ep_piece_t piece;
    akini_ep_piece_buffer_t buffer; /* for what came in a message */
} arrival_t;

typedef struct ucx_exchange {
    akin_ep_exchange_t base;
    akin_net_t *net;
    size_t slot_bytes;
    int64_t spin_ns;
    uint64_t number; /* of the swap that runs, or the last one; from 1 */
    akin_status_t status;
    uint64_t *n_arrived;     /* [n_ranks] pieces announced so far */
    unsigned char *is_lost;  /* [n_ranks] */
    unsigned char *said_bye; /* [n_ranks] */
    arrival_t *arrivals;     /* [AKINI_EP_PIECE_AGES][n_ranks] */
    int has_notices;         /* others may still read from here */
} ucx_exchange_t;

static arrival_t *arrival_of(const ucx_exchange_t *e, uint64_t number,
                             uint32_t from)
{
    return &e->arrivals[number % AKINI_EP_PIECE_AGES * e->base.n_ranks + from];
}

/* Slots of the memory: what is sent to each rank, then what is read. */
static size_t sent_slot(const ucx_exchange_t *e, uint64_t number, uint32_t to)
{
    return (size_t)(number % SENT_AGES * e->base.n_ranks + to) * e->slot_bytes;
}

static size_t read_slot(const ucx_exchange_t *e, uint64_t number, uint32_t from)
{
    return (size_t)((SENT_AGES + number % AKINI_EP_PIECE_AGES) *
                        e->base.n_ranks +
                    from) *
           e->slot_bytes;
}

static void fail(ucx_exchange_t *e, akin_status_t status, uint32_t culprit)
{
    if (e->status != AKIN_OK)
        return;
    e->status = status;
    e->base.culprit = culprit;
}

static void on_read(void *arg, akin_status_t status)
{
    arrival_t *a = arg;
    if (status == AKIN_OK)
        a->is_here = 1;
    else if (status != AKIN_ERR_CANCELED)
        fail(a->exchange, status, a->from);
}

static akin_status_t start_read(ucx_exchange_t *e, arrival_t *a,
                                const void *payload, size_t bytes)
{
    notice_t notice;
    if (bytes != sizeof(notice))
        return AKIN_ERR_FORMAT;
    memcpy(&notice, payload, sizeof(notice));
    if (notice.bytes == 0 || notice.bytes > e->slot_bytes)
        return AKIN_ERR_FORMAT;
    unsigned char *to = (unsigned char *)akin_net_slab(e->net) +
                        read_slot(e, e->n_arrived[a->from], a->from);
    a->piece = (akin_ep_piece_t){to, (size_t)notice.bytes};
    akin_status_t status = akin_net_read(e->net, a->from, notice.offset, to,
                                         (size_t)notice.bytes, on_read, a);
    return status == AKIN_ERR_RANGE ? AKIN_ERR_FORMAT : status;
}

static void on_message(void *arg, uint32_t from, uint16_t type,
                       const void *payload, size_t bytes)
{
    ucx_exchange_t *e = arg;
    const int kind = type >> NUMBER_BITS;
    akin_status_t status = AKIN_OK;
    if (kind == KIND_FAREWELL) {
        e->said_bye[from] = 1;
        return;
    }
    const uint64_t number = e->n_arrived[from] + 1;
    arrival_t *a = arrival_of(e, number, from);
    /* A rank is ahead by one swap at most, since it waits for this one. */
    if (number > e->number + 1 ||
        (type & NUMBER_MASK) != (number & NUMBER_MASK))
        status = AKIN_ERR_FORMAT;
    if (status == AKIN_OK) {
        e->n_arrived[from] = number;
        a->is_here = 0;
        if (kind == KIND_NOTICE) {
            status = start_read(e, a, payload, bytes);
        } else {
            const akin_ep_piece_t piece = {payload, bytes};
            status = akini_ep_piece_buffer_set(&a->buffer, &piece);
            a->piece = a->buffer.piece;
            a->is_here = 1;
        }
    }
    if (status != AKIN_OK)
        fail(e, status, from);
}

static void on_lost(void *arg, uint32_t rank, akin_status_t status)
{
    ucx_exchange_t *e = arg;
    (void)status;
    e->is_lost[rank] = 1;
}

static akin_status_t give(ucx_exchange_t *e, uint32_t to,
                          const akin_ep_piece_t *piece)
{
    const uint16_t number = (uint16_t)(e->number & NUMBER_MASK);
    if (piece->bytes <= INLINE_BYTES || piece->bytes > e->slot_bytes ||
        !akin_net_is_one_sided(e->net, to))
        return akin_net_send(e->net, to,
                             (uint16_t)(KIND_INLINE << NUMBER_BITS | number),
                             piece->data, piece->bytes);
    const notice_t notice = {sent_slot(e, e->number, to), piece->bytes};
    unsigned char *slot =
        (unsigned char *)akin_net_slab(e->net) + notice.offset;
    if (piece->data != slot)
        memcpy(slot, piece->data, piece->bytes);
    e->has_notices = 1;
    return akin_net_send(e->net, to,
                         (uint16_t)(KIND_NOTICE << NUMBER_BITS | number),
                         &notice, sizeof(notice));
}

/* The rank that the swap still waits for; n_ranks: none. */
static uint32_t missing(const ucx_exchange_t *e)
{
    for (uint32_t r = 0; r < e->base.n_ranks; r++)
        if (r != e->base.rank && (e->n_arrived[r] < e->number ||
                                  !arrival_of(e, e->number, r)->is_here))
            return r;
    return e->base.n_ranks;
}

/* The rank that has not taken everything yet: until then this one has to make
 * progress for it. */
static uint32_t unsent(const ucx_exchange_t *e)
{
    for (uint32_t r = 0; r < e->base.n_ranks; r++)
        if (akin_net_has_unsent(e->net, r))
            return r;
    return e->base.n_ranks;
}

static akin_status_t await_all(ucx_exchange_t *e, int64_t deadline_ns)
{
    const uint32_t nobody = e->base.n_ranks;
    const int64_t spin_until_ns = akin_clock_now_ns() + e->spin_ns;
    for (;;) {
        uint32_t rank = missing(e), slow = unsent(e);
        if (rank != nobody && (e->is_lost[rank] || e->said_bye[rank]))
            fail(e, AKIN_ERR_PEER, rank);
        if (e->status != AKIN_OK || (rank == nobody && slow == nobody))
            return e->status;
        const int64_t now_ns = akin_clock_now_ns();
        /* Whoever shares the core runs meanwhile. */
        if (now_ns < spin_until_ns && now_ns < deadline_ns) {
            if (akin_net_poll(e->net) == 0)
                (void)sched_yield();
            continue;
        }
        int64_t until_ns = deadline_ns;
        if (slow != nobody && until_ns - now_ns > UNSENT_WAIT_NS)
            until_ns = now_ns + UNSENT_WAIT_NS;
        akin_status_t status = akin_net_wait(e->net, until_ns);
        if (status != AKIN_OK &&
            (status != AKIN_ERR_TIMEOUT || until_ns == deadline_ns))
            fail(e, status, rank != nobody ? rank : slow);
    }
}

static akin_status_t swap(akin_ep_exchange_t *exchange,
                          const akin_ep_piece_t *out, akin_ep_piece_t *in,
                          int64_t deadline_ns)
{
    ucx_exchange_t *e = (ucx_exchange_t *)exchange;
    const uint32_t n = exchange->n_ranks;
    if (e->status != AKIN_OK)
        return e->status;
    e->number++;
    e->has_notices = 0;
    /* The next rank first, so that not all begin with the same one. */
    for (uint32_t i = 1; i < n; i++) {
        uint32_t to = (exchange->rank + i) % n;
        akin_status_t status = give(e, to, &out[to]);
        if (status != AKIN_OK) {
            fail(e, status, to);
            return e->status;
        }
    }
    akin_status_t status = await_all(e, deadline_ns);
    for (uint32_t r = 0; status == AKIN_OK && r < n; r++)
        in[r] = r != exchange->rank ? arrival_of(e, e->number, r)->piece
                                    : (akin_ep_piece_t){NULL, 0};
    return status;
}

static void *place(akin_ep_exchange_t *exchange, uint32_t to, size_t bytes)
{
    const ucx_exchange_t *e = (const ucx_exchange_t *)exchange;
    if (bytes > e->slot_bytes || !akin_net_is_one_sided(e->net, to))
        return NULL;
    return (unsigned char *)akin_net_slab(e->net) +
           sent_slot(e, e->number + 1, to);
}

/* Others may be reading the last pieces: they say when they are done. */
static void part(ucx_exchange_t *e)
{
    const int64_t deadline_ns = akin_clock_now_ns() + FAREWELL_NS;
    const uint32_t n = e->base.n_ranks;
    for (uint32_t r = 0; r < n; r++)
        if (r != e->base.rank && akin_net_has_peer(e->net, r) &&
            akin_net_send(e->net, r, KIND_FAREWELL << NUMBER_BITS, NULL, 0) !=
                AKIN_OK)
            return;
    if (!e->has_notices)
        return;
    for (uint32_t r = 0; r < n; r++)
        while (r != e->base.rank && !e->said_bye[r] &&
               akin_net_has_peer(e->net, r))
            if (akin_net_wait(e->net, deadline_ns) != AKIN_OK)
                return;
}

static void destroy(akin_ep_exchange_t *exchange)
{
    ucx_exchange_t *e = (ucx_exchange_t *)exchange;
    if (e->net != NULL && e->number > 0 && e->status == AKIN_OK)
        part(e);
    akin_net_destroy(e->net);
    for (uint32_t i = 0;
         e->arrivals != NULL && i < AKINI_EP_PIECE_AGES * exchange->n_ranks;
         i++)
        akini_ep_piece_buffer_cleanup(&e->arrivals[i].buffer);
    free(e->n_arrived);
    free(e->is_lost);
    free(e->said_bye);
    free(e->arrivals);
    free(e);
}

static const akin_ep_exchange_ops_t ops = {
    .name = "ucx", .swap = swap, .place = place, .destroy = destroy};

akin_status_t
akin_ep_exchange_ucx_create(const akin_ep_exchange_ucx_params_t *params,
                            akin_ep_exchange_t **exchange_p, akin_error_t *err)
{
    *exchange_p = NULL;
    const size_t n = params->n_ranks;
    const size_t slot_bytes =
        params->slot_bytes != 0
            ? (params->slot_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES
            : DEFAULT_SLOT_BYTES;
    const size_t n_slots = (SENT_AGES + AKINI_EP_PIECE_AGES) * n;
    if (params->rank >= n || slot_bytes > SIZE_MAX / 2 / n_slots)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "exchange: rank %u of %u, slots of %zu bytes",
                              (unsigned)params->rank, (unsigned)params->n_ranks,
                              slot_bytes);
    ucx_exchange_t *e = calloc(1, sizeof(*e));
    if (e == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "exchange: out of memory");
    e->base = (akin_ep_exchange_t){
        .ops = &ops, .rank = params->rank, .n_ranks = params->n_ranks};
    e->slot_bytes = slot_bytes;
    e->spin_ns = params->spin_ns != 0 ? params->spin_ns : DEFAULT_SPIN_NS;
    e->n_arrived = calloc(n, sizeof(*e->n_arrived));
    e->is_lost = calloc(n, sizeof(*e->is_lost));
    e->said_bye = calloc(n, sizeof(*e->said_bye));
    e->arrivals = calloc(AKINI_EP_PIECE_AGES * n, sizeof(*e->arrivals));
    akin_status_t status = AKIN_OK;
    if (e->n_arrived == NULL || e->is_lost == NULL || e->said_bye == NULL ||
        e->arrivals == NULL)
        status = akin_error_set(err, AKIN_ERR_NOMEM, "exchange: out of memory");
    for (size_t i = 0; status == AKIN_OK && i < AKINI_EP_PIECE_AGES * n; i++) {
        e->arrivals[i].exchange = e;
        e->arrivals[i].from = (uint32_t)(i % n);
    }
    const akin_net_params_t net = {
        .rank = params->rank,
        .n_ranks = params->n_ranks,
        .slab_bytes = n > 1 ? n_slots * slot_bytes : 0,
        .max_message_bytes = MAX_MESSAGE_BYTES,
        .events = {.message = on_message, .peer_lost = on_lost, .arg = e},
    };
    if (status == AKIN_OK)
        status = akin_net_create(&net, &e->net, err);
    if (status != AKIN_OK) {
        destroy(&e->base);
        return status;
    }
    *exchange_p = &e->base;
    return AKIN_OK;
}

akin_status_t akin_ep_exchange_ucx_identity(const akin_ep_exchange_t *exchange,
                                            void **blob_p, size_t *bytes_p,
                                            akin_error_t *err)
{
    const ucx_exchange_t *e = (const ucx_exchange_t *)exchange;
    return akin_net_identity(e->net, blob_p, bytes_p, err);
}

akin_status_t akin_ep_exchange_ucx_connect(akin_ep_exchange_t *exchange,
                                           uint32_t rank, const void *blob,
                                           size_t bytes, akin_error_t *err)
{
    ucx_exchange_t *e = (ucx_exchange_t *)exchange;
    return akin_net_add_peer(e->net, rank, blob, bytes, err);
}

const char *akin_ep_exchange_ucx_path(const akin_ep_exchange_t *exchange,
                                      uint32_t rank)
{
    const ucx_exchange_t *e = (const ucx_exchange_t *)exchange;
    return akin_net_path(e->net, rank);
}
