/* One pass of the cpu engine: rows through every layer of a Qwen3-MoE model.
 * A single team of threads runs the whole pass; each shared loop ends with a
 * barrier, and every value is computed by one thread alone. */
#include "engine/cpu_internal.h"

#include "base/fault_point.h"

#include <math.h>
#include <omp.h>
#include <string.h>

/* A router of up to this size is streamed by one thread. */
#define SMALL_GATE_BYTES ((size_t)64 << 10)

/* One matrix of a product phase. */
typedef struct product {
    const akin_matrix_t *w;
    float *const *out; /* [n] rows of outputs */
} product_t;

static uint32_t n_chunks(const akin_matrix_t *w)
{
    const uint32_t rows = akin_matrix_chunk_rows(w);
    return (w->rows + rows - 1) / rows;
}

static void product_chunk(const akin_kernels_t *kernels, const product_t *p,
                          uint32_t chunk, const float *const *in, uint32_t n)
{
    const uint32_t chunk_rows = akin_matrix_chunk_rows(p->w);
    const uint32_t row = chunk * chunk_rows;
    uint32_t n_rows = p->w->rows - row;
    n_rows = n_rows < chunk_rows ? n_rows : chunk_rows;
    float *out[64];
    for (uint32_t t = 0; t < n; t += 64) {
        uint32_t m = n - t < 64 ? n - t : 64;
        for (uint32_t i = 0; i < m; i++)
            out[i] = p->out[t + i] + row;
        akin_matmul(kernels, p->w, row, n_rows, in + t, out, m);
    }
}

/* Several matrices over the same inputs, shared out by chunks of rows. */
static void run_products(const akini_cpu_engine_t *e, const product_t *p,
                         uint32_t n_products, const float *const *in,
                         uint32_t n)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < n_products; i++)
        total += n_chunks(p[i].w);
    AKIN_TEAM_FOR(e->team, chunk, total)
    {
        uint32_t i = 0, at = chunk;
        while (i + 1 < n_products && at >= n_chunks(p[i].w))
            at -= n_chunks(p[i++].w);
        product_chunk(e->kernels, &p[i], at, in, n);
    }
    akin_team_barrier(e->team);
}

static void embed(akini_cpu_engine_t *e, uint32_t row)
{
    const akin_model_config_t *c = &e->model->config;
    akini_cpu_scratch_t *s = &e->scratch;
    const akin_matrix_t *m = &e->model->embedding;
    const uint32_t half = c->head_dim / 2;
    e->kernels->widen[m->dtype](akin_matrix_row(m, s->rows[row].token),
                                s->x + (size_t)row * c->hidden_size,
                                c->hidden_size);
    /* The angle is a float product, as in the reference implementations. */
    for (uint32_t i = 0; i < half; i++) {
        float angle = (float)s->rows[row].position * e->inv_freq[i];
        s->cos[(size_t)row * half + i] = (float)cos((double)angle);
        s->sin[(size_t)row * half + i] = (float)sin((double)angle);
    }
}

/* Norms and rotary positions of one kv head's k and of the q heads that share
 * it, then its k and v into the cache. */
static void store_head(akini_cpu_engine_t *e, const akin_kv_view_t *view,
                       uint32_t layer, uint32_t row, uint32_t head)
{
    const akin_model_config_t *c = &e->model->config;
    const akin_kernels_t *kernels = e->kernels;
    akini_cpu_scratch_t *s = &e->scratch;
    const akini_cpu_norms_t *norms = &e->norms[layer];
    const uint32_t dim = c->head_dim, half = dim / 2;
    const uint32_t group = c->n_heads / c->n_kv_heads;
    const float eps = (float)c->rms_norm_eps;
    const float *cosines = s->cos + (size_t)row * half;
    const float *sines = s->sin + (size_t)row * half;
    float *q = s->out_q[row] + (size_t)head * group * dim;
    for (uint32_t h = 0; h < group; h++, q += dim) {
        kernels->rms_norm(q, norms->q_norm, eps, q, dim);
        kernels->rope(q, cosines, sines, half);
    }
    const uint32_t block_tokens = view->layout->shape.block_tokens;
    const uint32_t position = s->rows[row].position;
    unsigned char *slot =
        akin_kv_slot(view, s->rows[row].slots[position / block_tokens]);
    const size_t at = (size_t)(position % block_tokens) * dim;
    float *k = s->out_k[row] + (size_t)head * dim;
    kernels->rms_norm(k, norms->k_norm, eps, k, dim);
    kernels->rope(k, cosines, sines, half);
    kernels->narrow_bf16(k, akin_kv_keys(view->layout, slot, layer, head) + at,
                         dim);
    kernels->narrow_bf16(s->out_v[row] + (size_t)head * dim,
                         akin_kv_values(view->layout, slot, layer, head) + at,
                         dim);
}

