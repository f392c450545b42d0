/* bench kv: two ranks, one reads the other's blocks over the net and over bare
 * UCX in turn. */
#include "launch/bench_kv.h"

#include "base/clock.h"
#include "kv/transfer.h"
#include "launch/bare_ucx.h"
#include "net/boot.h"
#include "net/net.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define N_BLOCKS 64u
#define BLOCK_TOKENS 16u
#define DEFAULT_ROUNDS 50u
#define LIMIT_NS (600 * AKIN_NS_PER_S)
/* As transfers cut and overlap their reads. */
#define PIECE_BYTES ((size_t)4 << 20)
#define ONE_SIDED_READS 2u
#define RENDEZVOUS_READS 8u

enum { TYPE_BLOCKS = 1, TYPE_WARM, TYPE_BYE };
enum { CASE_READ, CASE_TRANSFER, CASE_SIDECAR, N_CASES };

static const char *const case_names[N_CASES] = {"read", "transfer", "sidecar"};
static const uint32_t run_blocks[] = {1, 4, 16, N_BLOCKS};

typedef struct bench {
    uint32_t rank;
    akin_net_t *net;
    akin_bare_ucx_t *bare;
    akin_kv_layout_t layout; /* with sidecar */
    akin_kv_layout_t plain;  /* as good as without */
    akin_kv_view_t view;
    akin_kv_cache_t *cache;
    akin_kv_transfers_t *transfers;
    akin_kv_descriptor_t blocks[N_BLOCKS];
    uint32_t slots[N_BLOCKS];
    akin_bench_rounds_t rounds[N_CASES];
    int has_blocks, is_warm, is_bye;
    uint32_t n_flying;
    akin_status_t read_status;
} bench_t;

static void on_message(void *arg, uint32_t from, uint16_t type,
                       const void *payload, size_t bytes)
{
    bench_t *b = arg;
    (void)from;
    if (type == TYPE_BLOCKS && bytes == sizeof(b->blocks)) {
        memcpy(b->blocks, payload, bytes);
        b->has_blocks = 1;
    }
    b->is_warm |= type == TYPE_WARM;
    b->is_bye |= type == TYPE_BYE;
}

static void on_lost(void *arg, uint32_t rank, akin_status_t status)
{
    bench_t *b = arg;
    (void)rank;
    (void)status;
    b->is_bye = 1;
}

static akin_status_t create_bench(bench_t *b, akin_boot_t *boot,
                                  akin_error_t *err)
{
    akin_kv_shape_t shape = {.n_layers = 48,
                             .n_kv_heads = 4,
                             .head_dim = 128,
                             .n_experts = 128,
                             .top_k = 8,
                             .block_tokens = BLOCK_TOKENS};
    akin_status_t status = akin_kv_layout_init(&shape, &b->layout, err);
    shape.n_experts = shape.top_k = 1;
    if (status == AKIN_OK)
        status = akin_kv_layout_init(&shape, &b->plain, err);
    if (status != AKIN_OK)
        return status;
    b->rank = akin_boot_rank(boot);
    const size_t slab_bytes = N_BLOCKS * b->layout.stride_bytes;
    const akin_net_params_t params = {
        .rank = b->rank,
        .n_ranks = 2,
        .slab_bytes = slab_bytes,
        .events = {.message = on_message, .peer_lost = on_lost, .arg = b}};
    status = akin_net_create(&params, &b->net, err);
    if (status == AKIN_OK)
        status = akin_bare_ucx_create(slab_bytes, &b->bare, err);
    if (status != AKIN_OK)
        return status;
    /* No page is met for the first time during a measurement. */
    memset(akin_net_slab(b->net), 1, slab_bytes);
    memset(akin_bare_ucx_slab(b->bare), 1, slab_bytes);
    b->view = (akin_kv_view_t){.layout = &b->layout,
                               .base = akin_net_slab(b->net),
                               .n_slots = N_BLOCKS};
    status = akin_kv_cache_create(&b->view, 0, &b->cache);
    if (status == AKIN_OK)
        status = akin_kv_cache_take_run(b->cache, N_BLOCKS, b->slots);
    if (status == AKIN_OK)
        status =
            akin_kv_transfers_create(b->net, b->cache, &b->view, &b->transfers);
    return status == AKIN_OK ? AKIN_OK
                             : akin_error_set(err, status, "KV cache: %s",
                                              akin_status_string(status));
}

