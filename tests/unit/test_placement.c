/* Placement: the four kinds by hand and by their invariants; refusals. */
#include "runner.h"

#include "ep/placement.h"
#include "ep/placement_load.h"
#include "placement_draw.h"

#include <stdlib.h>

static akin_placement_t make(const akin_placement_params_t *params)
{
    akin_placement_t p = {0};
    akin_error_t err = {{0}};
    akin_status_t status = akin_placement_make(params, &p, &err);
    if (status != AKIN_OK)
        fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(status, AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akin_placement_check(&p, &err), AKIN_OK);
    return p;
}

static void expect(akin_placement_params_t params, const uint64_t *holders)
{
    params.n_layers = 2;
    akin_placement_t p = make(&params);
    for (uint32_t l = 0; l < 2; l++)
        for (uint32_t e = 0; e < p.n_experts; e++)
            CU_ASSERT_EQUAL(akin_placement_layer(&p, l)[e], holders[e]);
    CU_ASSERT_EQUAL(p.epoch, 0);
    akin_placement_cleanup(&p);
    CU_ASSERT_PTR_NULL(p.holders);
}

static void test_by_hand(void)
{
    akin_placement_params_t params = {
        .kind = AKIN_PLACEMENT_LINEAR,
        .n_experts = 6,
        .n_ranks = 3,
    };
    expect(params, (const uint64_t[]){1, 1, 2, 2, 4, 4});
    params.kind = AKIN_PLACEMENT_ROUND_ROBIN;
    expect(params, (const uint64_t[]){1, 2, 4, 1, 2, 4});
    params.n_replicas = 3;
    expect(params, (const uint64_t[]){3, 6, 5, 1, 2, 4});
    /* 0 1 2 | 2 3 4 | 4 5 0 */
    params.kind = AKIN_PLACEMENT_LINEAR;
    expect(params, (const uint64_t[]){5, 1, 3, 2, 6, 4});
    /* Five experts and a replica: 0 1 | 1 2 | 3 4 and 0 3 | 1 4 | 2 0. */
    params.n_experts = 5;
    params.n_replicas = 1;
    expect(params, (const uint64_t[]){1, 3, 2, 4, 4});
    params.kind = AKIN_PLACEMENT_ROUND_ROBIN;
    expect(params, (const uint64_t[]){5, 2, 4, 1, 2});
}

/* The rate per copy: 8 is copied, 4 each; 4, 4, 3, 2, 2, 1 go to the lightest
 * of three ranks with room. Both copies of expert 0 lie apart. */
static void test_eplb_by_hand(void)
{
    static const float rates[] = {8, 3, 2, 2, 1, 8, 3, 2, 2, 1};
    akin_placement_params_t params = {
        .kind = AKIN_PLACEMENT_EPLB,
        .n_experts = 5,
        .n_ranks = 3,
        .n_replicas = 1,
        .rates = rates,
    };
    expect(params, (const uint64_t[]){3, 4, 4, 1, 2});
    /* 6, 4.5, 4.5, 3 put expert 1 twice on rank 1; its second slot goes to
     * expert 2, which has more per copy than expert 0. */
    static const float doubled[] = {3, 9, 6, 3, 9, 6};
    params = (akin_placement_params_t){
        .kind = AKIN_PLACEMENT_EPLB,
        .n_experts = 3,
        .n_ranks = 2,
        .n_replicas = 1,
        .rates = doubled,
    };
    expect(params, (const uint64_t[]){1, 2, 3});
}

/* q = rate for a batch of 1: .9, .8, .5, .4 go to ranks 0, 1, 1, 0. */
static void test_activation_by_hand(void)
{
    static const float rates[] = {.5f, .9f, .4f, .8f, .5f, .9f, .4f, .8f};
    const akin_placement_params_t params = {
        .kind = AKIN_PLACEMENT_ACTIVATION,
        .n_experts = 4,
        .n_ranks = 2,
        .rates = rates,
        .batch = 1.0,
    };
    expect(params, (const uint64_t[]){2, 1, 1, 2});
}

/* Every kind fills every shape evenly, each expert once per rank: make() ends
 * with the check. Twice the same, and every rank everything at the most. */
