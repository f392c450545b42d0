/* Reads of all sizes, checked byte for byte; one-sided ones from an owner that
 * makes no progress. */
#include "net_fixture.h"

#include <unistd.h>

#define HALF ((size_t)16 << 20) /* own bytes, then where reads go */
#define TYPE_DONE 1
#define TYPE_SLEEP 2

static const size_t sizes[] = {1,     63,      4096,    8193,    65536,
                               20553, 1 << 20, 3 << 20, 8 << 20, 2};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

typedef struct state {
    uint32_t n_done; /* ranks that have read all */
    int sleep;       /* this rank was told to stop making progress */
    int n_lost;
    char stop[256]; /* file that ends the sleep */
} state_t;

typedef struct one_read {
    int calls;
    akin_status_t status;
} one_read_t;

static void on_message(void *arg, uint32_t from, uint16_t type,
                       const void *payload, size_t bytes)
{
    state_t *state = arg;
    (void)from;
    if (type == TYPE_DONE) {
        state->n_done++;
        return;
    }
    state->sleep = 1;
    CHECK_FATAL(bytes < sizeof(state->stop));
    memcpy(state->stop, payload, bytes);
    state->stop[bytes] = '\0';
}

static void on_lost(void *arg, uint32_t rank, akin_status_t status)
{
    state_t *state = arg;
    (void)rank;
    (void)status;
    state->n_lost++;
}

static void on_read(void *arg, akin_status_t status)
{
    one_read_t *read = arg;
    read->calls++;
    read->status = status;
}

/* One piece of each size from every other rank, all under way at once. */
static void read_all(akin_net_t *net, uint32_t rank, uint32_t size, int round)
{
    unsigned char *own = akin_net_slab(net);
    one_read_t reads[8][N_SIZES] = {{{0}}};
    for (uint32_t r = 0; r < size; r++) {
        if (r == rank)
            continue;
        memset(own + HALF, 0, HALF);
        size_t at = HALF;
        uint64_t offsets[N_SIZES];
        for (size_t i = 0; i < N_SIZES; i++) {
            offsets[i] = (uint64_t)(round * 1237) + i * 4099;
            CHECK(akin_net_read(net, r, offsets[i], own + at, sizes[i], on_read,
                                &reads[r][i]) == AKIN_OK);
            at += sizes[i];
        }
        at = HALF;
        for (size_t i = 0; i < N_SIZES; i++) {
            WAIT_FOR(net, reads[r][i].calls > 0);
            CHECK(reads[r][i].status == AKIN_OK);
            CHECK(fixture_wrong(own + at, sizes[i], r, offsets[i]) == 0);
            at += sizes[i];
        }
        /* Nothing was written beyond the pieces. */
        size_t beyond = 0;
        for (size_t i = at; i < 2 * HALF; i++)
            beyond += own[i] != 0;
        CHECK(beyond == 0);
    }
    for (uint32_t r = 0; r < size; r++)
        for (size_t i = 0; r != rank && i < N_SIZES; i++)
            CHECK(reads[r][i].calls == 1);
}

static void refused(akin_net_t *net, uint32_t other)
{
    one_read_t read = {0, AKIN_OK};
    unsigned char *to = (unsigned char *)akin_net_slab(net) + HALF;
    CHECK(akin_net_read(net, other, 2 * HALF, to, 1, on_read, &read) ==
          AKIN_ERR_RANGE);
    CHECK(akin_net_read(net, other, 2 * HALF - 1, to, 2, on_read, &read) ==
          AKIN_ERR_RANGE);
    CHECK(akin_net_read(net, other, UINT64_MAX, to, 2, on_read, &read) ==
          AKIN_ERR_RANGE);
    CHECK(akin_net_read(net, other, 0, to, 0, on_read, &read) ==
          AKIN_ERR_RANGE);
    akin_net_poll(net);
    CHECK(read.calls == 0);
}

/* Rank 0 reads from rank 1, which only waits for a file that rank 0 makes when
 * it has read all: a read that needed the owner would never end. */
