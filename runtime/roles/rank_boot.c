/* Rank boot: the start that all ranks go through in step, over MPI. */
#include "roles/rank_state.h"

#include "base/log.h"
#include "roles/job_fit.h"
#include "roles/rank_paths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A rank that is not where the plan has it ends the job before it begins. */
static akin_status_t agree_on_places(akini_self_t *self)
{
    if (self->params->placed != AKIN_OK)
        self->err = self->params->placed_error;
    return akin_boot_agree(self->boot, self->params->placed, &self->err);
}

/* One reader: rank 0 reads the job and broadcasts its canonical form. */
static akin_status_t share_job(akini_self_t *self)
{
    char *own = NULL;
    akin_status_t status = AKIN_OK;
    if (self->number == AKIN_ROUTER_RANK) {
        status = akin_rank_read_job(self->params, &self->config, &self->job,
                                    &self->err);
        if (status == AKIN_OK)
            status = akin_config_canonical(self->config, &own);
    }
    status = akin_boot_broadcast(self->boot, status, own, &self->job_text,
                                 &self->err);
    free(own);
    if (status == AKIN_OK && self->number != AKIN_ROUTER_RANK)
        status = akini_rank_read_text(self);
    self->job.record_routes = self->params->calibration != NULL;
    return akin_boot_agree(self->boot, status, &self->err);
}

static void say_ranks(char *text, size_t bytes, const akin_job_t *job)
{
    int n = snprintf(text, bytes, "1 router, %u x %u prefill, %u x %u decode",
                     job->n_prefill, job->prefill_ep, job->n_decode, job->ep);
    if (job->n_spare > 0)
        (void)snprintf(text + n, bytes - (size_t)n, ", %u x %u spare",
                       job->n_spare, job->ep);
}

static akin_status_t take_role(akini_self_t *self)
{
    const uint32_t n_ranks = akin_job_n_ranks(&self->job);
    char text[160];
    say_ranks(text, sizeof(text), &self->job);
    if (akin_boot_size(self->boot) != n_ranks)
        return akin_error_set(&self->err, AKIN_ERR_CONFIG,
                              "the job has %u ranks (%s), but it was started "
                              "with %u: use mpirun -n %u",
                              n_ranks, text, akin_boot_size(self->boot),
                              n_ranks);
    self->place = akin_job_place(&self->job, self->number);
    akin_log_identify((int)self->number, akin_job_role_name(self->place.role));
    uint32_t index, count;
    return akin_boot_role(self->boot, (int)self->place.role, &index, &count,
                          &self->err);
}

/* The best path that every rank has, or the one that the job names. */
static akin_status_t agree_on_kernels(akini_self_t *self)
{
    int64_t worst;
    const char *name = self->job.kernel;
    akin_status_t status = akin_boot_min(
        self->boot, -(int64_t)akin_kernels_best(), &worst, &self->err);
    if (status != AKIN_OK)
        return status;
    if (strcmp(name, "auto") == 0)
        name = akin_kernel_path_name((akin_kernel_path_t)-worst);
    status = akin_kernels_find(name, &self->kernels, &self->err);
    return akin_boot_agree(
        self->boot, status == AKIN_OK ? AKIN_OK : AKIN_ERR_CONFIG, &self->err);
}

/* Which rank holds which experts; rank 0 knows the model and the fit. */
static akin_status_t place_experts(akini_self_t *self)
{
    akin_status_t status = AKIN_OK;
    if (self->place.role == AKIN_JOB_ROUTER) {
        status = akin_job_model_read(&self->job, &self->model, &self->err);
        if (status == AKIN_OK)
            status = akin_job_fit_read(&self->job, &self->model, &self->fit,
                                       &self->err);
    }
    return akini_rank_ep_place(&self->ep, self->boot, &self->job, &self->model,
                               &self->fit, status, &self->err);
}

static akin_status_t load_tokenizer(akini_self_t *self)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/tokenizer.json",
                   self->job.model_path);
    akin_status_t status =
        akin_tokenizer_load(path, &self->tokenizer, &self->err);
    if (status == AKIN_OK &&
        akin_tokenizer_size(self->tokenizer) > self->model.vocab_size)
        status = akin_error_set(&self->err, AKIN_ERR_FORMAT,
                                "%s: %u tokens, but config.json says "
                                "vocab_size %u",
                                path, akin_tokenizer_size(self->tokenizer),
                                self->model.vocab_size);
    return status;
}

