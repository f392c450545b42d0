/* A thousand blocks that are damaged, recycled or of a life that is over, over
 * what UCX chooses and over tcp: none is taken for what was promised. And an
 * owner that recycles its slots while they are read. Argument: [SEED]. */
#include "transfer_owner.h"

#include "base/log.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_CASES 450u /* per side, in the owner's first life */
#define N_STALE 50u  /* per side, with descriptors of that life in the next */
#define N_RACES 300  /* reads per side while the owner recycles */

#ifdef AKIN_FAULTS
#define N_USED N_FAULTS
#else
#define N_USED KV_ON_THE_WAY
#endif

/* Kept by the owner's parent, for its next life. */
typedef struct reader_identity {
    unsigned char blob[1 << 16];
    size_t bytes;
} reader_identity_t;

static reader_identity_t *reader_identities; /* [N_SIDES] */
static known_t known_sides[N_SIDES];
static side_t sides[N_SIDES] = {{.test = &known_sides[0]},
                                {.test = &known_sides[1]}};
static uint64_t refused[AKIN_KV_REFUSAL_COUNT];
static uint64_t n_failed; /* of the thousand, with AKIN_ERR_PEER */
static uint64_t n_cases;

static void on_message(void *arg, uint32_t from, uint16_t type,
                       const void *payload, size_t bytes)
{
    side_t *s = arg;
    known_t *known = s->test;
    akin_error_t err = {{0}};
    order_t order;
    switch (type) {
    case TYPE_CASE:
        CHECK_FATAL(bytes == sizeof(order));
        memcpy(&order, payload, bytes);
        make_case(s, &order);
        break;
    case TYPE_BLOCKS:
        CHECK_FATAL(bytes == sizeof(known->prompt));
        memcpy(&known->prompt, payload, bytes);
        known->n_prompts++;
        break;
    case TYPE_STALE:
        CHECK_FATAL(bytes == sizeof(prompt_t));
        CHECK_FATAL(known->n_stale < N_STALE_PROMPTS);
        memcpy(&known->stale[known->n_stale++], payload, bytes);
        break;
    case TYPE_RACE:
        known->is_racing = 1;
        break;
    case TYPE_ENOUGH:
        known->is_racing = 0;
        break;
    case TYPE_DIE:
        raise(SIGKILL);
        break;
    case TYPE_HELLO:
        /* The loss of the predecessor was told before. */
        CHECK(known->n_lost == 1);
        fixture_ok(akin_net_add_peer(s->net, from, payload, bytes, &err), &err);
        known->n_hello++;
        break;
    case TYPE_BYE:
        known->is_bye = 1;
        break;
    default:
        CHECK(type == 0);
    }
}

static void on_lost(void *arg, uint32_t rank, akin_status_t status)
{
    side_t *s = arg;
    known_t *known = s->test;
    (void)rank;
    known->n_lost += status != AKIN_ERR_CANCELED;
}

static void create_sides(void)
{
    static const side_params_t params = {.shape = {.n_layers = 4,
                                                   .n_kv_heads = 4,
                                                   .head_dim = 32,
                                                   .n_experts = 16,
                                                   .top_k = 4,
                                                   .block_tokens = BLOCK},
                                         .n_slots = N_SLOTS,
                                         .message = on_message,
                                         .lost = on_lost};
    side_create(&sides[0], &params);
    setenv("UCX_TLS", "tcp", 1);
    side_create(&sides[1], &params);
}

/* The owner's nets take turns; each waits for what its reader asks for. */
static void run_owner(void)
{
    int64_t limit_ns = akin_clock_now_ns() + 2 * FIXTURE_LIMIT_NS;
    int n_left = N_SIDES, turn = 0;
    for (int i = 0; i < N_SIDES; i++)
        hold_stale(&sides[i]);
    while (n_left > 0 && akin_clock_now_ns() < limit_ns) {
        /* The one that was heard last is the next to be heard. */
        akin_status_t status = akin_net_wait(
            sides[turn].net, akin_clock_now_ns() + AKIN_NS_PER_MS);
        CHECK_FATAL(status == AKIN_OK || status == AKIN_ERR_TIMEOUT);
        if (known_sides[turn].is_racing)
            recycle_all(&sides[turn]);
        if (status != AKIN_OK || known_sides[turn].is_bye)
            turn = (turn + 1) % N_SIDES;
        n_left = 0;
        for (int i = 0; i < N_SIDES; i++)
            n_left += !known_sides[i].is_bye;
    }
    CHECK(n_left == 0);
}

