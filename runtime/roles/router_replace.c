/* The router's part in placing experts anew while workers serve. */
#include "roles/router_state.h"

#include "base/clock.h"
#include "base/log.h"

/* Weights are kept in 16 bits. */
#define WEIGHT_BYTES 2.0

akin_status_t akini_router_create_replacer(akin_router_t *r)
{
    const akin_job_t *job = r->params.job;
    const akin_model_config_t *model = r->params.model;
    if (job->replace == AKIN_REPLACE_OFF || r->params.placements == NULL)
        return AKIN_OK;
    const akin_replacer_params_t params = {
        .mode = job->replace,
        .is_forced = job->replace_force,
        .every = job->replace_every,
        .horizon_s = (double)job->replace_horizon_ns / (double)AKIN_NS_PER_S,
        .bandwidth_bytes_per_s = (double)job->replace_bandwidth,
        .expert_bytes = 3.0 * WEIGHT_BYTES * (double)model->hidden_size *
                        (double)model->moe_intermediate_size,
        .placements = r->params.placements,
        .n_workers = job->n_decode,
    };
    return akin_replacer_create(&params, &r->replacer);
}

void akini_router_replace_counts(akin_router_t *r, uint32_t from,
                                 const akin_message_counts_t *m)
{
    const uint32_t worker =
        akini_router_rank(r, from)->worker - r->params.job->n_prefill;
    if (r->replacer != NULL)
        akin_replacer_counts(r->replacer, worker, m->counts, m->n_tokens);
}

/* The places of a decode worker; its leader has the first. */
static const akini_rank_t *places_of(const akin_router_t *r, uint32_t worker)
{
    return &r->decode[(size_t)worker * r->params.job->ep];
}

static void tell(akin_router_t *r, const akin_replacer_order_t *order)
{
    const akin_placement_t *map = &r->params.placements[order->worker];
    const akini_rank_t *places = places_of(r, order->worker);
    const akin_message_place_t m = {
        .epoch = order->epoch,
        .layer = order->change.layer,
        .holders = order->holders,
        .n_holders = map->n_experts,
    };
    for (uint32_t i = 0; i < map->n_ranks; i++) {
        akin_message_pack_place(&r->packer, &m);
        akini_router_send(r, places[i].rank, AKIN_MESSAGE_PLACE);
    }
}

void akini_router_replace_step(akin_router_t *r, uint32_t worker,
                               const akin_policy_step_t *step)
{
    akin_replacer_order_t order;
    if (r->replacer == NULL || !akin_replacer_step(r->replacer, worker, step,
                                                   akin_clock_now_ns(), &order))
        return;
    const akin_placement_change_t *c = &order.change;
    const int is_dry = r->params.job->replace == AKIN_REPLACE_DRY_RUN;
    AKIN_LOG(ROLES, INFO,
             "%s: decode worker %u, layer %u: the busiest rank is expected to "
             "compute %.2f experts in a step instead of %.2f for %u experts "
             "moved, worth %.3f s",
             is_dry ? "a dry run of ep.replace proposes" : "placing anew",
             worker, c->layer, c->load_then, c->load_now, c->n_moved,
             c->gain_s);
    if (!is_dry)
        tell(r, &order);
}

akin_status_t akini_router_on_placed(akin_router_t *r, uint32_t from,
                                     const void *payload, size_t bytes)
{
    akin_message_placed_t m;
    akin_status_t status = akin_message_unpack_placed(payload, bytes, &m);
    if (status != AKIN_OK || r->replacer == NULL)
        return status;
    const uint32_t worker =
        akini_router_rank(r, from)->worker - r->params.job->n_prefill;
    if (from != places_of(r, worker)[0].rank)
        return AKIN_ERR_FORMAT;
    if (akin_replacer_placed(r->replacer, worker, m.epoch,
                             (akin_status_t)m.status)) {
        akin_policy_placement_changed(r->policy, worker);
        AKIN_LOG(ROLES, INFO, "decode worker %u steps under placement %llu",
                 worker, (unsigned long long)m.epoch);
    } else if (m.status != AKIN_OK) {
        AKIN_LOG(ROLES, WARN, "decode worker %u dropped placement %llu: %s",
                 worker, (unsigned long long)m.epoch,
                 akin_status_string((akin_status_t)m.status));
    }
    return AKIN_OK;
}

void akini_router_replace_lost(akin_router_t *r, uint32_t worker)
{
    const uint32_t n_prefill = r->params.job->n_prefill;
    if (r->replacer != NULL && worker >= n_prefill)
        akin_replacer_lost(r->replacer, worker - n_prefill);
}

void akini_router_replace_back(akin_router_t *r, uint32_t worker)
{
    const uint32_t n_prefill = r->params.job->n_prefill;
    if (r->replacer != NULL && worker >= n_prefill)
        akin_replacer_back(r->replacer, worker - n_prefill);
}
