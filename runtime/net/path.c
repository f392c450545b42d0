/* Path: what an endpoint moves bytes over, and whether it reads the peer's slab
 * one-sided. */
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
 * and an endpoint without such a row emulates. So does, as far as one can see,
 * every endpoint of those versions that print no such rows at all.
 */

/* "sysv/memory" of a row "lane[0]:  3:sysv/memory.0 md[2] -> ..."; a lane of a
 * connection manager has no such name. */
static int read_lane(const char *row, char *lane, size_t size)
{
    const char *end = row + strcspn(row, "\n");
    const char *at = strstr(row, "]:");
    if (at == NULL || at >= end)
        return 0;
    at += 2;
    at += strspn(at, " ");
    at += strspn(at, "0123456789");
    if (*at != ':')
        return 0;
    at++;
    size_t bytes = strcspn(at, " \n");
    const char *slash = memchr(at, '/', bytes);
    /* Behind the device comes the number of the path to it. */
    const char *dot = memrchr(at, '.', bytes);
    if (slash == NULL || slash == at || dot == NULL || dot <= slash + 1)
        return 0;
    (void)snprintf(lane, size, "%.*s", (int)(dot - at), at);
    return 1;
}

/* The row of a lane by its number. */
static const char *find_row(const char *info, unsigned long number)
{
    char key[32];
    (void)snprintf(key, sizeof(key), " lane[%lu]:", number);
    const char *row = strstr(info, key);
    return row != NULL ? row + 1 : NULL;
}

/* The first lane that UCX uses for that. */
static const char *find_use(const char *info, const char *use)
{
    const size_t bytes = strlen(use);
    for (const char *row = strstr(info, " lane["); row != NULL;
         row = strstr(row + 1, " lane[")) {
        const char *end = row + strcspn(row, "\n");
        const char *arrow = strstr(row, "-> ");
        const char *at = arrow != NULL ? strstr(arrow, use) : NULL;
        for (; at != NULL && at < end; at = strstr(at + bytes, use)) {
            const char after = at[bytes];
            if (after == ' ' || after == '\n' || after == '\0')
                return row + 1;
        }
    }
    return NULL;
}

int akini_path_parse(const char *info, char *lane, size_t size)
{
    static const char label[] = " get[";
    /* What carries the bytes of a rendezvous, the best one first. */
    static const char *const uses[] = {" rma_bw#0", " am_bw#0", " am"};
    const char *get = strstr(info, label);
    if (get != NULL) {
        char *bracket;
        unsigned long number = strtoul(get + strlen(label), &bracket, 10);
        const char *row = *bracket == ']' ? find_row(info, number) : NULL;
        if (row != NULL && read_lane(row, lane, size))
            return 1;
    }
    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        const char *row = find_use(info, uses[i]);
        if (row != NULL && read_lane(row, lane, size))
            return 0;
    }
    (void)snprintf(lane, size, "unknown");
    return 0;
}

/* Over shared memory the lane alone is not enough: the slab has to be a segment
 * that this process could attach. */
static int is_one_sided(const akini_peer_t *peer)
{
    static const char *const shared[] = {"sysv/", "posix/", "xpmem/"};
    for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
        void *address = NULL;
        if (strncmp(peer->lane, shared[i], strlen(shared[i])) == 0)
            return ucp_rkey_ptr(peer->rkey, peer->slab_address, &address) ==
                   UCS_OK;
    }
    return 1;
}

void akini_path_choose(akini_peer_t *peer)
{
    char *info = NULL;
    size_t info_bytes = 0;
    FILE *stream = open_memstream(&info, &info_bytes);
    peer->one_sided = 0;
    (void)snprintf(peer->lane, sizeof(peer->lane), "unknown");
    if (stream != NULL) {
        ucp_ep_print_info(peer->endpoint, stream);
        (void)fclose(stream);
    }
    if (info != NULL)
        peer->one_sided =
            akini_path_parse(info, peer->lane, sizeof(peer->lane)) &&
            peer->rkey != NULL && is_one_sided(peer);
    free(info);
    if (peer->rkey == NULL) {
        (void)snprintf(peer->path, sizeof(peer->path), "none");
        return;
    }
    (void)snprintf(peer->path, sizeof(peer->path), "%s (%.*s)",
                   peer->one_sided ? "one-sided" : "rendezvous",
                   (int)strcspn(peer->lane, "/"), peer->lane);
    AKIN_LOG(NET, DEBUG, "reads from rank %u: %s, %s", (unsigned)peer->rank,
             peer->path, peer->lane);
}

const char *akin_net_peer_lane(const akin_net_t *net, uint32_t rank)
{
    return akin_net_has_peer(net, rank) ? net->peers[rank].lane : "none";
}

const char *akin_net_path(const akin_net_t *net, uint32_t rank)
{
    return akin_net_has_peer(net, rank) ? net->peers[rank].path : "none";
}

int akin_net_is_one_sided(const akin_net_t *net, uint32_t rank)
{
    return akin_net_has_peer(net, rank) && net->peers[rank].one_sided;
}
