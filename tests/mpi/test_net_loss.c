/* A rank is killed while others read from it; its supervisor starts it anew
 * and it joins without MPI. Arguments: [tcp] [successor] [idle] [stopped]. */
#include "net_fixture.h"

#include "net/supervisor.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define VICTIM 2
#define SLAB ((size_t)64 << 20)
#define PIECE ((size_t)2 << 20)
#define N_SLOTS 8
#define READS_BEFORE 40

#define TYPE_DIE 1
#define TYPE_HELLO 2
#define TYPE_WELCOME 3
#define TYPE_STILL_HERE 4
#define TYPE_ENOUGH 5

typedef struct job {
    char folder[64];
    int tcp;
    int successor; /* the new process speaks before UCX has missed the old */
    int idle;      /* nobody reads when the rank is killed */
    int stopped;   /* it only stops, which UCX never sees: it is given up */
    uint32_t rank;
    uint32_t size;
} job_t;

typedef struct state {
    akin_net_t *net;
    const job_t *job;
    int n_lost;
    akin_status_t loss;
    int n_hello;
    uint32_t n_welcome;
    uint32_t n_still_here;
    uint32_t n_enough;
    uint32_t n_left;
    uint64_t started;
    uint64_t ended;
    uint64_t ended_at_loss;
    uint64_t ok;
} state_t;

typedef struct slot {
    state_t *state;
    int busy;
    uint64_t offset;
    unsigned char *local;
    uint32_t incarnation; /* whose bytes are expected */
} slot_t;

static void on_message(void *arg, uint32_t from, uint16_t type,
                       const void *payload, size_t bytes)
{
    state_t *state = arg;
    akin_error_t err = {{0}};
    switch (type) {
    case TYPE_DIE:
        raise(state->job->stopped ? SIGSTOP : SIGKILL);
        break;
    case TYPE_HELLO:
        /* The loss of the predecessor was told before. */
        CHECK(from == VICTIM);
        CHECK(state->n_lost == 1);
        fixture_ok(akin_net_add_peer(state->net, from, payload, bytes, &err),
                   &err);
        CHECK(akin_net_send(state->net, from, TYPE_WELCOME, NULL, 0) ==
              AKIN_OK);
        state->n_hello++;
        break;
    case TYPE_WELCOME:
        state->n_welcome++;
        break;
    case TYPE_STILL_HERE:
        state->n_still_here++;
        break;
    case TYPE_ENOUGH:
        state->n_enough++;
        break;
    default:
        CHECK(type == 0);
    }
}

static void on_lost(void *arg, uint32_t rank, akin_status_t status)
{
    state_t *state = arg;
    if (status == AKIN_ERR_CANCELED) {
        state->n_left++;
        return;
    }
    CHECK(rank == VICTIM);
    CHECK(akin_net_has_peer(state->net, rank) == 0);
    CHECK(akin_net_send(state->net, rank, 1, NULL, 0) == AKIN_ERR_PEER);
    state->n_lost++;
    state->loss = status;
    state->ended_at_loss = state->ended;
    CHECK(state->started == state->ended);
}

static void on_read(void *arg, akin_status_t status)
{
    slot_t *slot = arg;
    CHECK(slot->busy);
    slot->busy = 0;
    slot->state->ended++;
    CHECK(status == AKIN_OK || status == AKIN_ERR_PEER);
    if (status != AKIN_OK)
        return;
    slot->state->ok++;
    CHECK(fixture_wrong(slot->local, 4096, slot->incarnation, slot->offset) ==
          0);
}

static void keep_reading(state_t *state, slot_t *slots)
{
    for (int i = 0; i < N_SLOTS; i++) {
        slot_t *slot = &slots[i];
        if (slot->busy)
            continue;
        slot->offset = (state->started * 4097) % (SLAB / 2 - PIECE);
        memset(slot->local, 0, 4096);
        slot->busy = 1;
        akin_status_t status = akin_net_read(state->net, VICTIM, slot->offset,
                                             slot->local, PIECE, on_read, slot);
        if (status == AKIN_OK)
            state->started++;
        else
            slot->busy = 0;
        CHECK(status == AKIN_OK || status == AKIN_ERR_PEER);
    }
}

static void path_of(const job_t *job, uint32_t rank, char *path, size_t size)
{
    snprintf(path, size, "%s/%u", job->folder, (unsigned)rank);
}

