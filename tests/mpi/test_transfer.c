/* Transfers between two ranks over real slabs, once over what UCX chooses and
 * once over tcp: blocks arrive whole, damaged and late ones are refused. */
#include "transfer_fixture.h"

#define N_SLOTS 64
#define N_BLOCKS 40 /* 5 MiB: two pieces */
#define DAMAGED 3
#define FREED 7

enum { TYPE_BLOCKS = 1, TYPE_DAMAGE, TYPE_DAMAGED, TYPE_BYE };

/* What a side knows. */
typedef struct known {
    akin_kv_descriptor_t blocks[N_BLOCKS];
    int n_messages;
    int is_bye;
} known_t;

/* The prompt of which the owner holds the blocks. */
static void fill_tokens(uint32_t *tokens)
{
    for (uint32_t i = 0; i < N_BLOCKS * BLOCK; i++)
        tokens[i] = i * 7 + 1;
}

static void own_blocks(side_t *s)
{
    known_t *known = s->test;
    uint32_t slots[N_BLOCKS], tokens[N_BLOCKS * BLOCK];
    fill_tokens(tokens);
    CHECK_FATAL(akin_kv_cache_take_run(s->cache, N_BLOCKS, slots) == AKIN_OK);
    uint64_t hash = AKIN_KV_ROOT_HASH;
    for (uint32_t i = 0; i < N_BLOCKS; i++) {
        known->blocks[i] =
            side_seal(s, slots[i], i, hash, tokens + i * BLOCK, BLOCK);
        hash = known->blocks[i].chain_hash;
    }
    CHECK(akin_net_send(s->net, 0, TYPE_BLOCKS, known->blocks,
                        sizeof(known->blocks)) == AKIN_OK);
}

/* One bit of one block, and another block that the owner gives up. The chain
 * lets go of its end first, so all from FREED on are given up. */
static void damage(side_t *s)
{
    const known_t *known = s->test;
    unsigned char *p = akin_kv_slot(&s->view, known->blocks[DAMAGED].slot);
    p[s->layout.kv_offset + s->layout.kv_bytes / 2] ^= 0x20;
    for (uint32_t i = FREED; i < N_BLOCKS; i++)
        akin_kv_cache_unref(s->cache, known->blocks[i].slot);
    uint32_t slots[N_SLOTS - FREED];
    CHECK(akin_kv_cache_take_run(s->cache, N_SLOTS - FREED, slots) == AKIN_OK);
    CHECK(akin_net_send(s->net, 0, TYPE_DAMAGED, NULL, 0) == AKIN_OK);
}

static void on_message(void *arg, uint32_t from, uint16_t type,
                       const void *payload, size_t bytes)
{
    side_t *s = arg;
    known_t *known = s->test;
    CHECK(from == 1 - fixture_rank);
    known->n_messages++;
    if (type == TYPE_BLOCKS) {
        CHECK_FATAL(bytes == sizeof(known->blocks));
        memcpy(known->blocks, payload, bytes);
    } else if (type == TYPE_DAMAGE) {
        damage(s);
    } else if (type == TYPE_BYE) {
        known->is_bye = 1;
    }
}

static void on_lost(void *arg, uint32_t rank, akin_status_t status)
{
    (void)arg;
    (void)rank;
    (void)status;
}

/* Reads `n` blocks from number `first` into `slots`. */
static outcome_t transfer(side_t *s, akin_kv_transfers_t *transfers,
                          uint32_t first, uint32_t n, const uint32_t *slots,
                          int64_t limit_ns)
{
    const known_t *known = s->test;
    return side_read(s, transfers, known->blocks + first, n, slots, limit_ns);
}

