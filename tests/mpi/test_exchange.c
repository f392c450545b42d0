/* Exchanges of a group: sizes of all kinds in many swaps, ranks that are
 * ahead, and a rank that dies or does not come. Arguments: [tcp] [mpi]
 * [killed|absent]. */
#include "net_fixture.h"

#include "ep/exchange_mpi.h"
#include "ep/exchange_ucx.h"
#include "net/supervisor.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#define N_SWAPS 1000u
#define VICTIM 2u
#define SWAPS_BEFORE 20u
#define SLOT_BYTES ((size_t)512 << 10)
#define MIB ((size_t)1 << 20)
#define SHORT_NS (2 * AKIN_NS_PER_S)

typedef struct job {
    int mpi;
    int tcp;
    int killed;
    int absent;
    uint32_t rank;
} job_t;

/* Nothing, one byte, odd ones, around the bounds of messages and slots, and a
 * MiB now and then. */
static size_t size_of(uint32_t from, uint32_t to, uint32_t swap)
{
    static const size_t sizes[] = {0,    1,    7,    333,        4095,
                                   4096, 4097, 8193, SLOT_BYTES, 65537};
    uint32_t i = from * 31 + to * 17 + swap * 7;
    if (swap % 50 == 49)
        return from == to + 1 ? MIB : SLOT_BYTES + 1 + i % 5;
    return sizes[i % (sizeof(sizes) / sizeof(sizes[0]))];
}

static unsigned char *pieces[2]; /* [n_ranks][MIB] each */

/* A piece is told by sender, receiver and swap. */
static uint64_t place_of(uint32_t to, uint32_t swap)
{
    return ((uint64_t)swap * 64 + to) * 3 * MIB;
}

static akin_status_t swap_once(akin_ep_exchange_t *e, uint32_t swap,
                               akin_ep_piece_t *in, int64_t limit_ns)
{
    akin_ep_piece_t out[64];
    unsigned char *memory = pieces[swap % 2];
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        size_t bytes = size_of(e->rank, r, swap);
        out[r] = (akin_ep_piece_t){memory + r * MIB, bytes};
        fixture_fill(memory + r * MIB, bytes < 2048 ? bytes : 2048, e->rank,
                     place_of(r, swap));
        if (bytes > 0)
            memory[r * MIB + bytes - 1] = (unsigned char)swap;
    }
    akin_status_t status =
        akin_ep_swap(e, out, in, akin_clock_now_ns() + limit_ns);
    /* What was given may change at once. */
    for (uint32_t r = 0; r < e->n_ranks; r++)
        memset(memory + r * MIB, 0xee, out[r].bytes);
    return status;
}

static void check_pieces(const akin_ep_exchange_t *e, uint32_t swap,
                         const akin_ep_piece_t *in)
{
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        const unsigned char *at = in[r].data;
        size_t bytes = r != e->rank ? size_of(r, e->rank, swap) : 0;
        CHECK(in[r].bytes == bytes);
        if (in[r].bytes != bytes || bytes == 0)
            continue;
        size_t head = bytes < 2048 ? bytes - 1 : 2048;
        CHECK(((uintptr_t)at & 63) == 0);
        CHECK(fixture_wrong(at, head, r, place_of(e->rank, swap)) == 0);
        CHECK(at[bytes - 1] == (unsigned char)swap);
    }
}

static void swaps(akin_ep_exchange_t *e, uint32_t n)
{
    akin_ep_piece_t in[2][64];
    for (uint32_t s = 0; s < n && fixture_failures == 0; s++) {
        /* Some rank is late now and then, so that others are ahead. */
        if ((s * 5 + e->rank) % 97 == 0) {
            const struct timespec pause = {.tv_nsec = AKIN_NS_PER_MS};
            nanosleep(&pause, NULL);
        }
        akin_status_t status = swap_once(e, s, in[s % 2], FIXTURE_LIMIT_NS);
        if (status != AKIN_OK)
            fprintf(stderr, "rank %u: swap %u: %s\n", (unsigned)e->rank,
                    (unsigned)s, akin_status_string(status));
        CHECK_FATAL(status == AKIN_OK);
        check_pieces(e, s, in[s % 2]);
        /* The pieces of the swap before are still there. */
        if (s > 0)
            check_pieces(e, s - 1, in[(s - 1) % 2]);
    }
}

/* The others are told within the time that they give, and for good. */
static void lose(akin_ep_exchange_t *e)
{
    akin_ep_piece_t in[64];
    int64_t begin_ns = akin_clock_now_ns();
    akin_status_t status = AKIN_OK;
    for (uint32_t s = SWAPS_BEFORE; status == AKIN_OK && s < N_SWAPS; s++)
        status = swap_once(e, s, in, SHORT_NS);
    int64_t took_ns = akin_clock_now_ns() - begin_ns;
    CHECK(status == AKIN_ERR_PEER || status == AKIN_ERR_TIMEOUT);
    CHECK(took_ns < SHORT_NS + AKIN_NS_PER_S);
    CHECK(e->culprit == VICTIM || e->ops->name[0] == 'm' ||
          e->culprit < e->n_ranks);
    CHECK(swap_once(e, 0, in, SHORT_NS) == status);
}

