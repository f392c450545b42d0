/* Rank: start-up, which every rank goes through in step, then the role. */
#include "roles/rank.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "math/kernels.h"
#include "net/boot.h"
#include "roles/job_fit.h"
#include "roles/rank_ep.h"
#include "roles/rank_news.h"
#include "roles/worker.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_FAILED 1
#define EXIT_CONFIG 2

/* Prompts that may be in one prefill step. */
#define PREFILL_ROWS 64u

typedef enum role { ROLE_ROUTER, ROLE_PREFILL, ROLE_DECODE } role_t;

static const char *const role_names[] = {"router", "prefill", "decode"};

/* Everything a rank holds; released in one place. */
typedef struct rank {
    const akin_rank_params_t *params;
    akin_boot_t *boot;
    uint32_t number;
    role_t role;
    akin_config_t *config;
    akin_job_t job;
    const akin_kernels_t *kernels;
    akin_model_config_t model;
    akin_tokenizer_t *tokenizer;
    akin_fit_t fit;
    akini_rank_ep_t ep;
    akin_router_t *router;
    akin_engine_t *engine;
    akin_kv_layout_t layout;
    akin_kv_view_t view;
    akin_net_t *net;
    akin_worker_t worker;
    int64_t start_ns;
    akin_error_t err;
} rank_t;

akin_status_t akin_rank_read_job(const akin_rank_params_t *params,
                                 akin_config_t **config_p, akin_job_t *job_p,
                                 akin_error_t *err)
{
    *config_p = NULL;
    akin_config_t *config;
    akin_status_t status =
        akin_config_create(akin_job_rows, akin_job_n_rows, &config);
    if (status != AKIN_OK)
        return akin_error_set(err, status, "out of memory");
    status = akin_config_read_file(config, params->job_path, err);
    if (status == AKIN_OK)
        status = akin_config_read_environment(config, environ, err);
    for (size_t i = 0; i < params->n_settings && status == AKIN_OK; i++)
        status = akin_config_set(config, params->settings[i], err);
    if (status == AKIN_OK)
        status = akin_job_read(config, job_p, err);
    if (status != AKIN_OK) {
        akin_config_destroy(config);
        return status;
    }
    *config_p = config;
    return AKIN_OK;
}

/* One reader: rank 0 reads the job and broadcasts its canonical form. */
static akin_status_t share_job(rank_t *r)
{
    char *own = NULL, *text = NULL;
    akin_status_t status = AKIN_OK;
    if (r->number == AKIN_ROUTER_RANK) {
        status = akin_rank_read_job(r->params, &r->config, &r->job, &r->err);
        if (status == AKIN_OK)
            status = akin_config_canonical(r->config, &own);
    }
    status = akin_boot_broadcast(r->boot, status, own, &text, &r->err);
    free(own);
    if (status == AKIN_OK && r->number != AKIN_ROUTER_RANK) {
        status = akin_config_create(akin_job_rows, akin_job_n_rows, &r->config);
        if (status == AKIN_OK)
            status = akin_config_read_text(r->config, text,
                                           "the job sent by rank 0", &r->err);
        if (status == AKIN_OK)
            status = akin_job_read(r->config, &r->job, &r->err);
    }
    free(text);
    r->job.record_routes = r->params->calibration != NULL;
    return akin_boot_agree(r->boot, status, &r->err);
}

static akin_status_t take_role(rank_t *r)
{
    const uint32_t n_ranks = akin_job_n_ranks(&r->job);
    if (akin_boot_size(r->boot) != n_ranks)
        return akin_error_set(
            &r->err, AKIN_ERR_CONFIG,
            "the job has %u ranks (1 router, %u x %u prefill, %u x %u decode), "
            "but it was started with %u: use mpirun -n %u",
            n_ranks, r->job.n_prefill, r->job.prefill_ep, r->job.n_decode,
            r->job.ep, akin_boot_size(r->boot), n_ranks);
    if (r->number == AKIN_ROUTER_RANK)
        r->role = ROLE_ROUTER;
    else if (r->number <= akin_job_n_prefill_ranks(&r->job))
        r->role = ROLE_PREFILL;
    else
        r->role = ROLE_DECODE;
    akin_log_identify((int)r->number, role_names[r->role]);
    uint32_t index, count;
    return akin_boot_role(r->boot, (int)r->role, &index, &count, &r->err);
}

