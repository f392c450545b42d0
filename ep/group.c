/* Group: the phases of a layer over the ranks of a worker. */
#include "ep/group_state.h"

#include "base/clock.h"
#include "ep/floats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pairs that a rank may have to serve in one step. */
#define MAX_PAIRS ((size_t)1 << 26)

static const char *kind_name(int kind)
{
    static const char *const names[] = {"choice", "dispatch", "combine",
                                        "share"};
    return names[kind - AKINI_EP_ACTIVE];
}

akin_status_t akin_ep_group_create(const akin_ep_group_params_t *params,
                                   akin_ep_group_t **group_p, akin_error_t *err)
{
    *group_p = NULL;
    if (params->exchange->n_ranks != params->placement->n_ranks ||
        params->exchange->rank >= params->exchange->n_ranks)
        return akin_error_set(
            err, AKIN_ERR_INVALID,
            "expert-parallel group: rank %u of %u, but experts are placed on "
            "%u ranks",
            (unsigned)params->exchange->rank,
            (unsigned)params->exchange->n_ranks,
            (unsigned)params->placement->n_ranks);
    akin_status_t status = akin_placement_check(params->placement, err);
    if (status != AKIN_OK)
        return status;
    akin_ep_group_t *g = calloc(1, sizeof(*g));
    if (g == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "group: out of memory");
    g->exchange = params->exchange;
    g->timeout_ns = params->timeout_ns;
    g->out = calloc(params->placement->n_ranks, sizeof(*g->out));
    g->in = calloc(params->placement->n_ranks, sizeof(*g->in));
    status = g->out != NULL && g->in != NULL
                 ? akin_placement_copy(params->placement, &g->placement)
                 : AKIN_ERR_NOMEM;
    if (status != AKIN_OK) {
        free(g->out);
        free(g->in);
        free(g);
        return akin_error_set(err, status, "group: out of memory");
    }
    *group_p = g;
    return AKIN_OK;
}

/* What create, prepare and share made. */
static void release(akin_ep_group_t *g)
{
    for (uint32_t r = 0; g->links != NULL && r < g->placement.n_ranks; r++) {
        free(g->links[r].own_dispatch);
        free(g->links[r].own_combine);
        free(g->links[r].rows);
        free(g->links[r].choices);
    }
    akin_expert_pairs_destroy(g->pairs);
    free(g->links);
    free(g->out);
    free(g->in);
    free(g->list);
    free(g->terms);
    free(g->out_buffer);
    free(g->rank_of);
    free(g->loads);
    free(g->active);
    free(g->active_of_all);
    free(g->share);
}

void akin_ep_group_destroy(akin_ep_group_t *group)
{
    if (group == NULL)
        return;
    release(group);
    akin_placement_cleanup(&group->placement);
    free(group);
}

static void *bytes_alloc(size_t bytes)
{
    return akini_floats_alloc(1, bytes / sizeof(float) + 1);
}

static int links_init(akin_ep_group_t *g, const akin_expert_step_params_t *step)
{
    const size_t n_pairs = (size_t)step->max_rows * step->top_k;
    const size_t vector_bytes = step->hidden * sizeof(float);
    g->links = calloc(g->placement.n_ranks, sizeof(*g->links));
    for (uint32_t r = 0; g->links != NULL && r < g->placement.n_ranks; r++) {
        akini_ep_link_t *link = &g->links[r];
        if (r == g->exchange->rank)
            continue;
        link->own_dispatch = bytes_alloc(akini_ep_dispatch_vectors(n_pairs) +
                                         step->max_rows * vector_bytes);
        link->own_combine =
            bytes_alloc(AKINI_EP_ALIGN + n_pairs * vector_bytes);
        link->rows = calloc(step->max_rows, sizeof(*link->rows));
        link->choices = calloc(n_pairs, sizeof(*link->choices));
        if (link->own_dispatch == NULL || link->own_combine == NULL ||
            link->rows == NULL || link->choices == NULL)
            return 0;
    }
    return g->links != NULL;
}

size_t akin_ep_group_piece_bytes(const akin_expert_step_params_t *step)
{
    const size_t n_pairs = (size_t)step->max_rows * step->top_k;
    const size_t vector_bytes = step->hidden * sizeof(float);
    const size_t dispatch = akini_ep_dispatch_vectors(n_pairs) +
                            (size_t)step->max_rows * vector_bytes;
    const size_t combine = AKINI_EP_ALIGN + n_pairs * vector_bytes;
    return dispatch > combine ? dispatch : combine;
}

