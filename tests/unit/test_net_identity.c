/* Identity: every cut and every flipped bit is refused before UCX sees it;
 * one net in one process. */
#include "net/net_internal.h"

#include "base/clock.h"
#include "runner.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void ignore_message(void *arg, uint32_t from, uint16_t type,
                           const void *payload, size_t bytes)
{
    (void)arg;
    (void)from;
    (void)type;
    (void)payload;
    (void)bytes;
}

static akin_net_t *make_net(uint32_t rank, size_t slab_bytes)
{
    const akin_net_params_t params = {
        .rank = rank,
        .n_ranks = 3,
        .slab_bytes = slab_bytes,
        .events = {.message = ignore_message},
    };
    akin_net_t *net = NULL;
    akin_error_t err = {{0}};
    akin_status_t status = akin_net_create(&params, &net, &err);
    if (status != AKIN_OK)
        fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(status, AKIN_OK);
    return net;
}

static const akini_identity_t sample = {
    .rank = 2,
    .incarnation = 77,
    .slab_address = 0x10000,
    .slab_bytes = 4096,
    .address = "address",
    .address_bytes = 7,
    .rkey = "key",
    .rkey_bytes = 3,
};

static void test_round_trip(void)
{
    void *blob;
    size_t bytes;
    CU_ASSERT_EQUAL_FATAL(akini_identity_pack(&sample, &blob, &bytes), AKIN_OK);
    /* 36 fixed bytes, two lengths of 4 with 7 + 3 bytes, a checksum of 8. */
    CU_ASSERT_EQUAL(bytes, 62);
    CU_ASSERT_EQUAL(memcmp(blob, "AKNI\1\0\0\0\2\0\0\0", 12), 0);
    akini_identity_t id;
    akin_error_t err;
    CU_ASSERT_EQUAL_FATAL(akini_identity_unpack(blob, bytes, &id, &err),
                          AKIN_OK);
    CU_ASSERT_EQUAL(id.rank, 2);
    CU_ASSERT_EQUAL(id.incarnation, 77);
    CU_ASSERT_EQUAL(id.slab_address, 0x10000);
    CU_ASSERT_EQUAL(id.slab_bytes, 4096);
    CU_ASSERT(id.address_bytes == 7 && memcmp(id.address, "address", 7) == 0);
    CU_ASSERT(id.rkey_bytes == 3 && memcmp(id.rkey, "key", 3) == 0);
    free(blob);
}

static void test_cut_and_flipped(void)
{
    akin_net_t *net = make_net(0, 1 << 16), *other = make_net(1, 1 << 16);
    void *blob;
    size_t bytes;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_net_identity(other, &blob, &bytes, &err),
                          AKIN_OK);
    for (size_t n = 0; n < bytes; n++) {
        unsigned char *copy = malloc(n > 0 ? n : 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
        memcpy(copy, blob, n);
        CU_ASSERT_EQUAL(akin_net_add_peer(net, 1, copy, n, &err),
                        AKIN_ERR_FORMAT);
        free(copy);
    }
    unsigned char *flipped = blob;
    for (size_t i = 0; i < bytes; i++) {
        flipped[i] ^= (unsigned char)(1u << (i % 8));
        CU_ASSERT_EQUAL(akin_net_add_peer(net, 1, blob, bytes, &err),
                        AKIN_ERR_FORMAT);
        flipped[i] ^= (unsigned char)(1u << (i % 8));
    }
    CU_ASSERT_EQUAL(akin_net_has_peer(net, 1), 0);
    CU_ASSERT_STRING_EQUAL(akin_net_path(net, 1), "none");
    /* The right blob for another rank, for oneself, for nobody. */
    CU_ASSERT_EQUAL(akin_net_add_peer(net, 2, blob, bytes, &err),
                    AKIN_ERR_FORMAT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "rank 1"));
    CU_ASSERT_EQUAL(akin_net_add_peer(net, 0, blob, bytes, &err),
                    AKIN_ERR_RANGE);
    CU_ASSERT_EQUAL(akin_net_add_peer(net, 3, blob, bytes, &err),
                    AKIN_ERR_RANGE);
    CU_ASSERT_EQUAL(akin_net_add_peer(net, 1, blob, bytes, &err), AKIN_OK);
    CU_ASSERT_EQUAL(akin_net_add_peer(net, 1, blob, bytes, &err),
                    AKIN_ERR_EXISTS);
    free(blob);
    akin_net_destroy(other);
    akin_net_destroy(net);
}

static void test_slab(void)
{
    const size_t bytes = 3 << 20;
    akin_net_t *net = make_net(0, bytes);
    const unsigned char *slab = akin_net_slab(net);
    CU_ASSERT_PTR_NOT_NULL_FATAL(slab);
    CU_ASSERT_EQUAL((uintptr_t)slab % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
    size_t set = 0;
    for (size_t i = 0; i < bytes; i++)
        set += slab[i] != 0;
    CU_ASSERT_EQUAL(set, 0);
    akin_net_destroy(net);
    net = make_net(0, 0);
    CU_ASSERT_PTR_NULL(akin_net_slab(net));
    akin_net_destroy(net);
}

static void ignore_read(void *arg, akin_status_t status)
{
    (void)status;
    ++*(int *)arg;
}

static void test_refused_calls(void)
{
    akin_net_t *net = make_net(0, 4096);
    int called = 0;
    CU_ASSERT_EQUAL(akin_net_send(net, 0, 1, "x", 1), AKIN_ERR_PEER);
    CU_ASSERT_EQUAL(akin_net_send(net, 1, 1, "x", 1), AKIN_ERR_PEER);
    CU_ASSERT_EQUAL(akin_net_send(net, UINT32_MAX, 1, "x", 1), AKIN_ERR_PEER);
    CU_ASSERT_EQUAL(
        akin_net_read(net, 1, 0, akin_net_slab(net), 1, ignore_read, &called),
        AKIN_ERR_PEER);
    akin_net_drop_peer(net, 1);
    /* A deadline that has passed ends the wait; a wake-up too, and once. */
    CU_ASSERT_EQUAL(akin_net_wait(net, 0), AKIN_ERR_TIMEOUT);
    akin_net_wake(net);
    akin_net_wake(net);
    CU_ASSERT_EQUAL(akin_net_wait(net, INT64_MAX), AKIN_OK);
    CU_ASSERT_EQUAL(akin_net_wait(net, akin_clock_now_ns() + AKIN_NS_PER_MS),
                    AKIN_ERR_TIMEOUT);
    CU_ASSERT_EQUAL(called, 0);
    akin_net_destroy(net);
    akin_net_destroy(NULL);
}

static const runner_test_t tests[] = {
    {"round trip", test_round_trip},
    {"every cut and every flipped byte is refused", test_cut_and_flipped},
    {"slab is aligned and zero", test_slab},
    {"calls without a peer", test_refused_calls},
};
RUNNER_MAIN("net identity", tests)
