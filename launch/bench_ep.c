/* bench ep: one layer of a group, its exchange looked over by a wrapper. */
#include "launch/bench_ep.h"

#include "base/clock.h"
#include "base/rng.h"
#include "ep/exchange_mpi.h"
#include "ep/exchange_ucx.h"
#include "ep/group.h"
#include "launch/bare_swap.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define HIDDEN 2048u
#define INTERMEDIATE 8u
#define EXPERTS 128u
#define TOP_K 8u
#define DEFAULT_ROUNDS 100u
#define TIMEOUT_NS (30 * AKIN_NS_PER_S)

enum { PHASE_DISPATCH, PHASE_COMBINE, N_PHASES };

static const char *const phase_names[N_PHASES] = {"dispatch", "combine"};

/* Passes swaps on, notes their sizes, and has the ranks begin the second one
 * together, whatever their shares of the computing were. */
typedef struct watcher {
    akin_ep_exchange_t base;
    akin_ep_exchange_t *inner;
    akin_boot_t *boot;
    uint32_t n_swaps;
    int64_t begin_ns[N_PHASES];
    int64_t dispatched_ns;
    size_t out[N_PHASES][AKIN_BENCH_EP_MAX_RANKS];
    size_t in[N_PHASES][AKIN_BENCH_EP_MAX_RANKS];
} watcher_t;

typedef struct bench {
    akin_boot_t *boot;
    uint32_t rank;
    uint32_t n_ranks;
    const akin_kernels_t *kernels;
    akin_placement_t placement;
    akin_team_t *team;
    akin_bare_swap_t *bare;
    akin_boot_group_t *mpi_group;
    akin_expert_t experts[EXPERTS];
    float *weights; /* of all experts: the same numbers */
    float *x, *y;   /* [AKIN_BENCH_EP_MAX_ROWS][HIDDEN] */
    float *shares;  /* [AKIN_BENCH_EP_MAX_ROWS][TOP_K] */
    uint16_t *routes;
    akin_bench_rounds_t rounds[N_PHASES];
} bench_t;

static akin_status_t watch(akin_ep_exchange_t *exchange,
                           const akin_ep_piece_t *out, akin_ep_piece_t *in,
                           int64_t deadline_ns)
{
    watcher_t *w = (watcher_t *)exchange;
    const uint32_t phase = w->n_swaps++ % N_PHASES;
    if (phase == PHASE_COMBINE) {
        akin_error_t err;
        akin_status_t status = akin_boot_barrier(w->boot, &err);
        if (status != AKIN_OK)
            return status;
        w->begin_ns[phase] = akin_clock_now_ns();
    }
    akin_status_t status = akin_ep_swap(w->inner, out, in, deadline_ns);
    if (phase == PHASE_DISPATCH)
        w->dispatched_ns = akin_clock_now_ns();
    for (uint32_t r = 0; status == AKIN_OK && r < exchange->n_ranks; r++) {
        w->out[phase][r] = out[r].bytes;
        w->in[phase][r] = in[r].bytes;
    }
    return status;
}

static akin_expert_step_params_t step_params(const bench_t *b, uint32_t rows)
{
    return (akin_expert_step_params_t){
        .kernels = b->kernels,
        .hidden = HIDDEN,
        .intermediate = INTERMEDIATE,
        .n_experts = EXPERTS,
        .top_k = TOP_K,
        .max_rows = rows,
    };
}

/* Rows as a gate would leave them: k different experts each. */
static void fill_rows(bench_t *b)
{
    uint64_t draw = 0;
    for (size_t row = 0; row < AKIN_BENCH_EP_MAX_ROWS; row++) {
        uint64_t taken[EXPERTS / 64] = {0};
        for (size_t j = 0; j < TOP_K;) {
            uint32_t e =
                (uint32_t)akin_rng_below(b->rank + 1, 0, draw++, EXPERTS);
            if ((taken[e / 64] >> e % 64 & 1) != 0)
                continue;
            taken[e / 64] |= UINT64_C(1) << e % 64;
            b->shares[row * TOP_K + j] = 1.0f / TOP_K;
            b->routes[row * TOP_K + j++] = (uint16_t)e;
        }
        for (size_t i = 0; i < HIDDEN; i++)
            b->x[row * HIDDEN + i] = (float)((row + i) % 7) * 0.1f;
    }
}

