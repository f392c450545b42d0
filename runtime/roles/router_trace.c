/* Trace sink: the experts that every token of a request chose become a record
 * of a trace. */
#include "roles/router_sink.h"

#include "base/clock.h"
#include "routing/trace_writer.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Failures that are told word by word; the others are counted. */
#define MAX_REASONS 5u

typedef struct trace_sink {
    akini_sink_t base;
    akin_trace_writer_t *writer;
    int64_t start_ns;
    int is_complete;
    uint32_t n_failed;
    akin_request_error_t reasons[MAX_REASONS]; /* of the first failures */
} trace_sink_t;

/* The seed and what is left of the sampling do not matter to a greedy one. */
static int admit(akini_sink_t *sink, akin_request_t *request)
{
    request->sampling.temperature = 0.0f;
    request->sampling.repetition_penalty = 1.0f;
    request->ignore_eos = 1;
    request->want_logprobs = 0;
    request->n_top = 0;
    for (uint32_t i = 0; i < request->n_stops; i++)
        free(request->stops[i]);
    request->n_stops = 0;
    return akin_trace_writer_has(((trace_sink_t *)sink)->writer,
                                 request->custom_id);
}

static uint32_t room(akini_sink_t *sink, uint64_t n_begun)
{
    (void)sink;
    (void)n_begun;
    return UINT32_MAX;
}

static akin_status_t answer(akini_sink_t *sink, const akini_flight_t *f,
                            akin_finish_t finish, akin_request_error_t *refused,
                            akin_error_t *err)
{
    trace_sink_t *t = (trace_sink_t *)sink;
    const akin_request_t *request = f->request;
    akin_error_t why = {{0}};
    (void)finish;
    /* The last token was not computed: nobody asked for its successor. */
    const uint32_t n_tokens = request->n_prompt + f->n_tokens - 1;
    if (f->n_routed != n_tokens) {
        (void)akin_request_error_set(
            refused, 500, NULL, "routes_lost",
            "%u tokens were computed, but the experts of %u were told",
            n_tokens, f->n_routed);
        return AKIN_ERR_REFUSED;
    }
    /* When a request came depends on the run, not on the request. */
    const akin_trace_record_t record = {
        .id = request->custom_id,
        .domain = request->domain != NULL ? request->domain : "",
        .n_tokens = n_tokens,
        .n_prompt = request->n_prompt,
        .arrival_s = -1.0,
    };
    akin_status_t status =
        akin_trace_writer_append(t->writer, &record, f->routes, &why);
    if (status == AKIN_ERR_INVALID || status == AKIN_ERR_EXISTS) {
        (void)akin_request_error_set(refused, 500, NULL, "routes_refused", "%s",
                                     why.text);
        return AKIN_ERR_REFUSED;
    }
    if (status != AKIN_OK)
        return akin_error_set(err, status,
                              "%s; what was recorded is kept: make room and "
                              "go on with --resume",
                              why.text);
    return AKIN_OK;
}

static akin_status_t fail(akini_sink_t *sink, uint64_t sequence,
                          const akin_request_error_t *error, akin_error_t *err)
{
    trace_sink_t *t = (trace_sink_t *)sink;
    (void)sequence;
    (void)err;
    if (t->n_failed < MAX_REASONS)
        t->reasons[t->n_failed] = *error;
    t->n_failed++;
    return AKIN_OK;
}

static akin_status_t tick(akini_sink_t *sink, int64_t now_ns, akin_error_t *err)
{
    (void)sink;
    (void)now_ns;
    (void)err;
    return AKIN_OK;
}

static void print_failures(const trace_sink_t *t)
{
    if (t->n_failed == 0)
        return;
    (void)fprintf(stderr,
                  "akin: %u request%s failed and %s not in the "
                  "trace:\n",
                  t->n_failed, t->n_failed == 1 ? "" : "s",
                  t->n_failed == 1 ? "is" : "are");
    for (uint32_t i = 0; i < t->n_failed && i < MAX_REASONS; i++) {
        const akin_request_error_t *e = &t->reasons[i];
        (void)fprintf(stderr, "  %s%s%s\n", e->has_id ? e->custom_id : "",
                      e->has_id ? ": " : "", e->message);
    }
    if (t->n_failed > MAX_REASONS)
        (void)fprintf(stderr, "  and %u more\n", t->n_failed - MAX_REASONS);
}