/* The k best experts, ties to the lowest id, and their weights: softmax over
 * all experts, divided by the sum over the chosen ones where the model says
 * so, which makes it a softmax over the chosen logits. */
static void choose_experts(akini_cpu_engine_t *e, uint32_t thread, uint32_t row)
{
    const akin_model_config_t *c = &e->model->config;
    akini_cpu_scratch_t *s = &e->scratch;
    const float *logits = s->out_gate[row];
    uint16_t *routes = s->routes + (size_t)row * c->top_k;
    float *weights = s->weights + (size_t)row * c->top_k;
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_experts; i++) {
        uint32_t at = n;
        while (at > 0 && logits[i] > logits[routes[at - 1]])
            at--;
        if (at == c->top_k)
            continue;
        n += n < c->top_k;
        for (uint32_t j = n - 1; j > at; j--)
            routes[j] = routes[j - 1];
        routes[at] = (uint16_t)i;
    }
    const float max = logits[routes[0]];
    for (uint32_t j = 0; j < c->top_k; j++)
        weights[j] = logits[routes[j]] - max;
    e->kernels->exp(weights, c->top_k);
    float sum = 0.0f;
    if (c->norm_topk_prob) {
        for (uint32_t j = 0; j < c->top_k; j++)
            sum += weights[j];
    } else {
        float *p = s->probabilities[thread];
        for (uint32_t i = 0; i < c->n_experts; i++)
            p[i] = logits[i] - max;
        e->kernels->exp(p, c->n_experts);
        for (uint32_t i = 0; i < c->n_experts; i++)
            sum += p[i];
    }
    for (uint32_t j = 0; j < c->top_k; j++)
        weights[j] /= sum;
}

/* The gate's choices into the sidecars and to whoever asked for them. The
 * first token of a block resets its histogram, later ones add. */
static void record_routes(akini_cpu_engine_t *e, const akin_kv_view_t *view,
                          uint32_t layer, uint32_t n_rows)
{
    const akin_model_config_t *c = &e->model->config;
    const akini_cpu_scratch_t *s = &e->scratch;
    const uint32_t block_tokens = view->layout->shape.block_tokens;
    for (uint32_t row = 0; row < n_rows; row++) {
        const akini_cpu_row_t *r = &s->rows[row];
        const uint16_t *routes = s->routes + (size_t)row * c->top_k;
        unsigned char *slot =
            akin_kv_slot(view, r->slots[r->position / block_tokens]);
        uint8_t *counts =
            akin_kv_sidecar(view->layout, slot) + (size_t)layer * c->n_experts;
        if (r->position % block_tokens == 0)
            memset(counts, 0, c->n_experts);
        for (uint32_t j = 0; j < c->top_k; j++)
            counts[routes[j]]++;
        if (r->routes != NULL)
            memcpy(r->routes + (size_t)layer * c->top_k, routes,
                   c->top_k * sizeof(*routes));
    }
}

static void run_attention(akini_cpu_engine_t *e, const akin_kv_view_t *view,
                          uint32_t thread, uint32_t layer, uint32_t n_rows)
{
    const akin_model_config_t *c = &e->model->config;
    const akin_layer_t *w = &e->model->layers[layer];
    akini_cpu_scratch_t *s = &e->scratch;
    const product_t qkv[3] = {
        {&w->q_proj, s->out_q}, {&w->k_proj, s->out_k}, {&w->v_proj, s->out_v}};
    run_products(e, qkv, 3, s->in, n_rows);
    const uint32_t n_heads = c->n_kv_heads, n = n_rows * n_heads;
    if (n_rows > 1) {
        AKIN_TEAM_FOR(e->team, i, n)
        {
            store_head(e, view, layer, i / n_heads, i % n_heads);
        }
        akin_team_barrier(e->team);
    }
    AKIN_TEAM_FOR(e->team, i, n)
    {
        /* A single row sees no keys of the others: no need to wait. */
        if (n_rows == 1)
            store_head(e, view, layer, 0, i);
        akini_cpu_attend(e, view, thread, layer, i / n_heads, i % n_heads);
    }
    akin_team_barrier(e->team);
    const product_t o = {&w->o_proj, s->out_projected};
    run_products(e, &o, 1, s->in_attended, n_rows);
}

/* Adds the attention's output and normalises, by rows. */
static void finish_attention(akini_cpu_engine_t *e, uint32_t layer,
                             uint32_t row)
{
    const akin_kernels_t *kernels = e->kernels;
    akini_cpu_scratch_t *s = &e->scratch;
    const size_t hidden = e->model->config.hidden_size;
    kernels->add(s->x + row * hidden, s->projected + row * hidden, hidden);
    kernels->rms_norm(s->x + row * hidden, e->norms[layer].post,
                      (float)e->model->config.rms_norm_eps,
                      s->normed + row * hidden, hidden);
}

