/* Job EP: places of ranks, numbers that must fit together, and the maps that
 * all ranks get. */
#include "planted_fit.h"
#include "runner.h"

#include "roles/job_ep.h"

#include <string.h>

#define N_EXPERTS 32u

static const planted_shape_t shape = {6, N_EXPERTS, 4, 2};
static const akin_model_config_t model = {
    .n_layers = 6, .n_experts = N_EXPERTS, .top_k = 4};

static akin_job_t job_of(uint32_t prefill_ep, uint32_t ep,
                         const char *placement)
{
    return (akin_job_t){.n_prefill = 2,
                        .n_decode = 8,
                        .ep = ep,
                        .prefill_ep = prefill_ep,
                        .ep_origin = "job.conf:1",
                        .prefill_ep_key = "roles.prefill_ep",
                        .prefill_ep_origin = "job.conf:2",
                        .placement = placement,
                        .placement_origin = "job.conf:3",
                        .max_batch = 64};
}

/* 2P8D with four ranks each: 41 ranks. */
static void places(void)
{
    akin_job_t job = job_of(4, 4, "linear");
    CU_ASSERT_EQUAL(akin_job_n_ranks(&job), 41);
    static const struct {
        uint32_t rank, worker, first;
        int is_prefill;
    } rows[] = {{1, 0, 1, 1}, {4, 0, 1, 1},  {5, 1, 5, 1},   {8, 1, 5, 1},
                {9, 0, 9, 0}, {12, 0, 9, 0}, {13, 1, 13, 0}, {40, 7, 37, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const akin_job_place_t place = akin_job_place(&job, rows[i].rank);
        CU_ASSERT_EQUAL(place.worker, rows[i].worker);
        CU_ASSERT_EQUAL(place.first, rows[i].first);
        CU_ASSERT_EQUAL(place.role, rows[i].is_prefill ? AKIN_JOB_PREFILL
                                                       : AKIN_JOB_DECODE);
        CU_ASSERT_EQUAL(place.n_ranks, 4);
    }
    job = job_of(1, 2, "linear");
    CU_ASSERT_EQUAL(akin_job_n_ranks(&job), 19);
    CU_ASSERT_EQUAL(akin_job_place(&job, 2).first, 2);
    CU_ASSERT_EQUAL(akin_job_place(&job, 4).first, 3);
    CU_ASSERT_EQUAL(akin_job_place(&job, 0).n_ranks, 1);
}

static void refused(void)
{
    static const struct {
        uint32_t prefill_ep, ep, n_replicas;
        const char *placement;
        const char *text; /* of the message; NULL: taken */
    } rows[] = {
        {1, 1, 0, "linear", NULL},
        {2, 4, 0, "linear", NULL},
        {4, 4, 8, "linear", NULL},
        {1, 3, 0, "linear", "job.conf:1: roles.ep is 3, which does not divide"},
        {3, 4, 0, "linear", "job.conf:2: roles.prefill_ep is 3"},
        {1, 3, 1, "linear", NULL},
        {3, 1, 1, "linear", NULL},
        {4, 4, 2, "linear", "roles.ep is 4, which does not divide"},
        {1, 2, 32, "linear", NULL},
        {1, 2, 34, "linear", "ep.replicas is 34, but with roles.ep = 2"},
        {1, 1, 0, "eplb", "job.conf:3: ep.placement is \"eplb\", which needs"},
        {1, 2, 0, "activation", "ep.placement is \"activation\""},
        {1, 2, 0, "auto", NULL},
    };
    static const akin_fit_t no_fit;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        akin_job_t job =
            job_of(rows[i].prefill_ep, rows[i].ep, rows[i].placement);
        akin_error_t err = {{0}};
        job.n_replicas = rows[i].n_replicas;
        akin_status_t status = akin_job_ep_check(&job, &model, &no_fit, &err);
        if (rows[i].text == NULL) {
            CU_ASSERT_EQUAL(status, AKIN_OK);
        } else {
            CU_ASSERT_EQUAL(status, AKIN_ERR_CONFIG);
            CU_ASSERT_PTR_NOT_NULL(strstr(err.text, rows[i].text));
        }
    }
}

static int same(const akin_placement_t *a, const akin_placement_t *b)
{
    return a->n_ranks == b->n_ranks && a->n_replicas == b->n_replicas &&
           a->n_layers == b->n_layers && a->n_experts == b->n_experts &&
           memcmp(a->holders, b->holders,
                  (size_t)a->n_layers * a->n_experts * sizeof(*a->holders)) ==
               0;
}

/* What rank 0 places is what the others read, and a worker's map comes from the
 * rates of its own cluster. */
