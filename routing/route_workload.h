/* Route workload: the kinds of requests that a generator makes, and how alike
 * those of a kind choose their experts. */
#ifndef AKIN_ROUTING_ROUTE_WORKLOAD_H
#define AKIN_ROUTING_ROUTE_WORKLOAD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Domains and topics of a workload at most. */
#define AKIN_ROUTE_MAX_DOMAINS 16u
#define AKIN_ROUTE_MAX_TOPICS 64u

typedef struct akin_route_kind {
    const char *name;
    double share; /* of the requests; the shares add up to 1 */
} akin_route_kind_t;

/**
 * How requests come by their experts. In a layer, expert e has the weight
 * exp(g (popular z_e + domain z_de + topic z_te)) for a request of topic t of
 * domain d, where the z are standard normal and g, which varies over the
 * layers, has the mean 1. A request then chooses from an urn of experts drawn
 * by these weights.
 */
typedef struct akin_route_workload {
    const char *name;
    akin_route_kind_t domains[AKIN_ROUTE_MAX_DOMAINS]; /* [n_domains] */
    uint32_t n_domains;
    /* Of each domain; the i-th of them has 1 / (i + 1) of the first's
     * requests. */
    uint32_t n_topics;
    double popular; /* deviation of the part that all requests share */
    double domain;  /* of the part of a domain */
    double topic;   /* of the part of a topic */
    /* Mean part of an urn that is drawn by the popular part alone; a request's
     * own part is uniform between 0 and twice that. At most 0.5. */
    double general;
    double redrawn; /* part of the urn that the prompt does not share */
    double near;    /* part of the choices that tokens close by share */
} akin_route_workload_t;

/**
 * "task" (legal, code, math, medical) or "language" (ten languages, of which
 * two are three quarters).
 *
 * \return NULL if there is none of that name.
 */
const akin_route_workload_t *akin_route_workload_find(const char *name);

/** Name of the i-th workload; NULL from the last on. */
const char *akin_route_workload_name(uint32_t index);

#ifdef __cplusplus
}
#endif

#endif
