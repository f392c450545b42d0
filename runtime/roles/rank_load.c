/* Rank load: the engine, the KV slots and the net of a rank. */
#include "roles/rank_state.h"

#include "base/thread.h"

/* Timeouts that the router has. All its workers would leave it if it were
 * stopped for one, as by a slow disk; and one that has died takes the job with
 * it anyway. */
#define ROUTER_PATIENCE 10

akin_status_t akini_rank_read_text(akini_self_t *self)
{
    akin_status_t status =
        akin_config_create(akin_job_rows, akin_job_n_rows, &self->config);
    if (status == AKIN_OK)
        status = akin_config_read_text(self->config, self->job_text,
                                       "the job sent by rank 0", &self->err);
    if (status == AKIN_OK)
        status = akin_job_read(self->config, &self->job, &self->err);
    return status;
}

static int n_threads(const akini_self_t *self)
{
    if (self->job.n_threads > 0)
        return self->job.n_threads;
    if (self->params->n_threads > 0)
        return self->params->n_threads;
    int n = akin_thread_usable_cores() / (int)self->host_ranks;
    return n > 0 ? n : 1;
}

/* A rank that may become either has room for both. */
static uint32_t max_rows(const akini_self_t *self)
{
    const uint32_t prefill = self->job.chunk_tokens;
    const uint32_t decode = self->job.max_batch;
    if (self->life->number == 0 && self->place.role == AKIN_JOB_PREFILL)
        return prefill;
    if (self->life->number == 0 && self->place.role == AKIN_JOB_DECODE)
        return decode;
    return prefill > decode ? prefill : decode;
}

akin_status_t akini_rank_load_engine(akini_self_t *self)
{
    akin_engine_params_t params = {
        .model_dir = self->job.model_path,
        .kernel = self->kernels->name,
        .n_threads = n_threads(self),
        .max_rows = max_rows(self),
        .group = self->ep.group,
    };
    akin_status_t status = AKIN_OK;
    if (akin_job_is_modelled(&self->job)) {
        status = akin_modelled_open(&self->job, &self->modelled, &self->err);
        if (status == AKIN_OK)
            params.modelled = akin_modelled_engine_params(self->modelled);
    }
    if (status == AKIN_OK)
        status = akin_engine_load(self->job.engine, &params, &self->engine,
                                  &self->err);
    if (status != AKIN_OK)
        return status;
    akin_engine_info_t info;
    akin_engine_describe(self->engine, &info);
    self->model = *info.model;
    self->worker.engine = self->engine;
    return AKIN_OK;
}

akin_status_t akini_rank_compute_layout(akini_self_t *self)
{
    const akin_kv_shape_t shape = {
        .n_layers = self->model.n_layers,
        .n_kv_heads = self->model.n_kv_heads,
        .head_dim = self->model.head_dim,
        .n_experts = self->model.n_experts,
        .top_k = self->model.top_k,
        .block_tokens = self->job.block_tokens,
    };
    akin_status_t status =
        akin_kv_layout_init(&shape, &self->layout, &self->err);
    if (status != AKIN_OK)
        return status;
    uint64_t n_slots = self->job.slab_bytes / self->layout.stride_bytes;
    if (n_slots == 0 || n_slots > UINT32_MAX / 2)
        return akin_error_set(&self->err, AKIN_ERR_CONFIG,
                              "%s: kv.slab holds %llu blocks of %zu bytes: "
                              "from 1 to 2^31 are needed",
                              akin_config_origin(self->config, "kv.slab"),
                              (unsigned long long)n_slots,
                              self->layout.stride_bytes);
    self->view =
        (akin_kv_view_t){.layout = &self->layout, .n_slots = (uint32_t)n_slots};
    return AKIN_OK;
}

akin_status_t akini_rank_create_net(akini_self_t *self)
{
    const int is_router = self->place.role == AKIN_JOB_ROUTER;
    akin_net_params_t params = {
        .rank = self->number,
        .n_ranks = akin_job_n_ranks(&self->job),
        .slab_bytes =
            is_router ? 0 : self->view.n_slots * self->layout.stride_bytes,
        .max_message_bytes = (size_t)1 << 30,
    };
    if (is_router)
        params.events = (akin_net_events_t){
            akin_router_on_message, akin_router_on_peer_lost, self->router};
    else
        params.events = (akin_net_events_t){
            akin_worker_on_message, akin_worker_on_peer_lost, &self->worker};
    akin_status_t status = akin_net_create(&params, &self->net, &self->err);
    if (status != AKIN_OK || is_router)
        return status;
    self->view.base = akin_net_slab(self->net);
    self->worker = (akin_worker_t){
        .job = &self->job,
        .rank = self->number,
        .net = self->net,
        .engine = self->engine,
        .ep_group = self->ep.group,
        .group = {.n_ranks = self->place.n_ranks, .leader = self->place.first},
        .model = &self->model,
        .view = &self->view,
    };
    status = akini_worker_peers_create(&self->worker);
    if (status == AKIN_OK)
        status = akin_kv_cache_create(&self->view, self->job.prefix_cache,
                                      &self->worker.cache);
    if (status != AKIN_OK)
        (void)akin_error_set(&self->err, status,
                             "out of memory for %u KV slots",
                             self->view.n_slots);
    return status;
}

akin_status_t akini_rank_watch_router(akini_self_t *self)
{
    return akin_net_watch_peer(
        self->net, AKIN_ROUTER_RANK, self->job.heartbeat_ns,
        ROUTER_PATIENCE * self->job.heartbeat_timeout_ns);
}

int akini_rank_is_fellow(const akini_self_t *self, uint32_t rank)
{
    const akin_job_place_t *own = &self->place;
    return rank != self->number && rank >= own->first &&
           rank - own->first < own->n_ranks &&
           (rank == own->first || self->number == own->first);
}