static void maps(void)
{
    static const char *const names[] = {"linear", "round-robin", "eplb",
                                        "activation", "auto"};
    akin_fit_t fit = planted_fit(&shape, 8);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        akin_job_t job = job_of(2, 4, names[i]);
        akin_job_placements_t made, read;
        akin_error_t err = {{0}};
        char *text;
        job.n_replicas = 4;
        CU_ASSERT_EQUAL_FATAL(
            akin_job_placements_make(&job, &model, &fit, &made, &err), AKIN_OK);
        CU_ASSERT_EQUAL_FATAL(akin_job_placements_pack(&made, &text), AKIN_OK);
        CU_ASSERT_EQUAL_FATAL(
            akin_job_placements_unpack(&job, text, &read, &err), AKIN_OK);
        for (uint32_t w = 0; w < 8; w++) {
            CU_ASSERT(same(&made.decode[w], &read.decode[w]));
            CU_ASSERT_EQUAL(akin_placement_check(&read.decode[w], &err),
                            AKIN_OK);
        }
        CU_ASSERT(same(&made.prefill, &read.prefill));
        CU_ASSERT_EQUAL(read.prefill.n_ranks, 2);
        /* Workers 0 and 2 have one domain, worker 1 another. */
        CU_ASSERT(same(&read.decode[0], &read.decode[2]));
        CU_ASSERT_EQUAL(same(&read.decode[0], &read.decode[1]), i < 2);
        const akin_job_place_t place = akin_job_place(&job, 9);
        CU_ASSERT_PTR_EQUAL(akin_job_placements_of(&read, &place),
                            &read.decode[1]);
        akin_job_placements_cleanup(&read);
        /* Not what a job of other workers can use. */
        job.ep = 2;
        CU_ASSERT_EQUAL(akin_job_placements_unpack(&job, text, &read, &err),
                        AKIN_ERR_FORMAT);
        job.ep = 4;
        job.n_decode = 7;
        CU_ASSERT_EQUAL(akin_job_placements_unpack(&job, text, &read, &err),
                        AKIN_ERR_FORMAT);
        CU_ASSERT_EQUAL(akin_job_placements_unpack(&job, "{", &read, &err),
                        AKIN_ERR_FORMAT);
        free(text);
        akin_job_placements_cleanup(&made);
    }
    akin_fit_cleanup(&fit);
}

/* The fit's own maps, where they are for workers of this kind. */
static void maps_of_fit(void)
{
    akin_fit_t fit = planted_fit(&shape, 8);
    akin_job_t job = job_of(1, 2, "auto");
    akin_job_placements_t made;
    akin_error_t err = {{0}};
    /* Of another kind than auto would make. */
    const akin_placement_params_t params = {.kind = AKIN_PLACEMENT_ROUND_ROBIN,
                                            .n_layers = 6,
                                            .n_experts = N_EXPERTS,
                                            .n_ranks = 2};
    fit.placements = calloc(8, sizeof(*fit.placements));
    CU_ASSERT_PTR_NOT_NULL_FATAL(fit.placements);
    for (uint32_t w = 0; w < 8; w++)
        CU_ASSERT_EQUAL_FATAL(
            akin_placement_make(&params, &fit.placements[w], &err), AKIN_OK);
    CU_ASSERT_STRING_EQUAL(akin_job_placement_name(&job, &fit), "fit");
    CU_ASSERT_EQUAL_FATAL(
        akin_job_placements_make(&job, &model, &fit, &made, &err), AKIN_OK);
    for (uint32_t w = 0; w < 8; w++)
        CU_ASSERT(same(&made.decode[w], &fit.placements[w]));
    akin_job_placements_cleanup(&made);
    job.n_replicas = 2;
    CU_ASSERT_STRING_EQUAL(akin_job_placement_name(&job, &fit), "activation");
    job.n_replicas = 0;
    job.ep = 4;
    CU_ASSERT_STRING_EQUAL(akin_job_placement_name(&job, &fit), "activation");
    CU_ASSERT_EQUAL_FATAL(
        akin_job_placements_make(&job, &model, &fit, &made, &err), AKIN_OK);
    CU_ASSERT_EQUAL(made.decode[0].n_ranks, 4);
    akin_job_placements_cleanup(&made);
    job.placement = "linear";
    job.ep = 2;
    CU_ASSERT_STRING_EQUAL(akin_job_placement_name(&job, &fit), "linear");
    akin_fit_cleanup(&fit);
}

/* Workers of one rank have no map, and auto follows the fit. */
static void none(void)
{
    static const akin_fit_t no_fit;
    akin_job_t job = job_of(1, 1, "auto");
    akin_job_placements_t made, read;
    akin_error_t err = {{0}};
    char *text;
    CU_ASSERT_EQUAL_FATAL(
        akin_job_placements_make(&job, &model, &no_fit, &made, &err), AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akin_job_placements_pack(&made, &text), AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akin_job_placements_unpack(&job, text, &read, &err),
                          AKIN_OK);
    const akin_job_place_t place = akin_job_place(&job, 3);
    CU_ASSERT_PTR_NULL(akin_job_placements_of(&read, &place));
    free(text);
    akin_job_placements_cleanup(&made);
    akin_job_placements_cleanup(&read);
    akin_job_placements_cleanup(NULL);
    CU_ASSERT_STRING_EQUAL(akin_job_placement_name(&job, &no_fit), "linear");
    float rates[1] = {0};
    const akin_fit_t fit = {.pbar = rates};
    CU_ASSERT_STRING_EQUAL(akin_job_placement_name(&job, &fit), "activation");
}

static const runner_test_t tests[] = {
    {"places", places}, {"numbers that do not fit", refused},
    {"maps", maps},     {"maps of a fit", maps_of_fit},
    {"no maps", none},
};

RUNNER_MAIN("job_ep", tests)
