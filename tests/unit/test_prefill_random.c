/* Prefill at random: prompts come, are released, kept, canceled, forgotten by
 * their readers and damaged in memory. No slot is lost, what is told of leases
 * adds up, and no reader takes a block that is not what was promised. */
#include "prefill_bed.h"

#define N_TICKS 3000u
#define FEW_SLOTS 22u

typedef struct walk {
    int with_damage;
    uint32_t doubted; /* the prompt that is damaged, while in doubt */
    uint32_t n_damaged, n_accepted, n_refused, n_expired, n_leases;
} walk_t;

static walk_t walk;

/* An answered prompt, or N_PROMPTS. */
static uint32_t draw_answered(void)
{
    uint32_t id = test.n > 0 ? bed_draw(test.n) : 0;
    for (uint32_t i = 0; i < test.n; i++, id = (id + 1) % test.n)
        if (test.prompts[id].is_answered)
            return id;
    return N_PROMPTS;
}

/* Three words for each block, so that many prompts begin alike. */
static void begin_prompt(void)
{
    uint32_t tokens[MAX_TOKENS];
    const uint32_t n = 1 + bed_draw(MAX_TOKENS);
    if (test.n == N_PROMPTS)
        return;
    for (uint32_t b = 0; b * BLOCK < n; b++)
        fill_tokens(tokens + b * BLOCK, BLOCK, bed_draw(3) * 20);
    tell_prefill(tokens, n, bed_draw(20) == 0);
}

/* A bit on which all later tokens depend. */
static void damage(uint32_t id)
{
    const prompt_t *p = &test.prompts[id];
    const uint32_t n_full = p->n_tokens / BLOCK;
    if (n_full == 0 || !p->is_pinned || p->lease_ns <= akin_clock_now_ns() ||
        test.n == N_PROMPTS)
        return;
    const uint32_t b = bed_draw(n_full);
    if (check_block(p, b) != AKIN_KV_REFUSAL_NONE)
        return;
    flip(&p->blocks[b], 8 * 2 * HEAD_DIM * (BLOCK - 1) + bed_draw(64));
    CU_ASSERT_EQUAL(check_block(p, b), AKIN_KV_REFUSAL_CHECKSUM);
    test.is_in_doubt = 1;
    walk.doubted = id;
    walk.n_damaged++;
}

/* The reader that was refused makes the router begin the request again. */
static void begin_again(void)
{
    const prompt_t *p = &test.prompts[walk.doubted];
    end(AKIN_MESSAGE_CANCEL, walk.doubted);
    tell_prefill(p->tokens, p->n_tokens, 1);
    test.is_in_doubt = 0;
}

/* A reader looks at every block on its own: of the others it may have copies
 * already. */
static void read_blocks(uint32_t id)
{
    const prompt_t *p = &test.prompts[id];
    const int is_safe = p->is_pinned && p->lease_ns > akin_clock_now_ns();
    for (uint32_t b = 0; b < p->n_blocks && !test.is_in_doubt; b++) {
        int is_taken = check_block(p, b) == AKIN_KV_REFUSAL_NONE;
        walk.n_accepted += (uint32_t)is_taken;
        walk.n_refused += (uint32_t)!is_taken;
        if (is_taken)
            CU_ASSERT_FATAL(is_exact(p, b));
        if (is_safe && !walk.with_damage)
            CU_ASSERT_FATAL(is_taken);
    }
}

static void check_leases(void)
{
    uint32_t n_blocks = 0, n_requests = 0;
    if (walk.n_leases == test.n_leases)
        return;
    walk.n_leases = test.n_leases;
    for (uint32_t i = 0; i < test.n; i++) {
        const prompt_t *p = &test.prompts[i];
        if (p->is_pinned && p->lease_ns > test.leases_ns) {
            n_blocks += p->n_blocks;
            n_requests++;
        }
    }
    if (walk.with_damage)
        return; /* some were given up early */
    CU_ASSERT_EQUAL(test.leases.n_blocks, n_blocks);
    CU_ASSERT_EQUAL(test.leases.n_requests, n_requests);
}

