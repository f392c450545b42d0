/* Prefill: a rank in its own loop. Leases begin, are kept and end; what is told
 * of them adds up; nothing is lost whatever ends a request; and damage at the
 * owner reaches nobody. */
#include "prefill_bed.h"

#include <sys/wait.h>
#include <unistd.h>

static void lease_script(bed_t *b)
{
    uint32_t tokens[MAX_TOKENS];
    const prompt_t *a = &test.prompts[0], *c = &test.prompts[1];
    (void)b;
    switch (test.phase++) {
    case 0:
        fill_tokens(tokens, 20, 0);
        tell_prefill(tokens, 20, 0);
        fill_tokens(tokens, 30, 40);
        tell_prefill(tokens, 30, 0);
        break;
    case 2: /* after a chunk of 20 tokens */
        CU_ASSERT(a->is_answered && !c->is_answered);
        CU_ASSERT_EQUAL(test.n_leases, 1); /* the first change at once */
        CU_ASSERT_EQUAL(test.leases.n_blocks, 3);
        CU_ASSERT_EQUAL(test.leases.n_requests, 1);
        break;
    case 4: /* after two more */
        CU_ASSERT_EQUAL_FATAL(test.n_answered, 2);
        CU_ASSERT_EQUAL(test.n_leases, 1); /* the second not yet */
        bed_pass(AKIN_NS_PER_S);
        break;
    case 5:
        CU_ASSERT_EQUAL(test.n_leases, 2);
        CU_ASSERT_EQUAL(test.leases.n_blocks, 7);
        CU_ASSERT_EQUAL(test.leases.n_requests, 2);
        CU_ASSERT(test.leases.oldest_ns >= AKIN_NS_PER_S);
        CU_ASSERT(test.leases.oldest_ns < 2 * AKIN_NS_PER_S);
        /* A second before the end the router keeps the second prompt. */
        bed_pass(bed.job.lease_ns - 2 * AKIN_NS_PER_S);
        bed_tell_id(AKIN_ROUTER_RANK, AKIN_MESSAGE_KEEP, 1);
        break;
    case 6:
        CU_ASSERT_EQUAL(check_block(a, 2), AKIN_KV_REFUSAL_NONE);
        bed_pass(2 * AKIN_NS_PER_S);
        break;
    case 7:
        /* Of the first one the block that was not full is gone, and a reader
         * that comes now meets another generation; the others are in the cache
         * with what they had, as long as nobody takes their slots. */
        CU_ASSERT_EQUAL(check_block(a, 2), AKIN_KV_REFUSAL_GENERATION);
        CU_ASSERT_EQUAL(check_block(a, 0), AKIN_KV_REFUSAL_NONE);
        CU_ASSERT(is_exact(a, 0) && is_exact(a, 1));
        for (uint32_t i = 0; i < 4; i++)
            CU_ASSERT_EQUAL(check_block(c, i), AKIN_KV_REFUSAL_NONE);
        CU_ASSERT_EQUAL(test.leases.n_blocks, 4);
        CU_ASSERT_EQUAL(test.leases.n_requests, 1);
        CU_ASSERT_EQUAL(test.leases.n_expired, 1);
        bed_pass(bed.job.lease_ns - 3 * AKIN_NS_PER_S);
        break;
    case 8:
        CU_ASSERT_EQUAL(check_block(c, 3), AKIN_KV_REFUSAL_NONE);
        bed_pass(2 * AKIN_NS_PER_S);
        break;
    case 9:
        CU_ASSERT_EQUAL(check_block(c, 3), AKIN_KV_REFUSAL_GENERATION);
        /* Late words about requests that are no more. */
        bed_tell_id(READER, AKIN_MESSAGE_RELEASE, 0);
        bed_tell_id(AKIN_ROUTER_RANK, AKIN_MESSAGE_KEEP, 1);
        bed_tell_id(AKIN_ROUTER_RANK, AKIN_MESSAGE_CANCEL, 1);
        bed_stop();
        break;
    }
}

