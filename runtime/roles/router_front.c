/* The run around the router: input lines to requests, results to the sink. */
#include "roles/router_sink.h"

#include "roles/batch_parse.h"

static void put_error(akin_router_t *r, uint64_t sequence,
                      const akin_request_error_t *error)
{
    r->counts.done++;
    r->counts.failed++;
    akin_summary_add_failed(r->summary);
    if (r->failure == AKIN_OK)
        r->failure = r->sink->ops->fail(r->sink, sequence, error, &r->error);
}

/* More slots than a whole slab has: the request can never run here. */
static int is_too_big(const akin_router_t *r, const akin_request_t *request,
                      akin_request_error_t *error)
{
    const uint32_t block_tokens = r->params.layout->shape.block_tokens;
    uint64_t n_tokens = (uint64_t)request->n_prompt + request->max_tokens;
    uint64_t n_slots = (n_tokens - 1) / block_tokens + 1;
    if (n_slots <= r->params.n_slots)
        return 0;
    akin_request_error_init(error, request);
    (void)akin_request_error_set(
        error, 400, "max_tokens", "context_length_exceeded",
        "prompt and answer of up to %llu tokens need %llu KV blocks, a worker "
        "has %u: ask for less, or give the job a larger kv.slab",
        (unsigned long long)n_tokens, (unsigned long long)n_slots,
        r->params.n_slots);
    return 1;
}

static void take_line(akin_router_t *r, const akin_batch_line_t *line,
                      int64_t now_ns)
{
    akin_request_t *request;
    akin_request_error_t error = {0};
    int is_done = 0;
    akin_status_t status = akin_batch_parse(&r->limits, line, &request, &error);
    if (status != AKIN_ERR_NOMEM)
        status = akin_batch_admit(r->seen, r->done, &request, &error, &is_done);
    if (status == AKIN_ERR_NOMEM) {
        akin_request_destroy(request);
        r->failure = akin_error_set(&r->error, AKIN_ERR_NOMEM,
                                    "out of memory at line %llu",
                                    (unsigned long long)line->number);
        return;
    }
    if (request != NULL && !is_done)
        is_done = r->sink->ops->admit(r->sink, request);
    if (is_done) {
        akin_request_destroy(request);
        return;
    }
    uint64_t sequence = r->n_sequences++;
    if (request != NULL && is_too_big(r, request, &error)) {
        akin_request_destroy(request);
        request = NULL;
    }
    if (request == NULL) {
        put_error(r, sequence, &error);
        return;
    }
    akini_flight_t *f = akini_flight_create(r, request, now_ns);
    if (f == NULL) {
        akin_request_destroy(request);
        r->failure = akin_error_set(&r->error, AKIN_ERR_NOMEM,
                                    "out of memory for a request");
        return;
    }
    f->sequence = sequence;
}

void akini_router_read(akin_router_t *r, int64_t now_ns)
{
    r->input_is_dry = 0;
    while (!r->input_is_dry && !r->input_ended && r->stop_ns == 0 &&
           r->failure == AKIN_OK &&
           HASH_COUNT(r->by_id) < r->params.job->max_in_flight &&
           r->sink->ops->room(r->sink, r->n_sequences) > 0) {
        akin_batch_line_t line;
        akin_status_t status =
            akin_batch_input_next(r->input, &line, &r->error);
        if (status == AKIN_OK)
            take_line(r, &line, now_ns);
        else if (status == AKIN_ERR_NOT_FOUND)
            r->input_ended = 1;
        else if (status == AKIN_ERR_BUSY)
            r->input_is_dry = 1;
        else
            r->failure = status;
    }
    akin_net_watch(r->net,
                   r->input_is_dry ? akin_batch_input_fd(r->input) : -1);
}

void akini_router_answer(akin_router_t *r, akini_flight_t *f,
                         akin_finish_t finish)
{
    const akin_summary_request_t times = {
        .n_prompt_tokens = f->request->n_prompt,
        .n_output_tokens = f->n_tokens,
        .arrival_ns = f->arrival_ns,
        .first_ns = f->first_ns,
        .last_ns = f->last_ns,
    };
    akin_request_error_t refused = {0};
    if (r->failure == AKIN_OK) {
        akin_status_t status =
            r->sink->ops->answer(r->sink, f, finish, &refused, &r->error);
        if (status == AKIN_ERR_REFUSED) {
            akini_router_fail(r, f, refused.status_code, refused.code,
                              refused.message);
            return;
        }
        r->failure = status;
    }
    akin_summary_add_request(r->summary, &times);
    r->counts.done++;
    akini_flight_cancel(r, f);
    akini_flight_forget(r, f);
}

void akini_router_fail(akin_router_t *r, akini_flight_t *f, int status_code,
                       const char *code, const char *message)
{
    akin_request_error_t error = {0};
    akin_request_error_init(&error, f->request);
    (void)akin_request_error_set(&error, status_code, NULL, code, "%s",
                                 message);
    put_error(r, f->sequence, &error);
    akini_flight_cancel(r, f);
    akini_flight_forget(r, f);
}