static akin_status_t create_bench(bench_t *b, akin_error_t *err)
{
    const size_t rows = AKIN_BENCH_EP_MAX_ROWS;
    const size_t n_weights = (size_t)HIDDEN * INTERMEDIATE;
    const akin_placement_params_t placement = {.kind = AKIN_PLACEMENT_LINEAR,
                                               .n_layers = 1,
                                               .n_experts = EXPERTS,
                                               .n_ranks = b->n_ranks};
    akin_status_t status = akin_kernels_find("auto", &b->kernels, err);
    if (status == AKIN_OK)
        status = akin_placement_make(&placement, &b->placement, err);
    if (status != AKIN_OK)
        return status;
    b->team = akin_team_create();
    b->weights = calloc(n_weights, sizeof(float));
    b->x = calloc(rows * HIDDEN, sizeof(float));
    b->y = calloc(rows * HIDDEN, sizeof(float));
    b->shares = calloc(rows * TOP_K, sizeof(float));
    b->routes = calloc(rows * TOP_K, sizeof(*b->routes));
    if (b->team == NULL || b->weights == NULL || b->x == NULL || b->y == NULL ||
        b->shares == NULL || b->routes == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    for (uint32_t e = 0; e < EXPERTS; e++)
        b->experts[e] = (akin_expert_t){
            .gate = {b->weights, AKIN_DTYPE_F32, INTERMEDIATE, HIDDEN},
            .up = {b->weights, AKIN_DTYPE_F32, INTERMEDIATE, HIDDEN},
            .down = {b->weights, AKIN_DTYPE_F32, HIDDEN, INTERMEDIATE},
        };
    fill_rows(b);
    return AKIN_OK;
}

static void destroy_bench(bench_t *b)
{
    akin_bare_swap_destroy(b->bare);
    akin_boot_group_destroy(b->mpi_group);
    akin_placement_cleanup(&b->placement);
    akin_team_destroy(b->team);
    free(b->weights);
    free(b->x);
    free(b->y);
    free(b->shares);
    free(b->routes);
}

static akin_status_t connect_ucx(bench_t *b, akin_ep_exchange_t *exchange,
                                 akin_error_t *err)
{
    void *blob = NULL;
    size_t bytes = 0, *offsets = NULL;
    unsigned char *blobs = NULL;
    akin_status_t status =
        akin_ep_exchange_ucx_identity(exchange, &blob, &bytes, err);
    status = akin_boot_agree(b->boot, status, err);
    if (status == AKIN_OK)
        status =
            akin_boot_exchange(b->boot, blob, bytes, &blobs, &offsets, err);
    for (uint32_t r = 0; status == AKIN_OK && r < b->n_ranks; r++)
        if (r != b->rank)
            status =
                akin_ep_exchange_ucx_connect(exchange, r, blobs + offsets[r],
                                             offsets[r + 1] - offsets[r], err);
    free(blob);
    free(blobs);
    free(offsets);
    return akin_boot_agree(b->boot, status, err);
}

static akin_status_t open_exchange(bench_t *b, int is_mpi,
                                   akin_ep_exchange_t **exchange_p,
                                   akin_error_t *err)
{
    const akin_expert_step_params_t step =
        step_params(b, AKIN_BENCH_EP_MAX_ROWS);
    const akin_ep_exchange_ucx_params_t ucx = {
        .rank = b->rank,
        .n_ranks = b->n_ranks,
        .slot_bytes = akin_ep_group_piece_bytes(&step),
    };
    akin_status_t status =
        is_mpi ? akin_ep_exchange_mpi_create(b->mpi_group, exchange_p, err)
               : akin_ep_exchange_ucx_create(&ucx, exchange_p, err);
    status = akin_boot_agree(b->boot, status, err);
    return status != AKIN_OK || is_mpi ? status
                                       : connect_ucx(b, *exchange_p, err);
}

static akin_status_t time_bare(bench_t *b, int is_mpi, const watcher_t *w,
                               int phase, double *seconds_p, akin_error_t *err)
{
    akin_status_t status = akin_boot_barrier(b->boot, err);
    int64_t begin_ns = akin_clock_now_ns();
    if (status == AKIN_OK)
        status = is_mpi
                     ? akin_bare_swap_mpi(b->bare, w->out[phase], w->in[phase])
                     : akin_bare_swap_ucx(b->bare, w->out[phase]);
    *seconds_p =
        (double)(akin_clock_now_ns() - begin_ns) / (double)AKIN_NS_PER_S;
    return status;
}

/* A layer, then the bare swaps with its sizes. */
static akin_status_t run_round(bench_t *b, int is_mpi, watcher_t *w,
                               akin_ep_group_t *group, uint32_t n_rows,
                               double ours[N_PHASES], double bare[N_PHASES],
                               akin_error_t *err)
{
    const akin_expert_batch_t batch = {.experts = b->experts,
                                       .x = b->x,
                                       .routes = b->routes,
                                       .weights = b->shares,
                                       .n_rows = n_rows,
                                       .y = b->y};
    akin_status_t status = akin_boot_barrier(b->boot, err);
    if (status != AKIN_OK)
        return status;
    w->begin_ns[PHASE_DISPATCH] = akin_clock_now_ns();
    (void)akin_ep_group_run(group, b->team, 0, 0, &batch, &status);
    const int64_t end_ns = akin_clock_now_ns();
    if (status != AKIN_OK)
        return akin_error_set(err, status, "%s", akin_ep_group_error(group));
    ours[PHASE_DISPATCH] =
        (double)(w->dispatched_ns - w->begin_ns[PHASE_DISPATCH]) /
        (double)AKIN_NS_PER_S;
    ours[PHASE_COMBINE] =
        (double)(end_ns - w->begin_ns[PHASE_COMBINE]) / (double)AKIN_NS_PER_S;
    for (int phase = 0; status == AKIN_OK && phase < N_PHASES; phase++)
        status = time_bare(b, is_mpi, w, phase, &bare[phase], err);
    return status;
}

static size_t sum(const size_t *sizes, uint32_t n)
{
    size_t total = 0;
    for (uint32_t r = 0; r < n; r++)
        total += sizes[r];
    return total;
}

static json_t *describe_case(const bench_t *b, const watcher_t *w, int phase,
                             uint32_t n_rows)
{
    akin_bench_medians_t m;
    const char *name = w->inner->ops->name;
    const int is_mpi = strcmp(name, "mpi") == 0;
    akin_bench_medians(&b->rounds[phase], &m);
    return json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:I, s:f, s:f, s:f}", "bench",
        "ep", "exchange", name, "case", phase_names[phase], "ranks",
        (json_int_t)b->n_ranks, "rows", (json_int_t)n_rows, "bytes_out",
        (json_int_t)sum(w->out[phase], b->n_ranks), "bytes_in",
        (json_int_t)sum(w->in[phase], b->n_ranks), "transport",
        is_mpi
            ? "MPI"
            : akin_ep_exchange_ucx_path(w->inner, (b->rank + 1) % b->n_ranks),
        "rounds", (json_int_t)b->rounds[phase].n, "seconds", m.seconds,
        "reference_seconds", m.reference_seconds, "ratio",
        m.reference_over_ours);
}