static void sleeping_owner(akin_net_t *net, uint32_t rank, uint32_t size,
                           state_t *state)
{
    if (rank == 0) {
        char path[] = "/tmp/akin-net-reads-XXXXXX";
        int fd = mkstemp(path);
        CHECK_FATAL(fd >= 0);
        close(fd);
        unlink(path);
        CHECK(akin_net_send(net, 1, TYPE_SLEEP, path, strlen(path)) == AKIN_OK);
        /* Its first byte changes when the message was handled. */
        unsigned char *to = (unsigned char *)akin_net_slab(net) + HALF;
        one_read_t read;
        do {
            read = (one_read_t){0, AKIN_OK};
            CHECK_FATAL(akin_net_read(net, 1, 2 * HALF - 1, to, 1, on_read,
                                      &read) == AKIN_OK);
            WAIT_FOR(net, read.calls > 0);
            CHECK_FATAL(read.status == AKIN_OK);
        } while (*to != 0xa5);
        size_t piece = (size_t)8 << 20;
        read = (one_read_t){0, AKIN_OK};
        CHECK(akin_net_read(net, 1, 3, to, piece, on_read, &read) == AKIN_OK);
        WAIT_FOR(net, read.calls > 0);
        CHECK(fixture_wrong(to, piece, 1, 3) == 0);
        FILE *file = fopen(path, "w");
        CHECK_FATAL(file != NULL);
        fclose(file);
        WAIT_FOR(net, state->n_done == 2 * (size - 1));
        unlink(path);
    } else if (rank == 1) {
        WAIT_FOR(net, state->sleep);
        ((unsigned char *)akin_net_slab(net))[2 * HALF - 1] = 0xa5;
        int64_t limit_ns = akin_clock_now_ns() + FIXTURE_LIMIT_NS;
        while (access(state->stop, F_OK) != 0 && akin_clock_now_ns() < limit_ns)
            usleep(10000);
        CHECK(access(state->stop, F_OK) == 0);
    }
    if (rank != 0)
        CHECK(akin_net_send(net, 0, TYPE_DONE, NULL, 0) == AKIN_OK);
}

int main(int argc, char **argv)
{
    akin_boot_t *boot = fixture_boot();
    uint32_t rank = akin_boot_rank(boot), size = akin_boot_size(boot);
    CHECK_FATAL(size >= 2 && size <= 8);
    int tcp = fixture_is_tcp(argc, argv);
    state_t state = {0, 0, 0, ""};
    akin_net_t *net = fixture_connect(boot,
                                      (akin_net_events_t){
                                          .message = on_message,
                                          .peer_lost = on_lost,
                                          .arg = &state,
                                      },
                                      2 * HALF);
    fixture_fill(akin_net_slab(net), HALF, rank, 0);
    for (uint32_t r = 0; r < size; r++) {
        if (r == rank)
            continue;
        CHECK(akin_net_is_one_sided(net, r) == !tcp);
        const char *path = tcp ? "rendezvous (tcp)" : "one-sided (";
        CHECK(strncmp(akin_net_path(net, r), path, strlen(path)) == 0);
    }
    /* Everybody has filled its slab. */
    for (uint32_t r = 0; r < size; r++)
        if (r != rank)
            CHECK(akin_net_send(net, r, TYPE_DONE, NULL, 0) == AKIN_OK);
    WAIT_FOR(net, state.n_done == size - 1);
    for (int round = 0; round < 3; round++)
        read_all(net, rank, size, round);
    refused(net, (rank + 1) % size);
    akin_net_stats_t stats;
    akin_net_stats(net, &stats);
    uint64_t n_reads = (uint64_t)3 * N_SIZES * (size - 1);
    CHECK(stats.reads_one_sided == (tcp ? 0 : n_reads));
    CHECK(stats.reads_rendezvous == (tcp ? n_reads : 0));
    uint64_t bytes = 0;
    for (size_t i = 0; i < N_SIZES; i++)
        bytes += 3 * sizes[i] * (size - 1);
    CHECK(stats.read_bytes == bytes);
    if (!tcp)
        sleeping_owner(net, rank, size, &state);
    else if (rank != 0)
        CHECK(akin_net_send(net, 0, TYPE_DONE, NULL, 0) == AKIN_OK);
    /* An owner stays until rank 0 has heard that nobody reads any more. */
    if (rank == 0)
        WAIT_FOR(net, state.n_done == 2 * (size - 1));
    else
        WAIT_FOR(net, !akin_net_has_peer(net, 0));
    akin_net_destroy(net);
    return fixture_failures != 0;
}
