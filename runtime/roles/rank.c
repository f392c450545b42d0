/* Rank: one process of a rank, from its start to its last word. */
#include "roles/rank.h"

#include "base/clock.h"
#include "base/fault_point.h"
#include "base/log.h"
#include "roles/rank_news.h"
#include "roles/rank_state.h"
#include "roles/ticket.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXIT_FAILED 1
#define EXIT_CONFIG 2

/* Prompts that may be in one prefill step. */
#define PREFILL_ROWS 64u

/* Wait before a rank that has died twice in a row is started anew. */
#define FIRST_DELAY_NS (500 * AKIN_NS_PER_MS)
/* How long a rank may take to end. */
#define END_NS (60 * AKIN_NS_PER_S)

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

static void release(akini_self_t *self)
{
    akin_net_destroy(self->net);
    akin_router_destroy(self->router);
    akin_kv_cache_destroy(self->worker.cache);
    akini_worker_peers_cleanup(&self->worker);
    akin_packer_cleanup(&self->worker.packer);
    akin_engine_destroy(self->engine);
    akin_modelled_close(self->modelled);
    akini_rank_ep_leave(&self->ep);
    akin_tokenizer_destroy(self->tokenizer);
    akin_fit_cleanup(&self->fit);
    akin_config_destroy(self->config);
    free(self->identities);
    free(self->blobs);
    free(self->job_text);
}

/* What a later life needs; NULL where none is to come. */
static akin_status_t make_ticket(const akini_self_t *self, void **data_p,
                                 size_t *bytes_p)
{
    char *placements = NULL;
    *data_p = NULL;
    *bytes_p = 0;
    if (self->place.role == AKIN_JOB_ROUTER || self->life->number > 0 ||
        self->router_identity == NULL)
        return AKIN_OK;
    if (self->ep.placements.n_decode > 0 ||
        self->ep.placements.prefill.holders != NULL) {
        akin_status_t status =
            akin_job_placements_pack(&self->ep.placements, &placements);
        if (status != AKIN_OK)
            return status;
    }
    const akini_ticket_t ticket = {
        .rank = self->number,
        .host_ranks = self->host_ranks,
        .job = self->job_text,
        .kernel = self->kernels->name,
        .placements = placements != NULL ? placements : "",
        .router = self->router_identity,
        .router_bytes = self->router_identity_bytes,
    };
    akin_status_t status = akini_ticket_pack(&ticket, data_p, bytes_p);
    free(placements);
    return status;
}

static int32_t max_lives(const akin_job_t *job)
{
    if (akin_job_keeps_mpi(job))
        return -1;
    return job->recovery == AKIN_RECOVERY_SHRINK ? 0
                                                 : (int32_t)job->max_respawns;
}

/* From now on the supervisor watches this rank, and starts it anew. */
static akin_status_t arm(akini_self_t *self)
{
    const akin_job_t *job = &self->job;
    const int is_router = self->place.role == AKIN_JOB_ROUTER;
    akin_supervised_terms_t terms = {
        .max_lives = max_lives(job),
        .window_ns = job->respawn_window_ns,
        .first_delay_ns = FIRST_DELAY_NS,
        /* The router has given the rank up before. */
        .stall_ns = is_router ? 0 : 2 * job->heartbeat_timeout_ns,
        .start_timeout_ns = job->start_timeout_ns,
        .reach_timeout_ns = job->recovery_timeout_ns,
    };
    (void)snprintf(terms.role, sizeof(terms.role), "%s",
                   akin_job_role_name(self->place.role));
    void *ticket;
    size_t bytes;
    akin_status_t status = make_ticket(self, &ticket, &bytes);
    if (status == AKIN_OK)
        status = akin_supervised_arm(&terms, ticket, bytes);
    free(ticket);
    return status;
}

static int run_router(akini_self_t *self)
{
    akin_router_end_t end = {.exit_code = EXIT_FAILED};
    const akini_rank_news_t news = {
        .job = &self->job,
        .placement = akin_job_placement_name(&self->job, &self->fit),
        .kernel = self->kernels->name,
        .n_slots = self->view.n_slots,
        .start_ns = self->start_ns,
    };
    akini_rank_announce(&news);
    akin_status_t status =
        akin_router_run(self->router, self->net, &end, &self->err);
    if (status != AKIN_OK)
        (void)fprintf(stderr, "akin: %s\n", self->err.text);
    return end.exit_code;
}

static akin_status_t run_worker(akini_self_t *self)
{
    const int is_prefill = self->place.role == AKIN_JOB_PREFILL;
    self->worker.max_rows = is_prefill ? PREFILL_ROWS : self->job.max_batch;
    self->worker.max_tokens = is_prefill ? self->job.chunk_tokens : 0;
    self->worker.count_routes = !is_prefill;
#ifdef AKIN_FAULTS
    akin_fault_points_set_role(akin_job_role_name(self->place.role));
#endif
    return is_prefill ? akin_prefill_run(&self->worker)
                      : akin_decode_run(&self->worker);
}