static void act(bed_t *b)
{
    const uint32_t what = bed_draw(100), id = draw_answered();
    if (what < 30) {
        begin_prompt();
    } else if (what < 35 && test.n > 0) {
        end(AKIN_MESSAGE_CANCEL, bed_draw(test.n));
    } else if (what < 36) {
        akin_worker_on_message(&b->worker, READER, AKIN_MESSAGE_RELEASE, "?",
                               1);
    } else if (what < 37) {
        akin_worker_on_peer_lost(&b->worker, READER, AKIN_ERR_PEER);
    } else if (what < 39) {
        bed_pass(bed.job.lease_ns / (1 + (int64_t)bed_draw(4)));
    } else if (what < 42) {
        bed_pass(AKIN_NS_PER_S);
    } else if (what < 46) {
        b->is_held = !b->is_held;
    } else if (id == N_PROMPTS) {
        return;
    } else if (what < 56) {
        end(AKIN_MESSAGE_RELEASE, id);
    } else if (what < 60) {
        if (test.prompts[id].lease_ns > akin_clock_now_ns())
            test.prompts[id].lease_ns = akin_clock_now_ns() + bed.job.lease_ns;
        bed_tell_id(AKIN_ROUTER_RANK, AKIN_MESSAGE_KEEP, id);
    } else if (what < 75 && walk.with_damage && !test.is_in_doubt) {
        damage(id);
    } else {
        read_blocks(id);
    }
}

static void random_script(bed_t *b)
{
    const uint32_t tick = test.phase++;
    check_leases();
    if (tick % 16 == 0)
        bed_audit();
    if (tick < N_TICKS) {
        /* Damage is noticed after a step or some. */
        if (test.is_in_doubt && bed_draw(3) == 0)
            begin_again();
        else
            act(b);
        return;
    }
    if (test.is_in_doubt)
        begin_again();
    b->is_held = 0;
    for (uint32_t i = 0; i < test.n; i++)
        end(AKIN_MESSAGE_RELEASE, i);
    if (tick == N_TICKS + 4)
        bed_stop();
}

static void walk_with(uint64_t key, int with_damage, walk_t *sum)
{
    bed_init(OWNER, FEW_SLOTS);
    bed.key = key;
    memset(&walk, 0, sizeof(walk));
    walk.with_damage = with_damage;
    run(random_script);
    CU_ASSERT_EQUAL(test.stats.pinned_blocks, 0);
    CU_ASSERT_EQUAL(test.leases.n_blocks, 0);
    CU_ASSERT_EQUAL(test.leases.n_requests, 0);
    CU_ASSERT_EQUAL(test.leases.n_expired, test.stats.leases_expired);
    CU_ASSERT(test.n_cached > 50);
    sum->n_damaged += walk.n_damaged;
    sum->n_accepted += walk.n_accepted;
    sum->n_refused += walk.n_refused;
    sum->n_expired += (uint32_t)test.stats.leases_expired;
    sum->n_leases += walk.n_leases;
    bed_cleanup();
}

static void test_random(void)
{
    for (int with_damage = 0; with_damage < 2; with_damage++) {
        walk_t sum = {0};
        for (uint64_t key = 1; key <= 20; key++)
            walk_with(key, with_damage, &sum);
        CU_ASSERT(sum.n_accepted > 1000);
        CU_ASSERT(sum.n_refused > 1000);
        CU_ASSERT(sum.n_expired > 100);
        CU_ASSERT(sum.n_leases > 100);
        CU_ASSERT_EQUAL(sum.n_damaged > 50, with_damage);
    }
}

static const runner_test_t tests[] = {
    {"no slot is lost, no wrong block taken", test_random},
};

RUNNER_MAIN("prefill at random", tests)
