/* Paths, cause: what is said of devices, ports and settings of either end. */
#include "paths_bed.h"

/* Router and prefill rank 1 on a, decode rank 2 on b. */
static const char *const two_hosts[] = {"a", "a", "b"};
static const char *const one_host[] = {"a", "a", "a"};

static void set(char *to, size_t size, const char *value)
{
    (void)snprintf(to, size, "%s", value);
}

/* Both ends are well but for what the case says of one of them. */
typedef struct cause {
    uint32_t rank;
    const char *tls;
    const char *net_devices;
    uint32_t n_active; /* of the two ports, mlx5_0:1 and mlx5_1:1 */
    const char *wanted;
} cause_t;

#define UNKNOWN                                                                \
    "UCX does not say why; `akin info --transports` shows what it finds on "   \
    "each host"

static const cause_t between[] = {
    {1, "tcp,self", "", 2, "UCX_TLS=tcp,self of rank 1 leaves RDMA out"},
    {2, "sm,self,tcp", "", 2, "UCX_TLS=sm,self,tcp of rank 2 leaves RDMA out"},
    {2, "^ib", "", 2, "UCX_TLS=^ib of rank 2 leaves RDMA out"},
    {2, "^rc,dc,ud", "", 2, "UCX_TLS=^rc,dc,ud of rank 2 leaves RDMA out"},
    {2, "^tcp", "", 2, UNKNOWN},
    {2, "sm,rc_x", "", 2, UNKNOWN},
    {2, "\\rc_verbs,ud_verbs:aux", "", 2, UNKNOWN},
    {2, "all", "all", 2, UNKNOWN},
    {2, "", "eth0", 2,
     "UCX_NET_DEVICES=eth0 of rank 2 names no RDMA device of host b"},
    {2, "", "mlx5_7:1,eth0", 2,
     "UCX_NET_DEVICES=mlx5_7:1,eth0 of rank 2 names no RDMA device of host b"},
    {2, "", "mlx5_1:1", 2, UNKNOWN},
    {2, "", "mlx5_1:1", 1, "port 1 of mlx5_1 on host b is down"},
    {2, "", "eth0,mlx5_1:1", 1, "port 1 of mlx5_1 on host b is down"},
    {2, "", "mlx5_1", 1, "port 1 of mlx5_1 on host b is down"},
    {2, "", "mlx5_0:1", 1, UNKNOWN},
    {2, "", "", 1, UNKNOWN},
    {1, "", "", 0, "port 1 of mlx5_0 on host a is down"},
    {2, "", "mlx5_[0-1]:1", 0, "port 1 of mlx5_0 on host b is down"},
    {2, "", "^mlx5_0:1", 2, UNKNOWN},
};

static void check(uint32_t n, const cause_t *cases, const char *const *hosts)
{
    for (uint32_t i = 0; i < n; i++) {
        const cause_t *c = &cases[i];
        const akini_pair_t pair = {1, 2};
        paths_bed_t bed;
        char text[256];
        paths_bed_create(&bed, 1, 1, hosts);
        for (uint32_t r = 0; r < 3; r++) {
            akini_host_t *host = &bed.paths.hosts[r];
            host->n_ports = 2;
            host->ports[0] = (akini_host_port_t){"mlx5_0", 1, 1};
            host->ports[1] = (akini_host_port_t){"mlx5_1", 1, 1};
        }
        akini_host_t *host = &bed.paths.hosts[c->rank];
        set(host->tls, sizeof(host->tls), c->tls);
        set(host->net_devices, sizeof(host->net_devices), c->net_devices);
        host->ports[0].is_active = c->n_active > 0;
        host->ports[1].is_active = c->n_active > 1;
        akini_paths_explain(&bed.paths, &pair, text, sizeof(text));
        CU_ASSERT_STRING_EQUAL(text, c->wanted);
        akini_paths_cleanup(&bed.paths);
    }
}

static void between_hosts(void)
{
    check(sizeof(between) / sizeof(between[0]), between, two_hosts);
}

static void without_devices(void)
{
    const akini_pair_t pair = {1, 2};
    paths_bed_t bed;
    char text[256];
    paths_bed_create(&bed, 1, 1, two_hosts);
    bed.paths.hosts[1].n_ports = 0;
    akini_paths_explain(&bed.paths, &pair, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "host a has no RDMA device");
    bed.paths.hosts[0].n_ports = 0;
    bed.paths.hosts[2].n_ports = 0;
    akini_paths_explain(&bed.paths, &pair, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "no host of the job has an RDMA device");
    akini_paths_cleanup(&bed.paths);
}

static const cause_t inside[] = {
    {1, "tcp,self", "", 2,
     "UCX_TLS=tcp,self of rank 1 leaves shared memory out"},
    {2, "rc,cma", "", 2, "UCX_TLS=rc,cma of rank 2 leaves shared memory out"},
    {2, "^sm", "", 2, "UCX_TLS=^sm of rank 2 leaves shared memory out"},
    {2, "^posix,sysv", "", 2,
     "UCX_TLS=^posix,sysv of rank 2 leaves shared memory out"},
    {2, "^posix", "", 2, UNKNOWN},
    {2, "tcp,sysv", "", 2, UNKNOWN},
    {2, "shm,tcp", "eth0", 0, UNKNOWN},
};

static void inside_a_host(void)
{
    const akini_pair_t pair = {1, 2};
    paths_bed_t bed;
    char text[256];
    check(sizeof(inside) / sizeof(inside[0]), inside, one_host);
    paths_bed_create(&bed, 1, 1, one_host);
    bed.paths.hosts[2].has_shared_memory = 0;
    akini_paths_explain(&bed.paths, &pair, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "UCX_MM_ERROR_HANDLING of rank 2 is not y");
    bed.paths.hosts[2].ipc = 9;
    akini_paths_explain(&bed.paths, &pair, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "they do not share an IPC namespace");
    akini_paths_cleanup(&bed.paths);
}

static const runner_test_t tests[] = {
    {"between hosts", between_hosts},
    {"hosts without devices", without_devices},
    {"inside a host", inside_a_host},
};
RUNNER_MAIN("paths, cause", tests)
