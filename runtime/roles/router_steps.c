/* The steps of workers: what the ranks of a worker report of one step becomes
 * one report. */
#include "roles/router_state.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

/* Steps of one worker that may be open at a time. Its ranks step together, so
 * that two are all that the ways of messages can mix. */
#define OPEN_STEPS 4u

/* A step of which some ranks have reported. */
typedef struct open_step {
    uint64_t number; /* 0: none */
    uint32_t n_ranks;
    uint32_t n_rows;
    int64_t ns;     /* of the slowest rank */
    uint64_t total; /* distinct experts of all ranks and layers */
    uint16_t *max;  /* [n_layers] of the rank with the most */
} open_step_t;

struct akini_steps {
    uint32_t n_layers;
    uint32_t n_workers;
    open_step_t *open; /* [n_workers][OPEN_STEPS] */
    uint16_t *max;     /* the steps' own */
};

akini_steps_t *akini_steps_create(uint32_t n_workers, uint32_t n_layers)
{
    const size_t n = (size_t)n_workers * OPEN_STEPS;
    akini_steps_t *steps = calloc(1, sizeof(*steps));
    if (steps == NULL)
        return NULL;
    steps->n_layers = n_layers;
    steps->n_workers = n_workers;
    steps->open = calloc(n, sizeof(*steps->open));
    steps->max = calloc(n * n_layers, sizeof(*steps->max));
    if (steps->open == NULL || steps->max == NULL) {
        akini_steps_destroy(steps);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        steps->open[i].max = steps->max + i * n_layers;
    return steps;
}

void akini_steps_destroy(akini_steps_t *steps)
{
    if (steps == NULL)
        return;
    free(steps->open);
    free(steps->max);
    free(steps);
}

void akini_steps_forget(akini_steps_t *steps, uint32_t worker)
{
    for (uint32_t i = 0; i < OPEN_STEPS; i++)
        steps->open[(size_t)worker * OPEN_STEPS + i].number = 0;
}

/* The open step of that number. One that another number pushes out has lost a
 * report, and counts for nothing. */
static open_step_t *open_step(akini_steps_t *steps, uint32_t worker,
                              uint64_t number)
{
    open_step_t *s =
        &steps->open[(size_t)worker * OPEN_STEPS + number % OPEN_STEPS];
    if (s->number != number) {
        uint16_t *max = s->max;
        memset(max, 0, steps->n_layers * sizeof(*max));
        *s = (open_step_t){.number = number, .max = max};
    }
    return s;
}

/* Predicted against observed, where the requests that the policy counts are
 * those of the step. */
static void compare(akin_router_t *r, uint32_t decode, uint32_t n_rows,
                    double distinct)
{
    if (akin_policy_in_flight(r->policy, decode) != n_rows)
        return;
    const double expected = akin_policy_expected_distinct(r->policy, decode);
    if (expected > 0.0)
        akin_summary_add_prediction(r->summary, expected / r->steps->n_layers,
                                    distinct / r->steps->n_layers);
}

static void close_step(akin_router_t *r, uint32_t worker, open_step_t *s)
{
    const akin_job_t *job = r->params.job;
    uint64_t max = 0;
    for (uint32_t l = 0; l < r->steps->n_layers; l++)
        max += s->max[l];
    const akin_summary_step_t step = {
        .ns = s->ns,
        .n_rows = s->n_rows,
        .n_distinct = (double)s->total / r->steps->n_layers,
        .max_distinct = (double)max / r->steps->n_layers,
    };
    s->number = 0;
    if (s->n_rows == 0)
        return;
    akin_summary_add_step(r->summary, worker, &step);
    if (worker < job->n_prefill)
        return;
    const akin_policy_step_t observed = {
        .batch = s->n_rows,
        .distinct = (double)max,
        .seconds = (double)s->ns / (double)AKIN_NS_PER_S,
    };
    compare(r, worker - job->n_prefill, s->n_rows, (double)max);
    akin_policy_observe(r->policy, worker - job->n_prefill, &observed);
    if (!r->is_closing)
        akini_router_replace_step(r, worker - job->n_prefill, &observed);
}

akin_status_t akini_router_on_step(akin_router_t *r, uint32_t from,
                                   const akin_message_step_t *m)
{
    const akini_rank_t *rank = akini_router_rank(r, from);
    const uint32_t n_ranks = akini_router_is_prefill(r, from)
                                 ? r->params.job->prefill_ep
                                 : r->params.job->ep;
    if (m->number == 0 || m->n_served != r->steps->n_layers)
        return AKIN_ERR_RANGE;
    if (rank == NULL)
        return AKIN_OK; /* of a worker that is lost */
    for (size_t l = 0; l < m->n_served; l++)
        if (m->served[l] > r->params.model->n_experts)
            return AKIN_ERR_RANGE;
    open_step_t *s = open_step(r->steps, rank->worker, m->number);
    s->n_ranks++;
    s->n_rows += m->n_rows;
    s->ns = m->ns > s->ns ? m->ns : s->ns;
    for (uint32_t l = 0; l < r->steps->n_layers; l++) {
        s->total += m->served[l];
        s->max[l] = m->served[l] > s->max[l] ? m->served[l] : s->max[l];
    }
    if (s->n_ranks == n_ranks)
        close_step(r, rank->worker, s);
    return AKIN_OK;
}