static akin_status_t create_router(akini_self_t *self)
{
    const uint32_t n_ranks = akin_job_n_ranks(&self->job);
    const akini_rank_ep_t *ep = &self->ep;
    self->identities = calloc(n_ranks, sizeof(*self->identities));
    if (self->identities == NULL)
        return akin_error_set(&self->err, AKIN_ERR_NOMEM, "out of memory");
    const akin_router_params_t params = {
        .job = &self->job,
        .batch = &self->params->batch,
        .calibration = self->params->calibration,
        .model = &self->model,
        .tokenizer = self->tokenizer,
        .fit = self->fit.n_clusters > 0 ? &self->fit : NULL,
        .placements = ep->placements.decode,
        .prefill_placement = ep->placements.prefill.holders != NULL
                                 ? &ep->placements.prefill
                                 : NULL,
        .identities = self->identities,
        .layout = &self->layout,
        .n_slots = self->view.n_slots,
        .kernel = self->kernels->name,
        .transports = &self->transports,
    };
    return akin_router_create(&params, &self->router, &self->err);
}

static akin_status_t load(akini_self_t *self)
{
    const int is_router = self->place.role == AKIN_JOB_ROUTER;
    akin_status_t status =
        is_router ? load_tokenizer(self) : akini_rank_load_engine(self);
    if (status == AKIN_OK)
        status = akini_rank_compute_layout(self);
    if (status == AKIN_OK && is_router)
        status = create_router(self);
    return akin_boot_agree(self->boot, status, &self->err);
}

/* The router talks with all, prefill ranks with decode ranks, and the leader of
 * a group with its other ranks. Those swap rows by other ways. */
static int is_peer(const akini_self_t *self, uint32_t rank)
{
    if (rank == self->number)
        return 0;
    if (rank == AKIN_ROUTER_RANK || self->number == AKIN_ROUTER_RANK)
        return 1;
    const akin_job_role_t own = self->place.role;
    const akin_job_role_t other = akin_job_place(&self->job, rank).role;
    return (own == AKIN_JOB_PREFILL && other == AKIN_JOB_DECODE) ||
           (own == AKIN_JOB_DECODE && other == AKIN_JOB_PREFILL) ||
           akini_rank_is_fellow(self, rank);
}

/* What later lives are told, of the router and by it. */
static void keep_identities(akini_self_t *self, const size_t *offsets)
{
    const uint32_t n_ranks = akin_job_n_ranks(&self->job);
    for (uint32_t i = 0; self->identities != NULL && i < n_ranks; i++)
        self->identities[i] = (akin_message_identity_t){
            .rank = i,
            .net = self->blobs + offsets[i],
            .net_bytes = offsets[i + 1] - offsets[i],
        };
    self->router_identity = self->blobs;
    self->router_identity_bytes = offsets[1];
}

static akin_status_t wire_up(akini_self_t *self)
{
    void *blob = NULL;
    size_t bytes = 0;
    size_t *offsets = NULL;
    akin_status_t status = akini_rank_create_net(self);
    if (status == AKIN_OK)
        status = akin_net_identity(self->net, &blob, &bytes, &self->err);
    status = akin_boot_agree(self->boot, status, &self->err);
    if (status == AKIN_OK)
        status = akin_boot_exchange(self->boot, blob, bytes, &self->blobs,
                                    &offsets, &self->err);
    if (status == AKIN_OK)
        keep_identities(self, offsets);
    for (uint32_t rank = 0;
         status == AKIN_OK && rank < akin_job_n_ranks(&self->job); rank++)
        if (is_peer(self, rank))
            status = akin_net_add_peer(
                self->net, rank, self->blobs + offsets[rank],
                offsets[rank + 1] - offsets[rank], &self->err);
    free(blob);
    free(offsets);
    return akin_boot_agree(self->boot, status, &self->err);
}

static akin_status_t boot(akini_self_t *self)
{
    akin_status_t status = agree_on_places(self);
    if (status == AKIN_OK)
        status = akini_rank_tell_host(self);
    if (status == AKIN_OK)
        status = share_job(self);
    if (status == AKIN_OK)
        status = take_role(self);
    if (status == AKIN_OK)
        status = agree_on_kernels(self);
    if (status == AKIN_OK)
        status = place_experts(self);
    if (status == AKIN_OK)
        status =
            akini_rank_ep_boot(&self->ep, self->boot, &self->job, &self->err);
    if (status == AKIN_OK)
        status = load(self);
    if (status == AKIN_OK)
        status = wire_up(self);
    if (status == AKIN_OK)
        status = akini_rank_tell_paths(self);
    if (status == AKIN_OK && self->job.probe)
        status = akini_rank_probe(self);
    return status;
}

akin_status_t akini_rank_boot(akini_self_t *self)
{
    akin_status_t status = akin_boot_start(&self->boot, &self->err);
    if (status != AKIN_OK)
        return status;
    self->number = akin_boot_rank(self->boot);
    self->host_ranks = akin_boot_host_ranks(self->boot);
    status = boot(self);
    akini_paths_cleanup(&self->paths);
    return status;
}
