/* Fit file: what is written reads back the same, bit by bit. */
#include "planted_fit.h"
#include "runner.h"
#include "scratch_file.h"

#include "routing/fit.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool are_equal(const void *a, const void *b, size_t bytes)
{
    return (a == NULL) == (b == NULL) && (a == NULL || !memcmp(a, b, bytes));
}

static void check_equal(const akin_fit_t *a, const akin_fit_t *b)
{
    CU_ASSERT_EQUAL_FATAL(a->n_layers, b->n_layers);
    CU_ASSERT_EQUAL_FATAL(a->n_experts, b->n_experts);
    CU_ASSERT_EQUAL_FATAL(a->n_clusters, b->n_clusters);
    CU_ASSERT_EQUAL_FATAL(a->n_masked, b->n_masked);
    CU_ASSERT_EQUAL_FATAL(a->dim, b->dim);
    CU_ASSERT_EQUAL_FATAL(a->n_domains, b->n_domains);
    CU_ASSERT_EQUAL(a->top_k, b->top_k);
    CU_ASSERT_EQUAL(a->n_requests, b->n_requests);
    CU_ASSERT_EQUAL(a->variant, b->variant);
    CU_ASSERT_EQUAL(a->seed, b->seed);
    CU_ASSERT(a->rho == b->rho || (isnan(a->rho) && isnan(b->rho)));
    CU_ASSERT(a->tau == b->tau || (isnan(a->tau) && isnan(b->tau)));
    size_t cells = (size_t)a->n_layers * a->n_experts;
    CU_ASSERT(are_equal(a->layers, b->layers, a->n_masked * sizeof(uint32_t)));
    CU_ASSERT(are_equal(a->idf, b->idf, cells * sizeof(float)));
    CU_ASSERT(are_equal(a->centroids, b->centroids,
                        a->n_clusters * a->dim * sizeof(float)));
    CU_ASSERT(
        are_equal(a->pbar, b->pbar, a->n_clusters * cells * sizeof(float)));
    for (uint32_t i = 0; i < a->n_domains; i++) {
        CU_ASSERT_STRING_EQUAL(a->domains[i].name, b->domains[i].name);
        CU_ASSERT_EQUAL(a->domains[i].n_requests, b->domains[i].n_requests);
    }
}

/* Write, read, compare bit by bit; then the same bytes again. */
static void check_round_trip(const akin_fit_t *fit)
{
    const char *path = scratch_path("fit.json");
    const char *again = scratch_path("again.json");
    akin_fit_t back;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_fit_write(fit, path, &err), AKIN_OK);
    if (akin_fit_read(path, &back, &err) != AKIN_OK)
        CU_FAIL_FATAL("cannot be read back");
    check_equal(fit, &back);
    CU_ASSERT_EQUAL_FATAL(akin_fit_write(&back, again, &err), AKIN_OK);
    size_t n = 0, n_again = 0;
    char *text = scratch_read(path, &n);
    char *text_again = scratch_read(again, &n_again);
    CU_ASSERT_FATAL(n == n_again && memcmp(text, text_again, n) == 0);
    free(text);
    free(text_again);
    akin_fit_cleanup(&back);
    scratch_remove(again);
    scratch_remove(path);
}

static void test_round_trip(void)
{
    planted_shape_t shape = {
        .n_layers = 5, .n_experts = 24, .top_k = 3, .n_domains = 4};
    akin_fit_t fit = planted_fit(&shape, 7);
    check_round_trip(&fit);

    /* Numbers that few digits would not hold, and the ends of float. */
    fit.model = strdup("a \"b\" \\ \xc3\xa4");
    fit.rho = 0.1 + 0.2;
    fit.tau = 0.1;
    fit.seed = INT64_MAX;
    fit.n_requests = UINT32_MAX;
    fit.domains = calloc(2, sizeof(*fit.domains));
    fit.n_domains = 2;
    fit.domains[0] = (akin_fit_domain_t){strdup("code"), 5};
    fit.domains[1] = (akin_fit_domain_t){strdup(""), 4};
    fit.idf[0] = FLT_MAX;
    fit.idf[1] = nextafterf(0, 1);
    fit.idf[2] = nextafterf(1, 0);
    fit.idf[3] = -0.0f;
    fit.idf[4] = (float)(1.0 / 3.0);
    fit.pbar[0] = FLT_MIN;
    fit.pbar[1] = 1;
    check_round_trip(&fit);

    fit.variant = AKIN_FIT_COUNT;
    free(fit.idf);
    fit.idf = NULL;
    free(fit.pbar);
    fit.pbar = NULL;
    check_round_trip(&fit);
    akin_fit_cleanup(&fit);
}

