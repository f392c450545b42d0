/* The life of a request inside the router. */
#include "roles/router_state.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Nothing is generated yet. */
static akin_status_t reset_output(akin_router_t *r, akini_flight_t *f)
{
    akin_text_stream_destroy(f->stream);
    f->n_tokens = 0;
    f->n_routed = 0;
    f->text_bytes = 0;
    f->n_start = f->request->n_prompt;
    return akin_text_stream_create(
        r->params.tokenizer, (const char *const *)f->request->stops,
        f->request->stop_bytes, f->request->n_stops, &f->stream);
}

akini_flight_t *akini_flight_create(akin_router_t *r, akin_request_t *request,
                                    int64_t now_ns)
{
    const uint32_t block_tokens = r->params.layout->shape.block_tokens;
    akini_flight_t *f = calloc(1, sizeof(*f));
    if (f == NULL)
        return NULL;
    f->request = request;
    f->context = calloc((size_t)request->n_prompt + request->max_tokens,
                        sizeof(*f->context));
    if (request->want_logprobs)
        f->logprobs = calloc(request->max_tokens, sizeof(*f->logprobs));
    if (f->context == NULL || (request->want_logprobs && f->logprobs == NULL) ||
        reset_output(r, f) != AKIN_OK) {
        free(f->context);
        free(f->logprobs);
        free(f);
        return NULL;
    }
    memcpy(f->context, request->prompt,
           request->n_prompt * sizeof(*f->context));
    f->tokens = f->context + request->n_prompt;
    /* The last token is never computed. */
    uint64_t n_computed = (uint64_t)request->n_prompt + request->max_tokens - 1;
    f->n_slots = (uint32_t)((n_computed - 1) / block_tokens + 1);
    f->id = r->next_id++;
    f->arrival_ns = now_ns;
    f->deadline_ns = INT64_MAX;
    f->prefill = AKIN_ROUTING_NO_WORKER;
    f->decode = AKIN_ROUTING_NO_WORKER;
    HASH_ADD(hh, r->by_id, id, sizeof(f->id), f);
    DL_APPEND(r->lists[f->state], f);
    r->n_in[f->state]++;
    return f;
}

akini_flight_t *akini_flight_find(akin_router_t *r, uint64_t id)
{
    akini_flight_t *f;
    HASH_FIND(hh, r->by_id, &id, sizeof(id), f);
    return f;
}

static void enter_state(akin_router_t *r, akini_flight_t *f,
                        akini_flight_state_t state)
{
    DL_DELETE(r->lists[f->state], f);
    r->n_in[f->state]--;
    f->state = state;
    r->n_in[state]++;
}

void akini_flight_move(akin_router_t *r, akini_flight_t *f,
                       akini_flight_state_t state)
{
    enter_state(r, f, state);
    DL_APPEND(r->lists[state], f);
}

void akini_flight_tell_load(akin_router_t *r, const akini_flight_t *f,
                            int64_t now_ns)
{
    const uint32_t worker = akini_router_decode_worker(r, f->decode);
    akin_summary_set_load(r->summary, r->params.job->n_prefill + worker,
                          akin_policy_in_flight(r->policy, worker), now_ns);
}

/* Give back what the request holds at its workers, in the router's books. */
static void leave_workers(akin_router_t *r, akini_flight_t *f)
{
    if (f->state == AKINI_FLIGHT_PREFILL) {
        r->prefill[f->prefill].n_flights--;
        r->prefill[f->prefill].load -= f->n_start;
    } else if (f->state == AKINI_FLIGHT_TRANSFER ||
               f->state == AKINI_FLIGHT_DECODE) {
        r->decode[f->decode].n_flights--;
        r->decode[f->decode].n_reserved -= f->n_slots;
        akin_policy_finish(r->policy, f->id);
        akini_flight_tell_load(r, f, akin_clock_now_ns());
    }
}

void akini_flight_forget(akin_router_t *r, akini_flight_t *f)
{
    leave_workers(r, f);
    DL_DELETE(r->lists[f->state], f);
    r->n_in[f->state]--;
    HASH_DEL(r->by_id, f);
    akin_request_destroy(f->request);
    akin_text_stream_destroy(f->stream);
    free(f->blocks);
    free(f->counts);
    free(f->routes);
    free(f->context);
    free(f->logprobs);
    free(f->text);
    free(f);
}

