/* Transfers between two ranks over real slabs, once over what UCX chooses and
 * once over tcp: blocks arrive whole, damaged and late ones are refused. */
#include "kv/transfer.h"
#include "net_fixture.h"

#define N_SLOTS 64
#define N_BLOCKS 40 /* 5 MiB: two pieces */
#define BLOCK 16
#define DAMAGED 3
#define FREED 7

enum { TYPE_BLOCKS = 1, TYPE_DAMAGE, TYPE_DAMAGED, TYPE_BYE };

static const akin_kv_shape_t shape = {.n_layers = 8,
                                      .n_kv_heads = 4,
                                      .head_dim = 64,
                                      .n_experts = 16,
                                      .top_k = 4,
                                      .block_tokens = BLOCK};

/* One net of a rank and what lies in its slab. */
typedef struct side {
    akin_net_t *net;
    akin_kv_layout_t layout;
    akin_kv_view_t view;
    akin_kv_cache_t *cache;
    akin_kv_descriptor_t blocks[N_BLOCKS];
    int n_messages;
    int is_bye;
} side_t;

/* The prompt of which the owner holds the blocks. */
static void fill_tokens(uint32_t *tokens)
{
    for (uint32_t i = 0; i < N_BLOCKS * BLOCK; i++)
        tokens[i] = i * 7 + 1;
}

static void fill_block(side_t *s, uint32_t slot, uint32_t number)
{
    unsigned char *p = akin_kv_slot(&s->view, slot);
    fixture_fill(p + s->layout.kv_offset, s->layout.kv_bytes, number, 0);
    uint8_t *sidecar = akin_kv_sidecar(&s->layout, p);
    memset(sidecar, 0, s->layout.sidecar_bytes);
    for (uint32_t l = 0; l < shape.n_layers; l++)
        for (uint32_t t = 0; t < BLOCK; t++)
            for (uint32_t k = 0; k < shape.top_k; k++)
                sidecar[l * shape.n_experts +
                        (l + number + t % 3 + k) % shape.n_experts]++;
}

static void own_blocks(side_t *s)
{
    uint32_t slots[N_BLOCKS], tokens[N_BLOCKS * BLOCK];
    fill_tokens(tokens);
    CHECK_FATAL(akin_kv_cache_take_run(s->cache, N_BLOCKS, slots) == AKIN_OK);
    uint64_t hash = AKIN_KV_ROOT_HASH;
    for (uint32_t i = 0; i < N_BLOCKS; i++) {
        fill_block(s, slots[i], i);
        hash = akin_kv_cache_seal(s->cache, slots[i], hash, tokens + i * BLOCK,
                                  BLOCK);
        s->blocks[i] = (akin_kv_descriptor_t){
            .slot = slots[i],
            .n_tokens = BLOCK,
            .generation = akin_kv_cache_generation(s->cache, slots[i]),
            .chain_hash = hash};
    }
    CHECK(akin_net_send(s->net, 0, TYPE_BLOCKS, s->blocks, sizeof(s->blocks)) ==
          AKIN_OK);
}

/* One bit of one block, and another block that the owner gives up. The chain
 * lets go of its end first, so all from FREED on are given up. */
static void damage(side_t *s)
{
    unsigned char *p = akin_kv_slot(&s->view, s->blocks[DAMAGED].slot);
    p[s->layout.kv_offset + s->layout.kv_bytes / 2] ^= 0x20;
    for (uint32_t i = FREED; i < N_BLOCKS; i++)
        akin_kv_cache_unref(s->cache, s->blocks[i].slot);
    uint32_t slots[N_SLOTS - FREED];
    CHECK(akin_kv_cache_take_run(s->cache, N_SLOTS - FREED, slots) == AKIN_OK);
    CHECK(akin_net_send(s->net, 0, TYPE_DAMAGED, NULL, 0) == AKIN_OK);
}

static void on_message(void *arg, uint32_t from, uint16_t type,
                       const void *payload, size_t bytes)
{
    side_t *s = arg;
    CHECK(from == 1 - fixture_rank);
    s->n_messages++;
    if (type == TYPE_BLOCKS) {
        CHECK_FATAL(bytes == sizeof(s->blocks));
        memcpy(s->blocks, payload, bytes);
    } else if (type == TYPE_DAMAGE) {
        damage(s);
    } else if (type == TYPE_BYE) {
        s->is_bye = 1;
    }
}

static void on_lost(void *arg, uint32_t rank, akin_status_t status)
{
    (void)arg;
    (void)rank;
    (void)status;
}

typedef struct outcome {
    int calls;
    akin_kv_transfer_result_t result;
} outcome_t;

