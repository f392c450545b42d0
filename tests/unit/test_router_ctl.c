/* Router ctl: what a client of the router's socket sees of its workers, and
 * what becomes of requests when one of them is drained. */
#include "router_bed.h"

#include "roles/ctl_socket.h"
#include "roles/router_ctl.h"

#include <jansson.h>
#include <sys/socket.h>
#include <time.h>
#include <utlist.h>

#define N_PROMPT 20u

/* Requests, and a socket. */
static void init(bed_t *b, uint32_t ep, int n_requests, uint32_t max_tokens)
{
    FILE *file = fopen(scratch_path("in"), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    for (int i = 0; i < n_requests; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "r%d", i);
        bed_write_request(file, id, N_PROMPT, max_tokens);
    }
    CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
    bed_init_ranks(b, ep, NULL, 0);
    static char path[1024];
    (void)snprintf(path, sizeof(path), "%s", scratch_path("ctl"));
    b->job.socket_path = path;
    akini_router_ctl_open(b->r);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->r->ctl);
}

static void cleanup(bed_t *b)
{
    akini_router_ctl_close(b->r);
    CU_ASSERT_PTR_NULL(b->r->ctl);
    CU_ASSERT_EQUAL(akini_router_ctl_turn(b->r), 0);
    bed_cleanup(b);
}

