/* Rank EP: a rank's start in an expert-parallel worker. */
#include "roles/rank_ep.h"

#include "base/log.h"
#include "ep/exchange_mpi.h"
#include "ep/exchange_ucx.h"

#include <stdlib.h>
#include <string.h>

akin_status_t akini_rank_ep_place(akini_rank_ep_t *ep, akin_boot_t *boot,
                                  const akin_job_t *job,
                                  const akin_model_config_t *model,
                                  const akin_fit_t *fit, akin_status_t status,
                                  akin_error_t *err)
{
    const int is_first = akin_boot_rank(boot) == 0;
    char *own = NULL, *text = NULL;
    if (is_first && status == AKIN_OK)
        status =
            akin_job_placements_make(job, model, fit, &ep->placements, err);
    if (is_first && status == AKIN_OK)
        status = akin_job_placements_pack(&ep->placements, &own);
    status = akin_boot_broadcast(boot, status, own, &text, err);
    free(own);
    if (!is_first && status == AKIN_OK)
        status = akin_job_placements_unpack(job, text, &ep->placements, err);
    free(text);
    return akin_boot_agree(boot, status, err);
}

akin_status_t akini_rank_ep_open(akini_rank_ep_t *ep, uint32_t rank,
                                 const akin_job_place_t *place,
                                 akin_error_t *err)
{
    const akin_ep_exchange_ucx_params_t params = {
        .rank = rank - place->first,
        .n_ranks = place->n_ranks,
    };
    if (place->n_ranks < 2)
        return AKIN_OK;
    return akin_ep_exchange_ucx_create(&params, &ep->exchange, err);
}

akin_status_t akini_rank_ep_bind(akini_rank_ep_t *ep, const akin_job_t *job,
                                 uint32_t rank, const akin_job_place_t *place,
                                 akin_error_t *err)
{
    const akin_placement_t *map =
        akin_job_placements_of(&ep->placements, place);
    if (ep->exchange == NULL || map == NULL)
        return AKIN_OK;
    const akin_ep_group_params_t params = {
        .exchange = ep->exchange,
        .placement = map,
        .timeout_ns = job->ep_timeout_ns,
    };
    akin_status_t status = akin_ep_group_create(&params, &ep->group, err);
    AKIN_LOG(ROLES, INFO,
             "holds %u of %u experts in each layer, rank %u of %u of its "
             "worker, exchange %s",
             (map->n_experts + map->n_replicas) / map->n_ranks, map->n_experts,
             rank - place->first, map->n_ranks, job->exchange);
    return status;
}

/* Connect to the ranks of the own worker over UCX. */
static akin_status_t connect_ucx(akini_rank_ep_t *ep, akin_boot_t *boot,
                                 const akin_job_place_t *place,
                                 akin_error_t *err)
{
    void *blob = NULL;
    size_t bytes = 0;
    unsigned char *blobs = NULL;
    size_t *offsets = NULL;
    const uint32_t own = akin_boot_rank(boot) - place->first;
    akin_status_t status =
        akini_rank_ep_open(ep, akin_boot_rank(boot), place, err);
    if (status == AKIN_OK && ep->exchange != NULL)
        status =
            akin_ep_exchange_ucx_identity(ep->exchange, &blob, &bytes, err);
    status = akin_boot_agree(boot, status, err);
    if (status == AKIN_OK)
        status = akin_boot_exchange(boot, blob, bytes, &blobs, &offsets, err);
    for (uint32_t i = 0;
         i < place->n_ranks && status == AKIN_OK && ep->exchange != NULL; i++) {
        const uint32_t rank = place->first + i;
        if (i != own)
            status = akin_ep_exchange_ucx_connect(
                ep->exchange, i, blobs + offsets[rank],
                offsets[rank + 1] - offsets[rank], err);
    }
    free(blob);
    free(blobs);
    free(offsets);
    return status;
}

static akin_status_t connect_mpi(akini_rank_ep_t *ep, akin_boot_t *boot,
                                 const akin_job_place_t *place,
                                 akin_error_t *err)
{
    const int colour = place->n_ranks > 1 ? (int)place->first : -1;
    akin_status_t status =
        akin_boot_group_create(boot, colour, &ep->boot_group, err);
    if (status == AKIN_OK && ep->boot_group != NULL)
        status =
            akin_ep_exchange_mpi_create(ep->boot_group, &ep->exchange, err);
    return status;
}

akin_status_t akini_rank_ep_boot(akini_rank_ep_t *ep, akin_boot_t *boot,
                                 const akin_job_t *job, akin_error_t *err)
{
    if (job->ep == 1 && job->prefill_ep == 1)
        return AKIN_OK;
    const akin_job_place_t place = akin_job_place(job, akin_boot_rank(boot));
    akin_status_t status = strcmp(job->exchange, "mpi") == 0
                               ? connect_mpi(ep, boot, &place, err)
                               : connect_ucx(ep, boot, &place, err);
    if (status == AKIN_OK)
        status = akini_rank_ep_bind(ep, job, akin_boot_rank(boot), &place, err);
    return akin_boot_agree(boot, status, err);
}

akin_status_t akini_rank_ep_assume(akini_rank_ep_t *ep,
                                   const akin_message_assume_t *m,
                                   akin_error_t *err)
{
    if (ep->group == NULL)
        return AKIN_OK;
    akin_placement_t map = *akin_ep_group_placement(ep->group);
    if (m->n_holders != (size_t)map.n_layers * map.n_experts)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "the placement is of another model");
    map.epoch = m->epoch;
    map.holders = m->holders;
    return akin_ep_group_set_placement(ep->group, &map, err);
}

void akini_rank_ep_leave(akini_rank_ep_t *ep)
{
    akin_ep_group_destroy(ep->group);
    akin_ep_exchange_destroy(ep->exchange);
    akin_boot_group_destroy(ep->boot_group);
    akin_job_placements_cleanup(&ep->placements);
    *ep = (akini_rank_ep_t){0};
}
