/* Group: the same bits as on one rank, whatever the placement; every expert is
 * served once, and a vector goes once to each rank. */
#include "ep/group.h"

#include "draw.h"
#include "kernel_paths.h"
#include "local_group.h"
#include "runner.h"

#include <omp.h>
#include <string.h>

#define LAYERS 2u
#define HIDDEN 70u /* two chunks of rows, the second one short */
#define INTERMEDIATE 40u
#define EXPERTS 16u
#define TOP_K 3u
#define MAX_ROWS 40u /* of one rank */
#define ALL_ROWS (4u * MAX_ROWS)
#define MATRIX ((size_t)HIDDEN * INTERMEDIATE)

typedef struct layer {
    unsigned char bytes[EXPERTS][3][MATRIX * 4];
    akin_expert_t experts[EXPERTS];
    float x[ALL_ROWS * HIDDEN];
    uint16_t routes[ALL_ROWS * TOP_K];
    float weights[ALL_ROWS * TOP_K];
    float y[ALL_ROWS * HIDDEN]; /* what the rows are added to */
} layer_t;

static layer_t layers[LAYERS];

static void fill_layer(layer_t *l, uint64_t seed)
{
    static float values[MATRIX];
    for (uint32_t e = 0; e < EXPERTS; e++) {
        for (uint32_t m = 0; m < 3; m++)
            draw_matrix(l->bytes[e][m], values, MATRIX, AKIN_DTYPE_BF16,
                        seed + 3 * e + m, 0.3);
        l->experts[e] = (akin_expert_t){
            .gate = {l->bytes[e][0], AKIN_DTYPE_BF16, INTERMEDIATE, HIDDEN},
            .up = {l->bytes[e][1], AKIN_DTYPE_BF16, INTERMEDIATE, HIDDEN},
            .down = {l->bytes[e][2], AKIN_DTYPE_BF16, HIDDEN, INTERMEDIATE},
        };
    }
    draw_floats(l->x, (size_t)ALL_ROWS * HIDDEN, seed + 77, 1.0);
    draw_floats(l->y, (size_t)ALL_ROWS * HIDDEN, seed + 78, 1.0);
    draw_floats(l->weights, (size_t)ALL_ROWS * TOP_K, seed + 79, 1.0);
    for (uint32_t row = 0; row < ALL_ROWS; row++)
        for (uint32_t j = 0; j < TOP_K; j++) {
            uint16_t *route = &l->routes[row * TOP_K];
            uint32_t n = 0, tries = 0;
            do { /* distinct, the low ones more often */
                uint32_t at = (row * TOP_K + j) * 64 + tries++;
                route[j] = (uint16_t)draw_below(
                    seed + 80, at, 1 + draw_below(seed + 81, at, EXPERTS));
                for (n = 0; n < j && route[n] != route[j]; n++)
                    continue;
            } while (n < j);
        }
}

static void fill(void)
{
    for (uint32_t l = 0; l < LAYERS; l++)
        fill_layer(&layers[l], 1000 * l);
}

static akin_expert_step_params_t step_params(const akin_kernels_t *kernels,
                                             uint32_t max_rows)
{
    return (akin_expert_step_params_t){
        .kernels = kernels,
        .hidden = HIDDEN,
        .intermediate = INTERMEDIATE,
        .n_experts = EXPERTS,
        .top_k = TOP_K,
        .max_rows = max_rows,
    };
}

static akin_expert_batch_t batch_of(const layer_t *l,
                                    const akin_expert_t *experts,
                                    uint32_t first, uint32_t n, float *y)
{
    return (akin_expert_batch_t){
        .experts = experts,
        .x = l->x + (size_t)first * HIDDEN,
        .routes = l->routes + (size_t)first * TOP_K,
        .weights = l->weights + (size_t)first * TOP_K,
        .n_rows = n,
        .y = y + (size_t)first * HIDDEN,
    };
}

/* Rows [0, n) on one rank; gives the distinct experts. */
static uint32_t run_alone(const akin_kernels_t *kernels, const layer_t *l,
                          uint32_t n, float *y)
{
    const akin_expert_step_params_t params = step_params(kernels, ALL_ROWS);
    akin_expert_step_t *step = NULL;
    akin_team_t *team = akin_team_create();
    CU_ASSERT_PTR_NOT_NULL_FATAL(team);
    CU_ASSERT_EQUAL_FATAL(akin_expert_step_create(&params, &step), AKIN_OK);
    memcpy(y, l->y, sizeof(l->y));
    const akin_expert_batch_t batch = batch_of(l, l->experts, 0, n, y);
    uint32_t n_distinct = akin_expert_step_run(step, team, 0, &batch);
    akin_expert_step_destroy(step);
    akin_team_destroy(team);
    return n_distinct;
}