static void publish(const job_t *job, akin_net_t *net)
{
    void *blob = NULL;
    size_t bytes = 0;
    akin_error_t err = {{0}};
    char path[96], draft[112];
    fixture_ok(akin_net_identity(net, &blob, &bytes, &err), &err);
    path_of(job, job->rank, path, sizeof(path));
    snprintf(draft, sizeof(draft), "%s.draft", path);
    FILE *file = fopen(draft, "w");
    CHECK_FATAL(file != NULL && fwrite(blob, 1, bytes, file) == bytes);
    CHECK_FATAL(fclose(file) == 0 && rename(draft, path) == 0);
    free(blob);
}

static void on_pid(void *arg, akin_status_t status)
{
    CHECK(status == AKIN_OK);
    *(int *)arg = 1;
}

/* Until the victim is lost; every read has ended by then. */
static void lose(const job_t *job, state_t *state, slot_t *slots)
{
    akin_net_t *net = state->net;
    int64_t limit_ns = akin_clock_now_ns() + FIXTURE_LIMIT_NS;
    int told = 0;
    int64_t give_up_ns = INT64_MAX;
    /* The other survivor may stop it before this one has read enough: then
     * nothing more comes. */
    int64_t late_ns = INT64_MAX;
    if (job->stopped && job->rank != 0)
        late_ns = limit_ns - FIXTURE_LIMIT_NS / 2;
    while (state->n_lost == 0 && akin_clock_now_ns() < limit_ns) {
        if (!told && state->ok >= READS_BEFORE) {
            if (job->rank == 0)
                CHECK(akin_net_send(net, VICTIM, TYPE_DIE, NULL, 0) == AKIN_OK);
            told = 1;
            if (job->stopped)
                give_up_ns = akin_clock_now_ns() + AKIN_NS_PER_S;
        }
        if (!told || !job->idle)
            keep_reading(state, slots);
        int64_t until_ns = told ? give_up_ns : late_ns;
        if (akin_clock_now_ns() >= until_ns) {
            /* What missed heartbeats would lead to. */
            akin_net_drop_peer(net, VICTIM);
            told = 1;
            give_up_ns = INT64_MAX;
        }
        if (until_ns > limit_ns)
            until_ns = limit_ns;
        akin_status_t status = akin_net_wait(net, until_ns);
        CHECK_FATAL(status == AKIN_OK || status == AKIN_ERR_TIMEOUT);
    }
    CHECK_FATAL(state->n_lost == 1);
    CHECK(state->loss == AKIN_ERR_PEER);
    CHECK(state->started == state->ended);
}

static void survivor(const job_t *job, state_t *state)
{
    akin_net_t *net = state->net;
    uint32_t other = 1 - job->rank;
    slot_t slots[N_SLOTS];
    for (int i = 0; i < N_SLOTS; i++)
        slots[i] = (slot_t){
            .state = state,
            .local = (unsigned char *)akin_net_slab(net) + SLAB / 2 +
                     (size_t)(i + 1) * PIECE,
            .incarnation = 100,
        };
    pid_t pid = 0;
    int known = 0;
    CHECK(akin_net_read(net, VICTIM, SLAB / 2, &pid, sizeof(pid), on_pid,
                        &known) == AKIN_OK);
    WAIT_FOR(net, known);
    lose(job, state, slots);
    /* The survivors still reach each other. */
    CHECK(akin_net_send(net, other, TYPE_STILL_HERE, NULL, 0) == AKIN_OK);
    WAIT_FOR(net, state->n_still_here == 1);
    if (job->stopped && job->rank == 0)
        CHECK(kill(pid, SIGKILL) == 0);
    /* The new process introduces itself; its slab is another one. */
    WAIT_FOR(net, state->n_hello == 1);
    CHECK(akin_net_is_one_sided(net, VICTIM) == !job->tcp);
    for (int i = 0; i < N_SLOTS; i++)
        slots[i].incarnation = 200;
    uint64_t before = state->ok;
    keep_reading(state, slots);
    WAIT_FOR(net, state->started == state->ended);
    CHECK(state->ok == before + N_SLOTS);
    CHECK(state->n_lost == 1);
    CHECK(akin_net_send(net, VICTIM, TYPE_ENOUGH, NULL, 0) == AKIN_OK);
    if (job->rank == 0)
        WAIT_FOR(net, state->n_left == 2);
    else
        WAIT_FOR(net, !akin_net_has_peer(net, VICTIM));
}