static void on_done(void *arg, const akin_kv_transfer_result_t *result)
{
    outcome_t *outcome = arg;
    outcome->calls++;
    outcome->result = *result;
}

/* Reads `n` blocks from number `first` into `slots`. */
static outcome_t transfer(side_t *s, akin_kv_transfers_t *transfers,
                          uint32_t first, uint32_t n, const uint32_t *slots,
                          int64_t limit_ns)
{
    outcome_t outcome = {0};
    uint64_t id;
    const akin_kv_transfer_params_t params = {
        .owner = 1,
        .blocks = s->blocks + first,
        .slots = slots,
        .n_blocks = n,
        .deadline_ns = akin_clock_now_ns() + limit_ns,
        .done = on_done,
        .arg = &outcome};
    CHECK_FATAL(akin_kv_transfers_start(transfers, &params, &id) == AKIN_OK);
    while (outcome.calls == 0) {
        int64_t next = akin_kv_transfers_expire(transfers, akin_clock_now_ns());
        if (outcome.calls == 0) {
            akin_status_t waited = akin_net_wait(s->net, next);
            CHECK_FATAL(waited == AKIN_OK || waited == AKIN_ERR_TIMEOUT);
        }
    }
    return outcome;
}

static void unref_all(side_t *s, const uint32_t *slots, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        akin_kv_cache_unref(s->cache, slots[i]);
}

/* The whole prompt arrives and is found again in the own prefix index. */
static void read_whole(side_t *s, akin_kv_transfers_t *transfers)
{
    uint32_t slots[N_BLOCKS], found[N_BLOCKS], tokens[N_BLOCKS * BLOCK];
    fill_tokens(tokens);
    CHECK_FATAL(akin_kv_cache_take_run(s->cache, N_BLOCKS, slots) == AKIN_OK);
    outcome_t o = transfer(s, transfers, 0, N_BLOCKS, slots, FIXTURE_LIMIT_NS);
    CHECK_FATAL(o.result.status == AKIN_OK);
    CHECK(o.result.n_blocks == N_BLOCKS);
    uint64_t parent = AKIN_KV_ROOT_HASH;
    for (uint32_t i = 0; i < N_BLOCKS; i++) {
        const unsigned char *p = akin_kv_slot(&s->view, slots[i]);
        CHECK(fixture_wrong(p + s->layout.kv_offset, s->layout.kv_bytes, i,
                            0) == 0);
        CHECK(akin_kv_cache_adopt(s->cache, slots[i], parent, &s->blocks[i],
                                  tokens + i * BLOCK) == AKIN_OK);
        parent = s->blocks[i].chain_hash;
    }
    unref_all(s, slots, N_BLOCKS);
    CHECK(akin_kv_cache_match(s->cache, tokens, N_BLOCKS * BLOCK, N_BLOCKS,
                              found) == N_BLOCKS);
    CHECK(memcmp(slots, found, sizeof(slots)) == 0);
    unref_all(s, found, N_BLOCKS);
    akin_kv_transfer_stats_t stats;
    akin_kv_transfers_stats(transfers, &stats);
    CHECK(stats.pieces == 2);
    CHECK(stats.bytes == (N_BLOCKS - 2) * s->layout.stride_bytes +
                             2 * s->layout.payload_bytes);
}

static void expect_refusal(side_t *s, akin_kv_transfers_t *transfers,
                           uint32_t first, uint32_t n, uint32_t block,
                           akin_kv_refusal_t refusal)
{
    uint32_t slots[N_BLOCKS];
    CHECK_FATAL(akin_kv_cache_take_run(s->cache, n, slots) == AKIN_OK);
    outcome_t o = transfer(s, transfers, first, n, slots, FIXTURE_LIMIT_NS);
    CHECK(o.result.status == AKIN_ERR_REFUSED);
    CHECK(o.result.refusal == refusal);
    CHECK(o.result.refused_block == block);
    unref_all(s, slots, n);
}

#ifdef AKIN_FAULTS
/* The switch for tests of the roles does to a good block what it says. */
static void read_with_faults(side_t *s)
{
    CHECK_FATAL(setenv("AKIN_FAULT_KV", "flip-kv:5", 1) == 0);
    akin_kv_transfers_t *transfers;
    CHECK_FATAL(akin_kv_transfers_create(s->net, s->cache, &s->view,
                                         &transfers) == AKIN_OK);
    expect_refusal(s, transfers, 0, 10, 4, AKIN_KV_REFUSAL_CHECKSUM);
    akin_kv_transfers_destroy(transfers);
    unsetenv("AKIN_FAULT_KV");
}
#endif