static void test_shapes(void)
{
    static const uint32_t shapes[][3] = {
        {32, 4, 0},    {32, 4, 8}, {32, 8, 16}, {128, 8, 16}, {60, 8, 4},
        {30, 4, 2},    {8, 8, 56}, {7, 1, 0},   {5, 64, 59},  {6, 4, 18},
        {128, 64, 64}, {3, 2, 1},  {10, 6, 50}, {64, 16, 960}};
    float rates[2 * PLACEMENT_DRAW_EXPERTS];
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
        for (int kind = 0; kind < 4; kind++) {
            const uint32_t n = shapes[s][0];
            placement_draw_rates(rates, n, fmin(8.0, n / 2.0), 1, s);
            memset(rates + n, 0, n * sizeof(*rates));
            const akin_placement_params_t params = {
                .kind = (akin_placement_kind_t)kind,
                .n_layers = 2,
                .n_experts = n,
                .n_ranks = shapes[s][1],
                .n_replicas = shapes[s][2],
                .rates = rates,
                .batch = 16.0,
            };
            akin_placement_t a = make(&params), b = make(&params);
            CU_ASSERT_EQUAL(
                memcmp(a.holders, b.holders, 2 * n * sizeof(*a.holders)), 0);
            akin_placement_cleanup(&a);
            akin_placement_cleanup(&b);
        }
}

/* Lower expected maximum than the placements that know less, and replicas pay.
 */
static void test_activation_pays(void)
{
    enum { N_LAYERS = 4, N_EXPERTS = 64 };
    float rates[N_LAYERS * N_EXPERTS];
    for (uint32_t l = 0; l < N_LAYERS; l++)
        placement_draw_rates(rates + l * N_EXPERTS, N_EXPERTS, 6.0, 1, l);
    double loads[3][4];
    for (uint32_t i = 0; i < 3; i++)
        for (int kind = 0; kind < 4; kind++) {
            const akin_placement_params_t params = {
                .kind = (akin_placement_kind_t)kind,
                .n_layers = N_LAYERS,
                .n_experts = N_EXPERTS,
                .n_ranks = 4,
                .n_replicas = 4 * i,
                .rates = rates,
                .batch = 16.0,
            };
            akin_placement_t p = make(&params);
            loads[i][kind] = akin_placement_predict(&p, rates, 16.0);
            akin_placement_cleanup(&p);
        }
    for (uint32_t i = 0; i < 3; i++) {
        CU_ASSERT(loads[i][AKIN_PLACEMENT_ACTIVATION] <
                  loads[i][AKIN_PLACEMENT_EPLB]);
        CU_ASSERT(loads[i][AKIN_PLACEMENT_EPLB] <
                  loads[i][AKIN_PLACEMENT_LINEAR]);
    }
    CU_ASSERT(loads[1][AKIN_PLACEMENT_ACTIVATION] <
              0.95 * loads[0][AKIN_PLACEMENT_ACTIVATION]);
    CU_ASSERT(loads[2][AKIN_PLACEMENT_ACTIVATION] <
              loads[1][AKIN_PLACEMENT_ACTIVATION]);
}

static void refuse(const akin_placement_params_t *params, const char *part)
{
    akin_placement_t p = {0};
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_placement_make(params, &p, &err), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NULL(p.holders);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, part));
    if (strstr(err.text, part) == NULL)
        fprintf(stderr, "%s\n", err.text);
}