static akin_status_t measure(bench_t *b, int is_mpi,
                             akin_ep_exchange_t *exchange, uint32_t n_rows,
                             uint32_t n_rounds, json_t *cases,
                             akin_error_t *err)
{
    static const akin_ep_exchange_ops_t ops = {.name = "watcher",
                                               .swap = watch};
    watcher_t w = {
        .base = {.ops = &ops, .rank = b->rank, .n_ranks = b->n_ranks},
        .inner = exchange,
        .boot = b->boot};
    const akin_ep_group_params_t params = {.exchange = &w.base,
                                           .placement = &b->placement,
                                           .timeout_ns = TIMEOUT_NS};
    const akin_expert_step_params_t step = step_params(b, n_rows);
    akin_ep_group_t *group = NULL;
    akin_status_t status = akin_ep_group_create(&params, &group, err);
    if (status == AKIN_OK)
        status = akin_ep_group_prepare(group, &step, err);
    status = akin_boot_agree(b->boot, status, err);
    /* The first rounds warm up. */
    for (uint32_t i = 0; status == AKIN_OK && i < n_rounds + 3; i++) {
        double ours[N_PHASES], bare[N_PHASES];
        status = run_round(b, is_mpi, &w, group, n_rows, ours, bare, err);
        for (int phase = 0; status == AKIN_OK && phase < N_PHASES && i >= 3;
             phase++) {
            b->rounds[phase].seconds[i - 3] = ours[phase];
            b->rounds[phase].reference[i - 3] = bare[phase];
            b->rounds[phase].n = i - 2;
        }
    }
    for (int phase = 0; status == AKIN_OK && phase < N_PHASES; phase++)
        if (json_array_append_new(cases, describe_case(b, &w, phase, n_rows)) !=
            0)
            status = akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    akin_ep_group_destroy(group);
    return status;
}

