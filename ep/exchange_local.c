/* Local exchange: copies through memory that the threads share. */
#include "ep/exchange_local.h"

#include "base/clock.h"
#include "ep/piece_buffer.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef struct local_exchange {
    akin_ep_exchange_t base;
    akin_ep_local_t *local;
    uint64_t n_swaps;
} local_exchange_t;

struct akin_ep_local {
    uint32_t n_ranks;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* [n_ranks] pieces given so far; whoever has left counts as lost. */
    uint64_t *n_given;
    unsigned char *has_left;
    /* [AKINI_EP_PIECE_AGES][from][to] */
    akini_ep_piece_buffer_t *buffers;
};

static akini_ep_piece_buffer_t *buffer_of(const akin_ep_local_t *local,
                                          uint64_t swap, uint32_t from,
                                          uint32_t to)
{
    const size_t n = local->n_ranks;
    return &local->buffers[(swap % AKINI_EP_PIECE_AGES * n + from) * n + to];
}

akin_status_t akin_ep_local_create(uint32_t n_ranks, akin_ep_local_t **local_p)
{
    *local_p = NULL;
    akin_ep_local_t *local = calloc(1, sizeof(*local));
    if (local == NULL)
        return AKIN_ERR_NOMEM;
    local->n_ranks = n_ranks;
    local->n_given = calloc(n_ranks, sizeof(*local->n_given));
    local->has_left = calloc(n_ranks, sizeof(*local->has_left));
    local->buffers = calloc((size_t)AKINI_EP_PIECE_AGES * n_ranks * n_ranks,
                            sizeof(*local->buffers));
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&local->mutex, NULL);
    pthread_cond_init(&local->changed, &attr);
    pthread_condattr_destroy(&attr);
    if (local->n_given == NULL || local->has_left == NULL ||
        local->buffers == NULL) {
        akin_ep_local_destroy(local);
        return AKIN_ERR_NOMEM;
    }
    *local_p = local;
    return AKIN_OK;
}

void akin_ep_local_destroy(akin_ep_local_t *local)
{
    if (local == NULL)
        return;
    const size_t n = local->n_ranks;
    for (size_t i = 0;
         local->buffers != NULL && i < AKINI_EP_PIECE_AGES * n * n; i++)
        akini_ep_piece_buffer_cleanup(&local->buffers[i]);
    pthread_cond_destroy(&local->changed);
    pthread_mutex_destroy(&local->mutex);
    free(local->n_given);
    free(local->has_left);
    free(local->buffers);
    free(local);
}

/* Wait for a rank's piece; the mutex is held. */
static akin_status_t await(akin_ep_local_t *local, uint32_t from, uint64_t swap,
                           int64_t deadline_ns)
{
    const struct timespec until = {
        .tv_sec = (time_t)(deadline_ns / AKIN_NS_PER_S),
        .tv_nsec = (long)(deadline_ns % AKIN_NS_PER_S)};
    while (local->n_given[from] <= swap) {
        if (local->has_left[from])
            return AKIN_ERR_PEER;
        if (pthread_cond_timedwait(&local->changed, &local->mutex, &until) != 0)
            return local->n_given[from] > swap ? AKIN_OK : AKIN_ERR_TIMEOUT;
    }
    return AKIN_OK;
}

static akin_status_t swap(akin_ep_exchange_t *exchange,
                          const akin_ep_piece_t *out, akin_ep_piece_t *in,
                          int64_t deadline_ns)
{
    local_exchange_t *e = (local_exchange_t *)exchange;
    akin_ep_local_t *local = e->local;
    const uint32_t own = exchange->rank;
    const uint64_t number = e->n_swaps++;
    akin_status_t status = AKIN_OK;
    /* The others have begun the swap before this one, so nobody looks at this
     * age of the buffers any more. */
    for (uint32_t r = 0; status == AKIN_OK && r < local->n_ranks; r++)
        if (r != own)
            status = akini_ep_piece_buffer_set(buffer_of(local, number, own, r),
                                               &out[r]);
    if (status != AKIN_OK)
        return status;
    pthread_mutex_lock(&local->mutex);
    local->n_given[own] = number + 1;
    pthread_cond_broadcast(&local->changed);
    for (uint32_t r = 0; status == AKIN_OK && r < local->n_ranks; r++) {
        in[r] = (akin_ep_piece_t){NULL, 0};
        if (r == own)
            continue;
        status = await(local, r, number, deadline_ns);
        if (status == AKIN_OK)
            in[r] = buffer_of(local, number, r, own)->piece;
        else
            exchange->culprit = r;
    }
    pthread_mutex_unlock(&local->mutex);
    return status;
}

static void destroy(akin_ep_exchange_t *exchange)
{
    local_exchange_t *e = (local_exchange_t *)exchange;
    pthread_mutex_lock(&e->local->mutex);
    e->local->has_left[exchange->rank] = 1;
    pthread_cond_broadcast(&e->local->changed);
    pthread_mutex_unlock(&e->local->mutex);
    free(e);
}

akin_status_t akin_ep_exchange_local_create(akin_ep_local_t *local,
                                            uint32_t rank,
                                            akin_ep_exchange_t **exchange_p)
{
    static const akin_ep_exchange_ops_t ops = {
        .name = "local", .swap = swap, .destroy = destroy};
    *exchange_p = NULL;
    local_exchange_t *e = calloc(1, sizeof(*e));
    if (e == NULL)
        return AKIN_ERR_NOMEM;
    e->base = (akin_ep_exchange_t){
        .ops = &ops, .rank = rank, .n_ranks = local->n_ranks};
    e->local = local;
    *exchange_p = &e->base;
    return AKIN_OK;
}
