/* Router: requests that cannot begin again leave nothing in the books. */
#include "router_bed.h"

#define N_PROMPT 20u

/* A stop string that there is no memory for is how this test runs out of it. */
const char *__asan_default_options(void) __attribute__((visibility("default")));
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* Another request shows whether its worker's books still count it once. */
static void init(bed_t *b, uint32_t n_retries)
{
    akin_job_t job = bed_job(1);
    FILE *file = fopen(scratch_path("in"), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    bed_write_request(file, "one", N_PROMPT, 3);
    bed_write_request(file, "two", N_PROMPT, 3);
    CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
    job.n_retries = n_retries;
    bed_init_job(b, &job, NULL, NULL, 0);
    b->r->prefill[1].is_drained = 1;
    b->r->decode[1].is_drained = 1;
}

/* Both are brought as far as that. */
static void bring_both_to(bed_t *b, akini_flight_state_t state)
{
    bed_turn(b);
    for (uint64_t id = 0; id < 2 && state >= AKINI_FLIGHT_ROUTED; id++)
        bed_prefilled(b, 1, id, N_PROMPT);
    if (state >= AKINI_FLIGHT_TRANSFER)
        akini_router_dispatch(b->r, b->now);
    for (uint64_t id = 0; id < 2 && state >= AKINI_FLIGHT_DECODE; id++)
        bed_transferred(b, 3, id, AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(b->r->n_in[state], 2);
}

static void expect_one_left(bed_t *b, akini_flight_state_t state)
{
    const int at_decode = state >= AKINI_FLIGHT_TRANSFER;
    const int at_prefill = state == AKINI_FLIGHT_PREFILL;
    CU_ASSERT_EQUAL(b->r->counts.failed, 1);
    CU_ASSERT_PTR_NULL(akini_flight_find(b->r, 0));
    CU_ASSERT_PTR_NOT_NULL(akini_flight_find(b->r, 1));
    CU_ASSERT_EQUAL(b->r->n_in[state], 1);
    CU_ASSERT_EQUAL(b->r->n_in[AKINI_FLIGHT_QUEUED], 0);
    CU_ASSERT_EQUAL(b->r->prefill[0].n_flights, at_prefill ? 1 : 0);
    CU_ASSERT_EQUAL(b->r->prefill[0].load, at_prefill ? N_PROMPT : 0);
    CU_ASSERT_EQUAL(b->r->decode[0].n_flights, at_decode ? 1 : 0);
    CU_ASSERT_EQUAL(b->r->decode[0].n_reserved, at_decode ? 2 : 0);
    CU_ASSERT_EQUAL(akin_policy_in_flight(b->r->policy, 0), at_decode ? 1 : 0);
    /* Each worker that has it hears of the end once. */
    CU_ASSERT_EQUAL(bed_n_sent(b, 1, AKIN_MESSAGE_CANCEL, 0),
                    state != AKINI_FLIGHT_DECODE ? 1 : 0);
    CU_ASSERT_EQUAL(bed_n_sent(b, 3, AKIN_MESSAGE_CANCEL, 0),
                    at_decode ? 1 : 0);
}

/* It has begun again too often. */
static void too_often(void)
{
    for (int i = AKINI_FLIGHT_PREFILL; i < AKINI_FLIGHT_STATES; i++) {
        bed_t b;
        init(&b, 0);
        bring_both_to(&b, (akini_flight_state_t)i);
        akini_flight_restart(b.r, akini_flight_find(b.r, 0), "a test");
        expect_one_left(&b, (akini_flight_state_t)i);
        bed_cleanup(&b);
    }
}

/* There is no memory to begin its output anew. */
static void out_of_memory(void)
{
    for (int i = AKINI_FLIGHT_PREFILL; i < AKINI_FLIGHT_STATES; i++) {
        bed_t b;
        init(&b, 8);
        bring_both_to(&b, (akini_flight_state_t)i);
        akini_flight_t *f = akini_flight_find(b.r, 0);
        f->request->stops[0] = strdup("s");
        f->request->stop_bytes[0] = SIZE_MAX / 4;
        f->request->n_stops = 1;
        b.job.record_routes = 1;
        akini_flight_restart(b.r, f, "a test");
        expect_one_left(&b, (akini_flight_state_t)i);
        bed_cleanup(&b);
    }
}

static const runner_test_t tests[] = {
    {"too often", too_often},
    {"out of memory", out_of_memory},
};

RUNNER_MAIN("router_restart", tests)