void akini_flight_cancel(akin_router_t *r, akini_flight_t *f)
{
    if (f->state != AKINI_FLIGHT_QUEUED && !r->prefill[f->prefill].is_lost &&
        f->state != AKINI_FLIGHT_DECODE)
        akini_router_send_id(r, r->prefill[f->prefill].rank,
                             AKIN_MESSAGE_CANCEL, f->id);
    if ((f->state == AKINI_FLIGHT_TRANSFER ||
         f->state == AKINI_FLIGHT_DECODE) &&
        !r->decode[f->decode].is_lost)
        akini_router_send_id(r, r->decode[f->decode].rank, AKIN_MESSAGE_CANCEL,
                             f->id);
}

void akini_flight_restart(akin_router_t *r, akini_flight_t *f, const char *why)
{
    AKIN_LOG(ROLES, WARN, "request %s starts again: %s", f->request->custom_id,
             why);
    akin_summary_add_retry(r->summary);
    akini_flight_cancel(r, f);
    leave_workers(r, f);
    /* From here on it is nobody's, whatever becomes of it. It has waited before
     * those that have not begun. */
    enter_state(r, f, AKINI_FLIGHT_QUEUED);
    DL_PREPEND(r->lists[AKINI_FLIGHT_QUEUED], f);
    if (++f->n_restarts > r->params.job->n_retries) {
        akini_router_fail(r, f, 500, "too_many_restarts", why);
        return;
    }
    /* The experts of a recorded run come from one attempt. */
    if (r->params.job->record_routes && reset_output(r, f) != AKIN_OK) {
        akini_router_fail(r, f, 500, "out_of_memory", "out of memory");
        return;
    }
    f->n_start = f->request->n_prompt + f->n_tokens;
    free(f->blocks);
    free(f->counts);
    f->blocks = NULL;
    f->counts = NULL;
    f->n_blocks = 0;
    /* Workers may still hold the old attempt: it gets another name. */
    HASH_DEL(r->by_id, f);
    f->id = r->next_id++;
    HASH_ADD(hh, r->by_id, id, sizeof(f->id), f);
}

static int add_text(akini_flight_t *f, const char *text, size_t bytes)
{
    if (bytes == 0)
        return 1;
    char *all = realloc(f->text, f->text_bytes + bytes);
    if (all == NULL)
        return 0;
    memcpy(all + f->text_bytes, text, bytes);
    f->text = all;
    f->text_bytes += bytes;
    return 1;
}

int akini_flight_token(akin_router_t *r, akini_flight_t *f, uint32_t token,
                       const akin_token_logprob_t *logprob, int64_t now_ns)
{
    const akin_request_t *request = f->request;
    const char *text;
    size_t bytes;
    int stopped = 0, has_room = 1;
    if (f->lost_ns != 0)
        akin_summary_add_resumed(r->summary, now_ns - f->lost_ns);
    f->lost_ns = 0;
    if (f->n_tokens > 0)
        akin_summary_add_itl(r->summary, now_ns - f->last_ns);
    else if (f->first_ns == 0)
        f->first_ns = now_ns;
    f->last_ns = now_ns;
    if (f->logprobs != NULL)
        f->logprobs[f->n_tokens] = *logprob;
    f->tokens[f->n_tokens++] = token;
    r->counts.tokens++;
    int ended = !request->ignore_eos &&
                akin_model_config_is_eos(r->params.model, token);
    if (!ended) {
        has_room = akin_text_stream_push(f->stream, token, &text, &bytes,
                                         &stopped) == AKIN_OK &&
                   add_text(f, text, bytes);
        ended = stopped;
    }
    int full = f->n_tokens == request->max_tokens;
    if (has_room && !ended && !full)
        return 1;
    if (has_room && !stopped) {
        akin_text_stream_finish(f->stream, &text, &bytes);
        has_room = add_text(f, text, bytes);
    }
    if (!has_room)
        akini_router_fail(r, f, 500, "out_of_memory", "out of memory");
    else
        akini_router_answer(r, f,
                            ended ? AKIN_FINISH_STOP : AKIN_FINISH_LENGTH);
    return 0;
}
