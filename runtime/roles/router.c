/* Router: set-up, event loop and end of a run. */
#include "roles/router.h"

#include "base/clock.h"
#include "base/log.h"
#include "roles/job_fit.h"
#include "roles/modelled.h"
#include "roles/router_sink.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#define EXIT_FAILED 1
#define EXIT_LINES 3
#define EXIT_STOPPED 4

/* How often the loop looks up without a message: progress and fsync. */
#define TICK_NS (200 * AKIN_NS_PER_MS)

/* How long the end of the workers is waited for. */
#define STATS_NS (5 * AKIN_NS_PER_S)
#define CLOSE_NS (2 * AKIN_NS_PER_S)

/* Signals reach the one router of a process. */
static atomic_int is_asked_to_stop;
static akin_net_t *_Atomic signal_net;

static void on_signal(int number)
{
    if (atomic_exchange(&is_asked_to_stop, 1) && number != SIGUSR1)
        _exit(EXIT_STOPPED);
    akin_net_t *net = atomic_load(&signal_net);
    if (net != NULL)
        akin_net_wake(net);
}

void akin_router_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGUSR1, &action, NULL);
}

static akin_status_t create_routing(akin_router_t *r, akin_error_t *err)
{
    const akin_job_t *job = r->params.job;
    const akin_policy_params_t params = {
        .n_workers = job->n_decode,
        .n_layers = r->params.model->n_layers,
        .n_experts = r->params.model->n_experts,
        .top_k = r->params.model->top_k,
        .seed = job->seed,
        .fit = r->params.fit,
        .tau = akin_job_tau(job, r->params.fit),
        .pull = akin_job_pull(job, r->params.fit),
        .placements = r->params.placements,
    };
    if (strcmp(job->decode_policy, "domain") == 0 && params.fit != NULL &&
        params.fit->n_domains == 0)
        AKIN_LOG(ROLES, WARN,
                 "the fit knows no domains: policy domain takes all requests "
                 "for one kind");
    akin_status_t status =
        akin_policy_create(job->decode_policy, &params, &r->policy, err);
    if (status == AKIN_OK)
        status = akini_router_create_replacer(r);
    if (status == AKIN_OK && strcmp(job->prefill_policy, "prefix-hash") == 0)
        status = akin_prefix_router_create(akin_job_n_prefill_ranks(job), NULL,
                                           &r->prefix, err);
    return status;
}

static akin_status_t create_workers(akin_router_t *r)
{
    const akin_job_t *job = r->params.job;
    akin_status_t status = akini_router_create_ranks(r);
    if (status != AKIN_OK)
        return status;
    const uint32_t n_max =
        r->n_prefill > job->n_decode ? r->n_prefill : job->n_decode;
    r->eligible = calloc(n_max, sizeof(*r->eligible));
    r->loads = calloc(r->n_prefill, sizeof(*r->loads));
    r->steps = akini_steps_create(job->n_prefill + job->n_decode,
                                  r->params.model->n_layers);
    return r->eligible != NULL && r->loads != NULL && r->steps != NULL
               ? AKIN_OK
               : AKIN_ERR_NOMEM;
}

static akin_status_t open_run(akin_router_t *r, akin_error_t *err)
{
    const char *path = r->params.batch->input_path;
    r->limits = (akin_request_limits_t){
        .tokenizer = r->params.tokenizer,
        .model = r->model_name,
        .vocab_size = r->params.model->vocab_size,
        .max_positions = r->params.model->max_positions,
    };
    akin_status_t status = akin_batch_input_open(path, 0, &r->input, err);
    if (status == AKIN_OK)
        status = akin_id_set_create(&r->seen);
    if (status == AKIN_OK)
        status = akin_id_set_create(&r->done);
    if (status != AKIN_OK)
        return status;
    r->counts.total = akin_batch_input_count(path, 0);
    return r->params.calibration != NULL
               ? akini_trace_sink_create(r, &r->sink, err)
               : akini_batch_sink_create(r, &r->sink, err);
}

akin_status_t akin_router_create(const akin_router_params_t *params,
                                 akin_router_t **router_p, akin_error_t *err)
{
    *router_p = NULL;
    akin_router_t *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    r->params = *params;
    akin_job_served_name(r->params.job->model_name, r->params.job->model_path,
                         r->model_name, sizeof(r->model_name));
    akin_status_t status = create_routing(r, err);
    if (status == AKIN_OK)
        status = create_workers(r);
    if (status == AKIN_OK)
        status = open_run(r, err);
    if (status != AKIN_OK) {
        if (status == AKIN_ERR_NOMEM)
            (void)akin_error_set(err, status, "out of memory");
        akin_router_destroy(r);
        return status;
    }
    *router_p = r;
    return AKIN_OK;
}