static akin_status_t measure_all(bench_t *b, const akin_bench_ep_params_t *p,
                                 json_t *cases, akin_error_t *err)
{
    static const uint32_t usual[] = {1, 16, 64};
    const uint32_t *rows = p->n_rows > 0 ? p->rows : usual;
    const uint32_t n_rows = p->n_rows > 0 ? p->n_rows : 3;
    akin_status_t status = AKIN_OK;
    for (int is_mpi = 0; status == AKIN_OK && is_mpi < 2; is_mpi++) {
        akin_ep_exchange_t *exchange = NULL;
        status = open_exchange(b, is_mpi, &exchange, err);
        for (uint32_t i = 0; status == AKIN_OK && i < n_rows; i++)
            status = measure(b, is_mpi, exchange, rows[i],
                             p->rounds != 0 ? p->rounds : DEFAULT_ROUNDS, cases,
                             err);
        akin_ep_exchange_destroy(exchange);
    }
    return status;
}

static void print_table(FILE *out, const json_t *cases)
{
    (void)fprintf(out, "%-8s %-8s %5s %5s %10s %10s %9s %9s %6s  %s\n",
                  "exchange", "case", "ranks", "rows", "bytes out", "bytes in",
                  "us", "ref. us", "ratio", "transport");
    size_t i;
    const json_t *c;
    json_array_foreach(cases, i, c)
    {
        (void)fprintf(
            out, "%-8s %-8s %5d %5d %10lld %10lld %9.1f %9.1f %6.3f  %s\n",
            json_string_value(json_object_get(c, "exchange")),
            json_string_value(json_object_get(c, "case")),
            (int)json_integer_value(json_object_get(c, "ranks")),
            (int)json_integer_value(json_object_get(c, "rows")),
            (long long)json_integer_value(json_object_get(c, "bytes_out")),
            (long long)json_integer_value(json_object_get(c, "bytes_in")),
            json_real_value(json_object_get(c, "seconds")) * 1e6,
            json_real_value(json_object_get(c, "reference_seconds")) * 1e6,
            json_real_value(json_object_get(c, "ratio")),
            json_string_value(json_object_get(c, "transport")));
    }
    (void)fprintf(out, "per layer and rank 0; ratio = bare / ours, 1 is the "
                       "limit; bare: UCX puts, or one MPI_Alltoallv\n");
}

static akin_status_t print_cases(const akin_bench_ep_params_t *params,
                                 const json_t *cases, FILE *out,
                                 akin_error_t *err)
{
    int failed = 0;
    if (params->json)
        failed = json_dumpf(cases, out, JSON_INDENT(2)) != 0 ||
                 fputc('\n', out) == EOF;
    else
        print_table(out, cases);
    return failed || fflush(out) != 0
               ? akin_error_set(err, AKIN_ERR_IO, "cannot write the result")
               : AKIN_OK;
}

akin_status_t akin_bench_ep(const akin_bench_ep_params_t *params, FILE *out,
                            akin_error_t *err)
{
    static bench_t b;
    akin_boot_set_environment();
    akin_status_t status = akin_boot_start(&b.boot, err);
    if (status != AKIN_OK)
        return status;
    b.rank = akin_boot_rank(b.boot);
    b.n_ranks = akin_boot_size(b.boot);
    json_t *cases = json_array();
    if (b.n_ranks < 2 || b.n_ranks > AKIN_BENCH_EP_MAX_RANKS ||
        EXPERTS % b.n_ranks != 0)
        status = akin_error_set(err, AKIN_ERR_INVALID,
                                "bench ep has %u ranks, but needs 2, 4, 8 or "
                                "16",
                                (unsigned)b.n_ranks);
    else
        status = akin_boot_agree(b.boot, create_bench(&b, err), err);
    const akin_expert_step_params_t longest =
        step_params(&b, AKIN_BENCH_EP_MAX_ROWS);
    if (status == AKIN_OK)
        status = akin_bare_swap_create(
            b.boot, akin_ep_group_piece_bytes(&longest), &b.bare, err);
    if (status == AKIN_OK)
        status = akin_boot_group_create(b.boot, 0, &b.mpi_group, err);
    if (status == AKIN_OK)
        status = measure_all(&b, params, cases, err);
    if (status == AKIN_OK && b.rank == 0)
        status = print_cases(params, cases, out, err);
    json_decref(cases);
    destroy_bench(&b);
    akin_boot_finish(b.boot);
    return status;
}
