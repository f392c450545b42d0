/* Expert step: rows sorted by expert, then two passes over the weights. */
#include "ep/expert_step.h"

#include <stdlib.h>
#include <string.h>

/* The rows that chose one expert: places first .. first + n in the order. */
typedef struct expert_group {
    uint32_t expert;
    uint32_t first;
    uint32_t n;
} expert_group_t;

struct akin_expert_step {
    akin_expert_step_params_t params;
    uint32_t *start;        /* [n_experts + 1] counting sort */
    expert_group_t *groups; /* [n_experts] touched experts */
    uint32_t n_groups;
    const float **x;     /* [max_rows * k] inputs in expert order */
    float **gate, **up;  /* [max_rows * k] rows of the two buffers */
    float **out;         /* [max_rows * k] outputs in expert order */
    const float **terms; /* [max_rows * k] outputs in row order */
    float *gate_buffer;  /* [max_rows * k][intermediate] */
    float *up_buffer;    /* [max_rows * k][intermediate] */
    float *out_buffer;   /* [max_rows * k][hidden], row order */
};

static void *alloc_floats(size_t n)
{
    size_t bytes = (n * sizeof(float) + 63) / 64 * 64;
    return aligned_alloc(64, bytes > 0 ? bytes : 64);
}

akin_status_t akin_expert_step_create(const akin_expert_step_params_t *params,
                                      akin_expert_step_t **step_p)
{
    *step_p = NULL;
    akin_expert_step_t *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return AKIN_ERR_NOMEM;
    s->params = *params;
    size_t n = (size_t)params->max_rows * params->top_k;
    s->start = calloc((size_t)params->n_experts + 1, sizeof(*s->start));
    s->groups = calloc(params->n_experts, sizeof(*s->groups));
    s->x = calloc(n, sizeof(*s->x));
    s->gate = calloc(n, sizeof(*s->gate));
    s->up = calloc(n, sizeof(*s->up));
    s->out = calloc(n, sizeof(*s->out));
    s->terms = calloc(n, sizeof(*s->terms));
    s->gate_buffer = alloc_floats(n * params->intermediate);
    s->up_buffer = alloc_floats(n * params->intermediate);
    s->out_buffer = alloc_floats(n * params->hidden);
    if (s->start == NULL || s->groups == NULL || s->x == NULL ||
        s->gate == NULL || s->up == NULL || s->out == NULL ||
        s->terms == NULL || s->gate_buffer == NULL || s->up_buffer == NULL ||
        s->out_buffer == NULL) {
        akin_expert_step_destroy(s);
        return AKIN_ERR_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        s->gate[i] = s->gate_buffer + i * params->intermediate;
        s->up[i] = s->up_buffer + i * params->intermediate;
        s->terms[i] = s->out_buffer + i * params->hidden;
    }
    *step_p = s;
    return AKIN_OK;
}

void akin_expert_step_destroy(akin_expert_step_t *step)
{
    if (step == NULL)
        return;
    free(step->start);
    free(step->groups);
    free(step->x);
    free(step->gate);
    free(step->up);
    free(step->out);
    free(step->terms);
    free(step->gate_buffer);
    free(step->up_buffer);
    free(step->out_buffer);
    free(step);
}

/* Counting sort of (row, choice) by expert; rows stay in order. */
static void group_by_expert(akin_expert_step_t *s, const akin_expert_batch_t *b)
{
    const size_t hidden = s->params.hidden;
    const uint32_t k = s->params.top_k, n_experts = s->params.n_experts;
    const uint32_t n = b->n_rows * k;
    memset(s->start, 0, ((size_t)n_experts + 1) * sizeof(*s->start));
    for (uint32_t i = 0; i < n; i++)
        s->start[b->routes[i] + 1]++;
    s->n_groups = 0;
    for (uint32_t e = 0; e < n_experts; e++) {
        uint32_t count = s->start[e + 1];
        if (count > 0)
            s->groups[s->n_groups++] = (expert_group_t){e, s->start[e], count};
        s->start[e + 1] = s->start[e] + count;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = s->start[b->routes[i]]++;
        s->x[at] = b->x + i / k * hidden;
        s->out[at] = s->out_buffer + i * hidden;
    }
}

