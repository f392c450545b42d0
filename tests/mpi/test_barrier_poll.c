/* A barrier that makes progress: over tcp a rank reads from one that waits for
 * it there; one that waits in vain says so. */
#include "net_fixture.h"

#define SLAB_BYTES 65536u

static int n_read;

static void on_read(void *arg, akin_status_t status)
{
    (void)arg;
    CHECK(status == AKIN_OK);
    n_read++;
}

static int n_messages;

static void on_message(void *arg, uint32_t from, uint16_t type,
                       const void *payload, size_t bytes)
{
    (void)arg;
    (void)payload;
    (void)bytes;
    n_messages += from == 0 && type == 7;
}

static void on_lost(void *arg, uint32_t rank, akin_status_t status)
{
    (void)arg;
    (void)rank;
    CHECK(status == AKIN_ERR_CANCELED);
}

static void poll_net(void *arg)
{
    (void)akin_net_poll(arg);
}

static akin_net_t *connect_ranks(akin_boot_t *boot)
{
    akin_error_t err = {{0}};
    akin_net_t *net = NULL;
    const akin_net_params_t params = {
        .rank = akin_boot_rank(boot),
        .n_ranks = akin_boot_size(boot),
        .slab_bytes = SLAB_BYTES,
        .events = {on_message, on_lost, NULL},
    };
    void *blob;
    unsigned char *blobs;
    size_t bytes, *offsets;
    fixture_ok(akin_net_create(&params, &net, &err), &err);
    fixture_ok(akin_net_identity(net, &blob, &bytes, &err), &err);
    fixture_ok(akin_boot_exchange(boot, blob, bytes, &blobs, &offsets, &err),
               &err);
    for (uint32_t r = 0; r < params.n_ranks; r++)
        if (r != params.rank)
            fixture_ok(akin_net_add_peer(net, r, blobs + offsets[r],
                                         offsets[r + 1] - offsets[r], &err),
                       &err);
    free(blob);
    free(blobs);
    free(offsets);
    return net;
}

/* Rank 0's slab comes to rank 1 while rank 0 is in the barrier. */
static void read_meanwhile(akin_boot_t *boot, akin_net_t *net)
{
    akin_error_t err = {{0}};
    unsigned char *slab = akin_net_slab(net);
    CHECK(strncmp(akin_net_peer_lane(net, 1 - fixture_rank), "tcp/", 4) == 0);
    CHECK(strcmp(akin_net_peer_lane(net, fixture_rank), "none") == 0);
    if (fixture_rank == 0)
        fixture_fill(slab, SLAB_BYTES, 0, 0);
    fixture_ok(akin_boot_barrier(boot, &err), &err);
    if (fixture_rank == 1) {
        CHECK_FATAL(akin_net_read(net, 0, 0, slab, SLAB_BYTES, on_read, NULL) ==
                    AKIN_OK);
        WAIT_FOR(net, n_read == 1);
        CHECK(fixture_wrong(slab, SLAB_BYTES, 0, 0) == 0);
    }
    fixture_ok(
        akin_boot_barrier_poll(boot, poll_net, net, FIXTURE_LIMIT_NS, &err),
        &err);
}

/* Rank 1 comes only when rank 0 has given up. */
static void wait_in_vain(akin_boot_t *boot, akin_net_t *net)
{
    akin_error_t err = {{0}};
    int64_t limit_ns = FIXTURE_LIMIT_NS;
    akin_status_t wanted = AKIN_OK;
    if (fixture_rank == 0) {
        limit_ns = 50 * AKIN_NS_PER_MS;
        wanted = AKIN_ERR_TIMEOUT;
    } else {
        WAIT_FOR(net, n_messages == 1);
    }
    akin_status_t status =
        akin_boot_barrier_poll(boot, poll_net, net, limit_ns, &err);
    CHECK(status == wanted);
    if (fixture_rank > 0)
        return;
    CHECK(strncmp(err.text, "rank 0 waited", 13) == 0);
    CHECK(akin_net_send(net, 1, 7, NULL, 0) == AKIN_OK);
    WAIT_FOR(net, !akin_net_has_unsent(net, 1));
}

int main(int argc, char **argv)
{
    akin_boot_t *boot = fixture_boot();
    (void)fixture_is_tcp(argc, argv);
    CHECK_FATAL(akin_boot_size(boot) == 2);
    akin_net_t *net = connect_ranks(boot);
    read_meanwhile(boot, net);
    wait_in_vain(boot, net);
    akin_boot_finish(boot);
    akin_net_destroy(net);
    return fixture_failures != 0;
}
