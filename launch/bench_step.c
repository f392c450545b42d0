/* bench step: decode of one request on a real model, beside a plain read of
 * the weights that its token touches. */
#include "launch/bench.h"

#include "base/clock.h"
#include "base/thread.h"
#include "engine/engine.h"
#include "engine/model.h"
#include "launch/command.h"

#include <argp.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct options {
    const char *model_dir;
    const char *kernel;
    uint32_t rounds;
    int n_threads;
    int json;
} options_t;

enum { OPT_ROUNDS = 256, OPT_KERNEL, OPT_JSON };

static const struct argp_option arguments[] = {
    {"model", 'm', "DIR", 0, "Model directory", 0},
    {"rounds", OPT_ROUNDS, "N", 0, "Tokens to decode (200)", 0},
    {"threads", 't', "N", 0, "Threads (the cores of this process)", 0},
    {"kernel", OPT_KERNEL, "PATH", 0, "auto, avx512, avx2, portable (auto)", 0},
    {"json", OPT_JSON, NULL, 0, "Print JSON", 0},
    {0}};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    uint32_t value = 0;
    if ((key == OPT_ROUNDS || key == 't') &&
        akin_bench_parse_list(arg, AKIN_BENCH_MAX_ROUNDS, &value, 1) != 1)
        argp_error(state, "%s: a whole number from 1 to %u is needed", arg,
                   AKIN_BENCH_MAX_ROUNDS);
    switch (key) {
    case 'm':
        o->model_dir = arg;
        break;
    case OPT_ROUNDS:
        o->rounds = value;
        break;
    case 't':
        o->n_threads = (int)value;
        break;
    case OPT_KERNEL:
        o->kernel = arg;
        break;
    case OPT_JSON:
        o->json = 1;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* What a run holds. */
typedef struct run {
    akin_model_t *model; /* the same mapped files as the engine's */
    akin_engine_t *engine;
    akin_engine_info_t info;
    akin_kv_layout_t layout;
    akin_kv_view_t view;
    uint32_t *slots;
    float *logits;
    uint16_t *routes;
    akin_bench_piece_t *pieces;
    size_t n_pieces;
} run_t;

static akin_status_t prepare(run_t *r, const options_t *o, akin_error_t *err)
{
    const akin_engine_params_t params = {
        .model_dir = o->model_dir,
        .kernel = o->kernel,
        .n_threads = o->n_threads,
    };
    akin_status_t status = akin_model_open(o->model_dir, &r->model, err);
    if (status == AKIN_OK)
        status = akin_engine_load("cpu", &params, &r->engine, err);
    if (status != AKIN_OK)
        return status;
    akin_engine_describe(r->engine, &r->info);
    const akin_model_config_t *c = r->info.model;
    if (o->rounds >= c->max_positions)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "--rounds %u: the model has %u positions",
                              o->rounds, c->max_positions);
    akin_kv_shape_t shape;
    akin_engine_kv_shape(r->engine, 16, &shape);
    status = akin_kv_layout_init(&shape, &r->layout, err);
    if (status != AKIN_OK)
        return status;
    r->view.layout = &r->layout;
    r->view.n_slots = o->rounds / shape.block_tokens + 1;
    r->view.base = aligned_alloc(AKIN_KV_SLOT_ALIGN_BYTES,
                                 r->view.n_slots * r->layout.stride_bytes);
    r->slots = calloc(r->view.n_slots, sizeof(*r->slots));
    r->logits = calloc(c->vocab_size, sizeof(*r->logits));
    r->routes = calloc((size_t)c->n_layers * c->top_k, sizeof(*r->routes));
    r->pieces = calloc((size_t)c->n_layers * (5 + 3 * c->top_k) + 2,
                       sizeof(*r->pieces));
    if (r->view.base == NULL || r->slots == NULL || r->logits == NULL ||
        r->routes == NULL || r->pieces == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    for (uint32_t i = 0; i < r->view.n_slots; i++)
        r->slots[i] = i;
    return AKIN_OK;
}

static void cleanup(run_t *r)
{
    akin_engine_destroy(r->engine);
    akin_model_close(r->model);
    free(r->view.base);
    free(r->slots);
    free(r->logits);
    free(r->routes);
    free(r->pieces);
}

static void add_piece(run_t *r, const akin_matrix_t *m)
{
    r->pieces[r->n_pieces++] =
        (akin_bench_piece_t){m->data, akin_matrix_bytes(m)};
}

/* The matrices that the last token touched; norms and one embedding row are
 * left out, they are below a thousandth. */
static size_t list_pieces(run_t *r)
{
    const akin_model_config_t *c = r->info.model;
    r->n_pieces = 0;
    for (uint32_t l = 0; l < c->n_layers; l++) {
        const akin_layer_t *layer = &r->model->layers[l];
        add_piece(r, &layer->q_proj);
        add_piece(r, &layer->k_proj);
        add_piece(r, &layer->v_proj);
        add_piece(r, &layer->o_proj);
        add_piece(r, &layer->router);
        for (uint32_t j = 0; j < c->top_k; j++) {
            const akin_expert_t *e =
                &layer->experts[r->routes[l * c->top_k + j]];
            add_piece(r, &e->gate);
            add_piece(r, &e->up);
            add_piece(r, &e->down);
        }
    }
    add_piece(r, &r->model->head);
    size_t bytes = 0;
    for (size_t i = 0; i < r->n_pieces; i++)
        bytes += r->pieces[i].bytes;
    return bytes;
}

static akin_status_t measure(run_t *r, const options_t *o,
                             akin_bench_rounds_t *rounds, size_t *bytes_p,
                             akin_error_t *err)
{
    const uint32_t vocab = r->info.model->vocab_size;
    uint32_t token = 0;
    rounds->n = 0;
    for (uint32_t i = 0; i <= o->rounds; i++) {
        /* Tokens spread over the vocabulary, so that the routes vary. */
        token = (uint32_t)(((uint64_t)token * 48271u + 11u) % vocab);
        const akin_engine_span_t span = {
            .tokens = &token,
            .n_tokens = 1,
            .position = i,
            .slots = r->slots,
            .logits = r->logits,
            .routes = r->routes,
        };
        int64_t begin = akin_clock_now_ns();
        akin_status_t status =
            akin_engine_step(r->engine, &r->view, &span, 1, NULL);
        int64_t end = akin_clock_now_ns();
        if (status != AKIN_OK)
            return akin_error_set(err, status, "step failed: %s",
                                  akin_status_string(status));
        *bytes_p = list_pieces(r);
        double reference =
            akin_bench_read(r->pieces, r->n_pieces, o->n_threads);
        if (i == 0)
            continue; /* the first round warms up */
        rounds->seconds[rounds->n] =
            (double)(end - begin) / (double)AKIN_NS_PER_S;
        rounds->reference[rounds->n++] = reference;
    }
    return AKIN_OK;
}

int akin_bench_step_command(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        NULL,
        "Time decode steps of one request beside a plain read of the weight "
        "bytes that each token touches. The ratio is step / read: 1 is the "
        "limit, lower is better.",
        NULL,
        NULL,
        NULL};
    static akin_bench_rounds_t rounds;
    options_t o = {.rounds = 200,
                   .kernel = "auto",
                   .n_threads = akin_thread_usable_cores()};
    akin_error_t err = {{0}};
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return AKIN_EXIT_USAGE;
    if (o.model_dir == NULL) {
        (void)akin_error_set(&err, AKIN_ERR_INVALID,
                             "no model: give its directory with -m DIR");
        return akin_command_fail(AKIN_ERR_INVALID, &err);
    }
    run_t r = {0};
    size_t bytes = 0;
    akin_status_t status = prepare(&r, &o, &err);
    if (status == AKIN_OK)
        status = measure(&r, &o, &rounds, &bytes, &err);
    if (status != AKIN_OK) {
        cleanup(&r);
        return akin_command_fail(status, &err);
    }
    akin_bench_medians_t m;
    akin_bench_medians(&rounds, &m);
    int code = AKIN_EXIT_OK;
    if (o.json)
        code = akin_command_print_json(json_pack(
            "[{s:s, s:s, s:i, s:i, s:s, s:I, s:f, s:f, s:f}]", "bench", "step",
            "model", o.model_dir, "batch", 1, "threads", o.n_threads, "kernel",
            r.info.kernels->name, "bytes", (json_int_t)bytes, "seconds",
            m.seconds, "reference_seconds", m.reference_seconds, "ratio",
            1.0 / m.reference_over_ours));
    else
        (void)printf("%s, batch 1, %s, %d threads, medians of %u steps\n"
                     "step %.1f us, plain read of %.2f MB %.1f us, step/read "
                     "%.2f\n",
                     o.model_dir, r.info.kernels->name, o.n_threads, rounds.n,
                     m.seconds * 1e6, (double)bytes / 1e6,
                     m.reference_seconds * 1e6, 1.0 / m.reference_over_ours);
    cleanup(&r);
    if (fflush(stdout) != 0)
        code = AKIN_EXIT_FAILED;
    return code;
}