/* One rank of a group, as a thread with a team under it. */
typedef struct rank_run {
    akin_ep_group_t *group;
    akin_expert_step_params_t step;
    int n_threads;
    uint32_t rank;
    uint32_t n_rows[LAYERS], first[LAYERS];
    float *y[LAYERS];
    uint32_t n_served[LAYERS];
    akin_status_t status;
    const akin_placement_t *next; /* NULL: the placement stays */
    float *y_next[LAYERS];        /* of the same rows by that one */
} rank_run_t;

static void run_layers(rank_run_t *r, akin_team_t *team, float **y)
{
    const akin_placement_t *placement = akin_ep_group_placement(r->group);
    for (uint32_t l = 0; l < LAYERS; l++) {
        /* Touching what another rank holds would crash. */
        akin_expert_t experts[EXPERTS];
        const uint64_t *holders = akin_placement_layer(placement, l);
        memcpy(experts, layers[l].experts, sizeof(experts));
        for (uint32_t e = 0; e < EXPERTS; e++)
            if ((holders[e] >> r->rank & 1) == 0)
                experts[e].gate.data = experts[e].up.data =
                    experts[e].down.data = NULL;
        const akin_expert_batch_t batch =
            batch_of(&layers[l], experts, r->first[l], r->n_rows[l], y[l]);
        uint32_t n_served = 0;
#pragma omp parallel num_threads(r->n_threads) reduction(max : n_served)
        {
            akin_team_begin(team, (uint32_t)omp_get_num_threads());
            n_served = akin_ep_group_run(r->group, team,
                                         (uint32_t)omp_get_thread_num(), l,
                                         &batch, &r->status);
        }
        r->n_served[l] = n_served;
    }
}

static void *run_rank(void *arg)
{
    rank_run_t *r = arg;
    akin_error_t err = {{0}};
    akin_team_t *team = akin_team_create();
    local_group_need(akin_ep_group_prepare(r->group, &r->step, &err), &err);
    run_layers(r, team, r->y);
    for (uint32_t l = 0; r->next != NULL && l < LAYERS; l++)
        local_group_need(
            akin_ep_group_set_layer(
                r->group, l, akin_placement_layer(r->next, l), 1 + l, &err),
            &err);
    if (r->next != NULL)
        run_layers(r, team, r->y_next);
    akin_team_destroy(team);
    return NULL;
}

typedef struct setting {
    uint32_t n_ranks;
    uint32_t n_replicas;
    akin_placement_kind_t kind;
    int n_threads;
} setting_t;

static void make_placement(const setting_t *s, akin_placement_t *placement)
{
    static float rates[LAYERS * EXPERTS];
    akin_error_t err = {{0}};
    for (uint32_t i = 0; i < LAYERS * EXPERTS; i++)
        rates[i] = (float)(0.5 + 0.45 * draw_signed(90, i));
    const akin_placement_params_t params = {
        .kind = s->kind,
        .n_layers = LAYERS,
        .n_experts = EXPERTS,
        .n_ranks = s->n_ranks,
        .n_replicas = s->n_replicas,
        .rates = rates,
        .batch = 8,
    };
    local_group_need(akin_placement_make(&params, placement, &err), &err);
}

/* Shares of the rows: uneven, and some have none. */
static uint32_t share(uint32_t variant, uint32_t layer, uint32_t rank)
{
    static const uint32_t shares[4][4] = {
        {MAX_ROWS, 7, 0, 23}, {0, 0, 1, 0}, {3, 3, 3, 3}, {0, 0, 0, 0}};
    return shares[(variant + layer) % 4][rank];
}

