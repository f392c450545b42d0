/* Expert step: pairs of a batch, their outputs in row order, then the sums. */
#include "ep/expert_step.h"

#include "ep/expert_pairs.h"
#include "ep/floats.h"

#include <stdlib.h>

struct akin_expert_step {
    akin_expert_step_params_t params;
    akin_expert_pairs_t *pairs;
    akin_expert_pair_t *list; /* [max_rows * k] */
    const float **terms;      /* [max_rows * k] outputs in row order */
    float *out_buffer;        /* [max_rows * k][hidden], row order */
};

akin_status_t akin_expert_step_create(const akin_expert_step_params_t *params,
                                      akin_expert_step_t **step_p)
{
    *step_p = NULL;
    akin_expert_step_t *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return AKIN_ERR_NOMEM;
    s->params = *params;
    const size_t n = (size_t)params->max_rows * params->top_k;
    const akin_expert_pairs_params_t pairs = {
        .kernels = params->kernels,
        .hidden = params->hidden,
        .intermediate = params->intermediate,
        .n_experts = params->n_experts,
        .max_pairs = (uint32_t)n,
    };
    akin_status_t status = akin_expert_pairs_create(&pairs, &s->pairs);
    s->list = calloc(n, sizeof(*s->list));
    s->terms = calloc(n, sizeof(*s->terms));
    s->out_buffer = akini_floats_alloc(n, params->hidden);
    if (status != AKIN_OK || s->list == NULL || s->terms == NULL ||
        s->out_buffer == NULL) {
        akin_expert_step_destroy(s);
        return AKIN_ERR_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        s->list[i].out = s->out_buffer + i * params->hidden;
        s->terms[i] = s->list[i].out;
    }
    *step_p = s;
    return AKIN_OK;
}

void akin_expert_step_destroy(akin_expert_step_t *step)
{
    if (step == NULL)
        return;
    akin_expert_pairs_destroy(step->pairs);
    free(step->list);
    free(step->terms);
    free(step->out_buffer);
    free(step);
}

static void list_pairs(akin_expert_step_t *s, const akin_expert_batch_t *b)
{
    const uint32_t k = s->params.top_k, n = b->n_rows * k;
    for (uint32_t i = 0; i < n; i++) {
        s->list[i].x = b->x + (size_t)(i / k) * s->params.hidden;
        s->list[i].expert = b->routes[i];
    }
    akin_expert_pairs_sort(s->pairs, s->list, n);
}

uint32_t akin_expert_step_run(akin_expert_step_t *step, akin_team_t *team,
                              uint32_t rank, const akin_expert_batch_t *batch)
{
    const uint32_t k = step->params.top_k;
    if (rank == 0)
        list_pairs(step, batch);
    akin_team_barrier(team);
    uint32_t n_distinct =
        akin_expert_pairs_run(step->pairs, team, batch->experts);
    AKIN_TEAM_FOR(team, row, batch->n_rows)
    step->params.kernels->combine(batch->y + (size_t)row * step->params.hidden,
                                  step->terms + (size_t)row * k,
                                  batch->weights + (size_t)row * k, k,
                                  step->params.hidden);
    akin_team_barrier(team);
    return n_distinct;
}