static json_t *ask(bed_t *b, const char *request)
{
    static char text[65536];
    const struct timespec pause = {0, 6000000};
    int fd;
    CU_ASSERT_EQUAL_FATAL(
        akin_ctl_socket_connect(b->job.socket_path, &fd, NULL), AKIN_OK);
    const size_t n = strlen(request);
    CU_ASSERT_EQUAL(send(fd, request, n, 0), (ssize_t)n);
    CU_ASSERT_EQUAL(shutdown(fd, SHUT_WR), 0);
    (void)nanosleep(&pause, NULL);
    CU_ASSERT_EQUAL(akini_router_ctl_turn(b->r), 1);
    size_t at = 0;
    ssize_t bytes;
    while ((bytes = recv(fd, text + at, sizeof(text) - 1 - at, 0)) > 0)
        at += (size_t)bytes;
    text[at] = '\0';
    (void)close(fd);
    json_t *json = json_loads(text, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    return json;
}

/* The request is refused, in words that have these. */
static void refuse(bed_t *b, const char *request, const char *words)
{
    json_t *json = ask(b, request);
    CU_ASSERT(json_is_false(json_object_get(json, "ok")));
    const char *error = json_string_value(json_object_get(json, "error"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(error);
    CU_ASSERT_PTR_NOT_NULL(strstr(error, words));
    if (strstr(error, words) == NULL)
        (void)fprintf(stderr, "no \"%s\" in \"%s\"\n", words, error);
    json_decref(json);
}

static json_int_t number(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    CU_ASSERT_FATAL(json_is_integer(value));
    return json_integer_value(value);
}

static const char *word(const json_t *json, const char *key)
{
    const char *text = json_string_value(json_object_get(json, key));
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    return text;
}

static void expect_state(bed_t *b, uint32_t worker, const char *state,
                         json_int_t n_requests)
{
    json_t *json = ask(b, "{\"command\":\"status\"}\n");
    const json_t *w = json_array_get(json_object_get(json, "workers"), worker);
    CU_ASSERT_STRING_EQUAL(word(w, "state"), state);
    CU_ASSERT_EQUAL(number(w, "requests"), n_requests);
    json_decref(json);
}

/* All requests that are prefilled, are. */
static void prefill_all(bed_t *b)
{
    while (b->r->lists[AKINI_FLIGHT_PREFILL] != NULL) {
        akini_flight_t *f = b->r->lists[AKINI_FLIGHT_PREFILL];
        bed_prefilled(b, b->r->prefill[f->prefill].rank, f->id, f->n_start);
    }
    akini_router_dispatch(b->r, b->now);
}

static void transfer_all(bed_t *b)
{
    while (b->r->lists[AKINI_FLIGHT_TRANSFER] != NULL) {
        akini_flight_t *f = b->r->lists[AKINI_FLIGHT_TRANSFER];
        bed_transferred(b, b->r->decode[f->decode].rank, f->id, AKIN_OK);
    }
}

/* One more token of all that generate. */
static void step_all(bed_t *b)
{
    akini_flight_t *f, *next;
    DL_FOREACH_SAFE(b->r->lists[AKINI_FLIGHT_DECODE], f, next)
    bed_token(b, b->r->decode[f->decode].rank, f->id);
}

static uint32_t n_at(const bed_t *b, uint32_t decode)
{
    return b->r->decode[decode].n_flights;
}

static void status(void)
{
    bed_t b;
    init(&b, 2, 8, 3);
    bed_turn(&b);
    prefill_all(&b);
    json_t *json = ask(&b, "{\"command\":\"status\"}\n");
    CU_ASSERT(json_is_true(json_object_get(json, "ok")));
    CU_ASSERT_STRING_EQUAL(word(json, "state"), "serving");
    CU_ASSERT_STRING_EQUAL(word(json, "model"), "tiny-moe");
    CU_ASSERT_STRING_EQUAL(word(json, "policy"), "jsq");
    CU_ASSERT(json_real_value(json_object_get(json, "uptime_s")) >= 0);
    CU_ASSERT_EQUAL(number(json, "generated_tokens"), 8);
    CU_ASSERT_EQUAL(number(json, "deaths"), 0);
    const json_t *requests = json_object_get(json, "requests");
    CU_ASSERT_EQUAL(number(requests, "total"), 8);
    CU_ASSERT_EQUAL(number(requests, "done"), 0);
    CU_ASSERT_EQUAL(number(requests, "transfer"), 8);
    CU_ASSERT_EQUAL(number(requests, "queued"), 0);
    const json_t *workers = json_object_get(json, "workers");
    CU_ASSERT_EQUAL_FATAL(json_array_size(workers), 4);
    json_int_t n_prefill = 0, n_decode = 0;
    for (size_t i = 0; i < 4; i++) {
        static const char *const names[] = {"prefill 0", "prefill 1",
                                            "decode 0", "decode 1"};
        const json_t *w = json_array_get(workers, i);
        CU_ASSERT_STRING_EQUAL(word(w, "name"), names[i]);
        CU_ASSERT_STRING_EQUAL(word(w, "state"), "serving");
        const json_t *ranks = json_object_get(w, "ranks");
        CU_ASSERT_EQUAL_FATAL(json_array_size(ranks), 2);
        CU_ASSERT_EQUAL(json_integer_value(json_array_get(ranks, 1)),
                        (json_int_t)(2 + 2 * i));
        *(i < 2 ? &n_prefill : &n_decode) += number(w, "requests");
    }
    /* Blocks that are being read are needed by both sides. */
    CU_ASSERT_EQUAL(n_prefill, 8);
    CU_ASSERT_EQUAL(n_decode, 8);
    const json_t *decode = json_array_get(workers, 2);
    CU_ASSERT_EQUAL(number(decode, "max_requests"), 8);
    CU_ASSERT_EQUAL(number(decode, "slots"), 2 * BED_SLOTS);
    /* 22 tokens are computed, in two blocks. */
    CU_ASSERT_EQUAL(number(decode, "slots_reserved"),
                    2 * number(decode, "requests"));
    CU_ASSERT_EQUAL(json_array_size(json_object_get(json, "spares")), 0);
    json_decref(json);
    /* A group that is lost is no worker, and the worker is nobody. */
    akin_router_on_peer_lost(b.r, 5, AKIN_ERR_PEER);
    json = ask(&b, "{\"command\":\"status\"}\n");
    decode = json_array_get(json_object_get(json, "workers"), 2);
    CU_ASSERT_STRING_EQUAL(word(decode, "state"), "lost");
    CU_ASSERT_EQUAL(number(json, "deaths"), 1);
    const json_t *spares = json_object_get(json, "spares");
    CU_ASSERT_EQUAL_FATAL(json_array_size(spares), 1);
    CU_ASSERT_STRING_EQUAL(word(json_array_get(spares, 0), "state"), "gone");
    json_decref(json);
    cleanup(&b);
}

/* Drained: nothing new comes, what is there finishes; then it is back. */
static void drain_decode(void)
{
    bed_t b;
    init(&b, 1, 8, 3);
    b.job.max_batch = 2;
    bed_turn(&b);
    prefill_all(&b);
    transfer_all(&b);
    CU_ASSERT_EQUAL(n_at(&b, 0), 2);
    CU_ASSERT_EQUAL(n_at(&b, 1), 2);
    json_t *json = ask(&b, "{\"command\":\"drain\",\"worker\":\"decode 1\"}\n");
    CU_ASSERT(json_is_true(json_object_get(json, "ok")));
    CU_ASSERT_STRING_EQUAL(word(json, "worker"), "decode 1");
    CU_ASSERT_STRING_EQUAL(word(json, "state"), "draining");
    CU_ASSERT_EQUAL(number(json, "requests"), 2);
    CU_ASSERT_EQUAL(number(json, "moved"), 0);
    json_decref(json);
    expect_state(&b, 3, "draining", 2);
    step_all(&b);
    step_all(&b);
    CU_ASSERT_EQUAL(b.r->counts.done, 4);
    expect_state(&b, 3, "drained", 0);
    akini_router_dispatch(b.r, b.now);
    CU_ASSERT_EQUAL(n_at(&b, 0), 2);
    CU_ASSERT_EQUAL(n_at(&b, 1), 0);
    /* The only one that is left may not go, whatever its name is written. */
    refuse(&b, "{\"command\":\"drain\",\"worker\":\"decode0\"}\n",
           "no other decode worker");
    json = ask(&b, "{\"command\":\"resume\",\"worker\":\"decode:1\"}\n");
    CU_ASSERT_STRING_EQUAL(word(json, "state"), "serving");
    json_decref(json);
    akini_router_dispatch(b.r, b.now);
    CU_ASSERT_EQUAL(n_at(&b, 1), 2);
    transfer_all(&b);
    step_all(&b);
    step_all(&b);
    CU_ASSERT_EQUAL(b.r->counts.done, 8);
    CU_ASSERT_EQUAL(b.r->counts.failed, 0);
    CU_ASSERT(bed_books_are_empty(&b));
    cleanup(&b);
}

static json_t *ask_about(bed_t *b, const char *command, const char *role,
                         uint32_t worker, int is_moving)
{
    char request[128];
    (void)snprintf(request, sizeof(request),
                   "{\"command\":\"%s\",\"worker\":\"%s %u\"%s}\n", command,
                   role, worker, is_moving ? ",\"move\":true" : "");
    return ask(b, request);
}

static double output_tokens(const bed_t *b)
{
    json_t *json = akin_summary_json(b->r->summary);
    const double n =
        json_number_value(json_object_get(json, "total_output_tokens"));
    json_decref(json);
    return n;
}

static void finish_all(bed_t *b, uint64_t n)
{
    for (int i = 0; i < 100 && b->r->counts.done < n; i++) {
        bed_turn(b);
        prefill_all(b);
        transfer_all(b);
        step_all(b);
    }
    CU_ASSERT_EQUAL(b->r->counts.done, n);
    CU_ASSERT_EQUAL(b->r->counts.failed, 0);
    CU_ASSERT(bed_books_are_empty(b));
}

/* Requests that are moved go on from where they are, any number of times, also
 * where none may fail. */
static void move_decode(void)
{
    bed_t b;
    init(&b, 1, 4, 12);
    b.job.n_retries = 0;
    bed_turn(&b);
    prefill_all(&b);
    akini_flight_t *f = b.r->lists[AKINI_FLIGHT_TRANSFER];
    for (int round = 0; round < 4; round++) {
        /* In the first round blocks are still being read. */
        if (round > 0)
            transfer_all(&b);
        const uint32_t from = f->decode, n = n_at(&b, from);
        const uint32_t rank = b.r->decode[from].rank;
        const uint32_t n_tokens = f->n_tokens;
        const uint64_t old = f->id;
        json_t *json = ask_about(&b, "drain", "decode", from, 1);
        CU_ASSERT_STRING_EQUAL(word(json, "state"), "drained");
        CU_ASSERT_EQUAL(number(json, "requests"), 0);
        CU_ASSERT(n > 0);
        CU_ASSERT_EQUAL(number(json, "moved"), n);
        json_decref(json);
        CU_ASSERT_EQUAL(bed_n_sent(&b, rank, AKIN_MESSAGE_CANCEL, old), 1);
        CU_ASSERT_NOT_EQUAL(f->id, old);
        CU_ASSERT_EQUAL(n_at(&b, from), 0);
        bed_turn(&b);
        CU_ASSERT_EQUAL(f->state, AKINI_FLIGHT_PREFILL);
        /* The prompt, and the tokens that there are. */
        CU_ASSERT_EQUAL(f->n_start, N_PROMPT + n_tokens);
        prefill_all(&b);
        CU_ASSERT_EQUAL(f->n_tokens, n_tokens + 1);
        CU_ASSERT_EQUAL(n_at(&b, from), 0);
        CU_ASSERT_EQUAL(f->decode, 1 - from);
        json = ask_about(&b, "resume", "decode", from, 0);
        json_decref(json);
    }
    finish_all(&b, 4);
    CU_ASSERT_EQUAL(output_tokens(&b), 4 * 12);
    cleanup(&b);
}

/* A prefill worker is drained once its blocks have been read, too. */
static void drain_prefill(void)
{
    bed_t b;
    init(&b, 1, 4, 3);
    bed_turn(&b);
    CU_ASSERT_EQUAL(b.r->prefill[0].n_flights, 2);
    json_t *json = ask_about(&b, "drain", "prefill", 0, 0);
    CU_ASSERT_STRING_EQUAL(word(json, "state"), "draining");
    CU_ASSERT_EQUAL(number(json, "requests"), 2);
    json_decref(json);
    refuse(&b, "{\"command\":\"drain\",\"worker\":\"prefill 1\"}\n",
           "no other prefill worker");
    prefill_all(&b);
    CU_ASSERT_EQUAL(b.r->prefill[0].n_flights, 0);
    expect_state(&b, 0, "draining", 2);
    transfer_all(&b);
    expect_state(&b, 0, "drained", 0);
    finish_all(&b, 4);
    cleanup(&b);
}

/* With --move prompts go elsewhere at once; blocks that are being read do not.
 */
static void move_prefill(void)
{
    bed_t b;
    init(&b, 1, 8, 3);
    b.job.max_batch = 1;
    bed_turn(&b);
    /* Two requests of each prefill worker, two of them being read, wait with
     * their blocks; the others are in work. */
    for (int i = 0; i < 4; i++) {
        akini_flight_t *f = b.r->lists[AKINI_FLIGHT_PREFILL];
        bed_prefilled(&b, b.r->prefill[f->prefill].rank, f->id, f->n_start);
    }
    akini_router_dispatch(b.r, b.now);
    CU_ASSERT_EQUAL(b.r->n_in[AKINI_FLIGHT_TRANSFER], 2);
    CU_ASSERT_EQUAL(b.r->n_in[AKINI_FLIGHT_ROUTED], 2);
    CU_ASSERT_EQUAL(b.r->n_in[AKINI_FLIGHT_PREFILL], 4);
    json_t *json = ask_about(&b, "drain", "prefill", 1, 1);
    CU_ASSERT_EQUAL(number(json, "moved"), 3);
    CU_ASSERT_EQUAL(number(json, "requests"), 1);
    CU_ASSERT_STRING_EQUAL(word(json, "state"), "draining");
    json_decref(json);
    akini_router_dispatch(b.r, b.now);
    CU_ASSERT_EQUAL(b.r->prefill[1].n_flights, 0);
    CU_ASSERT_EQUAL(b.r->prefill[0].n_flights, 5);
    finish_all(&b, 8);
    CU_ASSERT_EQUAL(output_tokens(&b), 8 * 3);
    expect_state(&b, 1, "drained", 0);
    cleanup(&b);
}

/* The last serving worker of a role is lost: one that was drained works again
 * rather than none, unless the lost one may yet come back. */
static void last_one_lost(void)
{
    for (int is_coming = 0; is_coming < 2; is_coming++) {
        bed_t b;
        init(&b, 1, 4, 3);
        b.job.recovery =
            is_coming ? AKIN_RECOVERY_RESPAWN : AKIN_RECOVERY_SHRINK;
        bed_turn(&b);
        prefill_all(&b);
        transfer_all(&b);
        json_decref(ask_about(&b, "drain", "decode", 0, 1));
        b.net.is_dropped[4] = 1;
        akin_router_on_peer_lost(b.r, 4, AKIN_ERR_PEER);
        (void)akini_router_ctl_turn(b.r);
        CU_ASSERT_EQUAL(b.r->decode[0].is_drained, is_coming);
        /* In a while it does not. */
        b.job.recovery_timeout_ns = 0;
        (void)akini_router_ctl_turn(b.r);
        CU_ASSERT_EQUAL(b.r->decode[0].is_drained, 0);
        finish_all(&b, 4);
        CU_ASSERT_EQUAL(output_tokens(&b), 4 * 3);
        cleanup(&b);
    }
}

static void refusals(void)
{
    bed_t b;
    init(&b, 1, 1, 3);
    refuse(&b, "{\"command\":\"stop\"}\n", "no command \"stop\"");
    refuse(&b, "{\"command\":\"drain\"}\n", "worker");
    refuse(&b, "{\"command\":\"drain\",\"worker\":1}\n", "drain: ");
    refuse(&b,
           "{\"command\":\"drain\",\"worker\":\"decode 0\",\"move\":\"yes\"}\n",
           "drain: ");
    refuse(&b,
           "{\"command\":\"drain\",\"worker\":\"decode 0\",\"moev\":true}\n",
           "moev");
    static const char *const names[] = {"decode 2",
                                        "decode",
                                        "decode -1",
                                        "decode  0",
                                        "prefill 2",
                                        "decode 0x0",
                                        "router",
                                        "",
                                        "0",
                                        "decode 4294967296",
                                        "decode 00000000000"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char request[128];
        for (int k = 0; k < 2; k++) {
            (void)snprintf(request, sizeof(request),
                           "{\"command\":\"%s\",\"worker\":\"%s\"}\n",
                           k == 0 ? "drain" : "resume", names[i]);
            refuse(&b, request, "there are prefill 0 to 1 and decode 0 to 1");
        }
    }
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_FALSE(b.r->prefill[i].is_drained);
        CU_ASSERT_FALSE(b.r->decode[i].is_drained);
    }
    /* Moved requests would find nobody to begin with. */
    b.r->stop_ns = 1;
    refuse(&b, "{\"command\":\"drain\",\"worker\":\"decode 0\"}\n",
           "is stopping");
    cleanup(&b);
}

/* A socket that cannot be is a warning, and the run goes on. */
static void no_socket(void)
{
    bed_t b;
    init(&b, 1, 1, 3);
    akini_router_ctl_close(b.r);
    b.job.socket_path = "";
    akini_router_ctl_open(b.r);
    CU_ASSERT_PTR_NULL(b.r->ctl);
    b.job.socket_path = "/nonexistent/ctl";
    akini_router_ctl_open(b.r);
    CU_ASSERT_PTR_NULL(b.r->ctl);
    finish_all(&b, 1);
    cleanup(&b);
}

static const runner_test_t tests[] = {
    {"status", status},
    {"drain_decode", drain_decode},
    {"move_decode", move_decode},
    {"drain_prefill", drain_prefill},
    {"move_prefill", move_prefill},
    {"last_one_lost", last_one_lost},
    {"refusals", refusals},
    {"no_socket", no_socket},
};

RUNNER_MAIN("router_ctl", tests)
