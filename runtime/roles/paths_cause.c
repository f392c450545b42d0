/* Paths, cause: why KV of a pair may not go where it should. */
#include "roles/paths.h"

#include <string.h>

/* Whether a list of UCX has that name: "\name" and "name:aux" are it, too. */
static int has_name(const char *list, const char *name)
{
    const size_t bytes = strlen(name);
    list += list[0] == '^';
    while (*list != '\0') {
        const char *at = list + (list[0] == '\\');
        const size_t n = strcspn(at, ",:");
        if (n == bytes && strncmp(at, name, n) == 0)
            return 1;
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return 0;
}

static int has_any(const char *list, const char *const *names)
{
    for (; *names != NULL; names++)
        if (has_name(list, *names))
            return 1;
    return 0;
}

static int takes_rdma(const char *tls)
{
    static const char *const names[] = {
        "all",      "ib",   "rc",      "rc_x", "rc_v",    "rc_mlx5",
        "rc_verbs", "ud",   "ud_x",    "ud_v", "ud_mlx5", "ud_verbs",
        "dc",       "dc_x", "dc_mlx5", "srd",  "ugni",    NULL};
    if (tls[0] == '^')
        return !has_name(tls, "all") && !has_name(tls, "ib") &&
               !(has_name(tls, "rc") && has_name(tls, "ud"));
    return tls[0] == '\0' || has_any(tls, names);
}

static int takes_shared_memory(const char *tls)
{
    static const char *const groups[] = {"all", "sm", "shm", "mm", NULL};
    if (tls[0] == '^')
        return !has_any(tls, groups) &&
               !(has_name(tls, "sysv") && has_name(tls, "posix"));
    return tls[0] == '\0' || has_any(tls, groups) || has_name(tls, "sysv") ||
           has_name(tls, "posix") || has_name(tls, "xpmem");
}

/* Whether a port may be used; patterns and exclusions may mean any. */
static int takes_port(const akini_host_t *host, const akini_host_port_t *port)
{
    const char *list = host->net_devices;
    char name[48];
    if (list[0] == '\0' || list[0] == '^' || strpbrk(list, "[*") != NULL ||
        has_name(list, "all"))
        return 1;
    (void)snprintf(name, sizeof(name), "%s:%u", port->device, port->number);
    for (const char *at = list; *at != '\0'; at += *at == ',') {
        const size_t n = strcspn(at, ",");
        if ((n == strlen(name) && strncmp(at, name, n) == 0) ||
            (n == strlen(port->device) && strncmp(at, port->device, n) == 0))
            return 1;
        at += n;
    }
    return 0;
}

/* A cause at one end; 0: none is seen there. */
static int explain_end(const akini_paths_t *paths, uint32_t rank, char *text,
                       size_t size)
{
    const akini_host_t *host = &paths->hosts[rank];
    const akini_host_port_t *down = NULL;
    int n_taken = 0;
    if (host->n_ports == 0) {
        (void)snprintf(text, size, "host %s has no RDMA device", host->name);
        return 1;
    }
    if (!takes_rdma(host->tls)) {
        (void)snprintf(text, size, "UCX_TLS=%s of rank %u leaves RDMA out",
                       host->tls, rank);
        return 1;
    }
    for (uint32_t i = 0; i < host->n_ports; i++) {
        if (!takes_port(host, &host->ports[i]))
            continue;
        n_taken++;
        if (host->ports[i].is_active)
            return 0;
        if (down == NULL)
            down = &host->ports[i];
    }
    if (n_taken == 0)
        (void)snprintf(text, size,
                       "UCX_NET_DEVICES=%s of rank %u names no RDMA device of "
                       "host %s",
                       host->net_devices, rank, host->name);
    else
        (void)snprintf(text, size, "port %u of %s on host %s is down",
                       down->number, down->device, host->name);
    return 1;
}

static int explain_between(const akini_paths_t *paths, const akini_pair_t *pair,
                           char *text, size_t size)
{
    uint32_t n_without = 0;
    while (n_without < paths->n_ranks && paths->hosts[n_without].n_ports == 0)
        n_without++;
    if (n_without == paths->n_ranks) {
        (void)snprintf(text, size, "no host of the job has an RDMA device");
        return 1;
    }
    return explain_end(paths, pair->prefill, text, size) ||
           explain_end(paths, pair->decode, text, size);
}

static int explain_inside(const akini_paths_t *paths, const akini_pair_t *pair,
                          char *text, size_t size)
{
    const uint32_t ends[] = {pair->prefill, pair->decode};
    if (paths->hosts[ends[0]].ipc != paths->hosts[ends[1]].ipc) {
        (void)snprintf(text, size, "they do not share an IPC namespace");
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        const akini_host_t *host = &paths->hosts[ends[i]];
        if (!takes_shared_memory(host->tls)) {
            (void)snprintf(text, size,
                           "UCX_TLS=%s of rank %u leaves shared memory out",
                           host->tls, ends[i]);
            return 1;
        }
        if (!host->has_shared_memory) {
            (void)snprintf(text, size,
                           "UCX_MM_ERROR_HANDLING of rank %u is not y",
                           ends[i]);
            return 1;
        }
    }
    return 0;
}

void akini_paths_explain(const akini_paths_t *paths, const akini_pair_t *pair,
                         char *text, size_t size)
{
    const int is_known = akini_paths_place(paths, pair) == AKIN_PAIR_INSIDE
                             ? explain_inside(paths, pair, text, size)
                             : explain_between(paths, pair, text, size);
    if (!is_known)
        (void)snprintf(text, size,
                       "UCX does not say why; `akin info --transports` shows "
                       "what it finds on each host");
}