static void test_refused(void)
{
    float rates[] = {.5f, .5f, .5f, .5f, .5f, .5f, .5f, .5f};
    const akin_placement_params_t good = {
        .kind = AKIN_PLACEMENT_ACTIVATION,
        .n_layers = 2,
        .n_experts = 4,
        .n_ranks = 2,
        .rates = rates,
        .batch = 4.0,
    };
    akin_placement_params_t params = good;
    params.n_ranks = 3;
    refuse(&params, "3 ranks do not divide 4 experts + 0 replicas; with 2");
    params.n_replicas = 3;
    refuse(&params, "with 5 replicas they do");
    params = good;
    params.n_ranks = 0;
    refuse(&params, "on 0 ranks");
    params.n_ranks = 65;
    refuse(&params, "65 ranks: a worker has at most 64");
    params = good;
    params.n_replicas = 6;
    refuse(&params, "6 replicas are too many for 4 experts on 2 ranks: with 4");
    params = good;
    params.batch = 0.0;
    refuse(&params, "batch of 0");
    params = good;
    params.rates = NULL;
    refuse(&params, "activation needs the rates");
    params = good;
    rates[6] = 1.5f;
    refuse(&params, "layer 1, expert 2 is 1.5, must be from 0 to 1");
    params.kind = AKIN_PLACEMENT_EPLB;
    rates[6] = -1.0f;
    refuse(&params, "layer 1, expert 2 is -1, must be 0 or more");
}

static void test_check(void)
{
    const akin_placement_params_t params = {
        .kind = AKIN_PLACEMENT_ROUND_ROBIN,
        .n_layers = 3,
        .n_experts = 8,
        .n_ranks = 4,
        .n_replicas = 4,
    };
    akin_placement_t p = make(&params), q = {0};
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_placement_copy(&p, &q), AKIN_OK);
    CU_ASSERT(q.holders != p.holders);
    CU_ASSERT_EQUAL(memcmp(q.holders, p.holders, 24 * sizeof(*p.holders)), 0);
    q.holders[2 * 8 + 5] = 0;
    CU_ASSERT_EQUAL(akin_placement_check(&q, &err), AKIN_ERR_INVALID);
    CU_ASSERT_STRING_EQUAL(err.text,
                           "placement: layer 2, expert 5: no rank holds it");
    q.holders[2 * 8 + 5] = UINT64_C(1) << 4;
    CU_ASSERT_EQUAL(akin_placement_check(&q, &err), AKIN_ERR_INVALID);
    CU_ASSERT_STRING_EQUAL(
        err.text, "placement: layer 2, expert 5: held by rank 4 of 4 ranks");
    q.holders[2 * 8 + 5] = 1;
    CU_ASSERT_EQUAL(akin_placement_check(&q, &err), AKIN_ERR_INVALID);
    CU_ASSERT_STRING_EQUAL(
        err.text, "placement: layer 2: rank 0 holds 4 experts, every rank must "
                  "hold 3");
    q.holders[2 * 8 + 5] = p.holders[2 * 8 + 5];
    CU_ASSERT_EQUAL(akin_placement_check_epoch(&p, &q, &err), AKIN_ERR_INVALID);
    CU_ASSERT_STRING_EQUAL(
        err.text,
        "placement: epoch 0 does not follow epoch 0: epochs must rise");
    q.epoch = 1;
    CU_ASSERT_EQUAL(akin_placement_check_epoch(&p, &q, &err), AKIN_OK);
    q.n_layers = 2;
    CU_ASSERT_EQUAL(akin_placement_check_epoch(&p, &q, &err), AKIN_ERR_INVALID);
    akin_placement_cleanup(&q);
    akin_placement_cleanup(&p);
    akin_placement_cleanup(NULL);
}

static void test_kinds(void)
{
    akin_placement_kind_t kind = AKIN_PLACEMENT_LINEAR;
    akin_error_t err = {{0}};
    for (int i = 0; i < 4; i++) {
        const char *name = akin_placement_kind_name((akin_placement_kind_t)i);
        CU_ASSERT_EQUAL(akin_placement_kind_find(name, &kind, &err), AKIN_OK);
        CU_ASSERT_EQUAL((int)kind, i);
    }
    CU_ASSERT_PTR_NULL(akin_placement_kind_name((akin_placement_kind_t)4));
    CU_ASSERT_EQUAL(akin_placement_kind_find("roundrobin", &kind, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "did you mean \"round-robin\"?"));
}

static const runner_test_t tests[] = {
    {"by hand", test_by_hand},
    {"eplb by hand", test_eplb_by_hand},
    {"activation by hand", test_activation_by_hand},
    {"shapes", test_shapes},
    {"activation pays", test_activation_pays},
    {"refused", test_refused},
    {"check", test_check},
    {"kinds", test_kinds},
};

RUNNER_MAIN("placement", tests)
