/* Router: the books of its workers in every state that a request can be lost,
 * refused, canceled or late in. */
#include "router_bed.h"

#define N_PROMPT 20u /* two blocks */

static void life(void)
{
    bed_t b;
    bed_init_one(&b, N_PROMPT, 3);
    akini_flight_t *f = bed_bring_to(&b, AKINI_FLIGHT_DECODE);
    const uint64_t id = f->id;
    const uint32_t rank = 3 + f->decode;
    CU_ASSERT_EQUAL(b.r->decode[f->decode].n_flights, 1);
    /* 22 tokens are computed, in two blocks. */
    CU_ASSERT_EQUAL(b.r->decode[f->decode].n_reserved, 2);
    bed_token(&b, rank, id);
    CU_ASSERT_EQUAL(f->n_tokens, 2);
    bed_token(&b, rank ^ 7, id); /* the other decode worker: 3 or 4 */
    CU_ASSERT_EQUAL(f->n_tokens, 2);
    bed_token(&b, rank, id);
    CU_ASSERT_PTR_NULL(b.r->by_id);
    CU_ASSERT(bed_books_are_empty(&b));
    CU_ASSERT_EQUAL(b.r->counts.done, 1);
    CU_ASSERT_EQUAL(b.r->counts.failed, 0);
    bed_token(&b, rank, id); /* one too many changes nothing */
    CU_ASSERT_EQUAL(b.r->counts.done, 1);
    bed_cleanup(&b);
}

/* The first token is the last one: no decode worker hears of it. */
static void one_token(void)
{
    bed_t b;
    bed_init_one(&b, N_PROMPT, 1);
    akini_flight_t *f = bed_bring_to(&b, AKINI_FLIGHT_PREFILL);
    const uint64_t id = f->id;
    const uint32_t rank = 1 + f->prefill;
    bed_prefilled(&b, rank, id, N_PROMPT);
    CU_ASSERT_PTR_NULL(b.r->by_id);
    CU_ASSERT_EQUAL(b.r->counts.done, 1);
    CU_ASSERT_EQUAL(bed_n_sent(&b, rank, AKIN_MESSAGE_CANCEL, id), 1);
    CU_ASSERT(bed_books_are_empty(&b));
    bed_cleanup(&b);
}

/* Whatever the state, the loss of the worker that has the request starts it
 * again under another id, and words about the old one are not believed. */
static void lost_worker(void)
{
    for (int state = AKINI_FLIGHT_PREFILL; state < AKINI_FLIGHT_STATES;
         state++) {
        bed_t b;
        bed_init_one(&b, N_PROMPT, 3);
        akini_flight_t *f = bed_bring_to(&b, (akini_flight_state_t)state);
        const uint64_t old = f->id;
        const uint32_t prefill = 1 + f->prefill;
        const uint32_t decode =
            state >= AKINI_FLIGHT_TRANSFER ? 3 + f->decode : 3;
        const uint32_t lost = state >= AKINI_FLIGHT_TRANSFER ? decode : prefill;
        akin_router_on_peer_lost(b.r, lost, AKIN_ERR_PEER);
        CU_ASSERT_EQUAL(b.r->failure, AKIN_OK);
        CU_ASSERT_EQUAL_FATAL(f->state, AKINI_FLIGHT_QUEUED);
        CU_ASSERT_NOT_EQUAL(f->id, old);
        /* What was generated is kept. */
        const uint32_t n_kept = state >= AKINI_FLIGHT_ROUTED;
        CU_ASSERT_EQUAL(f->n_tokens, n_kept);
        CU_ASSERT_EQUAL(f->n_start, N_PROMPT + n_kept);
        CU_ASSERT(bed_books_are_empty(&b));
        /* The prefill worker that lives may forget the blocks. */
        CU_ASSERT_EQUAL(bed_n_sent(&b, prefill, AKIN_MESSAGE_CANCEL, old),
                        state == AKINI_FLIGHT_TRANSFER);
        bed_prefilled(&b, prefill, old, N_PROMPT);
        CU_ASSERT_EQUAL(bed_n_sent(&b, prefill, AKIN_MESSAGE_RELEASE, old),
                        lost != prefill);
        bed_transferred(&b, decode, old, AKIN_OK);
        bed_token(&b, decode, old);
        CU_ASSERT_EQUAL_FATAL(f->state, AKINI_FLIGHT_QUEUED);
        /* The others answer it. */
        f = bed_bring_to(&b, AKINI_FLIGHT_DECODE);
        CU_ASSERT_NOT_EQUAL(1 + f->prefill, lost);
        CU_ASSERT_NOT_EQUAL(3 + f->decode, lost);
        const uint64_t id = f->id;
        const uint32_t rank = 3 + f->decode;
        bed_token(&b, rank, id);
        CU_ASSERT_EQUAL(b.r->counts.done, n_kept);
        if (n_kept == 0)
            bed_token(&b, rank, id);
        CU_ASSERT_EQUAL(b.r->counts.done, 1);
        CU_ASSERT_EQUAL(b.r->counts.failed, 0);
        CU_ASSERT(bed_books_are_empty(&b));
        bed_cleanup(&b);
    }
}