akin_status_t akin_ep_group_prepare(akin_ep_group_t *g,
                                    const akin_expert_step_params_t *step,
                                    akin_error_t *err)
{
    const size_t n_ranks = g->placement.n_ranks;
    const size_t n_pairs = (size_t)step->max_rows * step->top_k;
    if (g->links != NULL)
        return akin_error_set(
            err, AKIN_ERR_INVALID,
            "expert-parallel group: it has an engine already");
    if (step->n_experts != g->placement.n_experts)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "expert-parallel group: %u experts are placed, "
                              "the model has %u",
                              (unsigned)g->placement.n_experts,
                              (unsigned)step->n_experts);
    if (n_pairs == 0 || n_pairs > MAX_PAIRS / n_ranks)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "expert-parallel group: %u rows of %u experts on "
                              "%zu ranks are none or too many",
                              (unsigned)step->max_rows, (unsigned)step->top_k,
                              n_ranks);
    const akin_expert_pairs_params_t pairs = {
        .kernels = step->kernels,
        .hidden = step->hidden,
        .intermediate = step->intermediate,
        .n_experts = step->n_experts,
        .max_pairs = (uint32_t)(n_pairs * n_ranks),
    };
    g->n_words = (step->n_experts + 63u) / 64u;
    g->list = calloc(n_pairs * n_ranks, sizeof(*g->list));
    g->terms = calloc(n_pairs, sizeof(*g->terms));
    g->out_buffer = akini_floats_alloc(n_pairs, step->hidden);
    g->rank_of = calloc(step->n_experts, sizeof(*g->rank_of));
    g->loads = calloc(n_ranks, sizeof(*g->loads));
    g->active =
        calloc(sizeof(akini_ep_head_t) / sizeof(*g->active) + g->n_words,
               sizeof(*g->active));
    g->active_of_all = calloc(g->n_words, sizeof(*g->active_of_all));
    if (akin_expert_pairs_create(&pairs, &g->pairs) != AKIN_OK ||
        !links_init(g, step) || g->list == NULL || g->terms == NULL ||
        g->out_buffer == NULL || g->rank_of == NULL || g->loads == NULL ||
        g->active == NULL || g->active_of_all == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM,
                              "expert-parallel group: out of memory for %u "
                              "rows on each of %zu ranks",
                              (unsigned)step->max_rows, n_ranks);
    g->step = *step;
    return AKIN_OK;
}

unsigned char *akini_ep_place(akin_ep_group_t *g, uint32_t to, size_t bytes,
                              unsigned char *own)
{
    void *place = akin_ep_exchange_place(g->exchange, to, bytes);
    return place != NULL ? place : own;
}

void akini_ep_head_put(const akin_ep_group_t *g, void *message, int kind,
                       uint32_t layer, uint32_t n_rows, uint32_t n_pairs)
{
    const akini_ep_head_t head = {
        .magic = AKINI_EP_MAGIC,
        .version = AKINI_EP_VERSION,
        .kind = (uint16_t)kind,
        .layer = layer,
        .hidden = g->step.hidden,
        .n_rows = n_rows,
        .n_pairs = n_pairs,
        .epoch = g->placement.epoch,
    };
    memcpy(message, &head, sizeof(head));
}

akin_status_t akini_ep_head_get(akin_ep_group_t *g, uint32_t from, int kind,
                                uint32_t layer, akini_ep_head_t *head_p)
{
    const akin_ep_piece_t *piece = &g->in[from];
    if (piece->bytes < sizeof(*head_p))
        return akin_error_set(&g->error, AKIN_ERR_FORMAT,
                              "rank %u of the group: %zu bytes are no %s",
                              (unsigned)from, piece->bytes, kind_name(kind));
    memcpy(head_p, piece->data, sizeof(*head_p));
    if (head_p->magic != AKINI_EP_MAGIC ||
        head_p->version != AKINI_EP_VERSION || head_p->kind != kind ||
        head_p->layer != layer || head_p->hidden != g->step.hidden)
        return akin_error_set(&g->error, AKIN_ERR_FORMAT,
                              "rank %u of the group: what it sent is no %s of "
                              "layer %u; run the same build, model and steps "
                              "on every rank",
                              (unsigned)from, kind_name(kind), (unsigned)layer);
    if (head_p->epoch != g->placement.epoch)
        return akin_error_set(&g->error, AKIN_ERR_FORMAT,
                              "rank %u of the group: it has placement %llu, "
                              "this rank has %llu",
                              (unsigned)from, (unsigned long long)head_p->epoch,
                              (unsigned long long)g->placement.epoch);
    return AKIN_OK;
}

