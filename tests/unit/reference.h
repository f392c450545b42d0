/* Reference: the forward pass of a Qwen3-MoE checkpoint in plain scalar double,
 * token by token, written from the model's definition and not from the engine.
 *
 * Two things are decided by rounding: the bf16 that a key or value becomes, and
 * which of two experts with all but equal logits is taken. There the engine's
 * choice is checked to be a right one within a small margin and then followed,
 * so that the logits can be compared tightly.
 */
#ifndef AKIN_TESTS_UNIT_REFERENCE_H
#define AKIN_TESTS_UNIT_REFERENCE_H

#include "checkpoint.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Room for float arithmetic, relative to the size of what is compared. */
#define REFERENCE_SLACK 2e-5

/** Weights of a checkpoint as floats. */
typedef struct reference {
    checkpoint_params_t p; /* with defaults */
    float **tensors;       /* [checkpoint_count()] */
    float *head;           /* borrowed */
} reference_t;

/** What an engine did with the tokens. */
typedef struct reference_observed {
    const float *keys;      /* [n][n_layers][kv_heads * dim] as stored */
    const float *values;    /* [n][n_layers][kv_heads * dim] as stored */
    const uint16_t *routes; /* [n][n_layers][top_k] */
} reference_observed_t;

/** What the reference makes of it. */
typedef struct reference_result {
    double *logits;        /* [n][vocab], owned by the caller */
    unsigned wrong_kv;     /* stored numbers that are no right rounding */
    unsigned wrong_routes; /* tokens and layers with a wrong choice */
    unsigned clear_routes; /* choices that no rounding could change */
} reference_result_t;

static inline void reference_init(reference_t *r,
                                  const checkpoint_params_t *params)
{
    r->p = checkpoint_defaults(params);
    const uint32_t n = checkpoint_count(&r->p);
    r->tensors = calloc(n, sizeof(*r->tensors));
    if (r->tensors == NULL)
        abort();
    for (uint32_t i = 0; i < n; i++) {
        checkpoint_tensor_t t = checkpoint_tensor(&r->p, i);
        r->tensors[i] = checkpoint_values(params, t.name);
        if (r->tensors[i] == NULL)
            abort();
    }
    r->head = r->p.tied ? r->tensors[0] : r->tensors[2];
}

static inline void reference_cleanup(reference_t *r)
{
    for (uint32_t i = 0; i < checkpoint_count(&r->p); i++)
        free(r->tensors[i]);
    free(r->tensors);
}

/* Tensors of a layer in the order of the checkpoint. */
enum {
    REFERENCE_INPUT_NORM,
    REFERENCE_Q,
    REFERENCE_K,
    REFERENCE_V,
    REFERENCE_O,
    REFERENCE_Q_NORM,
    REFERENCE_K_NORM,
    REFERENCE_POST_NORM,
    REFERENCE_GATE,
    REFERENCE_EXPERTS /* gate, up and down of expert 0, then of 1, ... */
};

static inline const float *reference_tensor(const reference_t *r,
                                            uint32_t layer, uint32_t part)
{
    const checkpoint_params_t *p = &r->p;
    uint32_t outer = 2 + checkpoint_head_count(p);
    return r->tensors[outer + layer * (9 + 3 * p->n_experts) + part];
}

static inline double *reference_alloc(size_t n)
{
    double *x = calloc(n > 0 ? n : 1, sizeof(*x));
    if (x == NULL)
        abort();
    return x;
}

/* y = W x */
static inline void reference_product(const float *w, uint32_t rows,
                                     uint32_t cols, const double *x, double *y)
{
    for (uint32_t o = 0; o < rows; o++) {
        y[o] = 0;
        for (uint32_t i = 0; i < cols; i++)
            y[o] += (double)w[(size_t)o * cols + i] * x[i];
    }
}

static inline void reference_norm(const double *x, const float *w, double eps,
                                  uint32_t n, double *y)
{
    double squares = 0;
    for (uint32_t i = 0; i < n; i++)
        squares += x[i] * x[i];
    for (uint32_t i = 0; i < n; i++)
        y[i] = x[i] / sqrt(squares / n + eps) * (double)w[i];
}

/* Norm of a head, then the rotation of (i, i + half) by position * base^(-2i /
 * dim). */
