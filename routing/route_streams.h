/* Route streams: who draws which random numbers of a route generator. */
#ifndef AKIN_ROUTING_ROUTE_STREAMS_H
#define AKIN_ROUTING_ROUTE_STREAMS_H

#include <stdint.h>

/* The upper eight bits of a stream; the others are a domain, topic or
 * request. */
enum {
    AKINI_ROUTE_STREAM_LAYER = 1,
    AKINI_ROUTE_STREAM_POPULAR,
    AKINI_ROUTE_STREAM_DOMAIN,
    AKINI_ROUTE_STREAM_TOPIC,
    AKINI_ROUTE_STREAM_REQUEST,
    AKINI_ROUTE_STREAM_URN,
    AKINI_ROUTE_STREAM_NEAR,
    AKINI_ROUTE_STREAM_CHOICE
};

static inline uint64_t akini_route_stream(unsigned kind, uint64_t number)
{
    return (uint64_t)kind << 56 | (number & (UINT64_MAX >> 8));
}

/* A standard normal number (Box and Muller, 1958). */
double akini_route_normal(uint64_t seed, uint64_t stream, uint64_t index);

#endif