/* The time of a request runs out in every state but the queue. */
static void late(void)
{
    for (int state = AKINI_FLIGHT_QUEUED; state < AKINI_FLIGHT_STATES;
         state++) {
        bed_t b;
        bed_init_one(&b, N_PROMPT, 3);
        akini_flight_t *f = bed_bring_to(&b, (akini_flight_state_t)state);
        const uint64_t id = f->id;
        const uint32_t prefill = 1 + f->prefill, decode = 3 + f->decode;
        const int64_t end = b.now + b.job.request_timeout_ns;
        CU_ASSERT(akini_router_expire(b.r, end - 1) >= end ||
                  state == AKINI_FLIGHT_TRANSFER);
        CU_ASSERT_EQUAL(b.r->counts.failed, 0);
        (void)akini_router_expire(b.r, end);
        if (state == AKINI_FLIGHT_QUEUED) {
            CU_ASSERT_EQUAL(b.r->counts.failed, 0);
        } else {
            CU_ASSERT_EQUAL(b.r->counts.failed, 1);
            CU_ASSERT_PTR_NULL(b.r->by_id);
            CU_ASSERT(bed_books_are_empty(&b));
            CU_ASSERT_EQUAL(bed_n_sent(&b, prefill, AKIN_MESSAGE_CANCEL, id),
                            state != AKINI_FLIGHT_DECODE);
            if (state >= AKINI_FLIGHT_TRANSFER)
                CU_ASSERT_EQUAL(bed_n_sent(&b, decode, AKIN_MESSAGE_CANCEL, id),
                                1);
        }
        bed_cleanup(&b);
    }
}

/* Workers that do not listen, say nothing, or speak in riddles are given up;
 * the run goes on. */
static void given_up(void)
{
    bed_t b;
    bed_init_one(&b, N_PROMPT, 3);
    b.net.is_full[1] = 1;
    akini_flight_t *f = bed_bring_to(&b, AKINI_FLIGHT_PREFILL);
    CU_ASSERT_EQUAL(f->prefill, 0);
    CU_ASSERT(b.net.is_dropped[1]);
    CU_ASSERT_EQUAL(b.r->failure, AKIN_OK);
    akin_router_on_peer_lost(b.r, 1, AKIN_ERR_PEER);
    f = bed_bring_to(&b, AKINI_FLIGHT_TRANSFER);
    CU_ASSERT_EQUAL(f->prefill, 1);
    (void)akini_router_expire(b.r, b.now + 29 * AKIN_NS_PER_S);
    CU_ASSERT(!b.net.is_dropped[3 + f->decode]);
    (void)akini_router_expire(b.r, b.now + 30 * AKIN_NS_PER_S);
    CU_ASSERT(b.net.is_dropped[3 + f->decode]);
    akin_packer_u8(&b.packer, 1);
    bed_say(&b, 2, AKIN_MESSAGE_PREFILLED);
    CU_ASSERT(b.net.is_dropped[2]);
    CU_ASSERT_EQUAL(b.r->failure, AKIN_OK);
    bed_cleanup(&b);
}

/* A decode worker without room is asked again later; one that refuses blocks
 * has the prompt computed anew without the cache. */