/* Reader: what a transfer of these blocks comes to; its slots are given back.
 */
static outcome_t read_prompt(side_t *s, akin_kv_transfers_t *transfers,
                             const prompt_t *p)
{
    uint32_t slots[MAX_BLOCKS];
    CHECK_FATAL(akin_kv_cache_take_run(s->cache, p->n_blocks, slots) ==
                AKIN_OK);
    outcome_t o = side_read(s, transfers, p->blocks, p->n_blocks, slots,
                            FIXTURE_LIMIT_NS);
    /* What is accepted is what was promised, to the last byte. */
    for (uint32_t i = 0; o.result.status == AKIN_OK && i < p->n_blocks; i++)
        CHECK(side_wrong(s, slots[i], p->contents[i]) == 0);
    side_unref(s, slots, p->n_blocks);
    return o;
}

/* One of the thousand. */
static void count_case(const outcome_t *o, akin_kv_refusal_t expected)
{
    const akin_kv_transfer_result_t *r = &o->result;
    n_cases++;
    if (r->status == AKIN_ERR_REFUSED) {
        CHECK(expected == AKIN_KV_REFUSAL_COUNT || r->refusal == expected);
        refused[r->refusal]++;
    } else {
        CHECK(r->status == AKIN_ERR_PEER);
        n_failed += r->status == AKIN_ERR_PEER;
    }
}

static akin_kv_transfers_t *create_transfers(side_t *s, const char *fault)
{
    akin_kv_transfers_t *transfers;
    if (fault != NULL)
        setenv("AKIN_FAULT_KV", fault, 1);
    CHECK_FATAL(akin_kv_transfers_create(s->net, s->cache, &s->view,
                                         &transfers) == AKIN_OK);
    unsetenv("AKIN_FAULT_KV");
    return transfers;
}

static void run_cases(side_t *s)
{
    known_t *known = s->test;
    akin_kv_transfers_t *transfers[N_FAULTS];
    for (int i = 0; i < N_USED; i++)
        transfers[i] = create_transfers(s, damages[i].on_the_way);
    for (uint32_t i = 0; i < N_CASES; i++) {
        const int before = known->n_prompts;
        order_t order = {.number = 100 + i,
                         .fault = draw(N_USED),
                         .n_tokens = 1 + draw(MAX_BLOCKS * BLOCK),
                         .bit = draw(UINT32_MAX)};
        order.block = draw(blocks_of(order.n_tokens));
        CHECK(akin_net_send(s->net, 1, TYPE_CASE, &order, sizeof(order)) ==
              AKIN_OK);
        WAIT_FOR(s->net, known->n_prompts > before);
        const damage_t *d = &damages[order.fault];
        outcome_t o = read_prompt(s, transfers[order.fault], &known->prompt);
        count_case(&o, d->refusal);
        /* On the way each block is damaged, and the first one ends it. */
        CHECK(o.result.refused_block ==
              (d->on_the_way != NULL ? 0 : order.block));
    }
    for (int i = 0; i < N_USED; i++)
        akin_kv_transfers_destroy(transfers[i]);
}

/* The block that a reader is most likely to find in the midst of a change. */
static prompt_t only_newest(const prompt_t *p)
{
    return (prompt_t){.n_blocks = 1,
                      .contents = {p->contents[p->newest]},
                      .blocks = {p->blocks[p->newest]}};
}

