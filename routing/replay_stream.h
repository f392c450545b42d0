/* Replay stream: the order in which recorded requests come, never one beside a
 * copy of itself. */
#ifndef AKIN_ROUTING_REPLAY_STREAM_H
#define AKIN_ROUTING_REPLAY_STREAM_H

#include "base/error.h"

#include <stdint.h>

#define AKINI_STREAM_NONE UINT32_MAX

/** Seeded random passes over 0 .. n - 1. */
typedef struct akini_replay_stream {
    uint32_t n;
    uint64_t seed;
    uint64_t n_draws;
    uint32_t *queue; /* [n] ring of those that do not run */
    uint32_t head;
    uint32_t n_queued;
    uint32_t pass_left; /* at the head, in the order of this pass */
} akini_replay_stream_t;

akin_status_t akini_replay_stream_init(akini_replay_stream_t *stream,
                                       uint32_t n, uint64_t seed);

void akini_replay_stream_cleanup(akini_replay_stream_t *stream);

/** The next request; it runs until it is put back. AKINI_STREAM_NONE if all
 * run. */
uint32_t akini_replay_stream_take(akini_replay_stream_t *stream);

/** A request has ended: it may come again, in a later pass. */
void akini_replay_stream_put(akini_replay_stream_t *stream, uint32_t request);

#endif
