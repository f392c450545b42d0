/* Job EP: which ranks of the workers hold which experts. */
#include "roles/job_ep.h"

#include "ep/placement_json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static int needs_rates(const char *name)
{
    return strcmp(name, "eplb") == 0 || strcmp(name, "activation") == 0;
}

/* The kind to make maps of. */
static const char *kind_name(const akin_job_t *job, const akin_fit_t *fit)
{
    if (strcmp(job->placement, "auto") != 0)
        return job->placement;
    return fit->pbar != NULL ? "activation" : "linear";
}

static int has_maps(const akin_job_t *job, const akin_fit_t *fit)
{
    return strcmp(job->placement, "auto") == 0 && fit->placements != NULL &&
           fit->placements[0].n_ranks == job->ep &&
           fit->placements[0].n_replicas == job->n_replicas;
}

const char *akin_job_placement_name(const akin_job_t *job,
                                    const akin_fit_t *fit)
{
    return has_maps(job, fit) ? "fit" : kind_name(job, fit);
}

static akin_status_t check_ranks(const akin_job_t *job, const char *key,
                                 const char *origin, uint32_t ep,
                                 uint32_t n_experts, akin_error_t *err)
{
    if (ep == 1)
        return AKIN_OK;
    if ((n_experts + job->n_replicas) % ep != 0)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "%s: %s is %u, which does not divide the %u "
                              "experts of the model and the %u slots of "
                              "ep.replicas: change one of the two keys",
                              origin, key, ep, n_experts, job->n_replicas);
    if (job->n_replicas > n_experts * (ep - 1))
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "%s: ep.replicas is %u, but with %s = %u every "
                              "rank holds all %u experts of the model when it "
                              "is %u",
                              origin, job->n_replicas, key, ep, n_experts,
                              n_experts * (ep - 1));
    return AKIN_OK;
}

akin_status_t akin_job_ep_check(const akin_job_t *job,
                                const akin_model_config_t *model,
                                const akin_fit_t *fit, akin_error_t *err)
{
    akin_status_t status = check_ranks(job, "roles.ep", job->ep_origin, job->ep,
                                       model->n_experts, err);
    if (status == AKIN_OK)
        status = check_ranks(job, job->prefill_ep_key, job->prefill_ep_origin,
                             job->prefill_ep, model->n_experts, err);
    if (status == AKIN_OK && needs_rates(job->placement) && fit->pbar == NULL)
        status = akin_error_set(
            err, AKIN_ERR_CONFIG,
            "%s: ep.placement is \"%s\", which needs a fit with decode rates "
            "(pbar): make one with akin calibrate and akin fit, and name it in "
            "routing.fit",
            job->placement_origin, job->placement);
    return status;
}

/* Mean decode rates of all clusters. */
static void mean_rates(const akin_fit_t *fit, float *mean)
{
    const size_t n = (size_t)fit->n_layers * fit->n_experts;
    for (size_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (uint32_t w = 0; w < fit->n_clusters; w++)
            sum += (double)fit->pbar[w * n + i];
        mean[i] = (float)(sum / fit->n_clusters);
    }
}

static akin_status_t make_decode(const akin_job_t *job,
                                 akin_placement_params_t params,
                                 const akin_fit_t *fit,
                                 akin_job_placements_t *placements,
                                 akin_error_t *err)
{
    const size_t n = (size_t)params.n_layers * params.n_experts;
    placements->decode = calloc(job->n_decode, sizeof(*placements->decode));
    if (placements->decode == NULL)
        return AKIN_ERR_NOMEM;
    placements->n_decode = job->n_decode;
    params.n_ranks = job->ep;
    akin_status_t status = AKIN_OK;
    for (uint32_t w = 0; w < job->n_decode && status == AKIN_OK; w++) {
        params.rates = fit->pbar != NULL ? fit->pbar + w * n : NULL;
        status =
            has_maps(job, fit)
                ? akin_placement_copy(&fit->placements[w],
                                      &placements->decode[w])
                : akin_placement_make(&params, &placements->decode[w], err);
    }
    return status;
}

static akin_status_t make_prefill(const akin_job_t *job,
                                  akin_placement_params_t params,
                                  const akin_fit_t *fit,
                                  akin_job_placements_t *placements,
                                  akin_error_t *err)
{
    float *mean = NULL;
    params.n_ranks = job->prefill_ep;
    if (fit->pbar != NULL) {
        mean =
            calloc((size_t)params.n_layers * params.n_experts, sizeof(*mean));
        if (mean == NULL)
            return AKIN_ERR_NOMEM;
        mean_rates(fit, mean);
        params.rates = mean;
    }
    akin_status_t status =
        akin_placement_make(&params, &placements->prefill, err);
    free(mean);
    return status;
}

