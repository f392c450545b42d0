/* The cpu engine's state: weights, kernels and the scratch memory of a pass. */
#ifndef AKIN_ENGINE_CPU_INTERNAL_H
#define AKIN_ENGINE_CPU_INTERNAL_H

#include "base/team.h"
#include "engine/engine.h"
#include "engine/model.h"
#include "ep/expert_step.h"
#include "math/kernels.h"

/** Norm vectors of a layer, widened to float at load. */
typedef struct akini_cpu_norms {
    const float *input;  /* [hidden] */
    const float *post;   /* [hidden] */
    const float *q_norm; /* [head_dim] */
    const float *k_norm; /* [head_dim] */
} akini_cpu_norms_t;

/** One token of a pass. */
typedef struct akini_cpu_row {
    uint32_t token;
    uint32_t position;
    const uint32_t *slots;
    float *logits;    /* [vocab] or NULL */
    uint16_t *routes; /* [n_layers][top_k] or NULL */
} akini_cpu_row_t;

/** Scratch memory of a pass of up to max_rows rows. */
typedef struct akini_cpu_scratch {
    akini_cpu_row_t *rows;
    float *x;           /* [rows][hidden] the residual stream */
    float *normed;      /* [rows][hidden] */
    float *q;           /* [rows][heads * dim] */
    float *k;           /* [rows][kv_heads * dim] */
    float *v;           /* [rows][kv_heads * dim] */
    float *attended;    /* [rows][heads * dim] */
    float *projected;   /* [rows][hidden] */
    float *gate_logits; /* [rows][experts] */
    uint16_t *routes;   /* [rows][top_k] */
    float *weights;     /* [rows][top_k] */
    float *cos, *sin;   /* [rows][dim / 2] */
    const float **in;   /* [rows] vectors of the product at hand */
    float **out_q, **out_k, **out_v, **out_projected, **out_gate;
    const float **in_attended;
    const float **in_head; /* [rows that want logits] */
    float **out_head;
    const uint16_t ***keys, ***values; /* per thread: [max blocks] */
    float **probabilities;             /* per thread: [experts] */
} akini_cpu_scratch_t;

typedef struct akini_cpu_engine {
    akin_engine_t base;
    akin_model_t *model;
    const akin_kernels_t *kernels;
    int n_threads;
    uint32_t max_rows;
    akini_cpu_norms_t *norms; /* [n_layers] */
    const float *final_norm;  /* [hidden] */
    float *norm_storage;
    float *inv_freq;             /* [dim / 2] */
    akin_expert_step_t *experts; /* NULL in a group */
    akin_ep_group_t *group;      /* borrowed; NULL: alone */
    akin_status_t group_status;  /* of the last step */
    akin_team_t *team;
    akini_cpu_scratch_t scratch;
} akini_cpu_engine_t;

akin_status_t akini_cpu_scratch_init(akini_cpu_scratch_t *s,
                                     const akin_model_config_t *c,
                                     uint32_t max_rows, int n_threads);

void akini_cpu_scratch_cleanup(akini_cpu_scratch_t *s, int n_threads);

/**
 * Run the first n_rows rows of the scratch memory through the model; leaves
 * it early, with engine->group_status, when the group is lost.
 *
 * \param[in,out] n_distinct  [n_layers], added to; or NULL.
 */
void akini_cpu_pass(akini_cpu_engine_t *engine, const akin_kv_view_t *view,
                    uint32_t n_rows, uint16_t *n_distinct);

/** Attention of all query heads of kv head `head` of one row, by the thread of
 * that number. */
void akini_cpu_attend(akini_cpu_engine_t *engine, const akin_kv_view_t *view,
                      uint32_t thread, uint32_t layer, uint32_t row,
                      uint32_t head);

#endif