/* Both connections, each by its own identity. */
static akin_status_t connect_bench(bench_t *b, akin_boot_t *boot,
                                   akin_error_t *err)
{
    const uint32_t other = 1 - b->rank;
    for (int is_bare = 0; is_bare < 2; is_bare++) {
        void *blob = NULL;
        size_t bytes = 0, *offsets = NULL;
        unsigned char *blobs = NULL;
        akin_status_t status =
            is_bare ? akin_bare_ucx_identity(b->bare, &blob, &bytes, err)
                    : akin_net_identity(b->net, &blob, &bytes, err);
        /* Both ranks have to come to the exchange. */
        status = akin_boot_agree(boot, status, err);
        if (status == AKIN_OK)
            status =
                akin_boot_exchange(boot, blob, bytes, &blobs, &offsets, err);
        if (status == AKIN_OK && is_bare)
            status =
                akin_bare_ucx_connect(b->bare, blobs + offsets[other],
                                      offsets[other + 1] - offsets[other], err);
        else if (status == AKIN_OK)
            status =
                akin_net_add_peer(b->net, other, blobs + offsets[other],
                                  offsets[other + 1] - offsets[other], err);
        free(blob);
        free(blobs);
        free(offsets);
        status = akin_boot_agree(boot, status, err);
        if (status != AKIN_OK)
            return status;
    }
    return AKIN_OK;
}

/* Blocks as a prefill leaves them: every gate spreads its choices. */
static void fill_block(bench_t *b, uint32_t i)
{
    unsigned char *p = akin_kv_slot(&b->view, b->slots[i]);
    const akin_kv_shape_t *shape = &b->layout.shape;
    memset(p + b->layout.kv_offset, (int)(i + 1), b->layout.kv_bytes);
    uint8_t *counts = akin_kv_sidecar(&b->layout, p);
    memset(counts, 0, b->layout.sidecar_bytes);
    for (uint32_t l = 0; l < shape->n_layers; l++)
        for (uint32_t c = 0; c < BLOCK_TOKENS * shape->top_k; c++)
            counts[l * shape->n_experts + (c * 7 + l) % shape->n_experts]++;
    uint32_t tokens[BLOCK_TOKENS] = {i};
    uint64_t hash = akin_kv_cache_seal(b->cache, b->slots[i], AKIN_KV_ROOT_HASH,
                                       tokens, BLOCK_TOKENS);
    b->blocks[i] = (akin_kv_descriptor_t){
        .slot = b->slots[i],
        .n_tokens = BLOCK_TOKENS,
        .generation = akin_kv_cache_generation(b->cache, b->slots[i]),
        .chain_hash = hash};
}

/* The owner answers where it has to, and sleeps where reads go without it. */
static akin_status_t serve(bench_t *b)
{
    const int64_t limit_ns = akin_clock_now_ns() + LIMIT_NS;
    for (uint32_t i = 0; i < N_BLOCKS; i++)
        fill_block(b, i);
    akin_status_t status =
        akin_net_send(b->net, 0, TYPE_BLOCKS, b->blocks, sizeof(b->blocks));
    while (status == AKIN_OK && !b->is_bye) {
        if (b->is_warm && akin_net_is_one_sided(b->net, 0)) {
            status = akin_net_wait(b->net, limit_ns);
            continue;
        }
        (void)akin_net_poll(b->net);
        akin_bare_ucx_progress(b->bare);
        if (akin_clock_now_ns() > limit_ns)
            status = AKIN_ERR_TIMEOUT;
    }
    return status;
}

static akin_status_t wait_net(bench_t *b)
{
    if (b->is_bye)
        return AKIN_ERR_PEER;
    return akin_net_wait(b->net, akin_clock_now_ns() + 30 * AKIN_NS_PER_S);
}

static void on_read(void *arg, akin_status_t status)
{
    bench_t *b = arg;
    b->n_flying--;
    if (status != AKIN_OK)
        b->read_status = status;
}

/* A run read as transfers read it, without a look at what arrived. */
static akin_status_t read_run(bench_t *b, size_t bytes)
{
    akin_status_t status = AKIN_OK;
    b->read_status = AKIN_OK;
    const uint32_t window =
        akin_net_is_one_sided(b->net, 1) ? ONE_SIDED_READS : RENDEZVOUS_READS;
    for (size_t at = 0; status == AKIN_OK && (at < bytes || b->n_flying > 0);) {
        if (at < bytes && b->n_flying < window) {
            size_t piece = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
            status = akin_net_read(b->net, 1, at, b->view.base + at, piece,
                                   on_read, b);
            b->n_flying += status == AKIN_OK;
            at += piece;
        } else {
            status = wait_net(b);
        }
    }
    return status != AKIN_OK ? status : b->read_status;
}

