/* Route generator: requests of planted domains and the experts that their
 * tokens choose, each a pure function of seed and number. */
#ifndef AKIN_ROUTING_ROUTE_GENERATOR_H
#define AKIN_ROUTING_ROUTE_GENERATOR_H

#include "base/error.h"
#include "routing/route_workload.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bounds of a shape. */
#define AKIN_ROUTE_MAX_LAYERS 1024u
#define AKIN_ROUTE_MAX_EXPERTS 4096u
#define AKIN_ROUTE_MAX_TOP_K 128u

/** Tokens of a prompt or an output at most: counts are 16 bits wide. */
#define AKIN_ROUTE_MAX_TOKENS 32767u

/** Slots of a request's urn per layer at most. */
#define AKIN_ROUTE_MAX_SLOTS 256u

/**
 * The tables of all topics. It never changes after it is made, so that threads
 * may share it, and any token of any request can be drawn at any time.
 */
typedef struct akin_route_generator akin_route_generator_t;

typedef struct akin_route_generator_params {
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t top_k;                        /* 1 to n_experts */
    const akin_route_workload_t *workload; /* copied but for its names */
    uint64_t seed;
    double prompt_tokens; /* mean; 0: 128 */
    double output_tokens; /* mean; 0: 128 */
    /* Standard deviation of the logarithm of the lengths, which are
     * log-normal, 0 to 3; 0: every one has the mean. */
    double prompt_spread;
    double output_spread;
} akin_route_generator_params_t;

/**
 * Make the tables: topics x layers x experts x 4 bytes.
 *
 * \param[out] generator_p  owned by the caller.
 * \param[out] err          names the parameter.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: a shape, workload or length out of range.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t
akin_route_generator_create(const akin_route_generator_params_t *params,
                            akin_route_generator_t **generator_p,
                            akin_error_t *err) AKIN_MUST_CHECK;

/** NULL is allowed. */
void akin_route_generator_destroy(akin_route_generator_t *generator);

/** A request: a plain value that owns nothing. */
typedef struct akin_route_request {
    uint64_t number;
    uint32_t domain; /* of the workload's */
    uint32_t topic;  /* of all topics: domain x n_topics + i */
    uint32_t n_prompt;
    uint32_t n_output;
    uint32_t n_general; /* slots of its urn that are of no domain */
} akin_route_request_t;

/**
 * \param[in]  number  below 2^56.
 * \param[in]  shares  [n_domains] parts of the domains, which need not add up
 *                     to 1, where the mix is not the workload's; NULL: it is.
 *                     A request whose domain is the same under both is the
 *                     same request.
 * \param[out] request
 */
void akin_route_request_make(const akin_route_generator_t *generator,
                             uint64_t number, const double *shares,
                             akin_route_request_t *request);

/** Prompt and decode of a request choose from urns that differ in part. */
typedef enum akin_route_phase {
    AKIN_ROUTE_PREFILL,
    AKIN_ROUTE_DECODE
} akin_route_phase_t;

/** Slots of an urn per layer: a power of two from 32 to 256, the next one to
 * the number of experts where it can be. */
uint32_t akin_route_slots(const akin_route_generator_t *generator);

/**
 * The urn of a request and phase: what makes drawing many of its tokens some
 * times faster. It is a cache alone, worth keeping while a request runs.
 *
 * \param[out] urn  [n_layers][akin_route_slots()] experts.
 */
void akin_route_urn_fill(const akin_route_generator_t *generator,
                         const akin_route_request_t *request,
                         akin_route_phase_t phase, uint16_t *urn);

/**
 * Chance that a token of the phase chooses each expert, by the urn alone:
 * successive draws without replacement have it near 1 - exp(-c m) where m of
 * the slots hold the expert and c makes a layer add up to top_k (Rosen 1972,
 * "Asymptotic theory for successive sampling with varying probabilities
 * without replacement").
 *
 * \param[out] rates  [n_layers][n_experts]
 */
void akin_route_rates(const akin_route_generator_t *generator,
                      const akin_route_request_t *request,
                      akin_route_phase_t phase, float *rates);

/**
 * The experts of one token in one layer.
 *
 * \param[in]  urn    of the request and the token's phase, or NULL.
 * \param[in]  token  0 to n_prompt + n_output - 1; the first n_prompt are the
 *                    prompt's.
 * \param[in]  layer  below n_layers.
 * \param[out] experts  [top_k] different ones.
 */
void akin_route_draw(const akin_route_generator_t *generator,
                     const akin_route_request_t *request, const uint16_t *urn,
                     uint32_t token, uint32_t layer, uint16_t *experts);

#ifdef __cplusplus
}
#endif

#endif
