/* Batch sink: answers and errors become lines of the output file. */
#include "roles/router_sink.h"

#include "base/clock.h"
#include "base/log.h"
#include "roles/batch_output.h"

#include <stdlib.h>
#include <time.h>

typedef struct batch_sink {
    akini_sink_t base;
    akin_batch_output_t *output; /* NULL: closed */
    akin_batch_format_t *format;
} batch_sink_t;

static int admit(akini_sink_t *sink, akin_request_t *request)
{
    (void)sink;
    (void)request;
    return 0; /* the router's set of done ids has said so before */
}

static uint32_t room(akini_sink_t *sink, uint64_t n_begun)
{
    return akin_batch_output_room(((batch_sink_t *)sink)->output, n_begun);
}

static akin_status_t no_memory(akin_error_t *err)
{
    return akin_error_set(err, AKIN_ERR_NOMEM,
                          "out of memory for an output line");
}

static akin_status_t answer(akini_sink_t *sink, const akini_flight_t *f,
                            akin_finish_t finish, akin_request_error_t *refused,
                            akin_error_t *err)
{
    batch_sink_t *b = (batch_sink_t *)sink;
    const akin_result_t result = {
        .tokens = f->tokens,
        .n_tokens = f->n_tokens,
        .text = f->text != NULL ? f->text : "",
        .text_bytes = f->text_bytes,
        .finish = finish,
        .logprobs = f->logprobs,
        .n_cached = f->n_cached,
        .created_s = (int64_t)time(NULL),
    };
    const char *line;
    size_t bytes;
    if (akin_batch_format_result(b->format, f->request, &result, &line,
                                 &bytes) != AKIN_OK)
        return no_memory(err);
    if (bytes > AKIN_BATCH_OUTPUT_LINE_BYTES) {
        (void)akin_request_error_set(
            refused, 400, NULL, "answer_too_long",
            "the answer makes a line that is too long: ask for fewer tokens or "
            "logprobs");
        return AKIN_ERR_REFUSED;
    }
    return akin_batch_output_put(b->output, f->sequence, line, bytes,
                                 akin_clock_now_ns(), err);
}

static akin_status_t fail(akini_sink_t *sink, uint64_t sequence,
                          const akin_request_error_t *error, akin_error_t *err)
{
    batch_sink_t *b = (batch_sink_t *)sink;
    const char *line;
    size_t bytes;
    if (akin_batch_format_error(b->format, error, &line, &bytes) != AKIN_OK)
        return no_memory(err);
    return akin_batch_output_put(b->output, sequence, line, bytes,
                                 akin_clock_now_ns(), err);
}

static akin_status_t tick(akini_sink_t *sink, int64_t now_ns, akin_error_t *err)
{
    return akin_batch_output_tick(((batch_sink_t *)sink)->output, now_ns, err);
}

static akin_status_t end(akini_sink_t *sink, int is_complete, akin_error_t *err)
{
    batch_sink_t *b = (batch_sink_t *)sink;
    (void)is_complete;
    akin_status_t status = akin_batch_output_close(b->output, err);
    b->output = NULL;
    return status;
}

static akin_status_t report(akini_sink_t *sink, akin_error_t *err)
{
    const akin_router_t *r = sink->router;
    const char *path = r->params.batch->summary_path;
    akin_status_t status = akin_summary_print(r->summary, stderr);
    if (status == AKIN_OK && path != NULL)
        status = akin_summary_write_json(r->summary, path, err);
    return status;
}

static void destroy(akini_sink_t *sink)
{
    batch_sink_t *b = (batch_sink_t *)sink;
    if (akin_batch_output_close(b->output, NULL) != AKIN_OK)
        AKIN_LOG(ROLES, ERROR, "the output is incomplete");
    akin_batch_format_destroy(b->format);
    free(b);
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

akin_status_t akini_batch_sink_create(akin_router_t *router,
                                      akini_sink_t **sink_p, akin_error_t *err)
{
    const akin_router_batch_t *batch = router->params.batch;
    const akin_batch_output_params_t output = {
        .path = batch->output_path,
        .resume = batch->resume,
        .ordered = batch->ordered,
    };
    const akin_batch_format_params_t format = {
        .model = router->model_name,
        .tokenizer = router->params.tokenizer,
        .deterministic_ids = batch->deterministic_ids,
    };
    akin_batch_resume_t resume = {0};
    *sink_p = NULL;
    batch_sink_t *b = calloc(1, sizeof(*b));
    if (b == NULL)
        return AKIN_ERR_NOMEM;
    b->base = (akini_sink_t){&ops, router};
    akin_status_t status = akin_batch_format_create(&format, &b->format);
    if (status == AKIN_OK)
        status = akin_batch_output_open(&output, router->done, &resume,
                                        &b->output, err);
    if (status != AKIN_OK) {
        destroy(&b->base);
        return status;
    }
    router->counts.done = resume.n_lines;
    router->counts.failed = resume.n_failed;
    *sink_p = &b->base;
    return AKIN_OK;
}
