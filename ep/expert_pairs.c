/* Expert pairs: pairs sorted by expert, then two passes over the weights. */
#include "ep/expert_pairs.h"

#include "ep/floats.h"

#include <stdlib.h>
#include <string.h>

/* The pairs of one expert: places first .. first + n in the order. */
typedef struct expert_group {
    uint32_t expert;
    uint32_t first;
    uint32_t n;
} expert_group_t;

struct akin_expert_pairs {
    akin_expert_pairs_params_t params;
    uint32_t *start;        /* [n_experts + 1] counting sort */
    expert_group_t *groups; /* [n_experts] touched experts */
    uint32_t n_groups;
    const float **x;    /* [max_pairs] inputs in expert order */
    float **gate, **up; /* [max_pairs] rows of the two buffers */
    float **out;        /* [max_pairs] outputs in expert order */
    float *gate_buffer; /* [max_pairs][intermediate] */
    float *up_buffer;   /* [max_pairs][intermediate] */
};

akin_status_t akin_expert_pairs_create(const akin_expert_pairs_params_t *params,
                                       akin_expert_pairs_t **pairs_p)
{
    *pairs_p = NULL;
    akin_expert_pairs_t *p = calloc(1, sizeof(*p));
    if (p == NULL)
        return AKIN_ERR_NOMEM;
    p->params = *params;
    const size_t n = params->max_pairs;
    p->start = calloc((size_t)params->n_experts + 1, sizeof(*p->start));
    p->groups = calloc(params->n_experts, sizeof(*p->groups));
    p->x = calloc(n, sizeof(*p->x));
    p->gate = calloc(n, sizeof(*p->gate));
    p->up = calloc(n, sizeof(*p->up));
    p->out = calloc(n, sizeof(*p->out));
    p->gate_buffer = akini_floats_alloc(n, params->intermediate);
    p->up_buffer = akini_floats_alloc(n, params->intermediate);
    if (p->start == NULL || p->groups == NULL || p->x == NULL ||
        p->gate == NULL || p->up == NULL || p->out == NULL ||
        p->gate_buffer == NULL || p->up_buffer == NULL) {
        akin_expert_pairs_destroy(p);
        return AKIN_ERR_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        p->gate[i] = p->gate_buffer + i * params->intermediate;
        p->up[i] = p->up_buffer + i * params->intermediate;
    }
    *pairs_p = p;
    return AKIN_OK;
}

void akin_expert_pairs_destroy(akin_expert_pairs_t *pairs)
{
    if (pairs == NULL)
        return;
    free(pairs->start);
    free(pairs->groups);
    free(pairs->x);
    free(pairs->gate);
    free(pairs->up);
    free(pairs->out);
    free(pairs->gate_buffer);
    free(pairs->up_buffer);
    free(pairs);
}

/* Counting sort; the pairs of an expert stay in order. */
void akin_expert_pairs_sort(akin_expert_pairs_t *p,
                            const akin_expert_pair_t *list, uint32_t n_pairs)
{
    const uint32_t n_experts = p->params.n_experts;
    memset(p->start, 0, ((size_t)n_experts + 1) * sizeof(*p->start));
    for (uint32_t i = 0; i < n_pairs; i++)
        p->start[list[i].expert + 1]++;
    p->n_groups = 0;
    for (uint32_t e = 0; e < n_experts; e++) {
        uint32_t count = p->start[e + 1];
        if (count > 0)
            p->groups[p->n_groups++] = (expert_group_t){e, p->start[e], count};
        p->start[e + 1] = p->start[e] + count;
    }
    for (uint32_t i = 0; i < n_pairs; i++) {
        uint32_t at = p->start[list[i].expert]++;
        p->x[at] = list[i].x;
        p->out[at] = list[i].out;
    }
}

static void hidden_chunk(const akin_expert_pairs_t *p,
                         const akin_expert_t *experts, uint32_t g, uint32_t row,
                         uint32_t chunk_rows)
{
    const akin_kernels_t *kernels = p->params.kernels;
    const expert_group_t *group = &p->groups[g];
    const akin_expert_t *expert = &experts[group->expert];
    uint32_t n_rows = p->params.intermediate - row;
    n_rows = n_rows < chunk_rows ? n_rows : chunk_rows;
    float *gate[64], *up[64];
    for (uint32_t t = 0; t < group->n; t += 64) {
        uint32_t n = group->n - t < 64 ? group->n - t : 64;
        for (uint32_t i = 0; i < n; i++) {
            gate[i] = p->gate[group->first + t + i] + row;
            up[i] = p->up[group->first + t + i] + row;
        }
        const float *const *x = p->x + group->first + t;
        akin_matmul(kernels, &expert->gate, row, n_rows, x, gate, n);
        akin_matmul(kernels, &expert->up, row, n_rows, x, up, n);
        for (uint32_t i = 0; i < n; i++)
            kernels->silu_mul(gate[i], up[i], n_rows);
    }
}

static void output_chunk(const akin_expert_pairs_t *p,
                         const akin_expert_t *experts, uint32_t g, uint32_t row,
                         uint32_t chunk_rows)
{
    const expert_group_t *group = &p->groups[g];
    const akin_matrix_t *down = &experts[group->expert].down;
    uint32_t n_rows = p->params.hidden - row;
    n_rows = n_rows < chunk_rows ? n_rows : chunk_rows;
    float *out[64];
    for (uint32_t t = 0; t < group->n; t += 64) {
        uint32_t n = group->n - t < 64 ? group->n - t : 64;
        for (uint32_t i = 0; i < n; i++)
            out[i] = p->out[group->first + t + i] + row;
        akin_matmul(p->params.kernels, down, row, n_rows,
                    (const float *const *)p->gate + group->first + t, out, n);
    }
}

uint32_t akin_expert_pairs_run(akin_expert_pairs_t *pairs, akin_team_t *team,
                               const akin_expert_t *experts)
{
    const uint32_t hidden_rows = akin_matrix_chunk_rows(&experts->gate);
    const uint32_t n_hidden =
        (pairs->params.intermediate + hidden_rows - 1) / hidden_rows;
    const uint32_t output_rows = akin_matrix_chunk_rows(&experts->down);
    const uint32_t n_output =
        (pairs->params.hidden + output_rows - 1) / output_rows;
    const uint32_t n_groups = pairs->n_groups;
    AKIN_TEAM_FOR(team, i, n_groups * n_hidden)
    hidden_chunk(pairs, experts, i / n_hidden, i % n_hidden * hidden_rows,
                 hidden_rows);
    akin_team_barrier(team);
    AKIN_TEAM_FOR(team, i, n_groups * n_output)
    output_chunk(pairs, experts, i / n_output, i % n_output * output_rows,
                 output_rows);
    akin_team_barrier(team);
    return n_groups;
}
