/* Transfer fixture: a net of a rank with blocks in its slab, and a transfer
 * that is waited for. */
#ifndef AKIN_TESTS_MPI_TRANSFER_FIXTURE_H
#define AKIN_TESTS_MPI_TRANSFER_FIXTURE_H

#include "kv/transfer.h"
#include "net_fixture.h"

#define BLOCK 16u

/* One net of a rank and what lies in its slab. */
typedef struct side {
    akin_net_t *net;
    akin_kv_layout_t layout;
    akin_kv_view_t view;
    akin_kv_cache_t *cache;
    void *test; /* what the test keeps per side */
} side_t;

typedef struct side_params {
    akin_kv_shape_t shape;
    uint32_t n_slots;
    int with_prefix;
    void (*message)(void *side, uint32_t from, uint16_t type,
                    const void *payload, size_t bytes);
    void (*lost)(void *side, uint32_t rank, akin_status_t status);
} side_params_t;

static inline void side_create(side_t *s, const side_params_t *p)
{
    akin_error_t err = {{0}};
    fixture_ok(akin_kv_layout_init(&p->shape, &s->layout, &err), &err);
    const akin_net_params_t params = {
        .rank = fixture_rank,
        .n_ranks = 2,
        .slab_bytes = p->n_slots * s->layout.stride_bytes,
        .events = {.message = p->message, .peer_lost = p->lost, .arg = s},
    };
    fixture_ok(akin_net_create(&params, &s->net, &err), &err);
    s->view = (akin_kv_view_t){.layout = &s->layout,
                               .base = akin_net_slab(s->net),
                               .n_slots = p->n_slots};
    CHECK_FATAL(akin_kv_cache_create(&s->view, p->with_prefix, &s->cache) ==
                AKIN_OK);
}

/* Everything was given back, then the end. */
static inline void side_destroy(side_t *s)
{
    akin_error_t err = {{0}};
    fixture_ok(akin_kv_cache_audit(s->cache, &err), &err);
    akin_net_destroy(s->net);
    akin_kv_cache_destroy(s->cache);
}

/* Connects to the other rank; its identity stays in `blob`, if wanted. */
static inline void side_connect(akin_boot_t *boot, side_t *s,
                                unsigned char *blob_p, size_t *bytes_p)
{
    akin_error_t err = {{0}};
    void *blob = NULL;
    size_t bytes = 0, *offsets = NULL;
    unsigned char *blobs = NULL;
    const uint32_t other = 1 - fixture_rank;
    fixture_ok(akin_net_identity(s->net, &blob, &bytes, &err), &err);
    fixture_ok(akin_boot_exchange(boot, blob, bytes, &blobs, &offsets, &err),
               &err);
    const size_t n = offsets[other + 1] - offsets[other];
    fixture_ok(
        akin_net_add_peer(s->net, other, blobs + offsets[other], n, &err),
        &err);
    if (blob_p != NULL) {
        CHECK_FATAL(n <= *bytes_p);
        memcpy(blob_p, blobs + offsets[other], n);
        *bytes_p = n;
    }
    free(blob);
    free(blobs);
    free(offsets);
}

/* What a block of that number has: keys and values, and a sidecar that sums
 * up. */
static inline void side_fill(side_t *s, uint32_t slot, uint32_t number,
                             uint32_t n_tokens)
{
    const akin_kv_shape_t *shape = &s->layout.shape;
    unsigned char *p = akin_kv_slot(&s->view, slot);
    fixture_fill(p + s->layout.kv_offset, s->layout.kv_bytes, number, 0);
    uint8_t *sidecar = akin_kv_sidecar(&s->layout, p);
    memset(sidecar, 0, s->layout.sidecar_bytes);
    for (uint32_t l = 0; l < shape->n_layers; l++)
        for (uint32_t t = 0; t < n_tokens; t++)
            for (uint32_t k = 0; k < shape->top_k; k++)
                sidecar[l * shape->n_experts +
                        (l + number + t % 3 + k) % shape->n_experts]++;
}

/* Bytes of a block that are not those of the number. */
static inline size_t side_wrong(const side_t *s, uint32_t slot, uint32_t number)
{
    const unsigned char *p = akin_kv_slot(&s->view, slot);
    return fixture_wrong(p + s->layout.kv_offset, s->layout.kv_bytes, number,
                         0);
}

/* Fills and seals a block after a parent; what a reader has to expect. */
static inline akin_kv_descriptor_t side_seal(side_t *s, uint32_t slot,
                                             uint32_t number, uint64_t parent,
                                             const uint32_t *tokens,
                                             uint32_t n_tokens)
{
    side_fill(s, slot, number, n_tokens);
    uint64_t hash =
        akin_kv_cache_seal(s->cache, slot, parent, tokens, n_tokens);
    return (akin_kv_descriptor_t){.slot = slot,
                                  .n_tokens = n_tokens,
                                  .generation =
                                      akin_kv_cache_generation(s->cache, slot),
                                  .chain_hash = hash};
}

static inline void side_unref(side_t *s, const uint32_t *slots, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        akin_kv_cache_unref(s->cache, slots[i]);
}

typedef struct outcome {
    int calls;
    akin_kv_transfer_result_t result;
} outcome_t;

static inline void outcome_set(void *arg,
                               const akin_kv_transfer_result_t *result)
{
    outcome_t *outcome = arg;
    outcome->calls++;
    outcome->result = *result;
}

/* Reads blocks of rank 1 into `slots` and waits for the end, which a start that
 * fails is too. */
static inline outcome_t side_read(side_t *s, akin_kv_transfers_t *transfers,
                                  const akin_kv_descriptor_t *blocks,
                                  uint32_t n, const uint32_t *slots,
                                  int64_t limit_ns)
{
    outcome_t outcome = {0};
    uint64_t id;
    const akin_kv_transfer_params_t params = {
        .owner = 1,
        .blocks = blocks,
        .slots = slots,
        .n_blocks = n,
        .deadline_ns = akin_clock_now_ns() + limit_ns,
        .done = outcome_set,
        .arg = &outcome};
    akin_status_t status = akin_kv_transfers_start(transfers, &params, &id);
    if (status != AKIN_OK) {
        outcome.result.status = status;
        return outcome;
    }
    while (outcome.calls == 0) {
        int64_t next = akin_kv_transfers_expire(transfers, akin_clock_now_ns());
        if (outcome.calls == 0) {
            akin_status_t waited = akin_net_wait(s->net, next);
            CHECK_FATAL(waited == AKIN_OK || waited == AKIN_ERR_TIMEOUT);
        }
    }
    CHECK(outcome.calls == 1);
    return outcome;
}

#endif