static inline void reference_head(const reference_t *r, const float *norm,
                                  uint32_t position, double *x)
{
    const uint32_t dim = r->p.head_dim, half = dim / 2;
    reference_norm(x, norm, r->p.rms_norm_eps, dim, x);
    for (uint32_t i = 0; i < half; i++) {
        double angle = position * pow(r->p.rope_theta, -2.0 * (double)i / dim);
        double a = x[i], b = x[i + half];
        x[i] = a * cos(angle) - b * sin(angle);
        x[i + half] = b * cos(angle) + a * sin(angle);
    }
}

/* Is `stored` the bf16 next to x, but for float errors of x? */
static inline int reference_is_rounded(double x, float stored)
{
    int exponent = 0;
    (void)frexp(x, &exponent);
    double half_unit = ldexp(1.0, exponent - 9);
    return fabs((double)stored - x) <=
               half_unit + REFERENCE_SLACK * (fabs(x) + 0.1) &&
           checkpoint_round((double)stored, AKIN_DTYPE_BF16) == (double)stored;
}

/* Attention of one token over the stored keys and values up to it. */
static inline void reference_attend(const reference_t *r,
                                    const reference_observed_t *seen,
                                    uint32_t layer, uint32_t position,
                                    const double *q, double *out)
{
    const checkpoint_params_t *p = &r->p;
    const size_t width = (size_t)p->n_kv_heads * p->head_dim;
    const size_t stride = p->n_layers * width;
    double *scores = reference_alloc((size_t)position + 1);
    for (uint32_t h = 0; h < p->n_heads; h++) {
        const uint32_t group = p->n_heads / p->n_kv_heads;
        const size_t at = layer * width + (size_t)(h / group) * p->head_dim;
        const double *query = q + (size_t)h * p->head_dim;
        double *head = out + (size_t)h * p->head_dim;
        double max = -(double)INFINITY, sum = 0;
        for (uint32_t j = 0; j <= position; j++) {
            scores[j] = 0;
            for (uint32_t i = 0; i < p->head_dim; i++)
                scores[j] += query[i] * (double)seen->keys[j * stride + at + i];
            scores[j] /= sqrt((double)p->head_dim);
            max = fmax(max, scores[j]);
        }
        for (uint32_t i = 0; i < p->head_dim; i++)
            head[i] = 0;
        for (uint32_t j = 0; j <= position; j++) {
            double weight = exp(scores[j] - max);
            sum += weight;
            for (uint32_t i = 0; i < p->head_dim; i++)
                head[i] += weight * (double)seen->values[j * stride + at + i];
        }
        for (uint32_t i = 0; i < p->head_dim; i++)
            head[i] /= sum;
    }
    free(scores);
}

/* Check the engine's choice of experts: in falling order, none better left
 * out, the lowest id first among equals. */
static inline void reference_check_routes(const reference_t *r,
                                          const double *logits,
                                          const uint16_t *routes,
                                          reference_result_t *result)
{
    const checkpoint_params_t *p = &r->p;
    double size = 1;
    unsigned wrong = 0, clear = 1;
    for (uint32_t e = 0; e < p->n_experts; e++)
        size = fmax(size, fabs(logits[e]));
    for (uint32_t j = 0; j < p->top_k; j++) {
        for (uint32_t e = 0; e < p->n_experts; e++) {
            int before = 0;
            for (uint32_t i = 0; i <= j; i++)
                before |= routes[i] == e;
            double lead = logits[routes[j]] - logits[e];
            if (before)
                continue;
            wrong |= lead < -REFERENCE_SLACK * size;
            clear &= fabs(lead) > REFERENCE_SLACK * size;
        }
        for (uint32_t i = 0; i < j; i++)
            wrong |= routes[i] == routes[j];
    }
    result->wrong_routes += wrong;
    result->clear_routes += clear;
}

/* x += the weighted outputs of the chosen experts. */
static inline void reference_moe(const reference_t *r, uint32_t layer,
                                 const double *in, const uint16_t *routes,
                                 double *x, reference_result_t *result)
{
    const checkpoint_params_t *p = &r->p;
    const uint32_t inner = p->moe_intermediate_size, hidden = p->hidden_size;
    double *logits = reference_alloc(p->n_experts);
    double *gate = reference_alloc(inner), *up = reference_alloc(inner);
    double *out = reference_alloc(hidden);
    reference_product(reference_tensor(r, layer, REFERENCE_GATE), p->n_experts,
                      hidden, in, logits);
    reference_check_routes(r, logits, routes, result);
    double all = 0, chosen = 0;
    for (uint32_t e = 0; e < p->n_experts; e++)
        all += exp(logits[e]);
    for (uint32_t j = 0; j < p->top_k; j++)
        chosen += exp(logits[routes[j]]) / all;
    for (uint32_t j = 0; j < p->top_k; j++) {
        const uint32_t first = REFERENCE_EXPERTS + 3u * routes[j];
        double weight = exp(logits[routes[j]]) / all;
        if (!p->keep_topk_sum)
            weight /= chosen;
        reference_product(reference_tensor(r, layer, first), inner, hidden, in,
                          gate);
        reference_product(reference_tensor(r, layer, first + 1), inner, hidden,
                          in, up);
        for (uint32_t i = 0; i < inner; i++)
            gate[i] = gate[i] / (1.0 + exp(-gate[i])) * up[i];
        reference_product(reference_tensor(r, layer, first + 2), hidden, inner,
                          gate, out);
        for (uint32_t i = 0; i < hidden; i++)
            x[i] += weight * out[i];
    }
    free(logits);
    free(gate);
    free(up);
    free(out);
}