/* The best path that every rank has, or the one that the job names. */
static akin_status_t agree_on_kernels(rank_t *r)
{
    int64_t worst;
    const char *name = r->job.kernel;
    akin_status_t status =
        akin_boot_min(r->boot, -(int64_t)akin_kernels_best(), &worst, &r->err);
    if (status != AKIN_OK)
        return status;
    if (strcmp(name, "auto") == 0)
        name = akin_kernel_path_name((akin_kernel_path_t)-worst);
    status = akin_kernels_find(name, &r->kernels, &r->err);
    return akin_boot_agree(
        r->boot, status == AKIN_OK ? AKIN_OK : AKIN_ERR_CONFIG, &r->err);
}

static int n_threads(const rank_t *r)
{
    if (r->job.n_threads > 0)
        return r->job.n_threads;
    int n = akin_thread_usable_cores() / (int)akin_boot_host_ranks(r->boot);
    return n > 0 ? n : 1;
}

/* Which rank holds which experts; rank 0 knows the model and the fit. */
static akin_status_t place_experts(rank_t *r)
{
    akin_status_t status = AKIN_OK;
    if (r->role == ROLE_ROUTER) {
        status = akin_model_config_read(r->job.model_path, &r->model, &r->err);
        if (status == AKIN_OK)
            status = akin_job_fit_read(&r->job, &r->model, &r->fit, &r->err);
    }
    return akini_rank_ep_place(&r->ep, r->boot, &r->job, &r->model, &r->fit,
                               status, &r->err);
}

static akin_status_t load_router(rank_t *r)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/tokenizer.json", r->job.model_path);
    akin_status_t status = akin_tokenizer_load(path, &r->tokenizer, &r->err);
    if (status == AKIN_OK &&
        akin_tokenizer_size(r->tokenizer) > r->model.vocab_size)
        status = akin_error_set(&r->err, AKIN_ERR_FORMAT,
                                "%s: %u tokens, but config.json says "
                                "vocab_size %u",
                                path, akin_tokenizer_size(r->tokenizer),
                                r->model.vocab_size);
    return status;
}

static akin_status_t load_worker(rank_t *r)
{
    const int is_prefill = r->role == ROLE_PREFILL;
    const akin_engine_params_t params = {
        .model_dir = r->job.model_path,
        .kernel = r->kernels->name,
        .n_threads = n_threads(r),
        .max_rows = is_prefill ? r->job.chunk_tokens : r->job.max_batch,
        .group = r->ep.group,
    };
    akin_status_t status =
        akin_engine_load(r->job.engine, &params, &r->engine, &r->err);
    if (status != AKIN_OK)
        return status;
    akin_engine_info_t info;
    akin_engine_describe(r->engine, &info);
    r->model = *info.model;
    return AKIN_OK;
}

static akin_status_t compute_layout(rank_t *r)
{
    const akin_kv_shape_t shape = {
        .n_layers = r->model.n_layers,
        .n_kv_heads = r->model.n_kv_heads,
        .head_dim = r->model.head_dim,
        .n_experts = r->model.n_experts,
        .top_k = r->model.top_k,
        .block_tokens = r->job.block_tokens,
    };
    akin_status_t status = akin_kv_layout_init(&shape, &r->layout, &r->err);
    if (status != AKIN_OK)
        return status;
    uint64_t n_slots = r->job.slab_bytes / r->layout.stride_bytes;
    if (n_slots == 0 || n_slots > UINT32_MAX / 2)
        return akin_error_set(&r->err, AKIN_ERR_CONFIG,
                              "%s: kv.slab holds %llu blocks of %zu bytes: "
                              "from 1 to 2^31 are needed",
                              akin_config_origin(r->config, "kv.slab"),
                              (unsigned long long)n_slots,
                              r->layout.stride_bytes);
    r->view =
        (akin_kv_view_t){.layout = &r->layout, .n_slots = (uint32_t)n_slots};
    return AKIN_OK;
}

