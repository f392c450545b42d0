/* Host record: reading, packing and comparing what ranks tell of their hosts.
 */
#include "roles/host_record.h"

#include "base/hash.h"
#include "roles/rank.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION 1

/* The first line of a small file; "" if there is none. */
static void read_line(const char *path, char *line, size_t size)
{
    line[0] = '\0';
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    if (fgets(line, (int)size, file) == NULL)
        line[0] = '\0';
    (void)fclose(file);
    line[strcspn(line, "\n")] = '\0';
}

static void read_port(const char *folder, const char *device,
                      const char *number, akini_host_t *host)
{
    char path[512], state[32];
    char *end;
    const unsigned long n = strtoul(number, &end, 10);
    if (host->n_ports == AKINI_HOST_PORTS || *end != '\0' || end == number ||
        n == 0 || n > UINT8_MAX)
        return;
    (void)snprintf(path, sizeof(path), "%.200s/%.64s/ports/%lu/state", folder,
                   device, n);
    read_line(path, state, sizeof(state));
    akini_host_port_t *port = &host->ports[host->n_ports++];
    *port = (akini_host_port_t){.number = (uint32_t)n,
                                .is_active = strstr(state, "ACTIVE") != NULL};
    (void)snprintf(port->device, sizeof(port->device), "%.31s", device);
}

static int by_port(const void *a, const void *b)
{
    const akini_host_port_t *x = a, *y = b;
    const int names = strverscmp(x->device, y->device);
    return names != 0 ? names
                      : (x->number > y->number) - (x->number < y->number);
}

static void read_ports(const char *folder, akini_host_t *host)
{
    DIR *devices = opendir(folder);
    if (devices == NULL)
        return;
    for (struct dirent *d; (d = readdir(devices)) != NULL;) {
        char path[512];
        if (d->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof(path), "%.200s/%.64s/ports", folder,
                       d->d_name);
        DIR *ports = opendir(path);
        if (ports == NULL)
            continue;
        for (struct dirent *p; (p = readdir(ports)) != NULL;)
            read_port(folder, d->d_name, p->d_name, host);
        (void)closedir(ports);
    }
    (void)closedir(devices);
    qsort(host->ports, host->n_ports, sizeof(host->ports[0]), by_port);
}

static void read_variable(const char *name, char *text, size_t size)
{
    const char *value = getenv(name);
    (void)snprintf(text, size, "%s", value != NULL ? value : "");
}

void akini_host_read(const char *infiniband, uint32_t node, const char *wanted,
                     akini_host_t *host)
{
    char boot[64], errors[8];
    struct stat ipc = {0};
    *host = (akini_host_t){.node = node};
    if (gethostname(host->name, sizeof(host->name) - 1) != 0 ||
        host->name[0] == '\0')
        (void)snprintf(host->name, sizeof(host->name), "localhost");
    read_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
    host->machine = akin_hash64(boot, strlen(boot), 0);
    if (stat("/proc/self/ns/ipc", &ipc) == 0)
        host->ipc = ipc.st_ino;
    (void)snprintf(host->wanted, sizeof(host->wanted), "%s",
                   wanted != NULL ? wanted : "");
    read_variable("UCX_TLS", host->tls, sizeof(host->tls));
    read_variable("UCX_NET_DEVICES", host->net_devices,
                  sizeof(host->net_devices));
    read_variable("UCX_MM_ERROR_HANDLING", errors, sizeof(errors));
    host->has_shared_memory = errors[0] == '\0' || errors[0] == 'y' ||
                              errors[0] == 'Y' || errors[0] == '1';
    read_ports(infiniband, host);
}

static void pack_text(akin_packer_t *p, const char *text)
{
    akin_packer_bytes(p, text, strlen(text));
}

void akini_host_pack(akin_packer_t *p, const akini_host_t *host)
{
    akin_packer_u16(p, VERSION);
    akin_packer_u16(p, (uint16_t)host->n_ports);
    akin_packer_u32(p, host->node);
    akin_packer_u64(p, host->machine);
    akin_packer_u64(p, host->ipc);
    akin_packer_u8(p, (uint8_t)host->has_shared_memory);
    pack_text(p, host->name);
    pack_text(p, host->wanted);
    pack_text(p, host->tls);
    pack_text(p, host->net_devices);
    for (uint32_t i = 0; i < host->n_ports; i++) {
        pack_text(p, host->ports[i].device);
        akin_packer_u8(p, (uint8_t)host->ports[i].number);
        akin_packer_u8(p, (uint8_t)host->ports[i].is_active);
    }
}

/* A text that is too long, or has zeros in it, is no such text. */
static void unpack_text(akin_unpacker_t *u, char *text, size_t size)
{
    size_t bytes;
    const void *data = akin_unpacker_bytes(u, &bytes);
    text[0] = '\0';
    if (data == NULL)
        return;
    if (bytes >= size || memchr(data, '\0', bytes) != NULL) {
        u->status = AKIN_ERR_FORMAT;
        return;
    }
    memcpy(text, data, bytes);
    text[bytes] = '\0';
}

