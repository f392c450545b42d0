/* Replay stream: the order in which recorded requests come. */
#include "routing/replay_stream.h"

#include "base/rng.h"

#include <stdlib.h>

enum { STREAM_ORDER = 101 };

static uint32_t *slot(akini_replay_stream_t *stream, uint32_t i)
{
    return &stream->queue[(stream->head + i) % stream->n];
}

/* Put the requests that wait in a new random order. Those that still run then
 * come back behind them and wait for the next pass. */
static void start_pass(akini_replay_stream_t *stream)
{
    for (uint32_t i = stream->n_queued; i > 1; i--) {
        uint32_t j = (uint32_t)akin_rng_below(stream->seed, STREAM_ORDER,
                                              stream->n_draws++, i);
        uint32_t *a = slot(stream, i - 1), *b = slot(stream, j);
        uint32_t kept = *a;
        *a = *b;
        *b = kept;
    }
    stream->pass_left = stream->n_queued;
}

akin_status_t akini_replay_stream_init(akini_replay_stream_t *stream,
                                       uint32_t n, uint64_t seed)
{
    *stream = (akini_replay_stream_t){.n = n, .seed = seed, .n_queued = n};
    stream->queue = malloc(n * sizeof(*stream->queue));
    if (stream->queue == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t i = 0; i < n; i++)
        stream->queue[i] = i;
    return AKIN_OK;
}

void akini_replay_stream_cleanup(akini_replay_stream_t *stream)
{
    free(stream->queue);
}

uint32_t akini_replay_stream_take(akini_replay_stream_t *stream)
{
    if (stream->n_queued == 0)
        return AKINI_STREAM_NONE;
    if (stream->pass_left == 0)
        start_pass(stream);
    uint32_t request = *slot(stream, 0);
    stream->head = (stream->head + 1) % stream->n;
    stream->n_queued--;
    stream->pass_left--;
    return request;
}

void akini_replay_stream_put(akini_replay_stream_t *stream, uint32_t request)
{
    *slot(stream, stream->n_queued) = request;
    stream->n_queued++;
}
