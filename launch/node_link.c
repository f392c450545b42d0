/* Node link: whether a NIC of this machine is up. */
#include "launch/node_devices.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* First line of a file of sysfs; 0: there is none. */
static int read_line(const char *path, char *line, size_t room)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    const ssize_t n = read(fd, line, room - 1);
    (void)close(fd);
    if (n <= 0)
        return 0;
    line[n] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return 1;
}

/* "4: ACTIVE"; a port that is not active carries nothing. */
static akin_link_state_t rdma_state(const char *name)
{
    char path[PATH_MAX], line[64];
    (void)snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/state",
                   name);
    if (!read_line(path, line, sizeof(line)))
        return AKIN_LINK_UNKNOWN;
    return strstr(line, "ACTIVE") != NULL ? AKIN_LINK_UP : AKIN_LINK_DOWN;
}

static akin_link_state_t ethernet_state(const char *name)
{
    char path[PATH_MAX], line[64];
    (void)snprintf(path, sizeof(path), "/sys/class/net/%s/operstate", name);
    /* Drivers that do not watch their carrier say "unknown". */
    if (!read_line(path, line, sizeof(line)) || strcmp(line, "unknown") == 0)
        return AKIN_LINK_UNKNOWN;
    return strcmp(line, "up") == 0 ? AKIN_LINK_UP : AKIN_LINK_DOWN;
}

/* Addresses of a bond or bridge lie on the device above; that one is what UCX
 * can use. */
static void find_master(akin_node_nic_t *nic)
{
    enum { MAX_LEVELS = 4 };
    for (int i = 0; i < MAX_LEVELS; i++) {
        char path[PATH_MAX], target[PATH_MAX];
        (void)snprintf(path, sizeof(path), "/sys/class/net/%s/master",
                       nic->device);
        const ssize_t n = readlink(path, target, sizeof(target) - 1);
        if (n <= 0)
            return;
        target[n] = '\0';
        const char *slash = strrchr(target, '/');
        const char *name = slash != NULL ? slash + 1 : target;
        if (name[0] == '\0' || strlen(name) >= sizeof(nic->device))
            return;
        (void)memcpy(nic->device, name, strlen(name) + 1);
    }
}

void akini_node_link_read(akin_node_nic_t *nic)
{
    if (nic->is_rdma) {
        nic->state = rdma_state(nic->name);
        return;
    }
    find_master(nic);
    nic->state = ethernet_state(nic->name);
}
