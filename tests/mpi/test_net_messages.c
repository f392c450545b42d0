/* Messages of many sizes from everybody to everybody, in order. */
#include "net_fixture.h"

#define N_MESSAGES 60
#define TYPE_DATA 7
#define TYPE_DONE 8

static const size_t sizes[] = {0,     1,    100,  8192,    8300,  64,
                               65536, 3000, 9000, 1 << 20, 20600, 4 << 20};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

typedef struct state {
    uint32_t n_from[8]; /* messages of each rank */
    uint32_t n_done;
    uint32_t n_lost;
} state_t;

static size_t message_bytes(uint32_t from, uint32_t i)
{
    return sizes[(from + i * 5u) % N_SIZES];
}

static void on_message(void *arg, uint32_t from, uint16_t type,
                       const void *payload, size_t bytes)
{
    state_t *state = arg;
    if (type == TYPE_DONE) {
        CHECK(state->n_from[from] == N_MESSAGES);
        state->n_done++;
        return;
    }
    /* The content says which message it is: any other order fails. */
    uint32_t i = state->n_from[from]++;
    CHECK(type == TYPE_DATA);
    CHECK(bytes == message_bytes(from, i));
    CHECK(fixture_wrong(payload, bytes, from, i) == 0);
}

static void on_lost(void *arg, uint32_t rank, akin_status_t status)
{
    state_t *state = arg;
    (void)rank;
    CHECK(status == AKIN_ERR_CANCELED);
    state->n_lost++;
}

static void send(akin_net_t *net, uint32_t to, uint16_t type,
                 const void *payload, size_t bytes)
{
    akin_status_t status;
    while ((status = akin_net_send(net, to, type, payload, bytes)) ==
           AKIN_ERR_FULL)
        CHECK_FATAL(akin_net_wait(net, akin_clock_now_ns() +
                                           FIXTURE_LIMIT_NS) == AKIN_OK);
    CHECK_FATAL(status == AKIN_OK);
}

int main(int argc, char **argv)
{
    akin_boot_t *boot = fixture_boot();
    uint32_t rank = akin_boot_rank(boot), size = akin_boot_size(boot);
    CHECK_FATAL(size <= 8);
    fixture_is_tcp(argc, argv);
    state_t state = {{0}, 0, 0};
    akin_net_t *net = fixture_connect(boot,
                                      (akin_net_events_t){
                                          .message = on_message,
                                          .peer_lost = on_lost,
                                          .arg = &state,
                                      },
                                      0);
    unsigned char *buffer = malloc((size_t)16 << 20);
    CHECK_FATAL(buffer != NULL);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < N_MESSAGES; i++) {
        size_t n = message_bytes(rank, i);
        fixture_fill(buffer, n, rank, i);
        for (uint32_t to = 0; to < size; to++)
            if (to != rank)
                send(net, to, TYPE_DATA, buffer, n);
        /* The payload was copied. */
        memset(buffer, 0xee, n);
        bytes += n * (size - 1);
    }
    CHECK(akin_net_send(net, rank, TYPE_DATA, NULL, 0) == AKIN_ERR_PEER);
    uint32_t other = (rank + 1) % size;
    CHECK(akin_net_send(net, other, 0xff01, NULL, 0) == AKIN_ERR_RANGE);
    CHECK(akin_net_send(net, other, TYPE_DATA, buffer,
                        ((size_t)16 << 20) + 1) == AKIN_ERR_RANGE);
    for (uint32_t to = 0; to < size; to++)
        if (to != rank)
            send(net, to, TYPE_DONE, NULL, 0);
    WAIT_FOR(net, state.n_done == size - 1);
    akin_net_stats_t stats;
    akin_net_stats(net, &stats);
    CHECK(stats.messages_sent == (uint64_t)(N_MESSAGES + 1) * (size - 1));
    CHECK(stats.messages_received == stats.messages_sent);
    CHECK(stats.bytes_sent == bytes);
    /* Rank 0 leaves last: the others' orderly end reaches it. */
    if (rank == 0)
        WAIT_FOR(net, state.n_lost == size - 1);
    akin_net_destroy(net);
    free(buffer);
    return fixture_failures != 0;
}