void akin_router_destroy(akin_router_t *router)
{
    if (router == NULL)
        return;
    akini_flight_t *f, *next;
    HASH_ITER(hh, router->by_id, f, next)
    akini_flight_forget(router, f);
    akin_batch_input_close(router->input);
    if (router->sink != NULL)
        router->sink->ops->destroy(router->sink);
    akin_id_set_destroy(router->seen);
    akin_id_set_destroy(router->done);
    akin_summary_destroy(router->summary);
    akin_policy_destroy(router->policy);
    akin_prefix_router_destroy(router->prefix);
    akin_replacer_destroy(router->replacer);
    akin_packer_cleanup(&router->packer);
    free(router->prefill);
    free(router->decode);
    akini_router_destroy_groups(router);
    free(router->eligible);
    free(router->loads);
    akini_steps_destroy(router->steps);
    free(router);
}

static akin_status_t create_summary(akin_router_t *r)
{
    const akin_job_t *job = r->params.job;
    const uint32_t n = job->n_prefill + job->n_decode;
    akin_summary_worker_t *workers = calloc(n, sizeof(*workers));
    char(*names)[32] = calloc(n, sizeof(*names));
    char modelled[256] = "";
    akin_status_t status = AKIN_ERR_NOMEM;
    if (akin_job_is_modelled(job))
        (void)snprintf(modelled, sizeof(modelled), "%s on %s",
                       job->modelled_model, job->modelled_machine);
    if (workers != NULL && names != NULL) {
        for (uint32_t i = 0; i < n; i++) {
            const int is_prefill = i < job->n_prefill;
            const uint32_t leader =
                is_prefill ? 1 + i * job->prefill_ep
                           : 1 + r->n_prefill + (i - job->n_prefill) * job->ep;
            (void)snprintf(names[i], sizeof(names[i]), "%s %u",
                           is_prefill ? "prefill" : "decode",
                           is_prefill ? i : i - job->n_prefill);
            workers[i] = (akin_summary_worker_t){
                .name = names[i],
                .role = is_prefill ? "prefill" : "decode",
                .transport = is_prefill ? akin_net_path(r->net, leader) : NULL,
                .rank = leader,
            };
        }
        const akin_summary_params_t params = {
            .model = r->model_name,
            .policy = job->decode_policy,
            .policy_setting = job->decode_setting,
            .engine = job->engine,
            .modelled = modelled[0] != '\0' ? modelled : NULL,
            .slowdown = job->modelled_slowdown,
            .kernel = r->params.kernel,
            .ep = job->ep,
            .prefill_ep = job->prefill_ep,
            .workers = workers,
            .n_workers = n,
            .n_layers = r->params.layout->shape.n_layers,
            .n_experts = r->params.layout->shape.n_experts,
            .start_ns = akin_clock_now_ns(),
            .transports = r->params.transports,
        };
        status = akin_summary_create(&params, &r->summary);
    }
    free(workers);
    free(names);
    return status;
}

/* Under mpirun standard error is a pipe even at a terminal; whoever started
 * mpirun says which terminal that was. */
static int progress_fd(void)
{
    const char *tty = getenv("AKIN_TTY");
    int fd = tty != NULL ? open(tty, O_WRONLY | O_NOCTTY | O_CLOEXEC) : -1;
    return fd >= 0 ? fd : STDERR_FILENO;
}

static uint32_t n_inside(const akin_router_t *r)
{
    return r->n_in[AKINI_FLIGHT_PREFILL] + r->n_in[AKINI_FLIGHT_ROUTED] +
           r->n_in[AKINI_FLIGHT_TRANSFER] + r->n_in[AKINI_FLIGHT_DECODE];
}

static int is_finished(akin_router_t *r, int64_t now_ns)
{
    if (r->stop_ns == 0 && atomic_load(&is_asked_to_stop)) {
        r->stop_ns = now_ns;
        AKIN_LOG(ROLES, WARN,
                 "stopping: %u requests are finished first, for at most %.1f s",
                 n_inside(r),
                 (double)r->params.job->grace_ns / (double)AKIN_NS_PER_S);
    }
    if (r->failure != AKIN_OK)
        return 1;
    if (r->stop_ns != 0)
        return n_inside(r) == 0 ||
               now_ns - r->stop_ns >= r->params.job->grace_ns;
    return r->input_ended && HASH_COUNT(r->by_id) == 0;
}