/* Every float that is drawn reads back the same. */
static void test_all_bits(void)
{
    enum { N = 4096 };
    akin_fit_t fit = {
        .n_layers = 1,
        .n_experts = N,
        .n_clusters = 1,
        .variant = AKIN_FIT_COUNT_IDF,
        .n_masked = 1,
        .dim = N,
        .layers = calloc(1, sizeof(*fit.layers)),
        .idf = calloc(N, sizeof(*fit.idf)),
        .centroids = calloc(N, sizeof(*fit.centroids)),
        .rho = NAN,
        .tau = NAN,
    };
    CU_ASSERT_FATAL(fit.layers != NULL && fit.idf != NULL &&
                    fit.centroids != NULL);
    fit.centroids[17] = 1;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t bits = (i * 2654435761u) & 0x7fffffffu;
        memcpy(&fit.idf[i], &bits, sizeof(bits));
        if (!isfinite(fit.idf[i]))
            fit.idf[i] = 0;
    }
    check_round_trip(&fit);
    akin_fit_cleanup(&fit);
}

static void test_write_refuses(void)
{
    planted_shape_t shape = {
        .n_layers = 2, .n_experts = 8, .top_k = 2, .n_domains = 2};
    akin_fit_t fit = planted_fit(&shape, 2);
    const char *path = scratch_path("fit.json");
    akin_error_t err = {{0}};
    fit.pbar[3] = NAN;
    CU_ASSERT_EQUAL(akin_fit_write(&fit, path, &err), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "pbar"));
    CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
    fit.pbar[3] = 0;
    fit.seed = (uint64_t)INT64_MAX + 1;
    CU_ASSERT_EQUAL(akin_fit_write(&fit, path, &err), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "seed"));
    fit.seed = 0;
    CU_ASSERT_EQUAL(akin_fit_write(&fit, "/nowhere/at/all/fit.json", &err),
                    AKIN_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(akin_fit_write(&fit, "/dev/full", &err), AKIN_ERR_IO);
    CU_ASSERT_EQUAL(akin_fit_write(&fit, scratch_folder, &err), AKIN_ERR_IO);
    /* Nothing is left beside it. */
    CU_ASSERT_EQUAL(rmdir(scratch_folder), 0);
    scratch_folder[0] = '\0';
    akin_fit_cleanup(&fit);
}

static void test_read_refuses(void)
{
    akin_fit_t fit;
    akin_error_t err = {{0}};
    const char *path = scratch_path("fit.json");
    CU_ASSERT_EQUAL(akin_fit_read(path, &fit, &err), AKIN_ERR_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
    CU_ASSERT_EQUAL(akin_fit_read("/", &fit, &err), AKIN_ERR_IO);
    CU_ASSERT_EQUAL(akin_fit_read("/dev/zero", &fit, &err), AKIN_ERR_IO);
    scratch_write(path, "", 0);
    CU_ASSERT_EQUAL(akin_fit_read(path, &fit, &err), AKIN_ERR_FORMAT);
    /* A file of 1 GiB, without a byte on the disk. */
    CU_ASSERT_EQUAL_FATAL(truncate(path, (off_t)1 << 30), 0);
    CU_ASSERT_EQUAL(akin_fit_read(path, &fit, &err), AKIN_ERR_FORMAT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "1073741824"));
    scratch_remove(path);
    path = scratch_path("fifo");
    CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
    CU_ASSERT_EQUAL(akin_fit_read(path, &fit, &err), AKIN_ERR_IO);
    scratch_remove(path);
}

static const runner_test_t tests[] = {
    {"round trip", test_round_trip},
    {"all bits", test_all_bits},
    {"write refuses", test_write_refuses},
    {"read refuses", test_read_refuses},
};

RUNNER_MAIN("fit_file", tests)