/* x += attention of the token at `position`. */
static inline void reference_attention(const reference_t *r,
                                       const reference_observed_t *seen,
                                       uint32_t layer, uint32_t position,
                                       const double *in, double *x,
                                       reference_result_t *result)
{
    const checkpoint_params_t *p = &r->p;
    const uint32_t width = p->n_kv_heads * p->head_dim;
    const uint32_t q_width = p->n_heads * p->head_dim;
    const uint32_t hidden = p->hidden_size;
    const size_t at = ((size_t)position * p->n_layers + layer) * width;
    double *q = reference_alloc(q_width), *k = reference_alloc(width);
    double *v = reference_alloc(width), *heads = reference_alloc(q_width);
    double *out = reference_alloc(hidden);
    reference_product(reference_tensor(r, layer, REFERENCE_Q), q_width, hidden,
                      in, q);
    reference_product(reference_tensor(r, layer, REFERENCE_K), width, hidden,
                      in, k);
    reference_product(reference_tensor(r, layer, REFERENCE_V), width, hidden,
                      in, v);
    for (uint32_t h = 0; h < p->n_heads; h++)
        reference_head(r, reference_tensor(r, layer, REFERENCE_Q_NORM),
                       position, q + (size_t)h * p->head_dim);
    for (uint32_t h = 0; h < p->n_kv_heads; h++)
        reference_head(r, reference_tensor(r, layer, REFERENCE_K_NORM),
                       position, k + (size_t)h * p->head_dim);
    for (uint32_t i = 0; i < width; i++) {
        result->wrong_kv += !reference_is_rounded(k[i], seen->keys[at + i]);
        result->wrong_kv += !reference_is_rounded(v[i], seen->values[at + i]);
    }
    reference_attend(r, seen, layer, position, q, heads);
    reference_product(reference_tensor(r, layer, REFERENCE_O), hidden, q_width,
                      heads, out);
    for (uint32_t i = 0; i < hidden; i++)
        x[i] += out[i];
    free(q);
    free(k);
    free(v);
    free(heads);
    free(out);
}

/**
 * Run the tokens of one sequence.
 *
 * \param[in]     tokens  [n]
 * \param[in]     seen    what the engine did with them.
 * \param[in,out] result  counts are added to.
 */
static inline void reference_run(const reference_t *r, const uint32_t *tokens,
                                 uint32_t n, const reference_observed_t *seen,
                                 reference_result_t *result)
{
    const checkpoint_params_t *p = &r->p;
    const uint32_t hidden = p->hidden_size;
    double *x = reference_alloc(hidden), *in = reference_alloc(hidden);
    for (uint32_t t = 0; t < n; t++) {
        for (uint32_t i = 0; i < hidden; i++)
            x[i] = (double)r->tensors[0][(size_t)tokens[t] * hidden + i];
        for (uint32_t l = 0; l < p->n_layers; l++) {
            reference_norm(x, reference_tensor(r, l, REFERENCE_INPUT_NORM),
                           p->rms_norm_eps, hidden, in);
            reference_attention(r, seen, l, t, in, x, result);
            reference_norm(x, reference_tensor(r, l, REFERENCE_POST_NORM),
                           p->rms_norm_eps, hidden, in);
            const uint16_t *routes =
                seen->routes + ((size_t)t * p->n_layers + l) * p->top_k;
            reference_moe(r, l, in, routes, x, result);
        }
        reference_norm(x, r->tensors[1], p->rms_norm_eps, hidden, in);
        reference_product(r->head, p->vocab_size, hidden, in,
                          result->logits + (size_t)t * p->vocab_size);
    }
    free(x);
    free(in);
}

#endif