static void run_race(side_t *s, const char *name)
{
    known_t *known = s->test;
    akin_kv_transfers_t *transfers = create_transfers(s, NULL);
    int before = known->n_prompts, n_good = 0, n_bad = 0;
    CHECK(akin_net_send(s->net, 1, TYPE_RACE, NULL, 0) == AKIN_OK);
    WAIT_FOR(s->net, known->n_prompts > before);
    while (n_good + n_bad < N_RACES) {
        (void)akin_net_poll(s->net);
        prompt_t prompt = known->prompt;
        if (draw(4) > 0)
            prompt = only_newest(&prompt);
        outcome_t o = read_prompt(s, transfers, &prompt);
        CHECK(o.result.status == AKIN_OK ||
              o.result.status == AKIN_ERR_REFUSED);
        n_good += o.result.status == AKIN_OK;
        n_bad += o.result.status != AKIN_OK;
    }
    akin_kv_transfer_stats_t stats;
    akin_kv_transfers_stats(transfers, &stats);
    fprintf(stderr, "recycled while read, %s: %d exact, %d refused (", name,
            n_good, n_bad);
    for (int i = 1; i < AKIN_KV_REFUSAL_COUNT; i++)
        if (stats.refused[i] > 0)
            fprintf(stderr, " %s %llu",
                    akin_kv_refusal_string((akin_kv_refusal_t)i),
                    (unsigned long long)stats.refused[i]);
    fprintf(stderr, " )\n");
    CHECK(akin_net_send(s->net, 1, TYPE_ENOUGH, NULL, 0) == AKIN_OK);
    /* What the owner has last stays. */
    int64_t limit_ns = akin_clock_now_ns() + FIXTURE_LIMIT_NS;
    outcome_t o;
    do {
        const prompt_t prompt = known->prompt;
        before = known->n_prompts;
        o = read_prompt(s, transfers, &prompt);
        if (o.result.status != AKIN_OK)
            WAIT_FOR(s->net, known->n_prompts > before);
    } while (o.result.status != AKIN_OK && akin_clock_now_ns() < limit_ns);
    CHECK(o.result.status == AKIN_OK);
    akin_kv_transfers_destroy(transfers);
}

/* The owner is killed; its next life has the same prompts in the same slots,
 * which the descriptors of the first one must not reach. */
static void run_restart(side_t *s, const char *name)
{
    known_t *known = s->test;
    akin_kv_transfers_t *transfers = create_transfers(s, NULL);
    prompt_t old[N_STALE_PROMPTS];
    memcpy(old, known->stale, sizeof(old));
    known->n_stale = 0;
    /* Until the loss is known a dead owner's memory may still be there, with
     * what was promised. */
    int n_good = 0, n_lost = 0;
    int64_t limit_ns = akin_clock_now_ns() + FIXTURE_LIMIT_NS;
    while (known->n_lost == 0 && akin_clock_now_ns() < limit_ns) {
        outcome_t o = read_prompt(s, transfers, &old[n_good % 4]);
        CHECK(o.result.status == AKIN_OK || o.result.status == AKIN_ERR_PEER);
        n_good += o.result.status == AKIN_OK;
        n_lost += o.result.status == AKIN_ERR_PEER;
        (void)akin_net_poll(s->net);
    }
    fprintf(stderr, "read of a dead owner, %s: %d exact, %d failed\n", name,
            n_good, n_lost);
    CHECK(known->n_lost == 1);
    WAIT_FOR(s->net, known->n_stale == N_STALE_PROMPTS);
    CHECK(known->n_hello == 1);
    for (uint32_t i = 0; i < N_STALE; i++) {
        outcome_t o = read_prompt(s, transfers, &old[draw(N_STALE_PROMPTS)]);
        count_case(&o, AKIN_KV_REFUSAL_GENERATION);
    }
    for (uint32_t i = 0; i < N_STALE_PROMPTS; i++) {
        CHECK(known->stale[i].blocks[0].slot == old[i].blocks[0].slot);
        CHECK(known->stale[i].blocks[0].chain_hash ==
              old[i].blocks[0].chain_hash);
        outcome_t o = read_prompt(s, transfers, &known->stale[i]);
        CHECK(o.result.status == AKIN_OK);
    }
    akin_kv_transfers_destroy(transfers);
    CHECK(akin_net_send(s->net, 1, TYPE_BYE, NULL, 0) == AKIN_OK);
}

