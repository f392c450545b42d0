/* Route statistics: what the routes of a trace say about its locality. */
#ifndef AKIN_ROUTING_ROUTE_STATISTICS_H
#define AKIN_ROUTING_ROUTE_STATISTICS_H

#include "routing/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A kind of request of the trace. */
typedef struct akin_route_domain {
    const char *name; /* "": the requests without a label */
    uint32_t n_records;
} akin_route_domain_t;

/** Which requests meet in a batch. */
typedef enum akin_route_mix {
    AKIN_ROUTE_ANY,        /* any of the trace */
    AKIN_ROUTE_LARGE,      /* any whose domain could fill the batch alone */
    AKIN_ROUTE_SAME_DOMAIN /* of one domain, which a request of the former names
                            */
} akin_route_mix_t;

typedef struct akin_route_statistics akin_route_statistics_t;

/**
 * \param[in]  trace  borrowed.
 * \param[in]  seed   of the draws; equal seeds give equal figures.
 * \param[out] statistics_p  owned by the caller.
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t
akin_route_statistics_create(const akin_trace_t *trace, uint64_t seed,
                             akin_route_statistics_t **statistics_p,
                             akin_error_t *err) AKIN_MUST_CHECK;

/** NULL is allowed. */
void akin_route_statistics_destroy(akin_route_statistics_t *statistics);

/** \return [*n_p], most requests first, equal ones by name; borrowed. */
const akin_route_domain_t *
akin_route_domains(const akin_route_statistics_t *statistics, uint32_t *n_p);

/**
 * Distinct experts per layer that a step of a batch activates: `batch`
 * different requests, each at a random row of its decode (any row where no
 * prompt is known), mean over `n_batches` draws.
 *
 * \return NaN if there are too few requests of that mix, or none with decode.
 */
double akin_route_distinct(akin_route_statistics_t *statistics,
                           akin_route_mix_t mix, uint32_t batch,
                           uint32_t n_batches);

typedef struct akin_route_correlation {
    double mean;         /* NaN: no request has both */
    uint32_t n_requests; /* that it is the mean of */
    uint32_t n_stand_in; /* of these, where first rows played the prompt */
    /* Over the experts of one layer, mean over the requests: of the layer where
     * it is least and of that where it is most; NaN as above. */
    double layer_min;
    double layer_max;
} akin_route_correlation_t;

/**
 * Pearson correlation, over the cells layer x expert, of how often prompt and
 * decode of one request choose an expert; mean over the requests.
 *
 * \param[in] stand_in_tokens  first rows that play the prompt of a request that
 *                             knows none; 0: such requests are left out. They
 *                             are nearer to decode than a prompt is, which
 *                             flatters the figure.
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akin_route_correlate(const akin_trace_t *trace,
                                   uint32_t stand_in_tokens,
                                   akin_route_correlation_t *correlation,
                                   akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