static void compare(const akin_kernels_t *kernels, const setting_t *s,
                    uint32_t variant)
{
    static float alone[LAYERS][ALL_ROWS * HIDDEN];
    static float together[LAYERS][ALL_ROWS * HIDDEN];
    rank_run_t runs[4];
    uint32_t n_alone[LAYERS], n_served[LAYERS] = {0};
    akin_placement_t placement;
    local_group_t group;
    make_placement(s, &placement);
    local_group_init(&group, &placement, LOCAL_GROUP_TIMEOUT_NS);
    for (uint32_t r = 0; r < s->n_ranks; r++)
        runs[r] = (rank_run_t){.group = group.groups[r],
                               .step = step_params(kernels, MAX_ROWS),
                               .n_threads = s->n_threads,
                               .rank = r,
                               .status = AKIN_ERR_INTERNAL};
    for (uint32_t l = 0; l < LAYERS; l++) {
        uint32_t n = 0;
        for (uint32_t r = 0; r < s->n_ranks; r++) {
            runs[r].first[l] = n;
            runs[r].n_rows[l] = share(variant, l, r);
            runs[r].y[l] = together[l];
            n += runs[r].n_rows[l];
        }
        memcpy(together[l], layers[l].y, sizeof(together[l]));
        n_alone[l] = run_alone(kernels, &layers[l], n, alone[l]);
    }
    local_group_each(s->n_ranks, run_rank, runs, sizeof(*runs));
    for (uint32_t r = 0; r < s->n_ranks; r++) {
        akin_ep_group_stats_t stats;
        CU_ASSERT_EQUAL(runs[r].status, AKIN_OK);
        CU_ASSERT_PTR_NULL(akin_ep_group_error(group.groups[r]));
        akin_ep_group_stats(group.groups[r], &stats);
        CU_ASSERT_EQUAL(stats.n_layers, LAYERS);
        for (uint32_t l = 0; l < LAYERS; l++)
            n_served[l] += runs[r].n_served[l];
    }
    for (uint32_t l = 0; l < LAYERS; l++) {
        /* Every active expert is served by exactly one rank. */
        CU_ASSERT_EQUAL(n_served[l], n_alone[l]);
        CU_ASSERT_EQUAL(memcmp(alone[l], together[l], sizeof(alone[l])), 0);
    }
    local_group_cleanup(&group);
    akin_placement_cleanup(&placement);
}

static void same_bits_of(const akin_kernels_t *kernels)
{
    static const uint32_t ranks[] = {1, 2, 4};
    static const uint32_t replicas[] = {0, 4, 8};
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < (ranks[i] > 1 ? 3 : 1); j++)
            for (int kind = AKIN_PLACEMENT_LINEAR;
                 kind <= AKIN_PLACEMENT_ACTIVATION; kind++) {
                const setting_t s = {ranks[i], replicas[j],
                                     (akin_placement_kind_t)kind,
                                     1 + (int)j % 2};
                for (uint32_t variant = 0; variant < 4; variant++)
                    compare(kernels, &s, variant);
            }
}

static void same_bits(void)
{
    fill();
    kernel_paths_each(same_bits_of);
}

/* What a dispatch and a combine take, by the sizes of the messages. */
static void bytes_on_the_way(void)
{
    const setting_t s = {2, 0, AKIN_PLACEMENT_LINEAR, 1};
    static float y[ALL_ROWS * HIDDEN];
    static const uint16_t routes[] = {0, 1, 8, 2, 3, 4, 9, 10, 11};
    rank_run_t runs[2];
    akin_placement_t placement;
    local_group_t group;
    akin_ep_group_stats_t stats[2];
    fill();
    for (uint32_t l = 0; l < LAYERS; l++)
        memcpy(layers[l].routes, routes, sizeof(routes));
    make_placement(&s, &placement);
    local_group_init(&group, &placement, LOCAL_GROUP_TIMEOUT_NS);
    for (uint32_t r = 0; r < 2; r++) {
        runs[r] = (rank_run_t){
            .group = group.groups[r],
            .step = step_params(akin_kernels_of(AKIN_KERNEL_PORTABLE), 3),
            .n_threads = 1,
            .rank = r,
            .n_rows = {r == 0 ? 3 : 0, 0},
            .y = {y, y}};
    }
    local_group_each(2, run_rank, runs, sizeof(*runs));
    for (uint32_t r = 0; r < 2; r++)
        akin_ep_group_stats(group.groups[r], &stats[r]);
    /* Layer 0: 32 bytes of head and 4 pairs of 8, which fill 64, and the
     * vectors of rows 0 and 2 once each; layer 1: a head, filled up. What
     * comes back are 4 vectors behind a head of 64. */
    CU_ASSERT_EQUAL(stats[0].bytes_out, 64 + 2 * HIDDEN * 4 + 64 + 2 * 64);
    CU_ASSERT_EQUAL(stats[0].bytes_in, 64 + 64 + 4 * HIDDEN * 4 + 2 * 64);
    CU_ASSERT_EQUAL(stats[1].bytes_out, stats[0].bytes_in);
    CU_ASSERT_EQUAL(stats[1].bytes_in, stats[0].bytes_out);
    CU_ASSERT_EQUAL(runs[0].n_served[0], 5);
    CU_ASSERT_EQUAL(runs[1].n_served[0], 4);
    local_group_cleanup(&group);
    akin_placement_cleanup(&placement);
}