/* A rank that has a role from its start, gets one later, or none. */
static akin_status_t serve(akini_self_t *self, akini_worker_wait_t *wait)
{
    const int has_joined = self->life->number > 0;
    akin_status_t status = arm(self);
    if (status == AKIN_OK)
        status = akini_rank_watch_router(self);
    if (status == AKIN_OK && has_joined)
        status = akini_rank_wait(self, wait);
    else if (status == AKIN_OK && self->place.role == AKIN_JOB_SPARE) {
        akini_worker_wait_begin(wait, &self->worker);
        status = akini_rank_wait(self, wait);
    }
    /* Its supervisor is to know it by its role. */
    if (status == AKIN_OK)
        status = arm(self);
    return status == AKIN_OK ? run_worker(self) : status;
}

static int fail(const akini_self_t *self, akin_status_t status)
{
    AKIN_LOG(ROLES, ERROR, "this worker ends: %s",
             self->err.text[0] != '\0' ? self->err.text
                                       : akin_status_string(status));
    return EXIT_FAILED;
}

static int end_worker(akini_self_t *self, akin_status_t status)
{
    /* One that fails is to have a successor. */
    if (status != AKIN_OK && status != AKIN_ERR_CANCELED)
        return fail(self, status);
    akin_supervised_end(END_NS);
    return 0;
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

static akin_status_t set_fault_points(akini_self_t *self)
{
#ifdef AKIN_FAULTS
    uint32_t number = 0, size;
    if (akin_boot_launch_rank(&number, &size) != AKIN_OK)
        return AKIN_OK;
    return akin_fault_points_init(
        number, self->life->number,
        number == AKIN_ROUTER_RANK ? "router" : "start", &self->err);
#else
    (void)self;
    return AKIN_OK;
#endif
}

static int run_later_life(akini_self_t *self)
{
    akini_worker_wait_t wait = {0};
    akin_status_t status = akini_rank_join(self, &wait);
    if (self->router_is_gone) {
        AKIN_LOG(ROLES, DEBUG, "the router is gone: %s", self->err.text);
        akini_worker_wait_end(&wait);
        return AKIN_SUPERVISOR_ROUTER_GONE;
    }
    if (self->router_is_away) {
        AKIN_LOG(ROLES, DEBUG, "the router is not reached: %s", self->err.text);
        akini_worker_wait_end(&wait);
        return AKIN_SUPERVISOR_ROUTER_AWAY;
    }
    if (status == AKIN_OK)
        status = serve(self, &wait);
    akini_worker_wait_end(&wait);
    return end_worker(self, status);
}

static int fail_boot(const akini_self_t *self, akin_status_t status)
{
    if (self->number != AKIN_ROUTER_RANK)
        return 0; /* every rank has agreed to end; rank 0 says why */
    (void)fprintf(stderr, "akin: %s\n",
                  self->err.text[0] != '\0' ? self->err.text
                                            : akin_status_string(status));
    return status == AKIN_ERR_CONFIG || status == AKIN_ERR_INVALID
               ? EXIT_CONFIG
               : EXIT_FAILED;
}

static int run_role(akini_self_t *self)
{
    akin_status_t status;
    AKIN_LOG(ROLES, INFO, "%s: kernel path %s, which every rank has",
             akin_job_role_name(self->place.role), self->kernels->name);
    if (self->place.role == AKIN_JOB_ROUTER) {
        status = arm(self);
        return status == AKIN_OK ? run_router(self) : fail(self, status);
    }
    akini_worker_wait_t wait = {0};
    status = serve(self, &wait);
    akini_worker_wait_end(&wait);
    return end_worker(self, status);
}

static int run_first_life(akini_self_t *self)
{
    akin_status_t status = akini_rank_boot(self);
    if (self->boot == NULL) {
        (void)fprintf(stderr, "akin: %s\n", self->err.text);
        return EXIT_FAILED;
    }
    const int is_up = status == AKIN_OK && akin_job_keeps_mpi(&self->job);
    if (!is_up) {
        akin_boot_finish(self->boot);
        self->boot = NULL;
    }
    return status == AKIN_OK ? run_role(self) : fail_boot(self, status);
}

int akin_rank_run(const akin_rank_params_t *params,
                  const akin_supervisor_life_t *life)
{
    akini_self_t self = {
        .params = params, .life = life, .start_ns = akin_clock_now_ns()};
    akin_boot_set_environment();
    akin_status_t status = set_fault_points(&self);
    if (status != AKIN_OK) {
        (void)fprintf(stderr, "akin: %s\n", self.err.text);
        return EXIT_CONFIG;
    }
    /* The first lives agree on it over MPI. */
    if (life->number > 0 && params->placed != AKIN_OK) {
        self.err = params->placed_error;
        return fail(&self, params->placed);
    }
    const int code =
        life->number > 0 ? run_later_life(&self) : run_first_life(&self);
    release(&self);
    /* Else MPI's own end would wait for ranks that do not come, and mpirun is
     * to see the loss. */
    if (self.boot != NULL && (self.number == AKIN_ROUTER_RANK || code == 0))
        akin_boot_finish(self.boot);
    return code;
}
