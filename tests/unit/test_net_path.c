/* Path: the endpoint descriptions of UCX 1.13 with and without remote reads. */
#include "net/net_internal.h"

#include "runner.h"

#include <string.h>

static const char shared_memory[] =
    "# UCP endpoint \n"
    "#               peer: <no debug data>\n"
    "#                 lane[0]:  3:sysv/memory.0 md[2]           -> "
    "md[2]/sysv/sysdev[255] amo#0 am am_bw#0 keepalive\n"
    "#                 lane[1]:  4:posix/memory.0 md[3]          -> "
    "md[3]/posix/sysdev[255] amo#1\n"
    "#                  put[0]: 0..<short>..4294967296..<bcopy>..(inf)\n"
    "#                  get[0]: 0..<bcopy>..(inf)\n"
    "#                  get[1]: 0..<bcopy>..(inf)\n";

static const char emulated[] =
    "# UCP endpoint \n"
    "#                 lane[0]:  2:tcp/lo.0 md[1]                -> "
    "md[1]/tcp/sysdev[255] am am_bw#0 keepalive wireup\n"
    "#                 am_send: 0..<egr/short>..8185..<rndv>..(inf)\n";

static const char second_lane[] =
    "#                 lane[0]:  2:tcp/lo.0 md[1] -> md[1]/tcp\n"
    "#                 lane[1]:  7:rc_mlx5/mlx5_0:1.0 md[4] -> md[4]/ib\n"
    "#                  get[1]: 0..<zcopy>..(inf)\n";

/* Two nodes with mlx5 devices, as UCX 1.13 writes it: two paths, of which UCX
 * reads by the first, and a wire-up stub that is another transport's. */
static const char infiniband[] =
    "#\n"
    "# UCP endpoint \n"
    "#\n"
    "#               peer: <no debug data>\n"
    "#                 lane[0]:  9:rc_mlx5/mlx5_0:1.0 md[5]      -> "
    "md[5]/ib/sysdev[2] rma_bw#0 am am_bw#0 keepalive wireup{ud_mlx5/mlx5_0:1}"
    "\n"
    "#                 lane[1]: 12:rc_mlx5/mlx5_1:1.0 md[6]      -> "
    "md[6]/ib/sysdev[3] rma_bw#1\n"
    "#\n"
    "#                am_send: 0..<egr/short>..2038..<egr/zcopy>..262144.."
    "<rndv>..(inf)\n"
    "#                  put[0]: 0..<short>..2048..<zcopy>..(inf)\n"
    "#                  get[0]: 0..<bcopy>..16384..<zcopy>..(inf)\n"
    "#\n"
    "#                  rma_bw: mds [5] [6] rndv_rkey_size 19\n";

/* Later versions print no rows of gets. */
static const char without_rows[] =
    "#                 lane[0]:  0:sysv/memory.0 md[0]           -> "
    "md[0]/sysv/sysdev[255] seg 8256 am am_bw#0\n"
    "#                 lane[1]: 11:rc_mlx5/mlx5_2:1.0 md[4]      -> "
    "md[4]/ib/sysdev[5] seg 8256 rma_bw#1\n"
    "#                 lane[2]: 19:rc_mlx5/mlx5_3:1.0 md[7]      -> "
    "md[7]/ib/sysdev[255] seg 8256 rma_bw#0 wireup\n";

static const char managed[] =
    "#                 lane[0]: cm rdmacm\n"
    "#                 lane[1]:  2:tcp/bond0.100.0 md[1]         -> "
    "md[1]/tcp/sysdev[255] am am_bw#0 keepalive\n";

static void check(const char *info, int reads, const char *wanted)
{
    char lane[AKIN_NET_LANE_BYTES] = "";
    CU_ASSERT_EQUAL(akini_path_parse(info, lane, sizeof(lane)), reads);
    CU_ASSERT_STRING_EQUAL(lane, wanted);
}

static void test_parse(void)
{
    check(shared_memory, 1, "sysv/memory");
    check(second_lane, 1, "rc_mlx5/mlx5_0:1");
    check(infiniband, 1, "rc_mlx5/mlx5_0:1");
    check(emulated, 0, "tcp/lo");
    check(without_rows, 0, "rc_mlx5/mlx5_3:1");
    check(managed, 0, "tcp/bond0.100");
    check("", 0, "unknown");
    check("# lane[0]: cm tcp\n# get[0]: 0..<zcopy>..(inf)\n", 0, "unknown");
    check("# get[7]: 0..<zcopy>..(inf)\n", 0, "unknown");
}

static void test_cut_anywhere(void)
{
    char text[sizeof(infiniband)];
    char lane[AKIN_NET_LANE_BYTES];
    for (size_t n = 0; n < sizeof(infiniband) - 1; n++) {
        memcpy(text, infiniband, n);
        text[n] = '\0';
        const int reads = akini_path_parse(text, lane, sizeof(lane));
        /* Enough is there from the first use of a lane on. */
        if (strstr(text, " am ") != NULL)
            CU_ASSERT_STRING_EQUAL(lane, "rc_mlx5/mlx5_0:1");
        CU_ASSERT(!reads || strstr(text, "get[0]") != NULL);
    }
    char tiny[4];
    CU_ASSERT(akini_path_parse(shared_memory, tiny, sizeof(tiny)));
    CU_ASSERT_STRING_EQUAL(tiny, "sys");
}

static const runner_test_t tests[] = {
    {"which lane reads", test_parse},
    {"cut descriptions", test_cut_anywhere},
};
RUNNER_MAIN("net path", tests)
