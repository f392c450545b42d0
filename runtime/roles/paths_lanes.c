/* Paths, lanes: packing what one rank tells, each name once. */
#include "roles/paths.h"

#include <stdlib.h>
#include <string.h>

#define VERSION 1

/* Whether no earlier lane has that name; else *same_p is the first one. */
static int is_new(const char *const *lanes, uint32_t i, uint32_t *same_p)
{
    for (uint32_t j = 0; j < i; j++)
        if (strcmp(lanes[j], lanes[i]) == 0) {
            *same_p = j;
            return 0;
        }
    return 1;
}

void akini_lanes_pack(akin_packer_t *p, const char *const *lanes, uint32_t n)
{
    uint16_t *peers = calloc(n > 0 ? n : 1, sizeof(*peers));
    uint16_t n_names = 0;
    if (peers == NULL || n > UINT16_MAX) {
        p->status = AKIN_ERR_NOMEM;
        free(peers);
        return;
    }
    for (uint32_t i = 0, same = 0; i < n; i++)
        peers[i] = is_new(lanes, i, &same) ? n_names++ : peers[same];
    akin_packer_u16(p, VERSION);
    akin_packer_u16(p, n_names);
    n_names = 0;
    for (uint32_t i = 0; i < n; i++)
        if (peers[i] == n_names) {
            akin_packer_bytes(p, lanes[i], strlen(lanes[i]));
            n_names++;
        }
    akin_packer_u16s(p, peers, n);
    free(peers);
}

static int unpack_name(akin_unpacker_t *u, akini_lane_t name)
{
    size_t bytes;
    const void *data = akin_unpacker_bytes(u, &bytes);
    if (data == NULL || bytes >= AKIN_NET_LANE_BYTES ||
        memchr(data, '\0', bytes) != NULL)
        return 0;
    memcpy(name, data, bytes);
    name[bytes] = '\0';
    return 1;
}

akin_status_t akini_lanes_unpack(const void *data, size_t bytes,
                                 uint32_t n_peers, akini_lanes_t *lanes_p)
{
    akini_lanes_t lanes = {0};
    akin_unpacker_t u;
    size_t n = 0;
    akin_unpacker_init(&u, data, bytes);
    *lanes_p = lanes;
    if (akin_unpacker_u16(&u) != VERSION)
        return AKIN_ERR_FORMAT;
    const uint32_t n_names = akin_unpacker_u16(&u);
    if (u.status != AKIN_OK || n_names > n_peers)
        return AKIN_ERR_FORMAT;
    akin_status_t status = AKIN_ERR_NOMEM;
    if (n_names > 0 &&
        (lanes.names = calloc(n_names, sizeof(*lanes.names))) == NULL)
        goto err_free;
    status = AKIN_ERR_FORMAT;
    for (; lanes.n_names < n_names; lanes.n_names++)
        if (!unpack_name(&u, lanes.names[lanes.n_names]))
            goto err_free;
    lanes.peers = akin_unpacker_u16s(&u, n_peers, &n);
    lanes.n_peers = (uint32_t)n;
    if (akin_unpacker_finish(&u) != AKIN_OK || n != n_peers)
        goto err_free;
    for (uint32_t i = 0; i < lanes.n_peers; i++)
        if (lanes.peers[i] >= n_names)
            goto err_free;
    *lanes_p = lanes;
    return AKIN_OK;
err_free:
    akini_lanes_cleanup(&lanes);
    return status;
}

void akini_lanes_cleanup(akini_lanes_t *lanes)
{
    free(lanes->names);
    free(lanes->peers);
    *lanes = (akini_lanes_t){0};
}
