/* Router: whole runs among workers that die at random, in any order of events
 * that the net allows. Every request is answered once, with the right tokens;
 * the books agree after every event; nobody waits for ever. */
#include "world_checks.h"
#include "world_events.h"

#include "base/clock.h"

#include "scratch_file.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

/* AKIN_WORLD_SEEDS asks for more. Allocations are slow where they are traced.
 */
#ifdef __SANITIZE_ADDRESS__
#define N_SEEDS 8u
#else
#define N_SEEDS 60u
#endif
#define MAX_REQUESTS 24u

static struct {
    uint32_t n_faults; /* to come */
    uint32_t fault_every;
    int is_patient; /* the last tokens wait until all is well again */
    uint32_t n_idle;
    uint64_t n_events;
    int is_stuck;
} run;

static akin_status_t turn(void)
{
    static world_event_t events[WORLD_RANKS * (2 + 3 * WORLD_RANKS)];
    world.is_held =
        run.is_patient && (run.n_faults > 0 || !world_is_well(world.r));
    const uint32_t n = world_list_some(events);
    if (run.n_faults > 0 && (n == 0 || world_draw(run.fault_every) == 0)) {
        run.n_faults--;
        world_fault();
    } else if (n > 0) {
        world_happen(&events[world_draw(n)]);
        run.n_idle = 0;
    } else if (++run.n_idle > 50) {
        run.is_stuck = !world.r->is_closing;
        return AKIN_ERR_IO;
    }
    run.n_events++;
    world_check(world.r);
    return n > 0 ? AKIN_OK : AKIN_ERR_TIMEOUT;
}

/* Request i: its prompt, and how many tokens follow. */
static uint32_t prompt_of(uint32_t i, uint32_t *tokens)
{
    const uint32_t n = 1 + draw_below(world.seed + 7, i, 40);
    for (uint32_t k = 0; k < n; k++)
        tokens[k] = 10 + (i * 31 + k * 7) % 400;
    return n;
}

static uint32_t length_of(uint32_t i)
{
    return 1 + draw_below(world.seed + 8, i, 12);
}

