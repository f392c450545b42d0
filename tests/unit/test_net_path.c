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

static void test_parse(void)
{
    char transport[32] = "";
    CU_ASSERT(akini_path_parse(shared_memory, transport, sizeof(transport)));
    CU_ASSERT_STRING_EQUAL(transport, "sysv");
    CU_ASSERT(akini_path_parse(second_lane, transport, sizeof(transport)));
    CU_ASSERT_STRING_EQUAL(transport, "rc_mlx5");
    CU_ASSERT_FALSE(akini_path_parse(emulated, transport, sizeof(transport)));
    CU_ASSERT_FALSE(akini_path_parse("", transport, sizeof(transport)));
}

static void test_cut_anywhere(void)
{
    char text[sizeof(shared_memory)];
    char transport[8];
    for (size_t n = 0; n < sizeof(shared_memory) - 1; n++) {
        memcpy(text, shared_memory, n);
        text[n] = '\0';
        if (akini_path_parse(text, transport, sizeof(transport)))
            CU_ASSERT_STRING_EQUAL(transport, "sysv");
    }
}

static const runner_test_t tests[] = {
    {"which lane reads", test_parse},
    {"cut descriptions", test_cut_anywhere},
};
RUNNER_MAIN("net path", tests)
