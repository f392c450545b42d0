/* Cost model: seconds of a step, a prefill and a transfer on a machine that
 * need not be there. */
#ifndef AKIN_ROUTING_COST_MODEL_H
#define AKIN_ROUTING_COST_MODEL_H

#include "routing/cost.h"
#include "routing/machine.h"
#include "routing/model_shape.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A model on a machine; borrowed. */
typedef struct akin_cost_model {
    const akin_model_shape_t *shape;
    const akin_machine_t *machine;
} akin_cost_model_t;

/** One decode step as the slowest rank of the worker sees it. */
typedef struct akin_cost_step {
    uint32_t batch;          /* requests whose attention the rank computes */
    uint64_t context_tokens; /* of these requests together */
    double distinct;         /* experts it activates per layer, mean */
    /* Choices (token, expert) it computes per layer; 0: batch x top_k. */
    double choices;
    uint32_t tensor_ranks;   /* that share all but the experts; 0: 1 */
    uint64_t exchange_bytes; /* it sends to the others, all layers */
    bool over_nic;           /* is the slowest exchange between nodes? */
} akin_cost_step_t;

/** A chunk of a prompt. */
typedef struct akin_cost_chunk {
    uint64_t tokens;         /* of the chunk */
    uint64_t context_tokens; /* before it */
    /* Experts activated per layer; 0: those that uniform choices are expected
     * to activate. */
    double distinct;
    uint32_t tensor_ranks; /* 0: 1 */
} akin_cost_chunk_t;

/** Seconds of the parts, and their sum. */
typedef struct akin_cost_parts {
    double fixed_s;     /* launches and the host */
    double resident_s;  /* weights that every step reads */
    double attention_s; /* KV */
    double expert_s;
    double exchange_s;
    double total_s;
} akin_cost_parts_t;

/**
 * Each part lasts as long as its bytes take from memory or its operations in
 * the units, whichever is longer; parts follow each other. A MoE layer is
 * ALGORITHMS.md 6: as slow as its slowest rank, and that one by its distinct
 * experts.
 *
 * \return the total, >= 0; 0 for an empty batch.
 */
double akin_cost_model_step(const akin_cost_model_t *model,
                            const akin_cost_step_t *step,
                            akin_cost_parts_t *parts_p);

/**
 * The same of a chunk of a prompt.
 *
 * \param[out] parts_p  may be NULL, here and above.
 */
double akin_cost_model_prefill(const akin_cost_model_t *model,
                               const akin_cost_chunk_t *chunk,
                               akin_cost_parts_t *parts_p);

/** Seconds that bytes take over a link, its latency included. */
double akin_cost_model_transfer(const akin_machine_link_t *link,
                                uint64_t bytes);

/** Seconds of one MoE layer with this many distinct experts and choices. */
double akin_cost_model_expert_layer(const akin_cost_model_t *model,
                                    double distinct, double choices);

/**
 * The model as the line that a router fits to the steps it sees: t0 is an
 * empty step, a an expert of one layer, b a request with this context. It
 * holds while memory, not arithmetic, is the limit.
 */
akin_cost_line_t akin_cost_model_line(const akin_cost_model_t *model,
                                      uint64_t context_tokens);

#ifdef __cplusplus
}
#endif

#endif
