/* Paths, lanes: what a rank tells of its lanes, and what is damaged. */
#include "roles/paths.h"

#include "runner.h"

#include <stdlib.h>
#include <string.h>

static const char *const some[] = {"tcp/eth0", "sysv/memory", "tcp/eth0",
                                   "rc_mlx5/mlx5_0:1", "sysv/memory"};

static void round_trip(void)
{
    akin_packer_t p = {0};
    akini_lanes_t lanes;
    akini_lanes_pack(&p, some, 5);
    CU_ASSERT_EQUAL_FATAL(p.status, AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akini_lanes_unpack(p.data, p.bytes, 5, &lanes),
                          AKIN_OK);
    CU_ASSERT_EQUAL(lanes.n_names, 3);
    CU_ASSERT_EQUAL_FATAL(lanes.n_peers, 5);
    for (uint32_t i = 0; i < 5; i++)
        CU_ASSERT_STRING_EQUAL(lanes.names[lanes.peers[i]], some[i]);
    akini_lanes_cleanup(&lanes);
    CU_ASSERT_EQUAL(akini_lanes_unpack(p.data, p.bytes, 4, &lanes),
                    AKIN_ERR_FORMAT);
    CU_ASSERT_EQUAL(akini_lanes_unpack(p.data, p.bytes, 6, &lanes),
                    AKIN_ERR_FORMAT);
    akin_packer_cleanup(&p);
}

/* Version, names, each with its length, then a number for each peer. */
static void golden(void)
{
    static const unsigned char wanted[] = {
        1,   0,   2,   0,   3, 0, 0, 0, 't', '/', 'a', 4, 0, 0, 0,
        's', '/', 'b', 'c', 3, 0, 0, 0, 0,   0,   1,   0, 0, 0};
    static const char *const lanes[] = {"t/a", "s/bc", "t/a"};
    akin_packer_t p = {0};
    akini_lanes_pack(&p, lanes, 3);
    CU_ASSERT_EQUAL_FATAL(p.bytes, sizeof(wanted));
    CU_ASSERT(memcmp(p.data, wanted, sizeof(wanted)) == 0);
    akin_packer_cleanup(&p);
}

/* 400 ranks tell of some 270 peers each: little more than a number a peer. */
static void is_small(void)
{
    const char *lanes[270];
    akin_packer_t p = {0};
    akini_lanes_t got;
    for (int i = 0; i < 270; i++)
        lanes[i] = i % 8 == 0 ? "sysv/memory" : "rc_mlx5/mlx5_0:1";
    akini_lanes_pack(&p, lanes, 270);
    CU_ASSERT(p.bytes < 600);
    CU_ASSERT_EQUAL_FATAL(akini_lanes_unpack(p.data, p.bytes, 270, &got),
                          AKIN_OK);
    CU_ASSERT_STRING_EQUAL(got.names[got.peers[8]], "sysv/memory");
    CU_ASSERT_STRING_EQUAL(got.names[got.peers[269]], "rc_mlx5/mlx5_0:1");
    akini_lanes_cleanup(&got);
    akin_packer_cleanup(&p);
}

static void none(void)
{
    akin_packer_t p = {0};
    akini_lanes_t lanes;
    akini_lanes_pack(&p, NULL, 0);
    CU_ASSERT_EQUAL(akini_lanes_unpack(p.data, p.bytes, 0, &lanes), AKIN_OK);
    CU_ASSERT(lanes.n_names == 0 && lanes.n_peers == 0);
    akini_lanes_cleanup(&lanes);
    akin_packer_cleanup(&p);
}

/* Whatever byte is another one, nothing outside the names is used. */
static void damaged(void)
{
    akin_packer_t p = {0};
    akini_lanes_t lanes;
    akini_lanes_pack(&p, some, 5);
    unsigned char *copy = malloc(p.bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
    for (size_t n = 0; n < p.bytes; n++)
        CU_ASSERT_EQUAL(akini_lanes_unpack(p.data, n, 5, &lanes),
                        AKIN_ERR_FORMAT);
    for (size_t i = 0; i < p.bytes; i++)
        for (int value = 0; value < 256; value++) {
            memcpy(copy, p.data, p.bytes);
            copy[i] = (unsigned char)value;
            if (akini_lanes_unpack(copy, p.bytes, 5, &lanes) != AKIN_OK) {
                CU_ASSERT(lanes.names == NULL && lanes.peers == NULL);
                continue;
            }
            for (uint32_t k = 0; k < 5; k++)
                CU_ASSERT(lanes.peers[k] < lanes.n_names);
            akini_lanes_cleanup(&lanes);
        }
    free(copy);
    akin_packer_cleanup(&p);
}

static const runner_test_t tests[] = {
    {"round trip", round_trip}, {"bytes on the wire", golden},
    {"many peers", is_small},   {"no peers", none},
    {"damaged", damaged},
};
RUNNER_MAIN("paths, lanes", tests)
