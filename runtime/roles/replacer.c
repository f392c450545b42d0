/* Replacer: observed rates and paces of workers, and one order at a time for
 * each. */
#include "roles/replacer.h"

#include "base/clock.h"
#include "routing/cost.h"

#include <stdlib.h>
#include <string.h>

/* Decode tokens that a worker's rates remember, and without which they are
 * none. */
#define MEMORY_TOKENS 16384.0
#define MIN_TOKENS 1024.0

/* Steps that the mean batch remembers. */
#define MEMORY_STEPS 256.0

typedef struct worker {
    float *rates; /* [n_layers][n_experts] */
    double n_tokens;
    akin_cost_t cost;
    double batch;     /* mean of late */
    double n_batches; /* that it is the mean of */
    /* Since the last consideration. */
    uint64_t n_steps;
    double seconds, distinct;
    int64_t since_ns;
    /* The order under way. */
    int is_waiting;
    uint64_t *holders; /* [n_experts] */
    akin_placement_change_t change;
    uint64_t epoch;    /* of the last order */
    uint64_t n_forced; /* orders that were */
    int is_lost;
} worker_t;

struct akin_replacer {
    akin_replacer_params_t params;
    akin_replacer_stats_t stats;
    worker_t *workers; /* [n_workers] */
};

static size_t n_cells(const akin_replacer_t *r)
{
    return (size_t)r->params.placements->n_layers *
           r->params.placements->n_experts;
}

akin_status_t akin_replacer_create(const akin_replacer_params_t *params,
                                   akin_replacer_t **replacer_p)
{
    *replacer_p = NULL;
    akin_replacer_t *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return AKIN_ERR_NOMEM;
    r->params = *params;
    r->stats.mode = params->mode;
    r->workers = calloc(params->n_workers, sizeof(*r->workers));
    for (uint32_t i = 0; r->workers != NULL && i < params->n_workers; i++) {
        const akin_placement_t *map = &params->placements[i];
        worker_t *w = &r->workers[i];
        w->rates = calloc(n_cells(r), sizeof(*w->rates));
        w->holders = calloc(map->n_experts, sizeof(*w->holders));
        w->epoch = map->epoch;
        akin_cost_init(&w->cost, (uint32_t)(n_cells(r) / map->n_ranks), 0.0);
        if (w->rates == NULL || w->holders == NULL) {
            akin_replacer_destroy(r);
            return AKIN_ERR_NOMEM;
        }
    }
    if (r->workers == NULL) {
        free(r);
        return AKIN_ERR_NOMEM;
    }
    *replacer_p = r;
    return AKIN_OK;
}

void akin_replacer_destroy(akin_replacer_t *replacer)
{
    if (replacer == NULL)
        return;
    for (uint32_t i = 0; i < replacer->params.n_workers; i++) {
        free(replacer->workers[i].rates);
        free(replacer->workers[i].holders);
    }
    free(replacer->workers);
    free(replacer);
}

void akin_replacer_counts(akin_replacer_t *r, uint32_t worker,
                          const uint16_t *counts, uint32_t n_tokens)
{
    worker_t *w = &r->workers[worker];
    const size_t n = n_cells(r);
    for (size_t i = 0; i < n; i++)
        if (counts[i] > n_tokens)
            return;
    if (n_tokens == 0)
        return;
    w->n_tokens += n_tokens;
    if (w->n_tokens > MEMORY_TOKENS)
        w->n_tokens = MEMORY_TOKENS;
    double weight = n_tokens / w->n_tokens;
    weight = weight < 1.0 ? weight : 1.0;
    for (size_t i = 0; i < n; i++) {
        const double rate = (double)counts[i] / n_tokens;
        w->rates[i] += (float)(weight * (rate - (double)w->rates[i]));
        /* Rounding may leave the range that a chance has. */
        w->rates[i] = w->rates[i] > 0.0f ? w->rates[i] : 0.0f;
        w->rates[i] = w->rates[i] < 1.0f ? w->rates[i] : 1.0f;
    }
}

static void add_step(worker_t *w, const akin_policy_step_t *step,
                     int64_t now_ns)
{
    if (w->since_ns == 0)
        w->since_ns = now_ns - (int64_t)(step->seconds * AKIN_NS_PER_S);
    (void)akin_cost_observe(&w->cost, step->batch, step->distinct,
                            step->seconds);
    w->n_batches += w->n_batches < MEMORY_STEPS ? 1.0 : 0.0;
    w->batch += (step->batch - w->batch) / w->n_batches;
    w->n_steps++;
    w->seconds += step->seconds;
    w->distinct += step->distinct;
}

static double seconds_per_expert(const worker_t *w)
{
    if (w->cost.fitted)
        return w->cost.line.a_s;
    return w->distinct > 0.0 ? w->seconds / w->distinct : 0.0;
}