static void on_done(void *arg, const akin_kv_transfer_result_t *result)
{
    *(akin_kv_transfer_result_t *)arg = *result;
}

static akin_status_t transfer_run(bench_t *b, uint32_t n)
{
    /* No transfer ends with this status. */
    akin_kv_transfer_result_t result = {.status = AKIN_ERR_BUSY};
    uint64_t id;
    const akin_kv_transfer_params_t params = {.owner = 1,
                                              .blocks = b->blocks,
                                              .slots = b->slots,
                                              .n_blocks = n,
                                              .deadline_ns = INT64_MAX,
                                              .done = on_done,
                                              .arg = &result};
    akin_status_t status = akin_kv_transfers_start(b->transfers, &params, &id);
    while (status == AKIN_OK && result.status == AKIN_ERR_BUSY)
        status = wait_net(b);
    if (status != AKIN_OK && result.status == AKIN_ERR_BUSY)
        akin_kv_transfers_cancel(b->transfers, id);
    return status != AKIN_OK ? status : result.status;
}

enum { TIME_READ, TIME_PLAIN, TIME_TRANSFER, TIME_BARE, N_TIMES };

static akin_status_t time_once(bench_t *b, int what, uint32_t n,
                               double *seconds_p)
{
    const size_t bytes =
        (n - 1) * b->layout.stride_bytes + b->layout.payload_bytes;
    const size_t plain_bytes =
        (n - 1) * b->plain.stride_bytes + b->plain.payload_bytes;
    akin_status_t status = AKIN_ERR_INTERNAL;
    int64_t begin = akin_clock_now_ns();
    switch (what) {
    case TIME_READ:
        status = read_run(b, bytes);
        break;
    case TIME_PLAIN:
        status = read_run(b, plain_bytes);
        break;
    case TIME_TRANSFER:
        status = transfer_run(b, n);
        break;
    case TIME_BARE:
        status = akin_bare_ucx_read(b->bare, bytes,
                                    akin_net_is_one_sided(b->net, 1));
        break;
    }
    *seconds_p = (double)(akin_clock_now_ns() - begin) / (double)AKIN_NS_PER_S;
    return status;
}

/* All cases of one run length. Each is run twice and timed once, so that every
 * one finds in the caches what it left there itself, not what the case before
 * it did; the order changes from round to round. */
static akin_status_t measure(bench_t *b, uint32_t n, uint32_t n_rounds)
{
    double times[N_TIMES];
    for (uint32_t r = 0; r <= n_rounds; r++) {
        for (uint32_t i = 0; i < 2 * N_TIMES; i++) {
            int what = (int)((i / 2 + r) % N_TIMES);
            akin_status_t status = time_once(b, what, n, &times[what]);
            if (status != AKIN_OK)
                return status;
        }
        if (r == 0)
            continue; /* the first round warms up */
        for (int c = 0; c < N_CASES; c++)
            b->rounds[c].n = r;
        b->rounds[CASE_READ].seconds[r - 1] = times[TIME_READ];
        b->rounds[CASE_READ].reference[r - 1] = times[TIME_BARE];
        b->rounds[CASE_TRANSFER].seconds[r - 1] = times[TIME_TRANSFER];
        b->rounds[CASE_TRANSFER].reference[r - 1] = times[TIME_BARE];
        b->rounds[CASE_SIDECAR].seconds[r - 1] = times[TIME_READ];
        b->rounds[CASE_SIDECAR].reference[r - 1] = times[TIME_PLAIN];
    }
    return AKIN_OK;
}

static json_t *describe_case(const bench_t *b, int c, uint32_t n)
{
    akin_bench_medians_t m;
    akin_bench_medians(&b->rounds[c], &m);
    const size_t bytes =
        (n - 1) * b->layout.stride_bytes + b->layout.payload_bytes;
    return json_pack("{s:s, s:s, s:I, s:I, s:s, s:I, s:f, s:f, s:f, s:f}",
                     "bench", "kv", "case", case_names[c], "blocks",
                     (json_int_t)n, "bytes", (json_int_t)bytes, "transport",
                     akin_net_path(b->net, 1), "rounds",
                     (json_int_t)b->rounds[c].n, "bytes_per_second",
                     (double)bytes / m.seconds, "seconds", m.seconds,
                     "reference_seconds", m.reference_seconds, "ratio",
                     c == CASE_SIDECAR ? 1.0 / m.reference_over_ours
                                       : m.reference_over_ours);
}