/* From the attention's output to the chosen experts. For a single row and a
 * small gate one thread is faster than three meetings of all. */
static void run_gate(akini_cpu_engine_t *e, uint32_t thread, uint32_t layer,
                     uint32_t n_rows)
{
    const akin_matrix_t *router = &e->model->layers[layer].router;
    akini_cpu_scratch_t *s = &e->scratch;
    if (n_rows == 1 && akin_matrix_bytes(router) <= SMALL_GATE_BYTES) {
        if (thread == 0) {
            finish_attention(e, layer, 0);
            akin_matmul(e->kernels, router, 0, router->rows, s->in, s->out_gate,
                        1);
            choose_experts(e, 0, 0);
        }
        return;
    }
    AKIN_TEAM_FOR(e->team, row, n_rows)
    {
        finish_attention(e, layer, row);
    }
    akin_team_barrier(e->team);
    const product_t gate = {router, s->out_gate};
    run_products(e, &gate, 1, s->in, n_rows);
    AKIN_TEAM_FOR(e->team, row, n_rows)
    {
        choose_experts(e, thread, row);
    }
    akin_team_barrier(e->team);
}

static void run_layer(akini_cpu_engine_t *e, const akin_kv_view_t *view,
                      uint32_t thread, uint32_t layer, uint32_t n_rows,
                      uint16_t *n_distinct)
{
    const akin_model_config_t *c = &e->model->config;
    akini_cpu_scratch_t *s = &e->scratch;
    const size_t hidden = c->hidden_size;
    AKIN_TEAM_FOR(e->team, row, n_rows)
    {
        e->kernels->rms_norm(s->x + row * hidden, e->norms[layer].input,
                             (float)c->rms_norm_eps, s->normed + row * hidden,
                             hidden);
    }
    akin_team_barrier(e->team);
    run_attention(e, view, thread, layer, n_rows);
    run_gate(e, thread, layer, n_rows);
    /* Thread 0 has all routes before it groups them for the expert step. */
    if (thread == 0)
        record_routes(e, view, layer, n_rows);
    const akin_expert_batch_t batch = {
        .experts = e->model->layers[layer].experts,
        .x = s->normed,
        .routes = s->routes,
        .weights = s->weights,
        .n_rows = n_rows,
        .y = s->x,
    };
    uint32_t distinct =
        e->group != NULL
            ? akin_ep_group_run(e->group, e->team, thread, layer, &batch,
                                &e->group_status)
            : akin_expert_step_run(e->experts, e->team, thread, &batch);
    if (thread == 0 && n_distinct != NULL)
        n_distinct[layer] = (uint16_t)(n_distinct[layer] + distinct);
}

/* The work of one thread. */
static void run_pass(akini_cpu_engine_t *e, const akin_kv_view_t *view,
                     uint32_t thread, uint32_t n_rows, uint32_t n_heads,
                     uint16_t *n_distinct)
{
    const akin_model_config_t *c = &e->model->config;
    akini_cpu_scratch_t *s = &e->scratch;
    const size_t hidden = c->hidden_size;
    const product_t head = {&e->model->head, s->out_head};
    AKIN_TEAM_FOR(e->team, row, n_rows)
    embed(e, row);
    akin_team_barrier(e->team);
    for (uint32_t layer = 0; layer < c->n_layers; layer++) {
        if (thread == 0 && layer == c->n_layers / 2)
            AKIN_FAULT_POINT("mid-step", NULL);
        run_layer(e, view, thread, layer, n_rows, n_distinct);
        /* The same for all threads: written before their last meeting. */
        if (e->group_status != AKIN_OK)
            return;
    }
    AKIN_TEAM_FOR(e->team, row, n_rows)
    if (s->rows[row].logits != NULL)
        e->kernels->rms_norm(s->x + row * hidden, e->final_norm,
                             (float)c->rms_norm_eps, s->normed + row * hidden,
                             hidden);
    akin_team_barrier(e->team);
    run_products(e, &head, 1, s->in_head, n_heads);
}

void akini_cpu_pass(akini_cpu_engine_t *e, const akin_kv_view_t *view,
                    uint32_t n_rows, uint16_t *n_distinct)
{
    akini_cpu_scratch_t *s = &e->scratch;
    const size_t hidden = e->model->config.hidden_size;
    uint32_t n_heads = 0;
    for (uint32_t row = 0; row < n_rows; row++) {
        if (s->rows[row].logits == NULL)
            continue;
        s->in_head[n_heads] = s->normed + row * hidden;
        s->out_head[n_heads++] = s->rows[row].logits;
    }
#pragma omp parallel num_threads(e->n_threads)
    {
        akin_team_begin(e->team, (uint32_t)omp_get_num_threads());
        run_pass(e, view, (uint32_t)omp_get_thread_num(), n_rows, n_heads,
                 n_distinct);
    }
}