static void test_leases(void)
{
    bed_init(OWNER, N_SLOTS);
    run(lease_script);
    CU_ASSERT_EQUAL(test.stats.leases_expired, 2);
    CU_ASSERT_EQUAL(test.stats.pinned_blocks, 0);
    CU_ASSERT_EQUAL(test.leases.n_expired, 2);
    CU_ASSERT_EQUAL(test.leases.n_blocks, 0);
    CU_ASSERT_EQUAL(test.leases.oldest_ns, 0);
    bed_cleanup();
}

/* A rank that ends waits a moment for the RELEASE that is on its way, not for
 * one that never comes. */
static void end_script(bed_t *b)
{
    uint32_t tokens[MAX_TOKENS];
    (void)b;
    switch (test.phase++) {
    case 0:
        fill_tokens(tokens, 17, 0);
        tell_prefill(tokens, 17, 0);
        tell_prefill(tokens, 3, 0);
        break;
    case 2:
        CU_ASSERT_EQUAL_FATAL(test.n_answered, 2);
        tell_prefill(tokens, 17, 0); /* nothing comes of it any more */
        bed_stop();
        break;
    case 3:
        CU_ASSERT_PTR_NULL(bed.worker.stepper);
        end(AKIN_MESSAGE_RELEASE, 0);
        break;
    }
}

static void test_end(void)
{
    bed_init(OWNER, N_SLOTS);
    const int64_t begin_ns = akin_clock_now_ns();
    run(end_script);
    CU_ASSERT_EQUAL(test.stats.pinned_blocks, 1);
    CU_ASSERT_EQUAL(test.leases.n_blocks, 1);
    CU_ASSERT(akin_clock_now_ns() - begin_ns < AKIN_NS_PER_S);
    bed_cleanup();
}

/* Requests that cannot be are answered, each with its status. */
static void bounds_script(bed_t *b)
{
    uint32_t tokens[MAX_POSITIONS] = {0};
    (void)b;
    switch (test.phase++) {
    case 0:
        tell_prefill(tokens, 25, 0); /* four blocks of three slots */
        tell_prefill(tokens, 24, 0);
        tell_prefill(tokens, 17, 0); /* there is no room beside the other */
        break;
    case 3:
        CU_ASSERT_EQUAL(test.prompts[0].status, AKIN_ERR_RANGE);
        CU_ASSERT(test.prompts[1].is_pinned);
        CU_ASSERT_EQUAL(test.n_answered, 2);
        end(AKIN_MESSAGE_RELEASE, 1);
        break;
    case 6:
        CU_ASSERT(test.prompts[2].is_pinned);
        CU_ASSERT_EQUAL(test.prompts[2].n_cached, 2);
        end(AKIN_MESSAGE_CANCEL, 2);
        bed_stop();
        break;
    }
}

static void test_bounds(void)
{
    bed_init(OWNER, 3);
    run(bounds_script);
    CU_ASSERT_EQUAL(test.n_answered, 3);
    CU_ASSERT_EQUAL(test.stats.pinned_blocks, 0);
    bed_cleanup();
}

static void unreadable_script(bed_t *b)
{
    (void)b;
    akin_worker_on_message(&bed.worker, AKIN_ROUTER_RANK, AKIN_MESSAGE_PREFILL,
                           "?", 1);
}

static void step_script(bed_t *b)
{
    const uint32_t tokens[] = {1, 2, 3};
    b->step_status = AKIN_ERR_NOMEM;
    if (test.phase++ == 0)
        tell_prefill(tokens, 3, 0);
}

/* How the process of a rank ends; 0 if the rank goes on. */
static int exit_code_of(void (*script)(bed_t *b))
{
    int status = 0;
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        (void)close(STDERR_FILENO);
        bed_init(OWNER, N_SLOTS);
        run(script);
        _exit(0);
    }
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What keeps a request waiting for nothing ends the rank. */
static void test_failures(void)
{
    CU_ASSERT_EQUAL(exit_code_of(unreadable_script), 1);
    CU_ASSERT_EQUAL(exit_code_of(step_script), 1);
}