/* Layers in turn; the next round begins with another kind. */
static akin_status_t force(akin_replacer_t *r, worker_t *w,
                           const akin_placement_change_params_t *params)
{
    static const akin_placement_kind_t kinds[] = {
        AKIN_PLACEMENT_ROUND_ROBIN, AKIN_PLACEMENT_ACTIVATION,
        AKIN_PLACEMENT_LINEAR, AKIN_PLACEMENT_EPLB};
    const uint64_t n = w->n_forced++, n_layers = params->placement->n_layers;
    (void)r;
    return akin_placement_change_make(params, (uint32_t)(n % n_layers),
                                      kinds[(n + n / n_layers) % 4], w->holders,
                                      &w->change, NULL);
}

static int consider(akin_replacer_t *r, uint32_t worker, int64_t now_ns)
{
    worker_t *w = &r->workers[worker];
    const double elapsed_s =
        (double)(now_ns - w->since_ns) / (double)AKIN_NS_PER_S;
    const akin_placement_change_params_t params = {
        .placement = &r->params.placements[worker],
        .rates = w->rates,
        .batch = w->batch,
        .steps = elapsed_s > 0.0
                     ? r->params.horizon_s * (double)w->n_steps / elapsed_s
                     : 0.0,
        .seconds_per_expert = seconds_per_expert(w),
        .expert_bytes = r->params.expert_bytes,
        .bandwidth_bytes_per_s = r->params.bandwidth_bytes_per_s,
    };
    r->stats.n_considered++;
    w->change.layer = AKIN_PLACEMENT_NO_LAYER;
    akin_status_t status = AKIN_OK;
    if (r->params.is_forced)
        status = force(r, w, &params);
    else if (w->n_tokens >= MIN_TOKENS)
        status = akin_placement_change_propose(&params, w->holders, &w->change,
                                               NULL);
    /* Without memory for it the placement stays as it is. */
    return status == AKIN_OK && w->change.layer != AKIN_PLACEMENT_NO_LAYER;
}

static void restart(worker_t *w, int64_t now_ns)
{
    w->n_steps = 0;
    w->seconds = 0.0;
    w->distinct = 0.0;
    w->since_ns = now_ns;
}

static void add_change(akin_replacer_t *r, const akin_placement_change_t *c)
{
    r->stats.n_moved += c->n_moved;
    r->stats.n_bytes += (uint64_t)(c->n_moved * r->params.expert_bytes);
    r->stats.gain_s += c->gain_s;
}

int akin_replacer_step(akin_replacer_t *r, uint32_t worker,
                       const akin_policy_step_t *step, int64_t now_ns,
                       akin_replacer_order_t *order_p)
{
    worker_t *w = &r->workers[worker];
    add_step(w, step, now_ns);
    if (w->is_waiting || w->is_lost || w->n_steps < r->params.every)
        return 0;
    const int is_found = consider(r, worker, now_ns);
    restart(w, now_ns);
    if (!is_found)
        return 0;
    r->stats.n_proposed++;
    if (r->params.mode == AKIN_REPLACE_ON) {
        w->is_waiting = 1;
        w->epoch++;
    } else {
        add_change(r, &w->change);
    }
    *order_p = (akin_replacer_order_t){
        .worker = worker,
        .epoch = w->epoch,
        .change = w->change,
        .holders = w->holders,
    };
    return 1;
}

int akin_replacer_placed(akin_replacer_t *r, uint32_t worker, uint64_t epoch,
                         akin_status_t status)
{
    worker_t *w = &r->workers[worker];
    akin_placement_t *map = &r->params.placements[worker];
    if (!w->is_waiting || epoch != w->epoch)
        return 0;
    w->is_waiting = 0;
    /* Steps from before the change say nothing of what comes. Of the step
     * before it a report may be open: at two steps the ranks have the change.
     */
    w->n_steps = 0;
    w->seconds = 0.0;
    w->distinct = 0.0;
    w->since_ns = 0;
    if (status != AKIN_OK) {
        r->stats.n_dropped++;
        return 0;
    }
    memcpy(map->holders + (size_t)w->change.layer * map->n_experts, w->holders,
           map->n_experts * sizeof(*w->holders));
    map->epoch = epoch;
    r->stats.n_applied++;
    add_change(r, &w->change);
    return 1;
}

void akin_replacer_lost(akin_replacer_t *r, uint32_t worker)
{
    worker_t *w = &r->workers[worker];
    w->is_lost = 1;
    r->stats.n_dropped += w->is_waiting != 0;
    w->is_waiting = 0;
}

void akin_replacer_back(akin_replacer_t *r, uint32_t worker)
{
    r->workers[worker].is_lost = 0;
}

akin_replacer_stats_t akin_replacer_stats(const akin_replacer_t *replacer)
{
    return replacer->stats;
}
