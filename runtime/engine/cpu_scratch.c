/* Scratch memory of the cpu engine. */
#include "engine/cpu_internal.h"

#include <stdlib.h>

static float *floats(size_t rows, size_t columns)
{
    size_t bytes = (rows * columns * sizeof(float) + 63) / 64 * 64;
    return aligned_alloc(64, bytes > 0 ? bytes : 64);
}

static int init_threads(akini_cpu_scratch_t *s, const akin_model_config_t *c,
                        int n_threads)
{
    size_t n = (size_t)n_threads;
    size_t max_blocks = c->max_positions / AKIN_KV_MIN_BLOCK_TOKENS + 1;
    s->keys = calloc(n, sizeof(*s->keys));
    s->values = calloc(n, sizeof(*s->values));
    s->probabilities = calloc(n, sizeof(*s->probabilities));
    if (s->keys == NULL || s->values == NULL || s->probabilities == NULL)
        return 0;
    for (size_t t = 0; t < n; t++) {
        s->keys[t] = calloc(max_blocks, sizeof(**s->keys));
        s->values[t] = calloc(max_blocks, sizeof(**s->values));
        s->probabilities[t] = floats(1, c->n_experts);
        if (s->keys[t] == NULL || s->values[t] == NULL ||
            s->probabilities[t] == NULL)
            return 0;
    }
    return 1;
}

akin_status_t akini_cpu_scratch_init(akini_cpu_scratch_t *s,
                                     const akin_model_config_t *c,
                                     uint32_t max_rows, int n_threads)
{
    const size_t n = max_rows;
    const size_t q_width = (size_t)c->n_heads * c->head_dim;
    const size_t kv_width = (size_t)c->n_kv_heads * c->head_dim;
    s->rows = calloc(n, sizeof(*s->rows));
    s->x = floats(n, c->hidden_size);
    s->normed = floats(n, c->hidden_size);
    s->q = floats(n, q_width);
    s->k = floats(n, kv_width);
    s->v = floats(n, kv_width);
    s->attended = floats(n, q_width);
    s->projected = floats(n, c->hidden_size);
    s->gate_logits = floats(n, c->n_experts);
    s->routes = calloc(n * c->top_k, sizeof(*s->routes));
    s->weights = floats(n, c->top_k);
    s->cos = floats(n, c->head_dim / 2);
    s->sin = floats(n, c->head_dim / 2);
    s->in = calloc(n, sizeof(*s->in));
    s->in_attended = calloc(n, sizeof(*s->in_attended));
    s->in_head = calloc(n, sizeof(*s->in_head));
    s->out_q = calloc(n, sizeof(*s->out_q));
    s->out_k = calloc(n, sizeof(*s->out_k));
    s->out_v = calloc(n, sizeof(*s->out_v));
    s->out_projected = calloc(n, sizeof(*s->out_projected));
    s->out_gate = calloc(n, sizeof(*s->out_gate));
    s->out_head = calloc(n, sizeof(*s->out_head));
    if (s->rows == NULL || s->x == NULL || s->normed == NULL || s->q == NULL ||
        s->k == NULL || s->v == NULL || s->attended == NULL ||
        s->projected == NULL || s->gate_logits == NULL || s->routes == NULL ||
        s->weights == NULL || s->cos == NULL || s->sin == NULL ||
        s->in == NULL || s->in_attended == NULL || s->in_head == NULL ||
        s->out_q == NULL || s->out_k == NULL || s->out_v == NULL ||
        s->out_projected == NULL || s->out_gate == NULL ||
        s->out_head == NULL || !init_threads(s, c, n_threads))
        return AKIN_ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        s->in[i] = s->normed + i * c->hidden_size;
        s->in_attended[i] = s->attended + i * q_width;
        s->out_q[i] = s->q + i * q_width;
        s->out_k[i] = s->k + i * kv_width;
        s->out_v[i] = s->v + i * kv_width;
        s->out_projected[i] = s->projected + i * c->hidden_size;
        s->out_gate[i] = s->gate_logits + i * c->n_experts;
    }
    return AKIN_OK;
}

static void free_each(void **pointers, int n)
{
    for (int i = 0; pointers != NULL && i < n; i++)
        free(pointers[i]);
    free(pointers);
}

void akini_cpu_scratch_cleanup(akini_cpu_scratch_t *s, int n_threads)
{
    free_each((void **)s->keys, n_threads);
    free_each((void **)s->values, n_threads);
    free_each((void **)s->probabilities, n_threads);
    free(s->rows);
    free(s->x);
    free(s->normed);
    free(s->q);
    free(s->k);
    free(s->v);
    free(s->attended);
    free(s->projected);
    free(s->gate_logits);
    free(s->routes);
    free(s->weights);
    free(s->cos);
    free(s->sin);
    free(s->in);
    free(s->in_attended);
    free(s->in_head);
    free(s->out_q);
    free(s->out_k);
    free(s->out_v);
    free(s->out_projected);
    free(s->out_gate);
    free(s->out_head);
}