static void write_input(uint32_t n_requests)
{
    FILE *file = fopen(scratch_path("in"), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    for (uint32_t i = 0; i < n_requests; i++) {
        uint32_t tokens[64];
        const uint32_t n = prompt_of(i, tokens);
        (void)fprintf(file,
                      "{\"custom_id\":\"%u\",\"method\":\"POST\",\"url\":"
                      "\"/v1/completions\",\"body\":{\"max_tokens\":%u,"
                      "\"ignore_eos\":true,\"return_token_ids\":true,"
                      "\"prompt\":[%u",
                      i, length_of(i), tokens[0]);
        for (uint32_t k = 1; k < n; k++)
            (void)fprintf(file, ",%u", tokens[k]);
        (void)fputs("]}}\n", file);
    }
    CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
}

static void check_answer(json_t *line, uint32_t *seen)
{
    uint32_t tokens[128];
    const char *id = json_string_value(json_object_get(line, "custom_id"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(id);
    const uint32_t i = (uint32_t)strtoul(id, NULL, 10);
    CU_ASSERT_FATAL(i < MAX_REQUESTS);
    seen[i]++;
    json_t *body = json_object_get(json_object_get(line, "response"), "body");
    json_t *ids = json_object_get(
        json_array_get(json_object_get(body, "choices"), 0), "token_ids");
    uint32_t n = prompt_of(i, tokens);
    CU_ASSERT_EQUAL_FATAL(json_array_size(ids), length_of(i));
    for (size_t k = 0; k < json_array_size(ids); k++, n++) {
        tokens[n] = world_next_token(tokens, n);
        CU_ASSERT_EQUAL(json_integer_value(json_array_get(ids, k)),
                        (json_int_t)tokens[n]);
    }
}

/* Returns how many answers there are: each request has one at most. */
static uint32_t check_output(uint32_t n_requests)
{
    uint32_t seen[MAX_REQUESTS] = {0}, n = 0;
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen(scratch_path("out"), "r");
    if (file == NULL)
        return 0;
    while (getline(&line, &capacity, file) > 0) {
        json_t *json = json_loads(line, JSON_ALLOW_NUL, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(json);
        check_answer(json, seen);
        json_decref(json);
    }
    free(line);
    (void)fclose(file);
    for (uint32_t i = 0; i < n_requests; i++) {
        CU_ASSERT(seen[i] <= 1);
        n += seen[i];
    }
    return n;
}

/* The router's own words are not wanted; returns the descriptor to restore. */
static int silence(void)
{
    const int kept = dup(STDERR_FILENO);
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    (void)fflush(stderr);
    (void)dup2(null, STDERR_FILENO);
    (void)close(null);
    return kept;
}

static void speak(int kept)
{
    (void)fflush(stderr);
    (void)dup2(kept, STDERR_FILENO);
    (void)close(kept);
}

static akin_status_t run_router(akin_router_params_t *params,
                                akin_router_end_t *end_p, akin_error_t *err)
{
    akin_net_t net = {.events = {.message = akin_router_on_message,
                                 .peer_lost = akin_router_on_peer_lost}};
    const uint32_t n_ranks = akin_job_n_ranks(&world.job);
    akin_message_identity_t identities[WORLD_RANKS] = {{0}};
    world_identity_t ids[WORLD_RANKS];
    params->identities = identities;
    CU_ASSERT_EQUAL_FATAL(akin_router_create(params, &world.r, err), AKIN_OK);
    net.events.arg = world.r;
    world_begin(&net);
    for (uint32_t rank = 0; rank < n_ranks; rank++) {
        ids[rank] = world_identity(rank);
        identities[rank] = (akin_message_identity_t){
            .rank = rank, .net = &ids[rank], .net_bytes = sizeof(ids[rank])};
    }
    const int kept = silence();
    const akin_status_t status = akin_router_run(world.r, &net, end_p, err);
    speak(kept);
    if (status != AKIN_OK && !run.is_stuck) {
        CU_ASSERT(world_has_reason(world.r));
        CU_ASSERT_PTR_NOT_NULL(strstr(err->text, "worker is left"));
    }
    for (uint32_t rank = 1; rank < n_ranks; rank++)
        if (world.ranks[rank].process != NULL)
            world_end(rank, 1);
    world_net_cleanup(&net);
    world_nets[0] = NULL;
    akin_router_destroy(world.r);
    return status;
}

static akin_job_t job_of(uint32_t ep, akin_recovery_t recovery,
                         const char *model)
{
    return (akin_job_t){
        .model_path = model,
        .model_name = "",
        .engine = "cpu",
        .n_prefill = 1 + world_draw(3),
        .n_decode = 1 + world_draw(3),
        .n_spare =
            recovery == AKIN_RECOVERY_SPARE ? world_draw(ep > 2 ? 2 : 3) : 0,
        .ep = ep,
        .prefill_ep = ep,
        .block_tokens = WORLD_BLOCK,
        .lease_ns = 3600 * AKIN_NS_PER_S,
        .max_batch = 1 + world_draw(8),
        .max_in_flight = 1 + world_draw(MAX_REQUESTS),
        .prefill_policy = world_draw(2) ? "least-loaded" : "prefix-hash",
        .decode_policy = "jsq",
        .exchange = "ucx",
        .n_retries = 1000000,
        .recovery_timeout_ns = 3600 * AKIN_NS_PER_S,
        .start_timeout_ns = 3600 * AKIN_NS_PER_S,
        .recovery = recovery,
        .heartbeat_ns = 1,
        .heartbeat_timeout_ns = 2,
        .transfer_timeout_ns = 3600 * AKIN_NS_PER_S,
        .request_timeout_ns = 36000 * AKIN_NS_PER_S,
        .socket_path = "",
    };
}

static void run_seed(uint64_t seed, uint32_t ep, akin_recovery_t recovery)
{
    static const char dir[] = AKIN_SOURCE_DIR "/examples/tiny-moe";
    akin_error_t err = {{0}};
    akin_tokenizer_t *tokenizer;
    akin_kv_layout_t layout;
    akin_router_end_t end = {0};
    world = (world_t){.seed = seed, .slow_events = 20};
    world.job = job_of(ep, recovery, dir);
    world.max_lives = recovery == AKIN_RECOVERY_SHRINK ? 0
                      : world_draw(4)                  ? 1000
                                                       : 2;
    const uint32_t n_requests = 1 + world_draw(MAX_REQUESTS);
    memset(&run, 0, sizeof(run));
    run.n_faults = world_draw(recovery == AKIN_RECOVERY_SHRINK ? 4 : 60);
    run.fault_every = 2 + world_draw(100);
    run.is_patient = world_draw(2) != 0;
    world_draw_ready = world_draw_upto;
    world_turn = turn;
    CU_ASSERT_EQUAL_FATAL(akin_model_config_read(dir, &world.model, &err),
                          AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akin_tokenizer_load(AKIN_SOURCE_DIR
                                              "/examples/tiny-moe/"
                                              "tokenizer.json",
                                              &tokenizer, &err),
                          AKIN_OK);
    const akin_kv_shape_t shape = {.n_layers = world.model.n_layers,
                                   .n_kv_heads = world.model.n_kv_heads,
                                   .head_dim = world.model.head_dim,
                                   .n_experts = world.model.n_experts,
                                   .top_k = world.model.top_k,
                                   .block_tokens = WORLD_BLOCK};
    CU_ASSERT_EQUAL_FATAL(akin_kv_layout_init(&shape, &layout, &err), AKIN_OK);
    write_input(n_requests);
    char input[1024], output[1024];
    (void)snprintf(input, sizeof(input), "%s", scratch_path("in"));
    (void)snprintf(output, sizeof(output), "%s", scratch_path("out"));
    (void)remove(output);
    const akin_router_batch_t batch = {.input_path = input,
                                       .output_path = output,
                                       .ordered = world_draw(2) != 0};
    akin_router_params_t params = {.job = &world.job,
                                   .batch = &batch,
                                   .model = &world.model,
                                   .tokenizer = tokenizer,
                                   .layout = &layout,
                                   .n_slots = WORLD_SLOTS,
                                   .kernel = "portable"};
    const unsigned before = CU_get_number_of_failures();
    const akin_status_t status = run_router(&params, &end, &err);
    CU_ASSERT(!run.is_stuck);
    const uint32_t n = check_output(n_requests);
    if (status == AKIN_OK) {
        CU_ASSERT_EQUAL(end.exit_code, 0);
        CU_ASSERT_EQUAL(n, n_requests);
    } else {
        CU_ASSERT(world.max_lives < 1000);
    }
    if (CU_get_number_of_failures() != before)
        (void)fprintf(stderr, "seed %llu, groups of %u, mode %d\n",
                      (unsigned long long)seed, ep, (int)recovery);
    akin_tokenizer_destroy(tokenizer);
    scratch_remove(output);
    scratch_remove(input);
}

/* AKIN_WORLD_SEED: that one alone; AKIN_WORLD_SEEDS: so many. */
static void run_seeds(uint32_t ep, akin_recovery_t recovery)
{
    const char *one = getenv("AKIN_WORLD_SEED");
    const char *many = getenv("AKIN_WORLD_SEEDS");
    const uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    const uint64_t n = one != NULL    ? 1
                       : many != NULL ? strtoull(many, NULL, 10)
                                      : N_SEEDS;
    uint64_t n_events = 0, n_faults = 0;
    for (uint64_t seed = first; seed < first + n; seed++) {
        run_seed(seed, ep, recovery);
        n_events += run.n_events;
        n_faults += world.n_faults;
    }
    (void)printf("groups of %u: %llu events, %llu faults ... ", ep,
                 (unsigned long long)n_events, (unsigned long long)n_faults);
}

static void respawn(void)
{
    run_seeds(1, AKIN_RECOVERY_RESPAWN);
}

static void respawn_groups(void)
{
    run_seeds(2, AKIN_RECOVERY_RESPAWN);
    run_seeds(3, AKIN_RECOVERY_RESPAWN);
}

static void spare(void)
{
    run_seeds(1, AKIN_RECOVERY_SPARE);
}

static void spare_groups(void)
{
    run_seeds(2, AKIN_RECOVERY_SPARE);
}

static void shrink(void)
{
    run_seeds(1, AKIN_RECOVERY_SHRINK);
    run_seeds(2, AKIN_RECOVERY_SHRINK);
}

static const runner_test_t tests[] = {
    {"respawn", respawn}, {"respawn groups", respawn_groups},
    {"spare", spare},     {"spare groups", spare_groups},
    {"shrink", shrink},
};

RUNNER_MAIN("router_world", tests)