/* The whole prompt arrives and is found again in the own prefix index. */
static void read_whole(side_t *s, akin_kv_transfers_t *transfers)
{
    const known_t *known = s->test;
    uint32_t slots[N_BLOCKS], found[N_BLOCKS], tokens[N_BLOCKS * BLOCK];
    fill_tokens(tokens);
    CHECK_FATAL(akin_kv_cache_take_run(s->cache, N_BLOCKS, slots) == AKIN_OK);
    outcome_t o = transfer(s, transfers, 0, N_BLOCKS, slots, FIXTURE_LIMIT_NS);
    CHECK_FATAL(o.result.status == AKIN_OK);
    CHECK(o.result.n_blocks == N_BLOCKS);
    uint64_t parent = AKIN_KV_ROOT_HASH;
    for (uint32_t i = 0; i < N_BLOCKS; i++) {
        CHECK(side_wrong(s, slots[i], i) == 0);
        CHECK(akin_kv_cache_adopt(s->cache, slots[i], parent, &known->blocks[i],
                                  tokens + i * BLOCK) == AKIN_OK);
        parent = known->blocks[i].chain_hash;
    }
    side_unref(s, slots, N_BLOCKS);
    CHECK(akin_kv_cache_match(s->cache, tokens, N_BLOCKS * BLOCK, N_BLOCKS,
                              found) == N_BLOCKS);
    CHECK(memcmp(slots, found, sizeof(slots)) == 0);
    side_unref(s, found, N_BLOCKS);
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
    side_unref(s, slots, n);
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
    side_unref(s, slots, N_BLOCKS);
    WAIT_FOR(s->net, akin_kv_cache_available(s->cache) == N_SLOTS);
}

static void run_reader(side_t *s)
{
    const known_t *known = s->test;
    akin_kv_transfers_t *transfers;
    CHECK_FATAL(akin_kv_transfers_create(s->net, s->cache, &s->view,
                                         &transfers) == AKIN_OK);
    WAIT_FOR(s->net, known->n_messages == 1);
    read_whole(s, transfers);
    read_too_late(s, transfers);
#ifdef AKIN_FAULTS
    read_with_faults(s);
#endif
    CHECK(akin_net_send(s->net, 1, TYPE_DAMAGE, NULL, 0) == AKIN_OK);
    WAIT_FOR(s->net, known->n_messages == 2);
    expect_refusal(s, transfers, 0, 6, DAMAGED, AKIN_KV_REFUSAL_CHECKSUM);
    expect_refusal(s, transfers, DAMAGED + 1, 10, FREED - DAMAGED - 1,
                   AKIN_KV_REFUSAL_GENERATION);
    WAIT_FOR(s->net, akin_kv_cache_available(s->cache) == N_SLOTS);
    akin_kv_transfers_destroy(transfers);
    CHECK(akin_net_send(s->net, 1, TYPE_BYE, NULL, 0) == AKIN_OK);
    WAIT_FOR(s->net, !akin_net_has_peer(s->net, 1));
}

int main(void)
{
    static known_t known[2];
    static side_t sides[2] = {{.test = &known[0]}, {.test = &known[1]}};
    static const side_params_t params = {.shape = {.n_layers = 8,
                                                   .n_kv_heads = 4,
                                                   .head_dim = 64,
                                                   .n_experts = 16,
                                                   .top_k = 4,
                                                   .block_tokens = BLOCK},
                                         .n_slots = N_SLOTS,
                                         .with_prefix = 1,
                                         .message = on_message,
                                         .lost = on_lost};
    akin_error_t err = {{0}};
    akin_boot_t *boot = fixture_boot();
    CHECK_FATAL(akin_boot_size(boot) == 2);
    side_create(&sides[0], &params);
    setenv("UCX_TLS", "tcp", 1);
    side_create(&sides[1], &params);
    side_connect(boot, &sides[0], NULL, NULL);
    side_connect(boot, &sides[1], NULL, NULL);
    fixture_ok(akin_boot_barrier(boot, &err), &err);
    akin_boot_finish(boot);
    for (int i = 0; i < 2; i++) {
        side_t *s = &sides[i];
        CHECK(akin_net_is_one_sided(s->net, 1 - fixture_rank) == (i == 0));
        if (fixture_rank == 0) {
            run_reader(s);
        } else {
            own_blocks(s);
            WAIT_FOR(s->net, known[i].is_bye);
        }
        side_destroy(s);
    }
    return fixture_failures != 0;
}