static void connect_all(akin_ep_exchange_t *e, akin_boot_t *boot)
{
    akin_error_t err = {{0}};
    void *blob = NULL;
    size_t bytes = 0, *offsets = NULL;
    unsigned char *blobs = NULL;
    fixture_ok(akin_ep_exchange_ucx_identity(e, &blob, &bytes, &err), &err);
    fixture_ok(akin_boot_exchange(boot, blob, bytes, &blobs, &offsets, &err),
               &err);
    for (uint32_t r = 0; r < e->n_ranks; r++)
        if (r != e->rank)
            fixture_ok(akin_ep_exchange_ucx_connect(e, r, blobs + offsets[r],
                                                    offsets[r + 1] - offsets[r],
                                                    &err),
                       &err);
    free(blob);
    free(blobs);
    free(offsets);
    fixture_ok(akin_boot_barrier(boot, &err), &err);
}

static void run(const job_t *job, akin_ep_exchange_t *e)
{
    for (int i = 0; i < 2; i++) {
        pieces[i] = malloc(e->n_ranks * MIB);
        CHECK_FATAL(pieces[i] != NULL);
    }
    if (!job->killed && !job->absent) {
        swaps(e, N_SWAPS);
    } else {
        swaps(e, SWAPS_BEFORE);
        if (job->killed && e->rank == VICTIM) {
            CHECK_FATAL(akin_supervised_arm(&(akin_supervised_terms_t){0}, NULL,
                                            0) == AKIN_OK);
            raise(SIGKILL);
        }
        if (e->rank != VICTIM)
            lose(e);
    }
    free(pieces[0]);
    free(pieces[1]);
}

static int rank_main(void *arg, const akin_supervisor_life_t *life)
{
    const job_t *job = arg;
    /* What is lost stays lost here. */
    if (life->number > 0)
        return 0;
    akin_error_t err = {{0}};
    akin_boot_t *boot = fixture_boot();
    akin_boot_group_t *group = NULL;
    akin_ep_exchange_t *e = NULL;
    if (job->tcp)
        setenv("UCX_TLS", "tcp", 1);
    if (job->mpi) {
        fixture_ok(akin_boot_group_create(boot, 3, &group, &err), &err);
        fixture_ok(akin_ep_exchange_mpi_create(group, &e, &err), &err);
        run(job, e);
        /* Whoever did not come leaves once the others have given up. */
        fixture_ok(akin_boot_barrier(boot, &err), &err);
        akin_ep_exchange_destroy(e);
        akin_boot_group_destroy(group);
        akin_boot_finish(boot);
        return fixture_failures != 0;
    }
    const akin_ep_exchange_ucx_params_t params = {
        .rank = akin_boot_rank(boot),
        .n_ranks = akin_boot_size(boot),
        .slot_bytes = SLOT_BYTES,
    };
    fixture_ok(akin_ep_exchange_ucx_create(&params, &e, &err), &err);
    connect_all(e, boot);
    const char *path = akin_ep_exchange_ucx_path(e, (e->rank + 1) % e->n_ranks);
    CHECK((strncmp(path, "one-sided", 9) == 0) == !job->tcp);
    akin_boot_finish(boot);
    run(job, e);
    if (job->absent && e->rank == VICTIM) {
        const struct timespec pause = {.tv_sec = SHORT_NS / AKIN_NS_PER_S + 1};
        nanosleep(&pause, NULL);
    }
    akin_ep_exchange_destroy(e);
    return fixture_failures != 0;
}

int main(int argc, char **argv)
{
    job_t job = {0};
    uint32_t size = 0;
    for (int i = 1; i < argc; i++) {
        job.mpi |= strcmp(argv[i], "mpi") == 0;
        job.tcp |= strcmp(argv[i], "tcp") == 0;
        job.killed |= strcmp(argv[i], "killed") == 0;
        job.absent |= strcmp(argv[i], "absent") == 0;
    }
    CHECK_FATAL(akin_boot_launch_rank(&job.rank, &size) == AKIN_OK);
    CHECK_FATAL(size > VICTIM);
    if (!job.killed)
        return rank_main(&job, &(akin_supervisor_life_t){0});
    /* The launcher is not to see the death. */
    const akin_supervisor_params_t params = {
        .rank_main = rank_main,
        .arg = &job,
        .rank = (int)job.rank,
        .role = "test",
        .pass_exit_code = job.rank != VICTIM,
    };
    return akin_supervisor_run(&params);
}
