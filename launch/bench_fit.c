/* bench fit: rounds of k-means beside the bare matrix product of OpenBLAS, and
 * the search of the layer mask. */
#include "launch/bench.h"

#include "base/clock.h"
#include "launch/command.h"
#include "launch/planted.h"
#include "routing/float_array.h"
#include "routing/kmeans.h"
#include "routing/layer_mask.h"

#include <argp.h>
#include <dlfcn.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLAS "libopenblas.so.0"

enum {
    PROMPT_TOKENS = 400,
    DECODE_TOKENS = 128,
    N_DOMAINS = 11, /* other than clusters, or they fall into place at once */
    REPEATS = 15,
    /* Of CBLAS. */
    ROW_MAJOR = 101,
    AS_IT_IS = 111,
    TRANSPOSED = 112
};

typedef struct options {
    akin_planted_t planted;
    uint32_t n_requests;
    uint32_t n_workers;
    uint32_t n_pairs;
    int json;
} options_t;

enum {
    OPT_REQUESTS = 256,
    OPT_LAYERS,
    OPT_EXPERTS,
    OPT_TOP_K,
    OPT_WORKERS,
    OPT_PAIRS,
    OPT_SEED,
    OPT_JSON
};

static const struct argp_option arguments[] = {
    {"requests", OPT_REQUESTS, "N", 0, "Requests to cluster (1000)", 0},
    {"layers", OPT_LAYERS, "N", 0, "MoE layers (48)", 0},
    {"experts", OPT_EXPERTS, "N", 0, "Experts per layer (128)", 0},
    {"top-k", OPT_TOP_K, "N", 0, "Experts per token (8)", 0},
    {"workers", OPT_WORKERS, "N", 0, "Clusters (16)", 0},
    {"pairs", OPT_PAIRS, "N", 0, "Pairs that the mask compares (30000)", 0},
    {"seed", OPT_SEED, "N", 0, "Seed of the requests (1)", 0},
    {"json", OPT_JSON, NULL, 0, "Print JSON", 0},
    {0}};

