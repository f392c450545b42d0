/* Engine: model steps over a worker's KV slots. Engines know nothing of
 * requests, MPI or UCX. */
#ifndef AKIN_ENGINE_ENGINE_H
#define AKIN_ENGINE_ENGINE_H

#include "base/error.h"
#include "engine/model_config.h"
#include "engine/modelled.h"
#include "ep/group.h"
#include "kv/block.h"
#include "math/kernels.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Consecutive tokens of one sequence. A decode row is a span of one token, a
 * prefill chunk a longer one; a step takes any mixture. Keys, values and gate
 * choices of the tokens are written to the slots; all earlier positions must
 * have been written.
 */
typedef struct akin_engine_span {
    const uint32_t *tokens; /* [n_tokens], each < vocab_size */
    uint32_t n_tokens;      /* >= 1 */
    uint32_t position;      /* of tokens[0] */
    const uint32_t *slots;  /* slot of position p: slots[p / block_tokens] */
    float *logits;          /* out: [vocab_size] of the last token, or NULL */
    uint16_t *routes;       /* out: [n_tokens][n_layers][top_k], or NULL */
} akin_engine_span_t;

/** What a step did. */
typedef struct akin_engine_report {
    int64_t ns;           /* time of the step */
    uint32_t n_rows;      /* tokens in it */
    uint16_t *n_distinct; /* out: [n_layers] distinct experts, or NULL; in a
                             group those that this rank served */
} akin_engine_report_t;

/** What an engine is. */
typedef struct akin_engine_info {
    const char *name;              /* "cpu", "modelled" */
    const akin_kernels_t *kernels; /* kernel path; static */
    int n_threads;
    const akin_model_config_t *model; /* borrowed from the engine */
} akin_engine_info_t;

typedef struct akin_engine akin_engine_t;

/** How to load an engine. */
typedef struct akin_engine_params {
    const char *model_dir;
    const char *kernel; /* "auto", "avx512", "avx2", "portable" */
    int n_threads;      /* 0: the cores that this process may use */
    uint32_t max_rows;  /* rows per pass, 0: 256; more are cut in passes */
    /* The rank's part of an expert-parallel group, borrowed for the engine's
     * life and used by no other engine; NULL: all experts are here. */
    akin_ep_group_t *group;
    /* Of the "modelled" engine, which takes of the model directory only the
     * sizes of the vocabulary; what it points to is borrowed. */
    const akin_modelled_params_t *modelled;
} akin_engine_params_t;

typedef struct akin_engine_ops {
    const char *name;
    akin_status_t (*load)(const akin_engine_params_t *params,
                          akin_engine_t **engine_p, akin_error_t *err);
    void (*destroy)(akin_engine_t *engine);
    void (*describe)(const akin_engine_t *engine, akin_engine_info_t *info_p);
    akin_status_t (*step)(akin_engine_t *engine, const akin_kv_view_t *view,
                          const akin_engine_span_t *spans, uint32_t n_spans,
                          akin_engine_report_t *report);
    /* NULL: an expert's weights are where they are. */
    void (*touch_expert)(const akin_engine_t *engine, uint32_t layer,
                         uint32_t expert);
} akin_engine_ops_t;

/** First member of every engine. */
struct akin_engine {
    const akin_engine_ops_t *ops;
};

/** The engine over mapped bf16, f16 or f32 weights on CPU cores. */
extern const akin_engine_ops_t akin_engine_cpu_ops;

/** The engine without weights: modelled.h. */
extern const akin_engine_ops_t akin_engine_modelled_ops;

/**
 * Load an engine by name.
 *
 * \param[in]  name      "cpu" or "modelled".
 * \param[in]  params    strings are not kept.
 * \param[out] engine_p  owned by the caller.
 * \param[out] err       names the file, tensor, key or setting.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: no engine of that name.
 * \return AKIN_ERR_INVALID: the group places other layers or experts.
 * \return AKIN_ERR_UNSUPPORTED: a kernel path that this CPU has not got.
 * \return the status of akin_model_open(); AKIN_ERR_NOMEM.
 */
akin_status_t akin_engine_load(const char *name,
                               const akin_engine_params_t *params,
                               akin_engine_t **engine_p,
                               akin_error_t *err) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akin_engine_destroy(akin_engine_t *engine);

void akin_engine_describe(const akin_engine_t *engine,
                          akin_engine_info_t *info_p);

/** Shape of this engine's KV blocks. */
void akin_engine_kv_shape(const akin_engine_t *engine, uint32_t block_tokens,
                          akin_kv_shape_t *shape_p);

/**
 * Run the spans. Logits and KV bits of a span do not depend on the other
 * spans, on how its sequence was cut into spans, on block_tokens, on the
 * number of threads or on the group.
 *
 * In a group all ranks call it the same number of times, each with its own
 * spans or with none. Such a step is one pass, so it takes max_rows rows at
 * most; experts that are placed elsewhere are not touched.
 *
 * \param[in]     view     slots of a layout with this engine's shape.
 * \param[in]     spans    [n_spans]
 * \param[in,out] report   may be NULL.
 * \return AKIN_OK
 * \return AKIN_ERR_RANGE: a token >= vocab_size, a slot >= n_slots, or a
 *         position >= max_positions; in a group also more than max_rows rows.
 *         Nothing was written or sent.
 * \return in a group, AKIN_ERR_PEER, AKIN_ERR_TIMEOUT, AKIN_ERR_FORMAT or the
 *         exchange's own: the group is no more, as akin_ep_group_error() tells;
 *         logits and slots of the spans are worth nothing.
 */
akin_status_t akin_engine_step(akin_engine_t *engine,
                               const akin_kv_view_t *view,
                               const akin_engine_span_t *spans,
                               uint32_t n_spans,
                               akin_engine_report_t *report) AKIN_MUST_CHECK;

/**
 * Bring the weights of an expert into memory, so that the first step that needs
 * them does not wait for them. Any thread, also while a step runs; takes as
 * long as reading them does.
 *
 * \param[in] layer, expert  of the model; others: nothing happens.
 */
void akin_engine_touch_expert(const akin_engine_t *engine, uint32_t layer,
                              uint32_t expert);

#ifdef __cplusplus
}
#endif

#endif