static int first_life(const job_t *job)
{
    akin_boot_t *boot = fixture_boot();
    if (job->tcp)
        setenv("UCX_TLS", "tcp", 1);
    /* Shared memory finds a dead peer by asking now and then. A successor is
     * to be the one that tells it. */
    setenv("UCX_KEEPALIVE_INTERVAL", job->successor ? "60s" : "100ms", 1);
    state_t state = {0};
    akin_net_t *net = fixture_connect(boot,
                                      (akin_net_events_t){
                                          .message = on_message,
                                          .peer_lost = on_lost,
                                          .arg = &state,
                                      },
                                      SLAB);
    state.net = net;
    state.job = job;
    pid_t pid = getpid();
    memcpy((unsigned char *)akin_net_slab(net) + SLAB / 2, &pid, sizeof(pid));
    fixture_fill(akin_net_slab(net), SLAB / 2, 100, 0);
    if (job->rank != VICTIM)
        publish(job, net);
    /* Filled: everybody may read. */
    for (uint32_t r = 0; r < job->size; r++)
        if (r != job->rank)
            CHECK(akin_net_send(net, r, TYPE_WELCOME, NULL, 0) == AKIN_OK);
    WAIT_FOR(net, state.n_welcome == job->size - 1);
    if (job->rank == VICTIM) {
        const akin_supervised_terms_t terms = {
            .max_lives = 1,
            .window_ns = 600 * AKIN_NS_PER_S,
        };
        CHECK_FATAL(akin_supervised_arm(&terms, NULL, 0) == AKIN_OK);
        WAIT_FOR(net, 0);
    } else {
        survivor(job, &state);
    }
    akin_net_destroy(net);
    return fixture_failures != 0;
}

static int second_life(const job_t *job)
{
    akin_error_t err = {{0}};
    fixture_rank = job->rank;
    if (job->tcp)
        setenv("UCX_TLS", "tcp", 1);
    state_t state = {.job = job};
    const akin_net_params_t params = {
        .rank = job->rank,
        .n_ranks = job->size,
        .slab_bytes = SLAB,
        .events = {.message = on_message, .peer_lost = on_lost, .arg = &state},
    };
    fixture_ok(akin_net_create(&params, &state.net, &err), &err);
    fixture_fill(akin_net_slab(state.net), SLAB / 2, 200, 0);
    void *own = NULL;
    size_t own_bytes = 0;
    fixture_ok(akin_net_identity(state.net, &own, &own_bytes, &err), &err);
    for (uint32_t r = 0; r < VICTIM; r++) {
        char path[96];
        unsigned char blob[65536];
        path_of(job, r, path, sizeof(path));
        FILE *file = fopen(path, "r");
        CHECK_FATAL(file != NULL);
        size_t bytes = fread(blob, 1, sizeof(blob), file);
        fclose(file);
        fixture_ok(akin_net_add_peer(state.net, r, blob, bytes, &err), &err);
        CHECK(akin_net_send(state.net, r, TYPE_HELLO, own, own_bytes) ==
              AKIN_OK);
    }
    free(own);
    WAIT_FOR(state.net, state.n_welcome == VICTIM);
    WAIT_FOR(state.net, state.n_enough == VICTIM);
    akin_net_destroy(state.net);
    return fixture_failures != 0;
}

static int rank_main(void *arg, const akin_supervisor_life_t *life)
{
    CHECK_FATAL(life->number <= 1 && !life->is_last);
    return life->number == 0 ? first_life(arg) : second_life(arg);
}

int main(int argc, char **argv)
{
    job_t job = {.folder = "", .rank = 0, .size = 0};
    for (int i = 1; i < argc; i++) {
        job.tcp |= strcmp(argv[i], "tcp") == 0;
        job.successor |= strcmp(argv[i], "successor") == 0;
        job.idle |= strcmp(argv[i], "idle") == 0;
        job.stopped |= strcmp(argv[i], "stopped") == 0;
    }
    CHECK_FATAL(akin_boot_launch_rank(&job.rank, &job.size) == AKIN_OK);
    CHECK_FATAL(job.size == VICTIM + 1);
    /* All ranks have the same launcher on this host. */
    snprintf(job.folder, sizeof(job.folder), "/tmp/akin-net-loss-%ld",
             (long)getppid());
    mkdir(job.folder, 0700);
    const akin_supervisor_params_t params = {
        .rank_main = rank_main,
        .arg = &job,
        .rank = (int)job.rank,
        .role = "test",
        .pass_exit_code = job.rank != VICTIM,
    };
    int code = akin_supervisor_run(&params);
    if (job.rank == VICTIM) {
        for (uint32_t r = 0; r < VICTIM; r++) {
            char path[96];
            path_of(&job, r, path, sizeof(path));
            unlink(path);
        }
        rmdir(job.folder);
    }
    return code;
}