static void run_reader(void)
{
    static const char *const names[N_SIDES] = {"one-sided", "rendezvous"};
    for (int i = 0; i < N_SIDES; i++) {
        known_t *known = sides[i].test;
        WAIT_FOR(sides[i].net, known->n_stale == N_STALE_PROMPTS);
        CHECK(akin_net_is_one_sided(sides[i].net, 1) == (i == 0));
        run_cases(&sides[i]);
        run_race(&sides[i], names[i]);
    }
    CHECK(akin_net_send(sides[0].net, 1, TYPE_DIE, NULL, 0) == AKIN_OK);
    for (int i = 0; i < N_SIDES; i++)
        run_restart(&sides[i], names[i]);
    for (int i = 0; i < N_SIDES; i++)
        WAIT_FOR(sides[i].net, !akin_net_has_peer(sides[i].net, 1));
    uint64_t n_refused = 0;
    for (int i = 1; i < AKIN_KV_REFUSAL_COUNT; i++) {
        n_refused += refused[i];
        fprintf(stderr, "%s %llu, ",
                akin_kv_refusal_string((akin_kv_refusal_t)i),
                (unsigned long long)refused[i]);
    }
    const uint64_t n_done = n_refused + n_failed;
    fprintf(stderr, "peer %llu: %llu of %llu refused or failed (seed %llu)\n",
            (unsigned long long)n_failed, (unsigned long long)n_done,
            (unsigned long long)n_cases, (unsigned long long)seed);
    CHECK(n_cases == N_SIDES * (N_CASES + N_STALE));
    CHECK(n_done == n_cases);
}

static int first_life(void)
{
    akin_error_t err = {{0}};
    akin_boot_t *boot = fixture_boot();
    CHECK_FATAL(akin_boot_size(boot) == 2);
    create_sides();
    for (int i = 0; i < N_SIDES; i++) {
        reader_identity_t *id = &reader_identities[i];
        id->bytes = sizeof(id->blob);
        side_connect(boot, &sides[i], id->blob, &id->bytes);
    }
    fixture_ok(akin_boot_barrier(boot, &err), &err);
    akin_boot_finish(boot);
    if (fixture_rank == 0)
        run_reader();
    else
        run_owner();
    for (int i = 0; i < N_SIDES; i++)
        side_destroy(&sides[i]);
    return fixture_failures != 0;
}

static int second_life(void)
{
    fixture_rank = 1;
    create_sides();
    for (int i = 0; i < N_SIDES; i++) {
        akin_error_t err = {{0}};
        const reader_identity_t *id = &reader_identities[i];
        void *own = NULL;
        size_t bytes = 0;
        fixture_ok(
            akin_net_add_peer(sides[i].net, 0, id->blob, id->bytes, &err),
            &err);
        fixture_ok(akin_net_identity(sides[i].net, &own, &bytes, &err), &err);
        CHECK(akin_net_send(sides[i].net, 0, TYPE_HELLO, own, bytes) ==
              AKIN_OK);
        free(own);
    }
    run_owner();
    for (int i = 0; i < N_SIDES; i++)
        side_destroy(&sides[i]);
    return fixture_failures != 0;
}

/* Runs a life in a process of its own; how that ended. */
static int wait_for_life(int (*life)(void))
{
    int status = 0;
    pid_t pid = fork();
    CHECK_FATAL(pid >= 0);
    if (pid == 0)
        exit(life());
    while (waitpid(pid, &status, 0) < 0)
        continue;
    return status;
}

int main(int argc, char **argv)
{
    uint32_t size;
    akin_error_t err = {{0}};
    /* A line for each refused block would hide the others. */
    fixture_ok(akin_log_configure("warn,kv=error", &err), &err);
    if (argc > 1)
        seed = strtoull(argv[1], NULL, 10);
    CHECK_FATAL(akin_boot_launch_rank(&fixture_rank, &size) == AKIN_OK);
    reader_identities =
        mmap(NULL, N_SIDES * sizeof(*reader_identities), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK_FATAL(reader_identities != MAP_FAILED);
    if (fixture_rank == 0)
        return first_life();
    int status = wait_for_life(first_life);
    CHECK_FATAL(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    status = wait_for_life(second_life);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