static uint32_t number(struct argp_state *state, const char *name,
                       const char *text, uint32_t max)
{
    uint32_t value;
    if (akin_bench_parse_list(text, max, &value, 1) != 1)
        argp_error(state, "--%s %s: a whole number from 1 to %u is needed",
                   name, text, max);
    return value;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    switch (key) {
    case OPT_REQUESTS:
        o->n_requests = number(state, "requests", arg, 100000);
        break;
    case OPT_LAYERS:
        o->planted.n_layers = number(state, "layers", arg, 1024);
        break;
    case OPT_EXPERTS:
        o->planted.n_experts = number(state, "experts", arg, 1024);
        break;
    case OPT_TOP_K:
        o->planted.top_k = number(state, "top-k", arg, 1024);
        break;
    case OPT_WORKERS:
        o->n_workers = number(state, "workers", arg, 1024);
        break;
    case OPT_PAIRS:
        o->n_pairs = number(state, "pairs", arg, 10000000);
        break;
    case OPT_SEED:
        o->planted.seed = number(state, "seed", arg, UINT32_MAX);
        break;
    case OPT_JSON:
        o->json = 1;
        break;
    case ARGP_KEY_END:
        if (o->n_workers > o->n_requests)
            argp_error(state, "--workers %u: there are %u requests",
                       o->n_workers, o->n_requests);
        if (o->planted.top_k > o->planted.n_experts)
            argp_error(state, "--top-k %u: there are %u experts",
                       o->planted.top_k, o->planted.n_experts);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

typedef void (*sgemm_fn_t)(int order, int trans_a, int trans_b, int m, int n,
                           int k, float alpha, const float *a, int lda,
                           const float *b, int ldb, float beta, float *c,
                           int ldc);
typedef void (*set_threads_fn_t)(int n);
typedef char *(*core_name_fn_t)(void);

typedef struct blas {
    void *library; /* stays until the process ends */
    sgemm_fn_t sgemm;
    const char *core; /* what its kernels are made for */
} blas_t;

/* OpenBLAS is loaded rather than linked: only this measurement wants it. */
static akin_status_t load_blas(blas_t *blas, akin_error_t *err)
{
    void *library = dlopen(BLAS, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return akin_error_set(err, AKIN_ERR_UNSUPPORTED,
                              "the reference needs OpenBLAS, and there is no "
                              "%s: install libopenblas0",
                              BLAS);
    void *sgemm = dlsym(library, "cblas_sgemm");
    void *set_threads = dlsym(library, "openblas_set_num_threads");
    void *core_name = dlsym(library, "openblas_get_corename");
    if (sgemm == NULL || set_threads == NULL || core_name == NULL) {
        (void)dlclose(library);
        return akin_error_set(err, AKIN_ERR_UNSUPPORTED,
                              "%s lacks cblas_sgemm or a function of OpenBLAS: "
                              "install libopenblas0",
                              BLAS);
    }
    set_threads_fn_t set;
    core_name_fn_t name;
    memcpy(&set, &set_threads, sizeof(set));
    memcpy(&name, &core_name, sizeof(name));
    memcpy(&blas->sgemm, &sgemm, sizeof(blas->sgemm));
    set(1);
    blas->core = name();
    blas->library = library;
    return AKIN_OK;
}

/* What a run holds. */
typedef struct run {
    const options_t *options;
    size_t cells;
    uint16_t *prefill; /* [n_requests][cells] */
    uint16_t *decode;  /* [n_requests][cells] */
    float *idf;        /* [cells] */
    float *points;     /* [n_requests][cells] signatures */
    float *centroids;  /* [n_workers][cells] */
    float *products;   /* [n_requests][n_workers] */
    uint32_t *cluster; /* [n_requests] */
    uint32_t *left, *right;
    uint32_t *order, *mask;
    double *rho;
} run_t;

typedef struct figures {
    akin_kmeans_result_t kmeans;
    akin_layer_mask_result_t mask;
    akin_bench_medians_t rounds;
    double kmeans_s;
    double mask_s;
    blas_t blas;
} figures_t;

static void cleanup(run_t *r)
{
    free(r->prefill);
    free(r->decode);
    free(r->idf);
    free(r->points);
    free(r->centroids);
    free(r->products);
    free(r->cluster);
    free(r->left);
    free(r->right);
    free(r->order);
    free(r->mask);
    free(r->rho);
}

static akin_status_t prepare(run_t *r, akin_error_t *err)
{
    const options_t *o = r->options;
    const akin_planted_t *planted = &o->planted;
    uint32_t n = o->n_requests, n_layers = planted->n_layers;
    r->cells = (size_t)n_layers * planted->n_experts;
    r->prefill = calloc(n, r->cells * sizeof(*r->prefill));
    r->decode = calloc(n, r->cells * sizeof(*r->decode));
    r->idf = calloc(r->cells, sizeof(*r->idf));
    r->points = akini_float_array_create(n, r->cells);
    r->centroids = akini_float_array_create(o->n_workers, r->cells);
    r->products = akini_float_array_create(n, o->n_workers);
    r->cluster = calloc(n, sizeof(*r->cluster));
    r->left = calloc(o->n_pairs, sizeof(*r->left));
    r->right = calloc(o->n_pairs, sizeof(*r->right));
    r->order = calloc(n_layers, sizeof(*r->order));
    r->mask = calloc(n_layers, sizeof(*r->mask));
    r->rho = calloc(n_layers, sizeof(*r->rho));
    uint32_t *df = calloc(r->cells, sizeof(*df));
    if (r->prefill == NULL || r->decode == NULL || r->idf == NULL ||
        r->points == NULL || r->centroids == NULL || r->products == NULL ||
        r->cluster == NULL || r->left == NULL || r->right == NULL ||
        r->order == NULL || r->mask == NULL || r->rho == NULL || df == NULL) {
        free(df);
        return akin_error_set(err, AKIN_ERR_NOMEM,
                              "out of memory for %u requests", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint16_t *prefill = r->prefill + i * r->cells;
        akin_planted_counts(planted, AKIN_PLANTED_PREFILL, i, PROMPT_TOKENS,
                            prefill);
        akin_planted_counts(planted, AKIN_PLANTED_DECODE, i, DECODE_TOKENS,
                            r->decode + i * r->cells);
        akin_signature_df_add(prefill, r->cells, df);
    }
    akin_signature_idf(df, n, r->cells, r->idf);
    free(df);
    /* Every request may use every expert; such an IDF of 0 would leave
     * nothing to cluster. */
    const akin_signature_form_t form = {n_layers, planted->n_experts, NULL, 0,
                                        NULL};
    for (uint32_t i = 0; i < n; i++)
        akin_signature_compute(&form, r->prefill + i * r->cells,
                               r->points + i * r->cells);
    return AKIN_OK;
}

/* Whole fits, and per round the bare product in turn. */
static akin_status_t measure_kmeans(run_t *r, figures_t *f, akin_error_t *err)
{
    static akin_bench_rounds_t rounds;
    const options_t *o = r->options;
    const akin_kmeans_params_t params = {
        .n_points = o->n_requests,
        .n_clusters = o->n_workers,
        .dim = r->cells,
        .seed = o->planted.seed,
    };
    const int n = (int)o->n_requests, k = (int)o->n_workers;
    const int dim = (int)r->cells;
    rounds.n = 0;
    for (uint32_t i = 0; i <= REPEATS; i++) {
        int64_t begin = akin_clock_now_ns();
        akin_status_t status = akin_kmeans_fit(&params, r->points, r->centroids,
                                               r->cluster, &f->kmeans, err);
        f->kmeans_s =
            (double)(akin_clock_now_ns() - begin) / (double)AKIN_NS_PER_S;
        if (status != AKIN_OK)
            return status;
        begin = akin_clock_now_ns();
        f->blas.sgemm(ROW_MAJOR, AS_IT_IS, TRANSPOSED, n, k, dim, 1.0f,
                      r->points, dim, r->centroids, dim, 0.0f, r->products, k);
        double reference =
            (double)(akin_clock_now_ns() - begin) / (double)AKIN_NS_PER_S;
        if (i == 0)
            continue; /* the first one warms up */
        rounds.seconds[rounds.n] =
            (f->kmeans.products_s + f->kmeans.assign_s + f->kmeans.move_s) /
            f->kmeans.n_rounds;
        rounds.reference[rounds.n++] = reference;
    }
    akin_bench_medians(&rounds, &f->rounds);
    return AKIN_OK;
}

static akin_status_t measure_mask(run_t *r, figures_t *f, akin_error_t *err)
{
    const options_t *o = r->options;
    uint32_t n_pairs = akin_layer_mask_draw(o->n_requests, o->n_pairs,
                                            o->planted.seed, r->left, r->right);
    const akin_layer_mask_params_t params = {
        .n_requests = o->n_requests,
        .n_layers = o->planted.n_layers,
        .n_experts = o->planted.n_experts,
        .prefill = r->prefill,
        .decode = r->decode,
        .idf = r->idf,
        .left = r->left,
        .right = r->right,
        .n_pairs = n_pairs,
    };
    int64_t begin = akin_clock_now_ns();
    akin_status_t status = akin_layer_mask_search(&params, r->order, r->rho,
                                                  r->mask, &f->mask, err);
    f->mask_s = (double)(akin_clock_now_ns() - begin) / (double)AKIN_NS_PER_S;
    return status;
}

static int print_json(const options_t *o, const figures_t *f)
{
    const akin_kmeans_result_t *k = &f->kmeans;
    double rounds_s = k->products_s + k->assign_s + k->move_s;
    return akin_command_print_json(json_pack(
        "[{s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:I, s:f, s:f, s:f, s:f, s:f, "
        "s:f, "
        "s:f, s:f},"
        " {s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:f}]",
        "bench", "fit.rounds", "reference_core", f->blas.core, "requests",
        (json_int_t)o->n_requests, "layers", (json_int_t)o->planted.n_layers,
        "experts", (json_int_t)o->planted.n_experts, "workers",
        (json_int_t)o->n_workers, "threads", 1, "rounds",
        (json_int_t)k->n_rounds, "seconds", f->rounds.seconds,
        "reference_seconds", f->rounds.reference_seconds, "ratio",
        1.0 / f->rounds.reference_over_ours, "products_share",
        k->products_s / rounds_s, "assignment_share", k->assign_s / rounds_s,
        "move_share", k->move_s / rounds_s, "start_seconds", k->start_s,
        "fit_seconds", f->kmeans_s, "bench", "fit.mask", "requests",
        (json_int_t)o->n_requests, "layers", (json_int_t)o->planted.n_layers,
        "experts", (json_int_t)o->planted.n_experts, "pairs",
        (json_int_t)o->n_pairs, "seconds", f->mask_s, "products_share",
        f->mask.products_s / f->mask_s, "ranking_share",
        f->mask.ranking_s / f->mask_s));
}

static int print_text(const options_t *o, const figures_t *f)
{
    const akin_kmeans_result_t *k = &f->kmeans;
    double rounds_s = k->products_s + k->assign_s + k->move_s;
    (void)printf(
        "%u requests, %u layers x %u experts, %u clusters, one thread\n"
        "k-means round %.3f ms, bare sgemm (%s) %.3f ms, round/sgemm %.2f\n"
        "of a round: products %.0f %%, assignment %.0f %%, centroids %.0f %%\n"
        "fit: %u rounds, %.1f ms, of which %.1f ms for the start\n"
        "layer mask: %u pairs, %.0f ms; products %.0f %%, ranking %.0f %%\n",
        o->n_requests, o->planted.n_layers, o->planted.n_experts, o->n_workers,
        f->rounds.seconds * 1e3, f->blas.core,
        f->rounds.reference_seconds * 1e3, 1.0 / f->rounds.reference_over_ours,
        100.0 * k->products_s / rounds_s, 100.0 * k->assign_s / rounds_s,
        100.0 * k->move_s / rounds_s, k->n_rounds, f->kmeans_s * 1e3,
        k->start_s * 1e3, o->n_pairs, f->mask_s * 1e3,
        100.0 * f->mask.products_s / f->mask_s,
        100.0 * f->mask.ranking_s / f->mask_s);
    return fflush(stdout) == 0 ? AKIN_EXIT_OK : AKIN_EXIT_FAILED;
}

int akin_bench_fit_command(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        NULL,
        "Time rounds of k-means beside the bare matrix product of the same "
        "points and centroids by OpenBLAS, on one thread, and the search of "
        "the layer mask. The ratio is round / product: lower is better, and "
        "below 1 is possible, since OpenBLAS is made for other shapes. The "
        "output names the core that its kernels are for; where they are of an "
        "older one, OPENBLAS_CORETYPE=SKYLAKEX has those of AVX-512.",
        NULL,
        NULL,
        NULL};
    options_t o = {
        .planted = {48, 128, 8, N_DOMAINS, 1},
        .n_requests = 1000,
        .n_workers = 16,
        .n_pairs = AKIN_LAYER_MASK_PAIRS,
    };
    akin_error_t err = {{0}};
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return AKIN_EXIT_USAGE;
    figures_t figures = {0};
    run_t run = {.options = &o};
    akin_status_t status = load_blas(&figures.blas, &err);
    if (status == AKIN_OK)
        status = prepare(&run, &err);
    if (status == AKIN_OK)
        status = measure_kmeans(&run, &figures, &err);
    if (status == AKIN_OK)
        status = measure_mask(&run, &figures, &err);
    int code = status != AKIN_OK ? akin_command_fail(status, &err)
               : o.json          ? print_json(&o, &figures)
                                 : print_text(&o, &figures);
    cleanup(&run);
    return code;
}