static akin_status_t end(akini_sink_t *sink, int is_complete, akin_error_t *err)
{
    trace_sink_t *t = (trace_sink_t *)sink;
    t->is_complete = is_complete;
    print_failures(t);
    if (!is_complete)
        return AKIN_OK;
    if (akin_trace_writer_count(t->writer) == 0)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: no request was recorded, so there is no "
                              "trace: mend the prompts and go on with --resume",
                              t->base.router->params.calibration->trace_path);
    return akin_trace_writer_finish(t->writer, err);
}

static akin_status_t print(const trace_sink_t *t, uint64_t n_rows,
                           uint64_t n_bytes, akin_error_t *err)
{
    const akin_router_calibration_t *c = t->base.router->params.calibration;
    const uint32_t n = akin_trace_writer_count(t->writer);
    const double seconds =
        (double)(akin_clock_now_ns() - t->start_ns) / (double)AKIN_NS_PER_S;
    int failed;
    errno = 0;
    if (c->as_json) {
        json_t *json =
            json_pack("{s:s, s:I, s:I, s:I, s:I, s:f}", "trace", c->trace_path,
                      "requests", (json_int_t)n, "failed",
                      (json_int_t)t->n_failed, "rows", (json_int_t)n_rows,
                      "bytes", (json_int_t)n_bytes, "seconds", seconds);
        failed = json == NULL ||
                 json_dumpf(json, stdout, JSON_REAL_PRECISION(9)) != 0 ||
                 putchar('\n') == EOF;
        json_decref(json);
    } else {
        failed = printf("%s: %u requests, %llu rows, %llu bytes, %.1f s\n",
                        c->trace_path, n, (unsigned long long)n_rows,
                        (unsigned long long)n_bytes, seconds) < 0;
    }
    if (fflush(stdout) != 0 || failed)
        return akin_error_set(err, AKIN_ERR_IO, "cannot write to stdout: %s",
                              errno != 0 ? strerror(errno) : "out of memory");
    return AKIN_OK;
}

/* The trace is read as others will read it, which checks it whole. */
static akin_status_t report(akini_sink_t *sink, akin_error_t *err)
{
    const trace_sink_t *t = (const trace_sink_t *)sink;
    const char *path = sink->router->params.calibration->trace_path;
    if (!t->is_complete) {
        (void)fprintf(stderr,
                      "akin: stopped with %u requests in %s: go on with "
                      "--resume\n",
                      akin_trace_writer_count(t->writer), path);
        return AKIN_OK;
    }
    akin_trace_t *trace;
    akin_status_t status = akin_trace_open(path, &trace, err);
    if (status != AKIN_OK)
        return status;
    const akin_trace_shape_t *shape = akin_trace_shape(trace);
    uint32_t n;
    const akin_trace_record_t *records = akin_trace_records(trace, &n);
    uint64_t n_rows = 0;
    for (uint32_t i = 0; i < n; i++)
        n_rows += records[i].n_tokens;
    uint64_t n_bytes =
        n_rows * shape->n_layers * shape->top_k * shape->id_bytes;
    akin_trace_close(trace);
    return print(t, n_rows, n_bytes, err);
}

static void destroy(akini_sink_t *sink)
{
    akin_trace_writer_destroy(((trace_sink_t *)sink)->writer);
    free(sink);
}

static const akini_sink_ops_t ops = {
    .admit = admit,
    .room = room,
    .answer = answer,
    .fail = fail,
    .tick = tick,
    .end = end,
    .report = report,
    .destroy = destroy,
};

akin_status_t akini_trace_sink_create(akin_router_t *router,
                                      akini_sink_t **sink_p, akin_error_t *err)
{
    const akin_router_calibration_t *c = router->params.calibration;
    const akin_model_config_t *model = router->params.model;
    const akin_trace_writer_params_t params = {
        .path = c->trace_path,
        .model = router->model_name,
        .shape = {.n_layers = model->n_layers,
                  .n_experts = model->n_experts,
                  .top_k = model->top_k},
        .resume = router->params.batch->resume,
    };
    *sink_p = NULL;
    trace_sink_t *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return AKIN_ERR_NOMEM;
    t->base = (akini_sink_t){&ops, router};
    t->start_ns = akin_clock_now_ns();
    akin_status_t status = akin_trace_writer_create(&params, &t->writer, err);
    if (status != AKIN_OK) {
        free(t);
        return status;
    }
    router->limits.n_tokens = c->n_tokens;
    router->counts.done = akin_trace_writer_count(t->writer);
    *sink_p = &t->base;
    return AKIN_OK;
}