static akin_status_t load(rank_t *r)
{
    akin_status_t status =
        r->role == ROLE_ROUTER ? load_router(r) : load_worker(r);
    if (status == AKIN_OK)
        status = compute_layout(r);
    if (status == AKIN_OK && r->role == ROLE_ROUTER) {
        const akin_router_params_t params = {
            .job = &r->job,
            .batch = &r->params->batch,
            .calibration = r->params->calibration,
            .model = &r->model,
            .tokenizer = r->tokenizer,
            .fit = r->fit.n_clusters > 0 ? &r->fit : NULL,
            .placements = r->ep.placements.decode,
            .layout = &r->layout,
            .n_slots = r->view.n_slots,
            .kernel = r->kernels->name,
        };
        status = akin_router_create(&params, &r->router, &r->err);
    }
    return akin_boot_agree(r->boot, status, &r->err);
}

static akin_status_t create_net(rank_t *r)
{
    const int is_router = r->role == ROLE_ROUTER;
    akin_net_params_t params = {
        .rank = r->number,
        .n_ranks = akin_job_n_ranks(&r->job),
        .slab_bytes = is_router ? 0 : r->view.n_slots * r->layout.stride_bytes,
        .max_message_bytes = (size_t)1 << 30,
    };
    if (is_router)
        params.events = (akin_net_events_t){
            akin_router_on_message, akin_router_on_peer_lost, r->router};
    else
        params.events = (akin_net_events_t){
            akin_worker_on_message, akin_worker_on_peer_lost, &r->worker};
    akin_status_t status = akin_net_create(&params, &r->net, &r->err);
    if (status != AKIN_OK || is_router)
        return status;
    r->view.base = akin_net_slab(r->net);
    const akin_job_place_t place = akin_job_place(&r->job, r->number);
    r->worker = (akin_worker_t){
        .job = &r->job,
        .rank = r->number,
        .max_rows = r->role == ROLE_PREFILL ? PREFILL_ROWS : r->job.max_batch,
        .max_tokens = r->role == ROLE_PREFILL ? r->job.chunk_tokens : 0,
        .count_routes = r->role == ROLE_DECODE,
        .net = r->net,
        .engine = r->engine,
        .ep_group = r->ep.group,
        .group = {.n_ranks = place.n_ranks, .leader = place.first},
        .model = &r->model,
        .view = &r->view,
    };
    status =
        akin_kv_cache_create(&r->view, r->job.prefix_cache, &r->worker.cache);
    if (status != AKIN_OK)
        (void)akin_error_set(&r->err, status, "out of memory for %u KV slots",
                             r->view.n_slots);
    return status;
}

/* The router talks with all, prefill ranks with decode ranks, and the leader of
 * a worker with its other ranks. Those swap rows by other ways. */
static int is_peer(const rank_t *r, uint32_t rank)
{
    if (rank == r->number)
        return 0;
    if (rank == AKIN_ROUTER_RANK || r->role == ROLE_ROUTER)
        return 1;
    const akin_job_place_t own = akin_job_place(&r->job, r->number);
    const akin_job_place_t other = akin_job_place(&r->job, rank);
    if (own.role != other.role)
        return 1;
    return own.first == other.first &&
           (rank == own.first || r->number == own.first);
}

static akin_status_t wire_up(rank_t *r)
{
    void *blob = NULL;
    size_t bytes = 0;
    unsigned char *blobs = NULL;
    size_t *offsets = NULL;
    akin_status_t status = create_net(r);
    if (status == AKIN_OK)
        status = akin_net_identity(r->net, &blob, &bytes, &r->err);
    status = akin_boot_agree(r->boot, status, &r->err);
    if (status == AKIN_OK)
        status =
            akin_boot_exchange(r->boot, blob, bytes, &blobs, &offsets, &r->err);
    for (uint32_t rank = 0;
         status == AKIN_OK && rank < akin_job_n_ranks(&r->job); rank++)
        if (is_peer(r, rank))
            status =
                akin_net_add_peer(r->net, rank, blobs + offsets[rank],
                                  offsets[rank + 1] - offsets[rank], &r->err);
    free(blob);
    free(blobs);
    free(offsets);
    return akin_boot_agree(r->boot, status, &r->err);
}

