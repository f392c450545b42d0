/* Identity: what others need to reach a net, as one checked blob. */
#include "net/net_internal.h"

#include "base/hash.h"
#include "net/wire.h"

#include <stdlib.h>

#define IDENTITY_MAGIC UINT32_C(0x494e4b41) /* "AKNI" */
#define IDENTITY_VERSION 1
/* UCX addresses take hundreds of bytes; this only bounds a made-up length. */
#define IDENTITY_MAX_BYTES ((size_t)1 << 20)

akin_status_t akini_identity_pack(const akini_identity_t *identity,
                                  void **blob_p, size_t *bytes_p)
{
    akin_packer_t p = {0};
    *blob_p = NULL;
    akin_packer_u32(&p, IDENTITY_MAGIC);
    akin_packer_u16(&p, IDENTITY_VERSION);
    akin_packer_u16(&p, 0);
    akin_packer_u32(&p, identity->rank);
    akin_packer_u64(&p, identity->incarnation);
    akin_packer_u64(&p, identity->slab_address);
    akin_packer_u64(&p, identity->slab_bytes);
    akin_packer_bytes(&p, identity->address, identity->address_bytes);
    akin_packer_bytes(&p, identity->rkey, identity->rkey_bytes);
    if (p.status == AKIN_OK)
        akin_packer_u64(&p, akin_hash64(p.data, p.bytes, IDENTITY_MAGIC));
    if (p.status != AKIN_OK) {
        akin_status_t status = p.status;
        akin_packer_cleanup(&p);
        return status;
    }
    *blob_p = p.data;
    *bytes_p = p.bytes;
    return AKIN_OK;
}

akin_status_t akini_identity_unpack(const void *blob, size_t bytes,
                                    akini_identity_t *identity_p,
                                    akin_error_t *err)
{
    if (blob == NULL || bytes < sizeof(uint64_t) || bytes > IDENTITY_MAX_BYTES)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "identity: %zu bytes cannot be one", bytes);
    akini_identity_t id = {0};
    akin_unpacker_t u;
    akin_unpacker_init(&u, blob, bytes);
    uint32_t magic = akin_unpacker_u32(&u);
    uint16_t version = akin_unpacker_u16(&u);
    uint16_t reserved = akin_unpacker_u16(&u);
    if (magic != IDENTITY_MAGIC)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "identity: magic is %08x, expected %08x",
                              (unsigned)magic, (unsigned)IDENTITY_MAGIC);
    if (version != IDENTITY_VERSION || reserved != 0)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "identity: version %u, this program speaks %u; "
                              "run the same build on every rank",
                              (unsigned)version, (unsigned)IDENTITY_VERSION);
    id.rank = akin_unpacker_u32(&u);
    id.incarnation = akin_unpacker_u64(&u);
    id.slab_address = akin_unpacker_u64(&u);
    id.slab_bytes = akin_unpacker_u64(&u);
    id.address = akin_unpacker_bytes(&u, &id.address_bytes);
    id.rkey = akin_unpacker_bytes(&u, &id.rkey_bytes);
    size_t covered = u.position;
    uint64_t checksum = akin_unpacker_u64(&u);
    if (akin_unpacker_finish(&u) != AKIN_OK)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "identity: %zu bytes are cut off or too many",
                              bytes);
    /* UCX trusts an address and a key, so a flipped bit must not get there. */
    if (akin_hash64(blob, covered, IDENTITY_MAGIC) != checksum)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "identity: checksum does not match");
    if (id.incarnation == 0 || id.address_bytes == 0 ||
        (id.slab_bytes != 0) != (id.rkey_bytes != 0) ||
        id.slab_bytes > UINT64_MAX - id.slab_address)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "identity: fields contradict each other");
    *identity_p = id;
    return AKIN_OK;
}

akin_status_t akin_net_identity(const akin_net_t *net, void **blob_p,
                                size_t *bytes_p, akin_error_t *err)
{
    *blob_p = NULL;
    ucp_address_t *address = NULL;
    size_t address_bytes = 0;
    ucs_status_t s =
        ucp_worker_get_address(net->worker, &address, &address_bytes);
    if (s != UCS_OK)
        return akin_error_set(err, AKIN_ERR_UCX, "ucp_worker_get_address: %s",
                              ucs_status_string(s));
    void *rkey = NULL;
    size_t rkey_bytes = 0;
    akin_status_t status = AKIN_OK;
    if (net->slab != NULL) {
        s = ucp_rkey_pack(net->context, net->slab_memory, &rkey, &rkey_bytes);
        if (s != UCS_OK) {
            status = akin_error_set(err, AKIN_ERR_UCX, "ucp_rkey_pack: %s",
                                    ucs_status_string(s));
            goto err_address;
        }
    }
    const akini_identity_t identity = {
        .rank = net->rank,
        .incarnation = net->incarnation,
        .slab_address = (uint64_t)(uintptr_t)net->slab,
        .slab_bytes = net->slab_bytes,
        .address = address,
        .address_bytes = address_bytes,
        .rkey = rkey,
        .rkey_bytes = rkey_bytes,
    };
    status = akini_identity_pack(&identity, blob_p, bytes_p);
    if (status != AKIN_OK)
        akin_error_set(err, status, "identity: %s", akin_status_string(status));
    if (rkey != NULL)
        ucp_rkey_buffer_release(rkey);
err_address:
    ucp_worker_release_address(net->worker, address);
    return status;
}