static void count_states(akin_router_t *r)
{
    r->counts.running = r->n_in[AKINI_FLIGHT_PREFILL] +
                        r->n_in[AKINI_FLIGHT_TRANSFER] +
                        r->n_in[AKINI_FLIGHT_DECODE];
    r->counts.waiting =
        r->n_in[AKINI_FLIGHT_QUEUED] + r->n_in[AKINI_FLIGHT_ROUTED];
}

static void serve(akin_router_t *r)
{
    int64_t now = akin_clock_now_ns();
    while (!is_finished(r, now)) {
        akini_router_read(r, now);
        akini_router_dispatch(r, now);
        int64_t next = akini_router_expire(r, now);
        int64_t due = akini_router_expire_groups(r, now);
        next = due < next ? due : next;
        (void)akini_router_ctl_turn(r);
        count_states(r);
        akin_progress_update(r->progress, &r->counts, now);
        if (r->failure == AKIN_OK)
            r->failure = r->sink->ops->tick(r->sink, now, &r->error);
        if (is_finished(r, now))
            return;
        if (next > now + TICK_NS)
            next = now + TICK_NS;
        akin_status_t status = akin_net_wait(r->net, next);
        if (status != AKIN_OK && status != AKIN_ERR_TIMEOUT &&
            r->failure == AKIN_OK)
            r->failure = akin_error_set(&r->error, status, "network: %s",
                                        akin_status_string(status));
        now = akin_clock_now_ns();
    }
}

static void wait_for_workers(akin_router_t *r, int64_t wait_ns, int is_end)
{
    int64_t deadline = akin_clock_now_ns() + wait_ns;
    while (akini_router_is_awaited(r, is_end))
        if (akin_net_wait(r->net, deadline) != AKIN_OK)
            return;
}

static void stop_workers(akin_router_t *r)
{
    r->is_closing = 1;
    for (uint32_t rank = 1; rank < akin_job_n_ranks(r->params.job); rank++)
        if (akin_net_has_peer(r->net, rank))
            akini_router_send(r, rank, AKIN_MESSAGE_STOP);
    wait_for_workers(r, STATS_NS, 0);
    /* Workers go first, so that the job's end is the router's. */
    wait_for_workers(r, CLOSE_NS, 1);
}

akin_status_t akin_router_run(akin_router_t *router, akin_net_t *net,
                              akin_router_end_t *end_p, akin_error_t *err)
{
    akin_router_t *r = router;
    r->net = net;
    atomic_store(&signal_net, net);
    akin_status_t status = create_summary(r);
    if (status == AKIN_OK)
        status = akini_router_start_groups(r);
    if (status == AKIN_OK)
        status = akin_progress_create(progress_fd(), &r->counts,
                                      akin_clock_now_ns(), &r->progress);
    if (status != AKIN_OK) {
        atomic_store(&signal_net, NULL);
        return akin_error_set(err, status, "out of memory");
    }
    akini_router_ctl_open(r);
    serve(r);
    akini_router_ctl_close(r);
    akin_net_watch(net, -1);
    int64_t now = akin_clock_now_ns();
    int is_complete = r->input_ended && HASH_COUNT(r->by_id) == 0;
    count_states(r);
    akin_progress_finish(r->progress, &r->counts, now);
    akin_policy_refits_t refits = akin_policy_refits(r->policy);
    akin_summary_set_refits(r->summary, &refits);
    if (r->replacer != NULL) {
        akin_replacer_stats_t replaced = akin_replacer_stats(r->replacer);
        akin_summary_set_replaced(r->summary, &replaced);
    }
    akin_summary_end(r->summary, now);
    akin_status_t ended =
        r->sink->ops->end(r->sink, is_complete && r->failure == AKIN_OK,
                          r->failure == AKIN_OK ? &r->error : NULL);
    if (r->failure == AKIN_OK)
        r->failure = ended;
    stop_workers(r);
    akin_net_stats_t stats;
    akin_net_stats(net, &stats);
    akin_summary_add_late(r->summary, stats.messages_late);
    if (r->failure == AKIN_OK)
        r->failure = r->sink->ops->report(r->sink, &r->error);
    *end_p = (akin_router_end_t){
        .exit_code = r->counts.failed > 0 ? EXIT_LINES : 0,
        .n_answered = r->counts.done - r->counts.failed,
        .n_failed = r->counts.failed,
    };
    if (r->stop_ns != 0 && !is_complete)
        end_p->exit_code = EXIT_STOPPED;
    atomic_store(&signal_net, NULL);
    if (r->failure != AKIN_OK) {
        end_p->exit_code = EXIT_FAILED;
        if (err != NULL)
            *err = r->error;
    }
    return r->failure;
}