akin_status_t akin_job_placements_make(const akin_job_t *job,
                                       const akin_model_config_t *model,
                                       const akin_fit_t *fit,
                                       akin_job_placements_t *placements_p,
                                       akin_error_t *err)
{
    akin_job_placements_t placements = {0};
    akin_placement_params_t params = {
        .n_layers = model->n_layers,
        .n_experts = model->n_experts,
        .n_replicas = job->n_replicas,
        .batch = job->max_batch > 1 ? job->max_batch / 2 : 1,
    };
    *placements_p = placements;
    akin_status_t status = akin_job_ep_check(job, model, fit, err);
    if (status == AKIN_OK)
        status =
            akin_placement_kind_find(kind_name(job, fit), &params.kind, err);
    if (status == AKIN_OK && job->ep > 1)
        status = make_decode(job, params, fit, &placements, err);
    if (status == AKIN_OK && job->prefill_ep > 1)
        status = make_prefill(job, params, fit, &placements, err);
    if (status == AKIN_OK)
        *placements_p = placements;
    else
        akin_job_placements_cleanup(&placements);
    return status;
}

akin_status_t akin_job_placements_pack(const akin_job_placements_t *placements,
                                       char **text_p)
{
    *text_p = NULL;
    json_t *json = json_object(), *decode = json_array(), *map;
    int failed = json == NULL || decode == NULL;
    for (uint32_t w = 0; w < placements->n_decode && !failed; w++)
        failed =
            akin_placement_json_pack(&placements->decode[w], &map) != AKIN_OK ||
            json_array_append_new(decode, map) != 0;
    const akin_placement_t *shape =
        placements->n_decode > 0 ? placements->decode : &placements->prefill;
    if (!failed)
        failed = json_object_set(json, "decode", decode) != 0 ||
                 json_object_set_new(json, "layers",
                                     json_integer(shape->n_layers)) != 0 ||
                 json_object_set_new(json, "experts",
                                     json_integer(shape->n_experts)) != 0;
    if (!failed && placements->prefill.holders != NULL)
        failed =
            akin_placement_json_pack(&placements->prefill, &map) != AKIN_OK ||
            json_object_set_new(json, "prefill", map) != 0;
    if (!failed)
        *text_p = json_dumps(json, JSON_COMPACT);
    json_decref(decode);
    json_decref(json);
    return *text_p != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
}

static akin_status_t unpack_map(const json_t *json, uint32_t n_ranks,
                                const json_t *shape, akin_placement_t *map,
                                akin_error_t *err)
{
    akin_status_t status = akin_placement_json_unpack(
        json, "the placements sent by rank 0",
        (uint32_t)json_integer_value(json_object_get(shape, "layers")),
        (uint32_t)json_integer_value(json_object_get(shape, "experts")), map,
        err);
    if (status == AKIN_OK && map->n_ranks != n_ranks)
        status = akin_error_set(err, AKIN_ERR_FORMAT,
                                "the placements sent by rank 0 are for "
                                "workers of other sizes");
    return status;
}

akin_status_t akin_job_placements_unpack(const akin_job_t *job,
                                         const char *text,
                                         akin_job_placements_t *placements_p,
                                         akin_error_t *err)
{
    akin_job_placements_t placements = {0};
    *placements_p = placements;
    json_t *json = json_loads(text, 0, NULL);
    const json_t *decode = json_object_get(json, "decode");
    const uint32_t n_decode = job->ep > 1 ? job->n_decode : 0;
    akin_status_t status = AKIN_OK;
    if (!json_is_array(decode) || json_array_size(decode) != n_decode)
        status = akin_error_set(err, AKIN_ERR_FORMAT,
                                "the placements sent by rank 0 cannot be read");
    if (status == AKIN_OK && n_decode > 0) {
        placements.decode = calloc(n_decode, sizeof(*placements.decode));
        placements.n_decode = placements.decode != NULL ? n_decode : 0;
        if (placements.decode == NULL)
            status = akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    }
    for (uint32_t w = 0; w < placements.n_decode && status == AKIN_OK; w++)
        status = unpack_map(json_array_get(decode, w), job->ep, json,
                            &placements.decode[w], err);
    if (status == AKIN_OK && job->prefill_ep > 1)
        status = unpack_map(json_object_get(json, "prefill"), job->prefill_ep,
                            json, &placements.prefill, err);
    json_decref(json);
    if (status == AKIN_OK)
        *placements_p = placements;
    else
        akin_job_placements_cleanup(&placements);
    return status;
}

const akin_placement_t *
akin_job_placements_of(const akin_job_placements_t *placements,
                       const akin_job_place_t *place)
{
    if (place->n_ranks < 2)
        return NULL;
    if (place->role == AKIN_JOB_PREFILL)
        return &placements->prefill;
    return &placements
                ->decode[place->role == AKIN_JOB_DECODE ? place->worker : 0];
}

void akin_job_placements_cleanup(akin_job_placements_t *placements)
{
    if (placements == NULL)
        return;
    for (uint32_t w = 0; w < placements->n_decode; w++)
        akin_placement_cleanup(&placements->decode[w]);
    free(placements->decode);
    akin_placement_cleanup(&placements->prefill);
    *placements = (akin_job_placements_t){0};
}