static void hidden_chunk(const akin_expert_step_t *s,
                         const akin_expert_batch_t *b, uint32_t g, uint32_t row,
                         uint32_t chunk_rows)
{
    const akin_kernels_t *kernels = s->params.kernels;
    const expert_group_t *group = &s->groups[g];
    const akin_expert_t *expert = &b->experts[group->expert];
    uint32_t n_rows = s->params.intermediate - row;
    n_rows = n_rows < chunk_rows ? n_rows : chunk_rows;
    float *gate[64], *up[64];
    for (uint32_t t = 0; t < group->n; t += 64) {
        uint32_t n = group->n - t < 64 ? group->n - t : 64;
        for (uint32_t i = 0; i < n; i++) {
            gate[i] = s->gate[group->first + t + i] + row;
            up[i] = s->up[group->first + t + i] + row;
        }
        const float *const *x = s->x + group->first + t;
        akin_matmul(kernels, &expert->gate, row, n_rows, x, gate, n);
        akin_matmul(kernels, &expert->up, row, n_rows, x, up, n);
        for (uint32_t i = 0; i < n; i++)
            kernels->silu_mul(gate[i], up[i], n_rows);
    }
}

static void output_chunk(const akin_expert_step_t *s,
                         const akin_expert_batch_t *b, uint32_t g, uint32_t row,
                         uint32_t chunk_rows)
{
    const expert_group_t *group = &s->groups[g];
    const akin_matrix_t *down = &b->experts[group->expert].down;
    uint32_t n_rows = s->params.hidden - row;
    n_rows = n_rows < chunk_rows ? n_rows : chunk_rows;
    float *out[64];
    for (uint32_t t = 0; t < group->n; t += 64) {
        uint32_t n = group->n - t < 64 ? group->n - t : 64;
        for (uint32_t i = 0; i < n; i++)
            out[i] = s->out[group->first + t + i] + row;
        akin_matmul(s->params.kernels, down, row, n_rows,
                    (const float *const *)s->gate + group->first + t, out, n);
    }
}

uint32_t akin_expert_step_run(akin_expert_step_t *step, akin_team_t *team,
                              uint32_t rank, const akin_expert_batch_t *batch)
{
    const uint32_t k = step->params.top_k;
    const uint32_t hidden_rows = akin_matrix_chunk_rows(&batch->experts->gate);
    const uint32_t n_hidden =
        (step->params.intermediate + hidden_rows - 1) / hidden_rows;
    const uint32_t output_rows = akin_matrix_chunk_rows(&batch->experts->down);
    const uint32_t n_output =
        (step->params.hidden + output_rows - 1) / output_rows;
    if (rank == 0)
        group_by_expert(step, batch);
    akin_team_barrier(team);

    const uint32_t n_groups = step->n_groups;
    AKIN_TEAM_FOR(team, i, n_groups * n_hidden)
    hidden_chunk(step, batch, i / n_hidden, i % n_hidden * hidden_rows,
                 hidden_rows);
    akin_team_barrier(team);
    AKIN_TEAM_FOR(team, i, n_groups * n_output)
    output_chunk(step, batch, i / n_output, i % n_output * output_rows,
                 output_rows);
    akin_team_barrier(team);
    AKIN_TEAM_FOR(team, row, batch->n_rows)
    step->params.kernels->combine(batch->y + (size_t)row * step->params.hidden,
                                  step->terms + (size_t)row * k,
                                  batch->weights + (size_t)row * k, k,
                                  step->params.hidden);
    akin_team_barrier(team);
    return n_groups;
}