static void transfer_ends(void)
{
    bed_t b;
    bed_init_one(&b, N_PROMPT, 20);
    akini_flight_t *f = bed_bring_to(&b, AKINI_FLIGHT_TRANSFER);
    CU_ASSERT(!b.net.last_is_fresh);
    const uint64_t id = f->id;
    bed_transferred(&b, 3 + f->decode, id, AKIN_ERR_FULL);
    CU_ASSERT_EQUAL(f->state, AKINI_FLIGHT_ROUTED);
    CU_ASSERT_EQUAL(f->id, id);
    CU_ASSERT(bed_books_are_empty(&b));
    akini_router_dispatch(b.r, b.now);
    CU_ASSERT_EQUAL(f->state, AKINI_FLIGHT_ROUTED);
    akini_router_dispatch(b.r, f->retry_ns);
    CU_ASSERT_EQUAL_FATAL(f->state, AKINI_FLIGHT_TRANSFER);
    bed_transferred(&b, 3 + f->decode, id, AKIN_ERR_REFUSED);
    CU_ASSERT_EQUAL(f->state, AKINI_FLIGHT_QUEUED);
    CU_ASSERT_NOT_EQUAL(f->id, id);
    CU_ASSERT(bed_books_are_empty(&b));
    for (int i = 0; i < 7; i++) {
        f = bed_bring_to(&b, AKINI_FLIGHT_TRANSFER);
        CU_ASSERT(b.net.last_is_fresh);
        bed_transferred(&b, 3 + f->decode, f->id, AKIN_ERR_TIMEOUT);
    }
    /* Eight times are enough. */
    CU_ASSERT_EQUAL(b.r->counts.failed, 0);
    f = bed_bring_to(&b, AKINI_FLIGHT_TRANSFER);
    bed_transferred(&b, 3 + f->decode, f->id, AKIN_ERR_PEER);
    CU_ASSERT_PTR_NULL(b.r->by_id);
    CU_ASSERT_EQUAL(b.r->counts.failed, 1);
    CU_ASSERT(bed_books_are_empty(&b));
    bed_cleanup(&b);
}

/* After the end of a run nothing is answered: the output is closed. */
static void too_late(void)
{
    bed_t b;
    bed_init_one(&b, N_PROMPT, 2);
    akini_flight_t *f = bed_bring_to(&b, AKINI_FLIGHT_DECODE);
    CU_ASSERT_EQUAL(b.r->sink->ops->end(b.r->sink, 0, NULL), AKIN_OK);
    b.r->is_closing = 1;
    bed_token(&b, 3 + f->decode, f->id);
    CU_ASSERT_PTR_EQUAL(b.r->by_id, f);
    CU_ASSERT_EQUAL(b.r->counts.done, 0);
    bed_cleanup(&b);
}

/* A request that needs all slots is passed by small ones for a second only. */
static void big_among_small(void)
{
    FILE *file = fopen(scratch_path("in"), "w");
    bed_t b;
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    bed_write_request(file, "small", N_PROMPT, 3);
    bed_write_request(file, "small too", N_PROMPT, 3);
    bed_write_request(file, "big", N_PROMPT, BED_SLOTS * BED_BLOCK - N_PROMPT);
    bed_write_request(file, "passes", N_PROMPT, 3);
    bed_write_request(file, "waits", N_PROMPT, 3);
    CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
    bed_init(&b);
    bed_turn(&b);
    akini_flight_t *f[5];
    for (uint64_t i = 0; i < 5; i++) {
        f[i] = akini_flight_find(b.r, i);
        CU_ASSERT_PTR_NOT_NULL_FATAL(f[i]);
        CU_ASSERT_EQUAL_FATAL(f[i]->state, AKINI_FLIGHT_PREFILL);
    }
    for (int i = 0; i < 4; i++)
        bed_prefilled(&b, 1 + f[i]->prefill, f[i]->id, N_PROMPT);
    akini_router_dispatch(b.r, f[2]->routed_ns);
    CU_ASSERT_EQUAL(f[2]->state, AKINI_FLIGHT_ROUTED);
    CU_ASSERT_EQUAL(f[3]->state, AKINI_FLIGHT_TRANSFER);
    bed_prefilled(&b, 1 + f[4]->prefill, f[4]->id, N_PROMPT);
    akini_router_dispatch(b.r, f[2]->routed_ns + AKIN_NS_PER_S);
    CU_ASSERT_EQUAL(f[2]->state, AKINI_FLIGHT_ROUTED);
    CU_ASSERT_EQUAL(f[4]->state, AKINI_FLIGHT_ROUTED);
    bed_cleanup(&b);
}

static const runner_test_t tests[] = {
    {"a request's life", life},
    {"one token", one_token},
    {"a lost worker in every state", lost_worker},
    {"late in every state", late},
    {"workers given up", given_up},
    {"ends of transfers", transfer_ends},
    {"too late", too_late},
    {"big among small", big_among_small},
};

RUNNER_MAIN("router", tests)