/* A transfer that is late before it begins: told once, slots come back. */
static void read_too_late(side_t *s, akin_kv_transfers_t *transfers)
{
    uint32_t slots[N_BLOCKS];
    CHECK_FATAL(akin_kv_cache_take_run(s->cache, N_BLOCKS, slots) == AKIN_OK);
    outcome_t o = transfer(s, transfers, 0, N_BLOCKS, slots, -1);
    CHECK(o.calls == 1);
    CHECK(o.result.status == AKIN_ERR_TIMEOUT);
    unref_all(s, slots, N_BLOCKS);
    WAIT_FOR(s->net, akin_kv_cache_available(s->cache) == N_SLOTS);
}

static void run_reader(side_t *s)
{
    akin_kv_transfers_t *transfers;
    CHECK_FATAL(akin_kv_transfers_create(s->net, s->cache, &s->view,
                                         &transfers) == AKIN_OK);
    WAIT_FOR(s->net, s->n_messages == 1);
    read_whole(s, transfers);
    read_too_late(s, transfers);
#ifdef AKIN_FAULTS
    read_with_faults(s);
#endif
    CHECK(akin_net_send(s->net, 1, TYPE_DAMAGE, NULL, 0) == AKIN_OK);
    WAIT_FOR(s->net, s->n_messages == 2);
    expect_refusal(s, transfers, 0, 6, DAMAGED, AKIN_KV_REFUSAL_CHECKSUM);
    expect_refusal(s, transfers, DAMAGED + 1, 10, FREED - DAMAGED - 1,
                   AKIN_KV_REFUSAL_GENERATION);
    WAIT_FOR(s->net, akin_kv_cache_available(s->cache) == N_SLOTS);
    akin_kv_transfers_destroy(transfers);
    CHECK(akin_net_send(s->net, 1, TYPE_BYE, NULL, 0) == AKIN_OK);
    WAIT_FOR(s->net, !akin_net_has_peer(s->net, 1));
}

static void create_side(side_t *s)
{
    akin_error_t err = {{0}};
    fixture_ok(akin_kv_layout_init(&shape, &s->layout, &err), &err);
    const akin_net_params_t params = {
        .rank = fixture_rank,
        .n_ranks = 2,
        .slab_bytes = N_SLOTS * s->layout.stride_bytes,
        .events = {.message = on_message, .peer_lost = on_lost, .arg = s},
    };
    fixture_ok(akin_net_create(&params, &s->net, &err), &err);
    s->view = (akin_kv_view_t){.layout = &s->layout,
                               .base = akin_net_slab(s->net),
                               .n_slots = N_SLOTS};
    CHECK_FATAL(akin_kv_cache_create(&s->view, 1, &s->cache) == AKIN_OK);
}

static void connect_side(akin_boot_t *boot, side_t *s)
{
    akin_error_t err = {{0}};
    void *blob = NULL;
    size_t bytes = 0, *offsets = NULL;
    unsigned char *blobs = NULL;
    const uint32_t other = 1 - fixture_rank;
    fixture_ok(akin_net_identity(s->net, &blob, &bytes, &err), &err);
    fixture_ok(akin_boot_exchange(boot, blob, bytes, &blobs, &offsets, &err),
               &err);
    fixture_ok(akin_net_add_peer(s->net, other, blobs + offsets[other],
                                 offsets[other + 1] - offsets[other], &err),
               &err);
    free(blob);
    free(blobs);
    free(offsets);
}

int main(void)
{
    static side_t sides[2];
    akin_error_t err = {{0}};
    akin_boot_t *boot = fixture_boot();
    CHECK_FATAL(akin_boot_size(boot) == 2);
    create_side(&sides[0]);
    setenv("UCX_TLS", "tcp", 1);
    create_side(&sides[1]);
    connect_side(boot, &sides[0]);
    connect_side(boot, &sides[1]);
    fixture_ok(akin_boot_barrier(boot, &err), &err);
    akin_boot_finish(boot);
    for (int i = 0; i < 2; i++) {
        side_t *s = &sides[i];
        CHECK(akin_net_is_one_sided(s->net, 1 - fixture_rank) == (i == 0));
        if (fixture_rank == 0) {
            run_reader(s);
        } else {
            own_blocks(s);
            WAIT_FOR(s->net, s->is_bye);
        }
        akin_status_t status = akin_kv_cache_audit(s->cache, &err);
        fixture_ok(status, &err);
        akin_net_destroy(s->net);
        akin_kv_cache_destroy(s->cache);
    }
    return fixture_failures != 0;
}
