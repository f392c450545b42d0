/* Replay set: the requests of a trace, as a replay of decode steps needs
 * them. */
#ifndef AKIN_ROUTING_REPLAY_SET_H
#define AKIN_ROUTING_REPLAY_SET_H

#include "routing/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One request; arrays belong to the set. */
typedef struct akin_replay_request {
    const uint16_t *prompt_counts; /* [n_layers][n_experts] */
    const uint16_t *decode_counts; /* [n_layers][n_experts] */
    const uint64_t *active;        /* [n_decode][n_words] cells of each token */
    uint32_t n_prompt;             /* rows of the prompt */
    uint32_t n_decode;             /* rows of decode, >= 1 */
    uint32_t record;               /* of the trace */
    const char *domain;            /* of the trace; "" if it has none */
    double arrival_s;              /* of the trace; negative: unknown */
} akin_replay_request_t;

/** Expert e of layer l is bit e mod 64 of word l x n_layer_words + e / 64. */
typedef struct akin_replay_set {
    akin_trace_shape_t shape;
    uint32_t n_layer_words; /* 64-bit words of a layer's experts */
    uint32_t n_words;       /* of a token's cells */
    uint32_t n_requests;
    akin_replay_request_t *requests; /* [n_requests] in the trace's order */
    uint32_t n_short;    /* records left out, for having too few rows */
    uint32_t n_stand_in; /* requests whose first rows stand in for a prompt */
    void *memory;
} akin_replay_set_t;

/**
 * \param[in]  trace          borrowed; must outlive the set.
 * \param[in]  prompt_tokens  rows that stand in for the prompt where the
 *                            trace does not tell them apart; 0: none may.
 * \param[in]  min_tokens     records with fewer rows are left out.
 * \param[out] set_p          owned by the caller.
 * \param[out] err            says what is missing.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: a record's prompt is unknown and prompt_tokens
 *         is 0, or no record is left.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_replay_set_create(const akin_trace_t *trace,
                                     uint32_t prompt_tokens,
                                     uint32_t min_tokens,
                                     akin_replay_set_t **set_p,
                                     akin_error_t *err) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akin_replay_set_destroy(akin_replay_set_t *set);

#ifdef __cplusplus
}
#endif

#endif