akin_status_t akini_host_unpack(const void *data, size_t bytes,
                                akini_host_t *host)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    *host = (akini_host_t){0};
    if (akin_unpacker_u16(&u) != VERSION)
        return AKIN_ERR_FORMAT;
    host->n_ports = akin_unpacker_u16(&u);
    host->node = akin_unpacker_u32(&u);
    host->machine = akin_unpacker_u64(&u);
    host->ipc = akin_unpacker_u64(&u);
    host->has_shared_memory = akin_unpacker_u8(&u) != 0;
    unpack_text(&u, host->name, sizeof(host->name));
    unpack_text(&u, host->wanted, sizeof(host->wanted));
    unpack_text(&u, host->tls, sizeof(host->tls));
    unpack_text(&u, host->net_devices, sizeof(host->net_devices));
    if (host->n_ports > AKINI_HOST_PORTS)
        return AKIN_ERR_FORMAT;
    for (uint32_t i = 0; i < host->n_ports; i++) {
        akini_host_port_t *port = &host->ports[i];
        unpack_text(&u, port->device, sizeof(port->device));
        port->number = akin_unpacker_u8(&u);
        port->is_active = akin_unpacker_u8(&u) != 0;
    }
    return akin_unpacker_finish(&u);
}

int akini_host_is_same(const akini_host_t *a, const akini_host_t *b)
{
    return a->machine == b->machine && strcmp(a->name, b->name) == 0;
}

static int is_address(const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, name, address) == 1 ||
           inet_pton(AF_INET6, name, address) == 1;
}

/* One of them may be the full name and the other the short one. */
static int is_name_of(const char *wanted, const char *name)
{
    const size_t w = strcspn(wanted, "."), n = strcspn(name, ".");
    if (wanted[w] != '\0' && name[n] != '\0')
        return strcasecmp(wanted, name) == 0;
    return w == n && strncasecmp(wanted, name, w) == 0;
}

static akin_status_t check_name(const akini_host_t *host, uint32_t rank,
                                akin_error_t *err)
{
    const char *wanted = host->wanted;
    if (wanted[0] == '\0' || strcmp(wanted, "localhost") == 0 ||
        is_address(wanted) || is_name_of(wanted, host->name))
        return AKIN_OK;
    return akin_error_set(err, AKIN_ERR_CONFIG,
                          "the plan has rank %u on node %u, host %s, but it "
                          "runs on host %s: start the ranks as `akin plan` "
                          "says, or make the plan anew for these hosts",
                          rank, host->node, wanted, host->name);
}

/* Of two ranks, the second one is found in the wrong place. */
static akin_status_t check_two(const akini_host_t *hosts, uint32_t first,
                               uint32_t rank, akin_error_t *err)
{
    const akini_host_t *a = &hosts[first], *b = &hosts[rank];
    const int is_one_node = a->node == b->node;
    if (akini_host_is_same(a, b) == is_one_node)
        return AKIN_OK;
    if (is_one_node)
        return akin_error_set(
            err, AKIN_ERR_CONFIG,
            "the plan has ranks %u and %u on one node, %u, but rank %u runs on "
            "host %s and rank %u on host %s: the hostfile or the launcher's "
            "options disagree with the plan",
            first, rank, a->node, first, a->name, rank, b->name);
    return akin_error_set(
        err, AKIN_ERR_CONFIG,
        "the plan has rank %u on node %u and rank %u on node %u, but both run "
        "on host %s: the hostfile or the launcher's options disagree with the "
        "plan",
        first, a->node, rank, b->node, a->name);
}

akin_status_t akini_hosts_check_plan(const akini_host_t *hosts,
                                     uint32_t n_ranks, akin_error_t *err)
{
    akin_status_t status = AKIN_OK;
    for (uint32_t r = 0; r < n_ranks && status == AKIN_OK; r++) {
        const int has_plan = hosts[r].node != AKIN_RANK_NO_NODE;
        if (has_plan != (hosts[0].node != AKIN_RANK_NO_NODE))
            return akin_error_set(
                err, AKIN_ERR_CONFIG,
                "rank %u on host %s %s a plan and rank 0 on host %s %s: hand "
                "AKIN_PLAN to all ranks (mpirun -x AKIN_PLAN) or to none",
                r, hosts[r].name, has_plan ? "has" : "has not", hosts[0].name,
                has_plan ? "has not" : "has");
        if (!has_plan)
            continue;
        status = check_name(&hosts[r], r, err);
        for (uint32_t first = 0; first < r && status == AKIN_OK; first++)
            status = check_two(hosts, first, r, err);
    }
    return status;
}