/* The second block of the first prompt is damaged in memory. Three others were
 * computed from it: one is answered, one is with the engine, one is half done.
 * Then somebody who read the block says so. */
static void damage_script(bed_t *b)
{
    uint32_t tokens[MAX_TOKENS];
    const prompt_t *answered = &test.prompts[1], *again = &test.prompts[4];
    fill_tokens(tokens, MAX_TOKENS, 0);
    switch (test.phase++) {
    case 0:
        tell_prefill(tokens, 20, 0);
        break;
    case 2:
        CU_ASSERT_FATAL(test.prompts[0].is_answered);
        test.is_in_doubt = 1;
        flip(&test.prompts[0].blocks[1], 8 * 2 * HEAD_DIM * (BLOCK - 1));
        CU_ASSERT(!is_exact(&test.prompts[0], 1));
        tell_prefill(tokens, 19, 0);
        break;
    case 4:
        CU_ASSERT_FATAL(answered->is_answered);
        CU_ASSERT_EQUAL(answered->n_cached, 2);
        /* What is computed from damage is wrong under a good checksum: a reader
         * that has the second block already would take it. */
        CU_ASSERT_EQUAL(check_block(answered, 2), AKIN_KV_REFUSAL_NONE);
        CU_ASSERT(!is_exact(answered, 2));
        /* 16 cached tokens, and the chunk has room for 20 of the others. */
        tokens[17] = 63;
        tell_prefill(tokens, 35, 0);
        tokens[17] = 62;
        tell_prefill(tokens, 40, 0);
        b->is_held = 1;
        break;
    case 6:
        CU_ASSERT_EQUAL_FATAL(test.n_answered, 2);
        tokens[17] = 17;
        end(AKIN_MESSAGE_RELEASE, 0);
        tell_prefill(tokens, 20, 1);
        test.is_in_doubt = 0;
        CU_ASSERT_EQUAL(check_block(answered, 2), AKIN_KV_REFUSAL_GENERATION);
        b->is_held = 0;
        break;
    case 20:
        /* All is computed anew, and right; no block of the old ones is taken
         * where it is wrong. */
        CU_ASSERT_EQUAL_FATAL(test.n_answered, 5);
        for (uint32_t i = 2; i < 5; i++) {
            CU_ASSERT_EQUAL(test.prompts[i].status, AKIN_OK);
            for (uint32_t k = 0; k < test.prompts[i].n_blocks; k++)
                CU_ASSERT(is_exact(&test.prompts[i], k));
        }
        CU_ASSERT_EQUAL(again->n_cached, 0);
        tell_prefill(tokens, 20, 0);
        break;
    case 24:
        CU_ASSERT_EQUAL(test.n_answered, 6);
        CU_ASSERT(test.prompts[5].n_cached > 0);
        /* A refusal without damage here leaves the cache as it is. */
        tell_prefill(tokens, 20, 1);
        tell_prefill(tokens, 20, 0);
        break;
    case 30:
        CU_ASSERT_EQUAL(test.n_answered, 8);
        CU_ASSERT_EQUAL(test.prompts[6].n_cached, 0);
        CU_ASSERT(test.prompts[7].n_cached > 0);
        for (uint32_t i = 2; i < 8; i++)
            end(AKIN_MESSAGE_RELEASE, i);
        bed_stop();
        break;
    }
}

static void test_damage(void)
{
    bed_init(OWNER, N_SLOTS);
    run(damage_script);
    CU_ASSERT_EQUAL(test.stats.pinned_blocks, 0);
    bed_cleanup();
}

static const runner_test_t tests[] = {
    {"leases begin, are kept and end", test_leases},
    {"the last word waits for a RELEASE", test_end},
    {"requests that cannot be", test_bounds},
    {"unreadable messages and failed steps end the rank", test_failures},
    {"damage at the owner reaches nobody", test_damage},
};

RUNNER_MAIN("prefill", tests)