/* The second run is under other maps, and no rank has what it held before and
 * gave away. */
static void new_maps(void)
{
    static float alone[ALL_ROWS * HIDDEN];
    static float first[LAYERS][ALL_ROWS * HIDDEN];
    static float second[LAYERS][ALL_ROWS * HIDDEN];
    const akin_kernels_t *kernels = akin_kernels_of(AKIN_KERNEL_PORTABLE);
    const setting_t s = {4, 4, AKIN_PLACEMENT_LINEAR, 1};
    const setting_t other = {4, 4, AKIN_PLACEMENT_ROUND_ROBIN, 1};
    rank_run_t runs[4];
    akin_placement_t placement, next;
    local_group_t group;
    uint32_t n = 0;
    fill();
    make_placement(&s, &placement);
    make_placement(&other, &next);
    local_group_init(&group, &placement, LOCAL_GROUP_TIMEOUT_NS);
    for (uint32_t r = 0; r < 4; r++) {
        runs[r] = (rank_run_t){.group = group.groups[r],
                               .step = step_params(kernels, MAX_ROWS),
                               .n_threads = 1,
                               .rank = r,
                               .status = AKIN_ERR_INTERNAL,
                               .next = &next};
        for (uint32_t l = 0; l < LAYERS; l++) {
            runs[r].first[l] = n;
            runs[r].n_rows[l] = share(0, 0, r);
            runs[r].y[l] = first[l];
            runs[r].y_next[l] = second[l];
        }
        n += share(0, 0, r);
    }
    for (uint32_t l = 0; l < LAYERS; l++) {
        memcpy(first[l], layers[l].y, sizeof(first[l]));
        memcpy(second[l], layers[l].y, sizeof(second[l]));
    }
    local_group_each(4, run_rank, runs, sizeof(*runs));
    for (uint32_t l = 0; l < LAYERS; l++) {
        uint32_t n_served = 0;
        const uint32_t n_alone = run_alone(kernels, &layers[l], n, alone);
        for (uint32_t r = 0; r < 4; r++)
            n_served += runs[r].n_served[l];
        CU_ASSERT_EQUAL(n_served, n_alone);
        CU_ASSERT_EQUAL(memcmp(alone, first[l], sizeof(alone)), 0);
        CU_ASSERT_EQUAL(memcmp(alone, second[l], sizeof(alone)), 0);
    }
    local_group_cleanup(&group);
    akin_placement_cleanup(&placement);
    akin_placement_cleanup(&next);
}

static void refused_maps(void)
{
    const setting_t s = {4, 4, AKIN_PLACEMENT_LINEAR, 1};
    akin_placement_t placement;
    local_group_t group;
    akin_error_t err = {{0}};
    uint64_t holders[EXPERTS];
    make_placement(&s, &placement);
    placement.epoch = 7;
    local_group_init(&group, &placement, LOCAL_GROUP_TIMEOUT_NS);
    akin_ep_group_t *g = group.groups[0];
    memcpy(holders, placement.holders, sizeof(holders));
    CU_ASSERT_EQUAL(akin_ep_group_set_layer(g, 1, holders, 9, &err), AKIN_OK);
    CU_ASSERT_EQUAL(akin_ep_group_set_layer(g, 1, holders, 9, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "epoch out of order: 9 after 9"));
    CU_ASSERT_EQUAL(akin_ep_group_set_layer(g, LAYERS, holders, 10, &err),
                    AKIN_ERR_INVALID);
    holders[3] = 0;
    CU_ASSERT_EQUAL(akin_ep_group_set_layer(g, 1, holders, 10, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "expert 3: no rank holds it"));
    holders[3] = 16;
    CU_ASSERT_EQUAL(akin_ep_group_set_layer(g, 1, holders, 10, &err),
                    AKIN_ERR_INVALID);
    holders[3] = 15;
    CU_ASSERT_EQUAL(akin_ep_group_set_layer(g, 1, holders, 10, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_EQUAL(akin_ep_group_placement(g)->epoch, 9);
    CU_ASSERT_EQUAL(memcmp(akin_ep_group_placement(g)->holders,
                           placement.holders,
                           LAYERS * EXPERTS * sizeof(*holders)),
                    0);
    local_group_cleanup(&group);
    akin_placement_cleanup(&placement);
}

static const runner_test_t tests[] = {
    {"the same bits on any ranks and placement", same_bits},
    {"a row's vector goes once to each rank", bytes_on_the_way},
    {"the same bits under new maps", new_maps},
    {"maps and epochs that are refused", refused_maps},
};

RUNNER_MAIN("group", tests)
