/* Tests of transfers over a net whose reads complete when the test says so. */
#include "base/rng.h"
#include "kv/transfer.h"

#include "fake_net.h"
#include "runner.h"

#include <stdlib.h>

#define BLOCK 8
#define THEIRS 40 /* slots of the owner */
#define OURS 32

/* Both sides of transfers, with one full block in each slot of the owner. */
typedef struct bed {
    akin_kv_layout_t layout;
    akin_kv_view_t theirs, ours;
    akin_kv_cache_t *from, *to;
    akin_net_t net;
    akin_kv_transfers_t *transfers;
    akin_kv_descriptor_t blocks[THEIRS]; /* by slot */
    uint32_t tokens[THEIRS][BLOCK];
} bed_t;

static akin_kv_view_t create_view(const akin_kv_layout_t *layout,
                                  uint32_t n_slots)
{
    akin_kv_view_t view = {.layout = layout, .n_slots = n_slots};
    view.base = calloc(n_slots, layout->stride_bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(view.base);
    return view;
}

static void fill_block(bed_t *b, uint32_t slot)
{
    unsigned char *p = akin_kv_slot(&b->theirs, slot);
    const akin_kv_layout_t *l = &b->layout;
    memset(p + l->kv_offset, (int)slot + 1, l->kv_bytes);
    for (size_t i = 0; i < l->sidecar_bytes; i++)
        akin_kv_sidecar(l, p)[i] = (uint8_t)(i % 2 == 0 ? 3 : BLOCK - 3);
    for (uint32_t i = 0; i < BLOCK; i++)
        b->tokens[slot][i] = slot * BLOCK + i;
    uint64_t hash = akin_kv_cache_seal(b->from, slot, AKIN_KV_ROOT_HASH,
                                       b->tokens[slot], BLOCK);
    b->blocks[slot] = (akin_kv_descriptor_t){
        .slot = slot,
        .n_tokens = BLOCK,
        .generation = akin_kv_cache_generation(b->from, slot),
        .chain_hash = hash};
}

static void bed_init(bed_t *b, uint32_t head_dim)
{
    memset(b, 0, sizeof(*b));
    const akin_kv_shape_t shape = {.n_layers = 2,
                                   .n_kv_heads = 2,
                                   .head_dim = head_dim,
                                   .n_experts = 2,
                                   .top_k = 1,
                                   .block_tokens = BLOCK};
    CU_ASSERT_EQUAL_FATAL(akin_kv_layout_init(&shape, &b->layout, NULL),
                          AKIN_OK);
    b->theirs = create_view(&b->layout, THEIRS);
    b->ours = create_view(&b->layout, OURS);
    CU_ASSERT_EQUAL_FATAL(akin_kv_cache_create(&b->theirs, 1, &b->from),
                          AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akin_kv_cache_create(&b->ours, 1, &b->to), AKIN_OK);
    uint32_t slots[THEIRS];
    CU_ASSERT_EQUAL_FATAL(akin_kv_cache_take_run(b->from, THEIRS, slots),
                          AKIN_OK);
    for (uint32_t i = 0; i < THEIRS; i++)
        fill_block(b, i);
    b->net.remote = b->theirs.base;
    b->net.remote_bytes = THEIRS * b->layout.stride_bytes;
    b->net.room = FAKE_READS;
    CU_ASSERT_EQUAL_FATAL(
        akin_kv_transfers_create(&b->net, b->to, &b->ours, &b->transfers),
        AKIN_OK);
}

static void check_audit(const bed_t *b)
{
    akin_error_t err = {{0}};
    if (akin_kv_cache_audit(b->to, &err) != AKIN_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        CU_FAIL_FATAL("audit");
    }
}

/* Everything was given back, then the end. */
static void bed_cleanup(bed_t *b)
{
    CU_ASSERT_EQUAL(b->net.n_reads, 0);
    CU_ASSERT_EQUAL(akin_kv_cache_available(b->to), OURS);
    check_audit(b);
    akin_kv_transfers_destroy(b->transfers);
    akin_kv_cache_destroy(b->from);
    akin_kv_cache_destroy(b->to);
    free(b->theirs.base);
    free(b->ours.base);
}

typedef struct outcome {
    uint32_t calls;
    akin_kv_transfer_result_t result;
} outcome_t;

static void on_done(void *arg, const akin_kv_transfer_result_t *result)
{
    outcome_t *outcome = arg;
    outcome->calls++;
    outcome->result = *result;
}

/* Reads the owner's blocks of these numbers into own slots. */
static akin_status_t start(bed_t *b, const uint32_t *numbers,
                           const uint32_t *slots, uint32_t n,
                           int64_t deadline_ns, outcome_t *outcome,
                           uint64_t *id_p)
{
    akin_kv_descriptor_t blocks[THEIRS];
    for (uint32_t i = 0; i < n; i++)
        blocks[i] = b->blocks[numbers[i]];
    const akin_kv_transfer_params_t params = {.owner = 1,
                                              .blocks = blocks,
                                              .slots = slots,
                                              .n_blocks = n,
                                              .deadline_ns = deadline_ns,
                                              .done = on_done,
                                              .arg = outcome};
    memset(outcome, 0, sizeof(*outcome));
    return akin_kv_transfers_start(b->transfers, &params, id_p);
}

static void unref_all(bed_t *b, const uint32_t *slots, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        akin_kv_cache_unref(b->to, slots[i]);
}

static void check_copy(const bed_t *b, uint32_t number, uint32_t slot)
{
    const akin_kv_layout_t *l = &b->layout;
    unsigned char *ours = akin_kv_slot(&b->ours, slot);
    const unsigned char *theirs = akin_kv_slot(&b->theirs, number);
    CU_ASSERT_EQUAL(memcmp(ours + l->kv_offset, theirs + l->kv_offset,
                           l->kv_bytes + l->sidecar_bytes),
                    0);
    akin_kv_descriptor_t d = b->blocks[number];
    d.generation = akin_kv_cache_generation(b->to, slot);
    CU_ASSERT_EQUAL(akin_kv_block_check(l, ours, &d), AKIN_KV_REFUSAL_NONE);
}

static const uint32_t six[] = {10, 11, 12, 20, 21, 4};

/* Takes 0 .. 5; the runs 0 1 2 and 4 5 of `six` fit those of the slots. */
static void take_six(bed_t *b, uint32_t *slots)
{
    CU_ASSERT_EQUAL_FATAL(akin_kv_cache_take_run(b->to, 6, slots), AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(slots[5], 5);
}

static void test_pieces(void)
{
    bed_t b;
    bed_init(&b, 2);
    const size_t stride = b.layout.stride_bytes;
    const size_t payload = b.layout.payload_bytes;
    uint32_t slots[6];
    uint64_t id = 0;
    outcome_t outcome;
    take_six(&b, slots);
    memset(akin_kv_slot(&b.ours, 3) - 1, 0x5a, 1);
    CU_ASSERT_EQUAL_FATAL(start(&b, six, slots, 6, INT64_MAX, &outcome, &id),
                          AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(b.net.n_reads, 3);
    CU_ASSERT_EQUAL(b.net.reads[0].offset, 10 * stride);
    CU_ASSERT_EQUAL(b.net.reads[0].bytes, 2 * stride + payload);
    CU_ASSERT_PTR_EQUAL(b.net.reads[0].local, akin_kv_slot(&b.ours, 0));
    CU_ASSERT_EQUAL(b.net.reads[1].offset, 20 * stride);
    CU_ASSERT_EQUAL(b.net.reads[1].bytes, stride + payload);
    CU_ASSERT_EQUAL(b.net.reads[2].offset, 4 * stride);
    CU_ASSERT_EQUAL(b.net.reads[2].bytes, payload);
    CU_ASSERT_PTR_EQUAL(b.net.reads[2].local, akin_kv_slot(&b.ours, 5));
    fake_net_complete(&b.net, 2, AKIN_OK);
    fake_net_complete(&b.net, 0, AKIN_OK);
    CU_ASSERT_EQUAL(outcome.calls, 0);
    fake_net_complete(&b.net, 0, AKIN_OK);
    CU_ASSERT_EQUAL(outcome.calls, 1);
    CU_ASSERT_EQUAL(outcome.result.status, AKIN_OK);
    CU_ASSERT_EQUAL(outcome.result.n_blocks, 6);
    CU_ASSERT_EQUAL(outcome.result.bytes, 3 * stride + 3 * payload);
    for (uint32_t i = 0; i < 6; i++) {
        check_copy(&b, six[i], slots[i]);
        CU_ASSERT_EQUAL(akin_kv_cache_adopt(b.to, slots[i], AKIN_KV_ROOT_HASH,
                                            &b.blocks[six[i]],
                                            b.tokens[six[i]]),
                        AKIN_OK);
    }
    /* The padding of a piece's last block was left alone. */
    CU_ASSERT_EQUAL(*(akin_kv_slot(&b.ours, 3) - 1), 0x5a);
    unref_all(&b, slots, 6);
    uint32_t found;
    CU_ASSERT_EQUAL(akin_kv_cache_match(b.to, b.tokens[21], BLOCK, 1, &found),
                    1);
    CU_ASSERT_EQUAL(found, slots[4]);
    akin_kv_cache_unref(b.to, found);
    akin_kv_transfer_stats_t stats;
    akin_kv_transfers_stats(b.transfers, &stats);
    CU_ASSERT_EQUAL(stats.pieces, 3);
    CU_ASSERT_EQUAL(stats.blocks, 6);
    CU_ASSERT_EQUAL(stats.bytes, outcome.result.bytes);
    bed_cleanup(&b);
}

/* The window and the size of a piece bound what is under way. */
static void check_window(int is_one_sided, size_t most_bytes, uint32_t n_reads)
{
    bed_t b;
    bed_init(&b, 8192); /* 1 MiB of KV per block, so 3 blocks per piece */
    b.net.is_one_sided = is_one_sided;
    CU_ASSERT_EQUAL_FATAL(b.layout.kv_bytes, 1u << 20);
    uint32_t slots[OURS], numbers[OURS];
    uint64_t id = 0;
    outcome_t outcome;
    CU_ASSERT_EQUAL_FATAL(akin_kv_cache_take_run(b.to, OURS, slots), AKIN_OK);
    for (uint32_t i = 0; i < OURS; i++)
        numbers[i] = i;
    CU_ASSERT_EQUAL_FATAL(
        start(&b, numbers, slots, OURS, INT64_MAX, &outcome, &id), AKIN_OK);
    while (b.net.n_reads > 0) {
        size_t flying = 0;
        for (uint32_t i = 0; i < b.net.n_reads; i++) {
            flying += b.net.reads[i].bytes;
            CU_ASSERT(b.net.reads[i].bytes <= 4u << 20);
        }
        CU_ASSERT(flying <= most_bytes);
        CU_ASSERT(b.net.n_reads == n_reads || b.net.n_started == 11);
        fake_net_complete(&b.net, b.net.n_reads / 2, AKIN_OK);
    }
    CU_ASSERT_EQUAL(b.net.n_started, 11);
    CU_ASSERT_EQUAL(outcome.calls, 1);
    CU_ASSERT_EQUAL(outcome.result.status, AKIN_OK);
    for (uint32_t i = 0; i < OURS; i++)
        check_copy(&b, i, slots[i]);
    unref_all(&b, slots, OURS);
    bed_cleanup(&b);
}

static void test_window(void)
{
    check_window(1, (size_t)8 << 20, 2);
    check_window(0, (size_t)32 << 20, 10);
}

/* One bad block ends the transfer; the others' slots wait for their reads. */
static void check_refusal(void (*damage)(bed_t *b), akin_kv_refusal_t refusal)
{
    bed_t b;
    bed_init(&b, 2);
    uint32_t slots[6];
    uint64_t id = 0;
    outcome_t outcome;
    take_six(&b, slots);
    CU_ASSERT_EQUAL_FATAL(start(&b, six, slots, 6, INT64_MAX, &outcome, &id),
                          AKIN_OK);
    damage(&b);
    fake_net_complete(&b.net, 1, AKIN_OK);
    CU_ASSERT_EQUAL(outcome.calls, 1);
    CU_ASSERT_EQUAL(outcome.result.status, AKIN_ERR_REFUSED);
    CU_ASSERT_EQUAL(outcome.result.refusal, refusal);
    CU_ASSERT_EQUAL(outcome.result.refused_block, 4);
    CU_ASSERT_EQUAL(outcome.result.n_blocks, 1);
    unref_all(&b, slots, 6);
    CU_ASSERT_EQUAL(akin_kv_cache_available(b.to), OURS - 4);
    fake_net_complete_all(&b.net, AKIN_OK);
    CU_ASSERT_EQUAL(outcome.calls, 1);
    akin_kv_transfer_stats_t stats;
    akin_kv_transfers_stats(b.transfers, &stats);
    CU_ASSERT_EQUAL(stats.refused[refusal], 1);
    CU_ASSERT_EQUAL(stats.failed, 0);
    bed_cleanup(&b);
}

static void flip_bit(bed_t *b)
{
    akin_kv_slot(&b->theirs, 21)[b->layout.kv_offset + 17] ^= 4;
}

static void move_on(bed_t *b)
{
    akin_kv_cache_unref(b->from, 21);
    uint32_t slot;
    while (akin_kv_cache_take(b->from, &slot) == AKIN_OK)
        continue;
}

static void lose_choice(bed_t *b)
{
    unsigned char *slot = akin_kv_slot(&b->theirs, 21);
    akin_kv_sidecar(&b->layout, slot)[1]--;
    akin_kv_block_seal(&b->layout, slot, b->blocks[21].chain_hash, BLOCK);
}

static void test_refusals(void)
{
    check_refusal(flip_bit, AKIN_KV_REFUSAL_CHECKSUM);
    check_refusal(move_on, AKIN_KV_REFUSAL_GENERATION);
    check_refusal(lose_choice, AKIN_KV_REFUSAL_CONSERVATION);
}

static void test_timeout_and_cancel(void)
{
    bed_t b;
    bed_init(&b, 2);
    uint32_t slots[6];
    uint64_t first = 0, second = 0;
    outcome_t a, c;
    take_six(&b, slots);
    CU_ASSERT_EQUAL(akin_kv_transfers_expire(b.transfers, 1), INT64_MAX);
    CU_ASSERT_EQUAL_FATAL(start(&b, six, slots, 3, 100, &a, &first), AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(start(&b, six + 3, slots + 3, 3, 200, &c, &second),
                          AKIN_OK);
    CU_ASSERT_EQUAL(akin_kv_transfers_expire(b.transfers, 99), 100);
    CU_ASSERT_EQUAL(a.calls, 0);
    CU_ASSERT_EQUAL(akin_kv_transfers_expire(b.transfers, 100), 200);
    CU_ASSERT_EQUAL(a.calls, 1);
    CU_ASSERT_EQUAL(a.result.status, AKIN_ERR_TIMEOUT);
    CU_ASSERT_EQUAL(c.calls, 0);
    akin_kv_transfers_cancel(b.transfers, first);
    CU_ASSERT_EQUAL(a.calls, 1);
    akin_kv_transfers_cancel(b.transfers, second);
    CU_ASSERT_EQUAL(c.calls, 1);
    CU_ASSERT_EQUAL(c.result.status, AKIN_ERR_CANCELED);
    CU_ASSERT_EQUAL(akin_kv_transfers_expire(b.transfers, 1000), INT64_MAX);
    unref_all(&b, slots, 6);
    /* UCX may still write to all six. */
    CU_ASSERT_EQUAL(akin_kv_cache_available(b.to), OURS - 6);
    fake_net_complete(&b.net, 0, AKIN_OK);
    CU_ASSERT_EQUAL(akin_kv_cache_available(b.to), OURS - 3);
    fake_net_complete_all(&b.net, AKIN_ERR_PEER);
    CU_ASSERT_EQUAL(a.calls + c.calls, 2);
    akin_kv_transfer_stats_t stats;
    akin_kv_transfers_stats(b.transfers, &stats);
    CU_ASSERT_EQUAL(stats.failed, 2);
    bed_cleanup(&b);
}

static void test_peer_loss(void)
{
    bed_t b;
    bed_init(&b, 2);
    uint32_t slots[6];
    uint64_t id = 0;
    outcome_t outcome;
    take_six(&b, slots);
    CU_ASSERT_EQUAL_FATAL(start(&b, six, slots, 6, INT64_MAX, &outcome, &id),
                          AKIN_OK);
    fake_net_complete(&b.net, 0, AKIN_OK);
    fake_net_complete_all(&b.net, AKIN_ERR_PEER);
    CU_ASSERT_EQUAL(outcome.calls, 1);
    CU_ASSERT_EQUAL(outcome.result.status, AKIN_ERR_PEER);
    unref_all(&b, slots, 6);
    bed_cleanup(&b);
}

/* A start that fails half-way calls nobody and keeps what is being read. */
static void test_failed_start(void)
{
    bed_t b;
    bed_init(&b, 2);
    uint32_t slots[6];
    uint64_t id = 77;
    outcome_t outcome;
    take_six(&b, slots);
    b.net.fail_status = AKIN_ERR_UCX;
    b.net.fail_number = 1;
    CU_ASSERT_EQUAL(start(&b, six, slots, 6, INT64_MAX, &outcome, &id),
                    AKIN_ERR_PEER);
    CU_ASSERT_EQUAL(b.net.n_reads, 0);
    b.net.fail_status = AKIN_ERR_NOMEM;
    b.net.fail_number = 3;
    CU_ASSERT_EQUAL(start(&b, six, slots, 6, INT64_MAX, &outcome, &id),
                    AKIN_ERR_NOMEM);
    CU_ASSERT_EQUAL(b.net.n_reads, 2);
    CU_ASSERT_EQUAL(id, 77);
    unref_all(&b, slots, 6);
    CU_ASSERT_EQUAL(akin_kv_cache_available(b.to), OURS - 5);
    fake_net_complete_all(&b.net, AKIN_OK);
    CU_ASSERT_EQUAL(outcome.calls, 0);
    bed_cleanup(&b);
}

static void test_bad_params(void)
{
    bed_t b;
    bed_init(&b, 2);
    uint32_t slots[6];
    const uint32_t outside[1] = {OURS};
    uint64_t id = 0;
    outcome_t outcome;
    take_six(&b, slots);
    CU_ASSERT_EQUAL(start(&b, six, slots, 0, INT64_MAX, &outcome, &id),
                    AKIN_ERR_RANGE);
    CU_ASSERT_EQUAL(start(&b, six, outside, 1, INT64_MAX, &outcome, &id),
                    AKIN_ERR_RANGE);
    b.blocks[10].n_tokens = BLOCK + 1;
    CU_ASSERT_EQUAL(start(&b, six, slots, 6, INT64_MAX, &outcome, &id),
                    AKIN_ERR_RANGE);
    b.blocks[10].n_tokens = BLOCK;
    b.blocks[10].slot = UINT32_MAX;
    CU_ASSERT_EQUAL(start(&b, six, slots, 6, INT64_MAX, &outcome, &id),
                    AKIN_ERR_RANGE);
    unref_all(&b, slots, 6);
    bed_cleanup(&b);
}

/* Reads that outlive their transfers, their cache and its slab's view. */
static void test_destroy(void)
{
    bed_t b;
    bed_init(&b, 2);
    uint32_t slots[6];
    uint64_t first = 0, second = 0;
    outcome_t a, c;
    take_six(&b, slots);
    CU_ASSERT_EQUAL_FATAL(start(&b, six, slots, 3, 5, &a, &first), AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(start(&b, six + 3, slots + 3, 3, 9, &c, &second),
                          AKIN_OK);
    (void)akin_kv_transfers_expire(b.transfers, 5);
    akin_kv_transfers_destroy(b.transfers);
    CU_ASSERT_EQUAL(a.result.status, AKIN_ERR_TIMEOUT);
    CU_ASSERT_EQUAL(c.result.status, AKIN_ERR_CANCELED);
    akin_kv_cache_destroy(b.from);
    akin_kv_cache_destroy(b.to);
    fake_net_complete_all(&b.net, AKIN_ERR_CANCELED);
    CU_ASSERT_EQUAL(a.calls, 1);
    CU_ASSERT_EQUAL(c.calls, 1);
    free(b.theirs.base);
    free(b.ours.base);
    akin_kv_transfers_destroy(NULL);
}

/* One request of the random test. */
typedef struct job {
    uint32_t slots[6], numbers[6];
    uint32_t n;
    uint64_t id;
    outcome_t outcome;
    int is_started;
} job_t;

static void start_job(bed_t *b, job_t *job, uint64_t key, uint64_t *draws)
{
    job->n = 1 + (uint32_t)akin_rng_below(key, 0, (*draws)++, 6);
    if (akin_kv_cache_take_run(b->to, job->n, job->slots) != AKIN_OK)
        return;
    uint32_t first = (uint32_t)akin_rng_below(key, 0, (*draws)++, THEIRS);
    uint32_t step = 1 + (uint32_t)akin_rng_below(key, 0, (*draws)++, 2);
    for (uint32_t i = 0; i < job->n; i++)
        job->numbers[i] = (first + i * step) % THEIRS;
    int64_t deadline = (int64_t)akin_rng_below(key, 0, (*draws)++, 4000);
    job->is_started = start(b, job->numbers, job->slots, job->n, deadline,
                            &job->outcome, &job->id) == AKIN_OK;
    if (!job->is_started)
        unref_all(b, job->slots, job->n);
}

static void end_job(bed_t *b, job_t *job)
{
    CU_ASSERT_EQUAL_FATAL(job->outcome.calls, 1);
    for (uint32_t i = 0; i < job->n; i++)
        if (job->outcome.result.status == AKIN_OK)
            check_copy(b, job->numbers[i], job->slots[i]);
    unref_all(b, job->slots, job->n);
    job->is_started = 0;
}

/* Reads that complete in any order and status, transfers that are canceled
 * and expire, a net that is full: every start ends once, no slot is lost. */
static void test_random(void)
{
    for (uint64_t key = 1; key <= 10; key++) {
        bed_t b;
        bed_init(&b, 2);
        b.net.room = 4;
        job_t jobs[8] = {0};
        uint64_t draws = 0, started = 0, ended = 0, ok = 0;
        for (int64_t now = 0; now < 3000; now++) {
            job_t *job = &jobs[akin_rng_below(key, 0, draws++, 8)];
            uint64_t what = akin_rng_below(key, 0, draws++, 100);
            b.net.fail_number = akin_rng_below(key, 0, draws++, 50) == 0
                                    ? b.net.n_started + 1
                                    : 0;
            b.net.fail_status = AKIN_ERR_PEER;
            if (!job->is_started) {
                start_job(&b, job, key, &draws);
                started += (uint64_t)job->is_started;
            } else if (what < 3) {
                akin_kv_transfers_cancel(b.transfers, job->id);
            }
            if (b.net.n_reads > 0 && what < 70)
                fake_net_complete(
                    &b.net,
                    (uint32_t)akin_rng_below(key, 0, draws++, b.net.n_reads),
                    what < 68 ? AKIN_OK : AKIN_ERR_PEER);
            (void)akin_kv_transfers_expire(b.transfers, now);
            for (int i = 0; i < 8; i++)
                if (jobs[i].is_started && jobs[i].outcome.calls > 0) {
                    ok += jobs[i].outcome.result.status == AKIN_OK;
                    ended++;
                    end_job(&b, &jobs[i]);
                }
            check_audit(&b);
        }
        (void)akin_kv_transfers_expire(b.transfers, INT64_MAX - 1);
        for (int i = 0; i < 8; i++)
            if (jobs[i].is_started) {
                ended++;
                end_job(&b, &jobs[i]);
            }
        fake_net_complete_all(&b.net, AKIN_OK);
        CU_ASSERT_EQUAL(started, ended);
        CU_ASSERT(ok > 100);
        bed_cleanup(&b);
    }
}

#ifdef AKIN_FAULTS
static void test_faults(void)
{
    bed_t b;
    bed_init(&b, 2);
    akin_kv_transfers_destroy(b.transfers);
    CU_ASSERT_EQUAL(setenv("AKIN_FAULT_KV", "flip-kv:0", 1), 0);
    CU_ASSERT_EQUAL(
        akin_kv_transfers_create(&b.net, b.to, &b.ours, &b.transfers),
        AKIN_ERR_CONFIG);
    CU_ASSERT_PTR_NULL(b.transfers);
    CU_ASSERT_EQUAL(
        setenv("AKIN_FAULT_KV",
               "flip-kv:4,flip-header:5,flip-sidecar:6,stale-generation:7", 1),
        0);
    CU_ASSERT_EQUAL_FATAL(
        akin_kv_transfers_create(&b.net, b.to, &b.ours, &b.transfers), AKIN_OK);
    /* The bit of the header is one of its generation. */
    const akin_kv_refusal_t expected[7] = {[3] = AKIN_KV_REFUSAL_CHECKSUM,
                                           [4] = AKIN_KV_REFUSAL_GENERATION,
                                           [5] = AKIN_KV_REFUSAL_CHECKSUM,
                                           [6] = AKIN_KV_REFUSAL_GENERATION};
    for (uint32_t i = 0; i < 7; i++) {
        uint32_t slot;
        uint64_t id;
        outcome_t outcome;
        CU_ASSERT_EQUAL_FATAL(akin_kv_cache_take(b.to, &slot), AKIN_OK);
        CU_ASSERT_EQUAL_FATAL(start(&b, &i, &slot, 1, INT64_MAX, &outcome, &id),
                              AKIN_OK);
        fake_net_complete_all(&b.net, AKIN_OK);
        CU_ASSERT_EQUAL(outcome.result.refusal, expected[i]);
        akin_kv_cache_unref(b.to, slot);
    }
    CU_ASSERT_EQUAL(unsetenv("AKIN_FAULT_KV"), 0);
    bed_cleanup(&b);
}
#endif

static const runner_test_t tests[] = {
    {"pieces and their checks", test_pieces},
    {"window", test_window},
    {"refused blocks", test_refusals},
    {"timeout and cancel", test_timeout_and_cancel},
    {"peer loss", test_peer_loss},
    {"failed start", test_failed_start},
    {"bad parameters", test_bad_params},
    {"destroy with running reads", test_destroy},
    {"random order, losses and cancels", test_random},
#ifdef AKIN_FAULTS
    {"fault switches", test_faults},
#endif
};

RUNNER_MAIN("kv transfer", tests)
