/* Path: whether an endpoint reads the peer's slab one-sided. */
#include "net/net_internal.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * UCX emulates a get over active messages where a transport has none, without
 * saying so in its API. Its description of an endpoint tells: a lane that
 * reads by itself has a row of get protocols,
 *     lane[0]:  3:sysv/memory.0 md[2] -> ...
 *      get[0]: 0..<bcopy>..(inf)
 * and an endpoint without such a row emulates.
 */
int akini_path_parse(const char *info, char *transport, size_t size)
{
    static const char label[] = " get[";
    const char *get = strstr(info, label);
    if (get == NULL)
        return 0;
    char *bracket;
    unsigned long lane = strtoul(get + strlen(label), &bracket, 10);
    if (*bracket != ']')
        return 0;
    char key[32];
    snprintf(key, sizeof(key), "lane[%lu]:", lane);
    const char *row = strstr(info, key);
    if (row == NULL)
        return 0;
    /* After the key come the resource's number, ':', its transport, '/'. */
    const char *name = strchr(row + strlen(key), ':');
    const char *slash = strchr(row, '/');
    const char *end = strchr(row, '\n');
    if (name == NULL || slash == NULL || slash <= name + 1 ||
        (end != NULL && slash > end))
        return 0;
    snprintf(transport, size, "%.*s", (int)(slash - name - 1), name + 1);
    return 1;
}

/* The transport of the first lane, for people. */
static void first_transport(const char *info, char *transport, size_t size)
{
    const char *row = strstr(info, "lane[0]:");
    const char *name = row != NULL ? strchr(row + 8, ':') : NULL;
    const char *slash = name != NULL ? strchr(name, '/') : NULL;
    if (slash == NULL)
        snprintf(transport, size, "unknown");
    else
        snprintf(transport, size, "%.*s", (int)(slash - name - 1), name + 1);
}

void akini_path_choose(akini_peer_t *peer)
{
    peer->one_sided = 0;
    if (peer->rkey == NULL) {
        snprintf(peer->path, sizeof(peer->path), "none");
        return;
    }
    char transport[32] = "unknown";
    char *info = NULL;
    size_t info_bytes = 0;
    FILE *stream = open_memstream(&info, &info_bytes);
    if (stream != NULL) {
        ucp_ep_print_info(peer->endpoint, stream);
        fclose(stream);
    }
    if (info != NULL) {
        if (akini_path_parse(info, transport, sizeof(transport))) {
            /* Over shared memory the lane alone is not enough: the slab has to
             * be a segment that this process could attach. */
            int shared = strcmp(transport, "sysv") == 0 ||
                         strcmp(transport, "posix") == 0 ||
                         strcmp(transport, "xpmem") == 0;
            void *address = NULL;
            peer->one_sided =
                !shared || ucp_rkey_ptr(peer->rkey, peer->slab_address,
                                        &address) == UCS_OK;
        } else {
            first_transport(info, transport, sizeof(transport));
        }
    }
    free(info);
    snprintf(peer->path, sizeof(peer->path), "%s (%s)",
             peer->one_sided ? "one-sided" : "rendezvous", transport);
    AKIN_LOG(NET, DEBUG, "reads from rank %u: %s", (unsigned)peer->rank,
             peer->path);
}

const char *akin_net_path(const akin_net_t *net, uint32_t rank)
{
    return akin_net_has_peer(net, rank) ? net->peers[rank].path : "none";
}

int akin_net_is_one_sided(const akin_net_t *net, uint32_t rank)
{
    return akin_net_has_peer(net, rank) && net->peers[rank].one_sided;
}
