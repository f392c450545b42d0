/* Router with workers of two ranks: requests go to ranks, steps and losses are
 * the worker's. */
#include "router_bed.h"

#include <jansson.h>

#define N_PROMPT 20u /* two blocks */
#define N_REQUESTS 8u

/* Ranks 1 2, 3 4 prefill; 5 6, 7 8 decode. */
static void init(bed_t *b)
{
    char id[16];
    FILE *file = fopen(scratch_path("in"), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    for (uint32_t i = 0; i < N_REQUESTS; i++) {
        (void)snprintf(id, sizeof(id), "r%u", i);
        bed_write_request(file, id, N_PROMPT, 3);
    }
    CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
    bed_init_ranks(b, 2, NULL, 0);
}

/* All requests at the decode ranks. */
static void bring_all(bed_t *b)
{
    bed_turn(b);
    akini_flight_t *f, *next;
    HASH_ITER(hh, b->r->by_id, f, next)
    {
        CU_ASSERT_EQUAL_FATAL(f->state, AKINI_FLIGHT_PREFILL);
        bed_prefilled(b, 1 + f->prefill, f->id, N_PROMPT);
    }
    akini_router_dispatch(b->r, b->now);
    HASH_ITER(hh, b->r->by_id, f, next)
    {
        CU_ASSERT_EQUAL_FATAL(f->state, AKINI_FLIGHT_TRANSFER);
        bed_transferred(b, 5 + f->decode, f->id, AKIN_OK);
    }
}

static void spread(void)
{
    bed_t b;
    init(&b);
    bed_turn(&b);
    for (uint32_t i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(b.r->prefill[i].n_flights, 2);
    bed_cleanup(&b);
    init(&b);
    bring_all(&b);
    for (uint32_t i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(b.r->decode[i].n_flights, 2);
        CU_ASSERT_EQUAL(b.r->decode[i].n_reserved, 4);
    }
    CU_ASSERT_EQUAL(akin_policy_in_flight(b.r->policy, 0), 4);
    CU_ASSERT_EQUAL(akin_policy_in_flight(b.r->policy, 1), 4);
    bed_cleanup(&b);
}

/* A worker has room as long as one of its ranks has, and that one is taken. */
static void room(void)
{
    bed_t b;
    init(&b);
    b.r->decode[0].n_flights = b.job.max_batch;
    b.r->decode[2].n_reserved = BED_SLOTS - 1; /* two are needed */
    b.r->decode[3].n_reserved = BED_SLOTS;
    bed_turn(&b);
    akini_flight_t *f, *next;
    HASH_ITER(hh, b.r->by_id, f, next)
    bed_prefilled(&b, 1 + f->prefill, f->id, N_PROMPT);
    akini_router_dispatch(b.r, b.now);
    /* Rank 1 has eight slots: four requests of two. */
    CU_ASSERT_EQUAL(b.r->decode[1].n_flights, 4);
    CU_ASSERT_EQUAL(b.r->n_in[AKINI_FLIGHT_TRANSFER], 4);
    CU_ASSERT_EQUAL(b.r->n_in[AKINI_FLIGHT_ROUTED], 4);
    HASH_ITER(hh, b.r->by_id, f, next)
    CU_ASSERT(f->state == AKINI_FLIGHT_ROUTED || f->decode == 1);
    bed_cleanup(&b);
}

static double figure(bed_t *b, const char *worker, const char *key)
{
    json_t *json = akin_summary_json(b->r->summary);
    const json_t *of = worker == NULL
                           ? json
                           : json_array_get(json_object_get(json, "workers"),
                                            (size_t)(worker[0] - '0'));
    const double value = json_number_value(json_object_get(of, key));
    json_decref(json);
    return value;
}

/* The first loss is the worker's: requests of both ranks begin again, and what
 * follows is no news. */
static void lost(void)
{
    bed_t b;
    init(&b);
    bring_all(&b);
    akin_router_on_peer_lost(b.r, 6, AKIN_ERR_PEER);
    CU_ASSERT(b.r->decode[0].is_lost && b.r->decode[1].is_lost);
    CU_ASSERT(!b.r->decode[2].is_lost && !b.r->decode[3].is_lost);
    CU_ASSERT_EQUAL(b.r->n_in[AKINI_FLIGHT_QUEUED], 4);
    CU_ASSERT_EQUAL(b.r->n_in[AKINI_FLIGHT_DECODE], 4);
    akin_router_on_peer_lost(b.r, 5, AKIN_ERR_CANCELED);
    CU_ASSERT_EQUAL(b.r->n_in[AKINI_FLIGHT_QUEUED], 4);
    CU_ASSERT_EQUAL(figure(&b, NULL, "times_lost"), 1.0);
    CU_ASSERT_EQUAL(figure(&b, "2", "requests_restarted"), 4.0);
    CU_ASSERT_EQUAL(b.r->failure, AKIN_OK);
    /* No rank of a lost worker gets anything. */
    const uint32_t n = b.net.n_sent;
    bed_turn(&b);
    for (uint32_t i = n; i < b.net.n_sent; i++)
        CU_ASSERT(b.net.sent[i].rank != 5 && b.net.sent[i].rank != 6);
    akin_router_on_peer_lost(b.r, 1, AKIN_ERR_PEER);
    CU_ASSERT_EQUAL(b.r->failure, AKIN_OK);
    CU_ASSERT(b.r->prefill[1].is_lost);
    akin_router_on_peer_lost(b.r, 8, AKIN_ERR_PEER);
    (void)akini_router_expire_groups(b.r, b.now);
    CU_ASSERT_EQUAL(b.r->failure, AKIN_ERR_PEER); /* none is left */
    bed_cleanup(&b);
}

static void report(bed_t *b, uint32_t from, uint64_t number, uint32_t n_rows,
                   uint16_t per_layer)
{
    uint16_t served[6];
    for (uint32_t l = 0; l < 6; l++)
        served[l] = (uint16_t)(per_layer + l % 2);
    const akin_message_tokens_t m = {.step = {.ns = 1000 * (int64_t)n_rows,
                                              .number = number,
                                              .n_rows = n_rows,
                                              .served = served,
                                              .n_served = 6}};
    akin_message_pack_tokens(&b->packer, &m);
    bed_say(b, from, AKIN_MESSAGE_TOKENS);
}

/* Reports of the ranks become one of the worker, even if one rank is a step
 * ahead of what the router has heard of the other. */
static void joined(void)
{
    bed_t b;
    init(&b);
    report(&b, 5, 1, 2, 8);
    CU_ASSERT_EQUAL(figure(&b, NULL, "steps"), 0.0);
    report(&b, 5, 2, 3, 10);
    report(&b, 6, 1, 0, 9); /* without rows, it computed for the other */
    CU_ASSERT_EQUAL(figure(&b, NULL, "steps"), 1.0);
    /* 8, 9, 8, ... and 9, 10, 9, ... */
    CU_ASSERT_EQUAL(figure(&b, NULL, "distinct_experts_per_step"), 18.0);
    CU_ASSERT_EQUAL(figure(&b, NULL, "max_rank_distinct_experts_per_step"),
                    9.5);
    CU_ASSERT_EQUAL(figure(&b, NULL, "mean_batch"), 2.0);
    report(&b, 6, 2, 5, 2);
    CU_ASSERT_EQUAL(figure(&b, NULL, "steps"), 2.0);
    CU_ASSERT_EQUAL(figure(&b, NULL, "mean_batch"), 5.0);
    CU_ASSERT_EQUAL(figure(&b, "2", "steps"), 2.0);
    CU_ASSERT_EQUAL(figure(&b, "3", "steps"), 0.0);
    /* The last step is whole only after the last answer. */
    report(&b, 5, 3, 1, 4);
    b.r->is_closing = 1;
    report(&b, 6, 3, 0, 4);
    b.r->is_closing = 0;
    CU_ASSERT_EQUAL(figure(&b, "2", "steps"), 3.0);
    /* A step that nobody had rows in counts for nothing. */
    report(&b, 7, 1, 0, 0);
    report(&b, 8, 1, 0, 0);
    CU_ASSERT_EQUAL(figure(&b, "3", "steps"), 0.0);
    CU_ASSERT(!b.net.is_dropped[8]);
    report(&b, 8, 2, 1, 32); /* odd layers: 33 of 32 experts */
    CU_ASSERT(b.net.is_dropped[8]);
    report(&b, 7, 0, 1, 1);
    CU_ASSERT(b.net.is_dropped[7]);
    bed_cleanup(&b);
}

/* All ranks of a worker are told its next map; the router's own follows when
 * the leader says that steps run under it. */
static void placed(bed_t *b, uint32_t from, uint64_t epoch,
                   akin_status_t status)
{
    const akin_message_placed_t m = {.epoch = epoch, .status = status};
    akin_packer_reset(&b->packer);
    akin_message_pack_placed(&b->packer, &m);
    akin_router_on_message(b->r, from, AKIN_MESSAGE_PLACED, b->packer.data,
                           b->packer.bytes);
}

static void placed_anew(void)
{
    bed_t b;
    akin_placement_t maps[2];
    const akin_policy_step_t step = {
        .batch = 4, .distinct = 9, .seconds = 0.01};
    init(&b);
    const akin_placement_params_t linear = {
        .kind = AKIN_PLACEMENT_LINEAR,
        .n_layers = b.model.n_layers,
        .n_experts = b.model.n_experts,
        .n_ranks = 2,
    };
    for (uint32_t w = 0; w < 2; w++)
        CU_ASSERT_EQUAL_FATAL(akin_placement_make(&linear, &maps[w], NULL),
                              AKIN_OK);
    b.job.replace = AKIN_REPLACE_ON;
    b.job.replace_force = 1;
    b.job.replace_every = 2;
    b.job.replace_bandwidth = 1 << 20;
    b.r->params.placements = maps;
    CU_ASSERT_EQUAL_FATAL(akini_router_create_replacer(b.r), AKIN_OK);
    akini_router_replace_step(b.r, 1, &step);
    CU_ASSERT_EQUAL(b.net.n_sent, 0);
    akini_router_replace_step(b.r, 1, &step);
    CU_ASSERT_EQUAL(b.net.n_sent, 2);
    CU_ASSERT_EQUAL(bed_n_sent(&b, 7, AKIN_MESSAGE_PLACE, 1), 1);
    CU_ASSERT_EQUAL(bed_n_sent(&b, 8, AKIN_MESSAGE_PLACE, 1), 1);
    CU_ASSERT_EQUAL(maps[1].epoch, 0);
    placed(&b, 5, 1, AKIN_OK); /* of another worker */
    CU_ASSERT(maps[0].epoch == 0 && maps[1].epoch == 0);
    placed(&b, 7, 1, AKIN_OK);
    CU_ASSERT(maps[0].epoch == 0 && maps[1].epoch == 1);
    CU_ASSERT_EQUAL(akin_placement_check(&maps[1], NULL), AKIN_OK);
    CU_ASSERT(!b.net.is_dropped[7]);
    /* What the second one becomes shows at the worker's end. */
    akini_router_replace_step(b.r, 1, &step);
    akini_router_replace_step(b.r, 1, &step);
    CU_ASSERT_EQUAL(bed_n_sent(&b, 8, AKIN_MESSAGE_PLACE, 2), 1);
    akin_router_on_peer_lost(b.r, 8, AKIN_ERR_PEER);
    CU_ASSERT_EQUAL(akin_replacer_stats(b.r->replacer).n_applied, 1);
    CU_ASSERT_EQUAL(akin_replacer_stats(b.r->replacer).n_dropped, 1);
    /* What cannot be read is a broken worker's. */
    akin_router_on_message(b.r, 5, AKIN_MESSAGE_PLACED, "", 1);
    CU_ASSERT(b.net.is_dropped[5]);
    placed(&b, 6, 1, AKIN_OK); /* not a leader */
    CU_ASSERT(b.net.is_dropped[6]);
    bed_cleanup(&b);
    akin_placement_cleanup(&maps[0]);
    akin_placement_cleanup(&maps[1]);
}

static const runner_test_t tests[] = {
    {"requests over ranks", spread}, {"room", room},
    {"a lost rank", lost},           {"reports of a step", joined},
    {"placed anew", placed_anew},
};

RUNNER_MAIN("router_groups", tests)
