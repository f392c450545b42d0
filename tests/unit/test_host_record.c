/* Host record: reading a host, the wire, and hosts that differ from a plan. */
#include "roles/host_record.h"
#include "roles/rank.h"

#include "runner.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void make_port(const char *root, const char *device, const char *port,
                      const char *state)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", root, device);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof(path), "%s/%s/ports", root, device);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof(path), "%s/%s/ports/%s", root, device, port);
    CU_ASSERT_EQUAL_FATAL(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/%s/ports/%s/state", root, device,
                   port);
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    (void)fprintf(file, "%s\n", state);
    (void)fclose(file);
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static void reads_this_host(void)
{
    char root[] = "/tmp/akin-host-XXXXXX";
    char name[65] = "";
    akini_host_t host;
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(root));
    make_port(root, "mlx5_10", "1", "4: ACTIVE");
    make_port(root, "mlx5_2", "2", "1: DOWN");
    make_port(root, "mlx5_2", "1", "2: INIT");
    make_port(root, "mlx5_2", "lost+found", "4: ACTIVE");
    CU_ASSERT_EQUAL(setenv("UCX_TLS", "rc,sm", 1), 0);
    CU_ASSERT_EQUAL(unsetenv("UCX_NET_DEVICES"), 0);
    CU_ASSERT_EQUAL(setenv("UCX_MM_ERROR_HANDLING", "n", 1), 0);
    akini_host_read(root, 3, "node3", &host);
    (void)gethostname(name, sizeof(name) - 1);
    CU_ASSERT_STRING_EQUAL(host.name, name);
    CU_ASSERT_STRING_EQUAL(host.tls, "rc,sm");
    CU_ASSERT_STRING_EQUAL(host.net_devices, "");
    CU_ASSERT_STRING_EQUAL(host.wanted, "node3");
    CU_ASSERT(host.node == 3 && !host.has_shared_memory && host.ipc != 0);
    CU_ASSERT_EQUAL_FATAL(host.n_ports, 3);
    CU_ASSERT_STRING_EQUAL(host.ports[0].device, "mlx5_2");
    CU_ASSERT(host.ports[0].number == 1 && !host.ports[0].is_active);
    CU_ASSERT(host.ports[1].number == 2 && !host.ports[1].is_active);
    CU_ASSERT_STRING_EQUAL(host.ports[2].device, "mlx5_10");
    CU_ASSERT(host.ports[2].number == 1 && host.ports[2].is_active);
    CU_ASSERT_EQUAL(unsetenv("UCX_MM_ERROR_HANDLING"), 0);
    akini_host_read("/nonexistent", AKIN_RANK_NO_NODE, NULL, &host);
    CU_ASSERT(host.n_ports == 0 && host.has_shared_memory);
    CU_ASSERT_STRING_EQUAL(host.wanted, "");
    CU_ASSERT_EQUAL(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static akini_host_t sample(void)
{
    return (akini_host_t){.name = "n1.cluster",
                          .machine = UINT64_C(0x1122334455667788),
                          .ipc = 4026531839,
                          .node = 7,
                          .wanted = "n1",
                          .tls = "rc",
                          .net_devices = "mlx5_0:1",
                          .has_shared_memory = 1,
                          .n_ports = 2,
                          .ports = {{"mlx5_0", 1, 1}, {"mlx5_1", 2, 0}}};
}

static void round_trip(void)
{
    const akini_host_t host = sample();
    akin_packer_t p = {0};
    akini_host_t got;
    akini_host_pack(&p, &host);
    CU_ASSERT_EQUAL_FATAL(p.status, AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akini_host_unpack(p.data, p.bytes, &got), AKIN_OK);
    CU_ASSERT(akini_host_is_same(&host, &got));
    CU_ASSERT(got.ipc == host.ipc && got.node == 7 && got.has_shared_memory);
    CU_ASSERT_STRING_EQUAL(got.wanted, "n1");
    CU_ASSERT_STRING_EQUAL(got.tls, "rc");
    CU_ASSERT_STRING_EQUAL(got.net_devices, "mlx5_0:1");
    CU_ASSERT_EQUAL_FATAL(got.n_ports, 2);
    CU_ASSERT_STRING_EQUAL(got.ports[1].device, "mlx5_1");
    CU_ASSERT(got.ports[1].number == 2 && !got.ports[1].is_active);
    CU_ASSERT(got.ports[0].is_active);
    for (size_t n = 0; n < p.bytes; n++)
        CU_ASSERT_EQUAL(akini_host_unpack(p.data, n, &got), AKIN_ERR_FORMAT);
    for (size_t i = 0; i < p.bytes; i++) {
        p.data[i] ^= 0xff;
        if (akini_host_unpack(p.data, p.bytes, &got) == AKIN_OK)
            CU_ASSERT(got.n_ports <= AKINI_HOST_PORTS);
        p.data[i] ^= 0xff;
    }
    p.data[0] = 2;
    CU_ASSERT_EQUAL(akini_host_unpack(p.data, p.bytes, &got), AKIN_ERR_FORMAT);
    akin_packer_cleanup(&p);
}

/* Rank, its node, the name that the plan has for it, the one it is on. */
typedef struct place {
    uint32_t node;
    const char *wanted;
    const char *name;
} place_t;

static akin_status_t check(const place_t *places, uint32_t n, akin_error_t *err)
{
    akini_host_t hosts[4];
    for (uint32_t r = 0; r < n; r++) {
        hosts[r] = (akini_host_t){.node = places[r].node, .machine = 1};
        (void)snprintf(hosts[r].name, sizeof(hosts[r].name), "%s",
                       places[r].name);
        (void)snprintf(hosts[r].wanted, sizeof(hosts[r].wanted), "%s",
                       places[r].wanted);
    }
    err->text[0] = '\0';
    return akini_hosts_check_plan(hosts, n, err);
}

#define NO AKIN_RANK_NO_NODE

static void as_planned(void)
{
    static const place_t cases[][3] = {
        {{NO, "", "a"}, {NO, "", "b"}, {NO, "", "a"}},
        {{0, "", "a"}, {0, "", "a"}, {1, "", "b"}},
        {{0, "a", "a"}, {0, "a", "a"}, {1, "b", "b"}},
        {{0, "a", "a.x.org"}, {0, "a", "a.x.org"}, {1, "B.x.org", "b"}},
        {{0, "10.0.0.1", "a"}, {0, "10.0.0.1", "a"}, {1, "fd00::2", "b"}},
        {{0, "localhost", "a"}, {0, "localhost", "a"}, {0, "localhost", "a"}},
    };
    akin_error_t err;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CU_ASSERT_EQUAL(check(cases[i], 3, &err), AKIN_OK);
}

static void not_as_planned(void)
{
    static const struct {
        place_t places[3];
        const char *wanted;
    } cases[] = {
        {{{0, "a", "a"}, {0, "a", "a"}, {1, "b", "c"}},
         "the plan has rank 2 on node 1, host b, but it runs on host c: "},
        {{{0, "a", "a"}, {1, "b", "b.x"}, {2, "b.y", "b.x"}},
         "the plan has rank 2 on node 2, host b.y, but it runs on host b.x: "},
        {{{0, "", "a"}, {0, "", "b"}, {1, "", "b"}},
         "the plan has ranks 0 and 1 on one node, 0, but rank 0 runs on host a "
         "and rank 1 on host b: "},
        {{{0, "", "a"}, {0, "", "a"}, {1, "", "a"}},
         "the plan has rank 0 on node 0 and rank 2 on node 1, but both run on "
         "host a: "},
        {{{0, "", "a"}, {0, "", "a"}, {NO, "", "b"}},
         "rank 2 on host b has not a plan and rank 0 on host a has: "},
        {{{NO, "", "a"}, {0, "", "a"}, {NO, "", "b"}},
         "rank 1 on host a has a plan and rank 0 on host a has not: "},
    };
    akin_error_t err;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CU_ASSERT_EQUAL(check(cases[i].places, 3, &err), AKIN_ERR_CONFIG);
        CU_ASSERT(strncmp(err.text, cases[i].wanted, strlen(cases[i].wanted)) ==
                  0);
    }
}

static const runner_test_t tests[] = {
    {"a host is read", reads_this_host},
    {"round trip", round_trip},
    {"ranks are where the plan has them", as_planned},
    {"ranks are elsewhere", not_as_planned},
};
RUNNER_MAIN("host record", tests)