static akin_status_t read_all(bench_t *b, uint32_t n_rounds, json_t *cases)
{
    akin_status_t status = AKIN_OK;
    while (status == AKIN_OK && !b->has_blocks)
        status = wait_net(b);
    double seconds;
    for (int what = 0; status == AKIN_OK && what < N_TIMES; what++)
        status = time_once(b, what, N_BLOCKS, &seconds);
    if (status == AKIN_OK)
        status = akin_net_send(b->net, 1, TYPE_WARM, NULL, 0);
    const size_t n_runs = sizeof(run_blocks) / sizeof(run_blocks[0]);
    for (size_t i = 0; status == AKIN_OK && i < n_runs; i++) {
        status = measure(b, run_blocks[i], n_rounds);
        for (int c = 0; status == AKIN_OK && c < N_CASES; c++)
            if (json_array_append_new(cases,
                                      describe_case(b, c, run_blocks[i])) != 0)
                status = AKIN_ERR_NOMEM;
    }
    if (akin_net_has_peer(b->net, 1)) {
        akin_status_t sent = akin_net_send(b->net, 1, TYPE_BYE, NULL, 0);
        if (status == AKIN_OK)
            status = sent;
    }
    return status;
}

static void print_table(FILE *out, const json_t *cases)
{
    (void)fprintf(out, "%-9s %6s %11s %9s %9s %6s  %s\n", "case", "blocks",
                  "bytes", "us", "ref. us", "ratio", "transport");
    size_t i;
    const json_t *c;
    json_array_foreach(cases, i, c)
    {
        (void)fprintf(
            out, "%-9s %6d %11lld %9.1f %9.1f %6.3f  %s\n",
            json_string_value(json_object_get(c, "case")),
            (int)json_integer_value(json_object_get(c, "blocks")),
            (long long)json_integer_value(json_object_get(c, "bytes")),
            json_real_value(json_object_get(c, "seconds")) * 1e6,
            json_real_value(json_object_get(c, "reference_seconds")) * 1e6,
            json_real_value(json_object_get(c, "ratio")),
            json_string_value(json_object_get(c, "transport")));
    }
    (void)fprintf(out, "read, transfer: ratio = bare UCX / ours, 1 is the "
                       "limit; sidecar: with / without\n");
}

static akin_status_t run_reader(bench_t *b,
                                const akin_bench_kv_params_t *params, FILE *out,
                                akin_error_t *err)
{
    json_t *cases = json_array();
    akin_status_t status = read_all(
        b, params->rounds != 0 ? params->rounds : DEFAULT_ROUNDS, cases);
    if (status != AKIN_OK) {
        json_decref(cases);
        return akin_error_set(err, status, "reading blocks: %s",
                              akin_status_string(status));
    }
    int failed = 0;
    if (params->json)
        failed = json_dumpf(cases, out, JSON_INDENT(2)) != 0 ||
                 fputc('\n', out) == EOF;
    else
        print_table(out, cases);
    json_decref(cases);
    return failed || fflush(out) != 0
               ? akin_error_set(err, AKIN_ERR_IO, "cannot write the result")
               : AKIN_OK;
}

akin_status_t akin_bench_kv(const akin_bench_kv_params_t *params, FILE *out,
                            akin_error_t *err)
{
    static bench_t b;
    akin_boot_t *boot = NULL;
    if (params->rounds > AKIN_BENCH_MAX_ROUNDS)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "rounds is %u, but must be at most %u",
                              params->rounds, AKIN_BENCH_MAX_ROUNDS);
    akin_boot_set_environment();
    akin_status_t status = akin_boot_start(&boot, err);
    if (status != AKIN_OK)
        return status;
    uint32_t size = akin_boot_size(boot);
    if (size != 2)
        status = akin_error_set(err, AKIN_ERR_INVALID,
                                "bench kv needs two ranks, not %u: start it "
                                "as \"mpirun -n 2 akin bench kv\"",
                                (unsigned)size);
    if (status == AKIN_OK)
        status = akin_boot_agree(boot, create_bench(&b, boot, err), err);
    if (status == AKIN_OK)
        status = connect_bench(&b, boot, err);
    akin_boot_finish(boot);
    if (status == AKIN_OK && b.rank == 0)
        status = run_reader(&b, params, out, err);
    else if (status == AKIN_OK)
        status = serve(&b);
    akin_kv_transfers_destroy(b.transfers);
    akin_net_destroy(b.net);
    akin_bare_ucx_destroy(b.bare);
    akin_kv_cache_destroy(b.cache);
    return status;
}