akin_status_t akini_ep_swap(akin_ep_group_t *g, int kind, uint32_t layer)
{
    const uint32_t own = g->exchange->rank, n = g->placement.n_ranks;
    g->out[own] = (akin_ep_piece_t){NULL, 0};
    g->exchange->culprit = n;
    akin_status_t status = akin_ep_swap(g->exchange, g->out, g->in,
                                        akin_clock_now_ns() + g->timeout_ns);
    if (status != AKIN_OK) {
        char who[32] = "a rank";
        if (g->exchange->culprit < n)
            (void)snprintf(who, sizeof(who), "rank %u",
                           (unsigned)g->exchange->culprit);
        return akin_error_set(&g->error, status,
                              "%s of the group (this is rank %u of %u): %s "
                              "in the %s of layer %u",
                              who, (unsigned)own, (unsigned)n,
                              akin_status_string(status), kind_name(kind),
                              (unsigned)layer);
    }
    for (uint32_t r = 0; r < n; r++) {
        g->stats.bytes_out += g->out[r].bytes;
        g->stats.bytes_in += r != own ? g->in[r].bytes : 0;
    }
    return AKIN_OK;
}

/* What one thread does before the vectors are copied. */
static void begin(akin_ep_group_t *g, uint32_t layer,
                  const akin_expert_batch_t *batch)
{
    if (g->status != AKIN_OK)
        return;
    if (g->links == NULL || layer >= g->placement.n_layers ||
        batch->n_rows > g->step.max_rows)
        g->status = akin_error_set(
            &g->error, AKIN_ERR_RANGE,
            "expert-parallel group: layer %u or %u rows are beyond what it "
            "was made for",
            (unsigned)layer, (unsigned)batch->n_rows);
    if (g->status == AKIN_OK)
        g->status = akini_ep_choose(g, layer, batch);
    if (g->status == AKIN_OK)
        akini_ep_plan(g, layer, batch);
}

static int64_t since(int64_t *mark_ns)
{
    int64_t now_ns = akin_clock_now_ns(), ns = now_ns - *mark_ns;
    *mark_ns = now_ns;
    return ns;
}

uint32_t akin_ep_group_run(akin_ep_group_t *g, akin_team_t *team, uint32_t rank,
                           uint32_t layer, const akin_expert_batch_t *batch,
                           akin_status_t *status_p)
{
    const uint32_t k = g->step.top_k;
    int64_t mark_ns = rank == 0 ? akin_clock_now_ns() : 0;
    /* Between two meetings of the team only thread 0 writes the status, and
     * all read it right after one, so they all take the same way. */
    if (rank == 0) {
        begin(g, layer, batch);
        *status_p = g->status;
    }
    akin_team_barrier(team);
    if (g->status != AKIN_OK)
        return 0;
    AKIN_TEAM_FOR(team, i, g->placement.n_ranks * batch->n_rows)
    akini_ep_copy_row(g, batch, i);
    akin_team_barrier(team);
    if (rank == 0) {
        g->status = akini_ep_dispatch(g, layer);
        *status_p = g->status;
        g->stats.dispatch_ns += since(&mark_ns);
    }
    akin_team_barrier(team);
    if (g->status != AKIN_OK)
        return 0;
    uint32_t n_distinct = akin_expert_pairs_run(g->pairs, team, batch->experts);
    if (rank == 0) {
        g->stats.compute_ns += since(&mark_ns);
        g->status = akini_ep_combine(g, layer);
        *status_p = g->status;
        g->stats.combine_ns += since(&mark_ns);
    }
    akin_team_barrier(team);
    if (g->status != AKIN_OK)
        return 0;
    AKIN_TEAM_FOR(team, row, batch->n_rows)
    g->step.kernels->combine(
        batch->y + (size_t)row * g->step.hidden, g->terms + (size_t)row * k,
        batch->weights + (size_t)row * k, k, g->step.hidden);
    if (rank == 0)
        g->stats.n_layers++;
    akin_team_barrier(team);
    return n_distinct;
}

void akin_ep_group_stats(const akin_ep_group_t *group,
                         akin_ep_group_stats_t *stats_p)
{
    *stats_p = group->stats;
}

const char *akin_ep_group_error(const akin_ep_group_t *group)
{
    return group->status != AKIN_OK ? group->error.text : NULL;
}

const akin_placement_t *akin_ep_group_placement(const akin_ep_group_t *group)
{
    return &group->placement;
}

uint32_t akin_ep_group_rank(const akin_ep_group_t *group)
{
    return group->exchange->rank;
}