static akin_status_t start(rank_t *r)
{
    akin_status_t status = share_job(r);
    if (status == AKIN_OK)
        status = take_role(r);
    if (status == AKIN_OK)
        status = agree_on_kernels(r);
    if (status == AKIN_OK)
        status = place_experts(r);
    if (status == AKIN_OK)
        status = akini_rank_ep_join(&r->ep, r->boot, &r->job, &r->err);
    if (status == AKIN_OK)
        status = load(r);
    if (status == AKIN_OK)
        status = wire_up(r);
    return status;
}

static void release(rank_t *r)
{
    akin_net_destroy(r->net);
    akin_router_destroy(r->router);
    akin_kv_cache_destroy(r->worker.cache);
    akin_engine_destroy(r->engine);
    akini_rank_ep_leave(&r->ep);
    akin_tokenizer_destroy(r->tokenizer);
    akin_fit_cleanup(&r->fit);
    akin_config_destroy(r->config);
}

static int run_role(rank_t *r)
{
    akin_status_t status;
    if (r->role == ROLE_ROUTER) {
        akin_router_end_t end = {.exit_code = EXIT_FAILED};
        const akini_rank_news_t news = {
            .job = &r->job,
            .placement = akin_job_placement_name(&r->job, &r->fit),
            .kernel = r->kernels->name,
            .n_slots = r->view.n_slots,
            .start_ns = r->start_ns,
        };
        akini_rank_announce(&news);
        status = akin_router_run(r->router, r->net, &end, &r->err);
        if (status != AKIN_OK)
            (void)fprintf(stderr, "akin: %s\n", r->err.text);
        return end.exit_code;
    }
    status = r->role == ROLE_PREFILL ? akin_prefill_run(&r->worker)
                                     : akin_decode_run(&r->worker);
    if (status != AKIN_OK)
        AKIN_LOG(ROLES, ERROR, "this worker ends: %s",
                 r->worker.error.text[0] != '\0' ? r->worker.error.text
                                                 : akin_status_string(status));
    return status == AKIN_OK ? 0 : EXIT_FAILED;
}

void akin_rank_set_signals(void)
{
    uint32_t number, size;
    if (akin_boot_launch_rank(&number, &size) == AKIN_OK &&
        number != AKIN_ROUTER_RANK) {
        /* A signal to the whole job is for the router, which tells the
         * others. */
        (void)signal(SIGINT, SIG_IGN);
        (void)signal(SIGTERM, SIG_IGN);
        (void)signal(SIGUSR1, SIG_IGN);
    } else {
        akin_router_catch_signals();
    }
}

int akin_rank_run(const akin_rank_params_t *params,
                  const akin_supervisor_life_t *life)
{
    (void)life;
    rank_t r = {.params = params};
    akin_boot_set_environment();
    akin_status_t status = akin_boot_start(&r.boot, &r.err);
    if (status != AKIN_OK) {
        (void)fprintf(stderr, "akin: %s\n", r.err.text);
        return EXIT_FAILED;
    }
    r.number = akin_boot_rank(r.boot);
    r.start_ns = akin_clock_now_ns();
    status = start(&r);
    const int is_up = status == AKIN_OK && akin_job_keeps_mpi(&r.job);
    if (!is_up)
        akin_boot_finish(r.boot);
    int code;
    if (status == AKIN_OK) {
        AKIN_LOG(ROLES, INFO, "%s: kernel path %s, which every rank has",
                 role_names[r.role], r.kernels->name);
        code = run_role(&r);
    } else if (r.number == AKIN_ROUTER_RANK) {
        (void)fprintf(stderr, "akin: %s\n",
                      r.err.text[0] != '\0' ? r.err.text
                                            : akin_status_string(status));
        code = status == AKIN_ERR_CONFIG || status == AKIN_ERR_INVALID
                   ? EXIT_CONFIG
                   : EXIT_FAILED;
    } else {
        code = 0; /* every rank has agreed to end; rank 0 says why */
    }
    release(&r);
    /* Else MPI's own end would wait for ranks that do not come, and mpirun is
     * to see the loss. */
    if (is_up && (r.number == AKIN_ROUTER_RANK || code == 0))
        akin_boot_finish(r.boot);
    return code;
}
