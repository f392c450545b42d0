/* Decode: a rank in its own loop. Requests whose blocks arrive, are damaged,
 * recycled, late or of an owner that is lost; those that run and are canceled.
 * Every token is the one that the prompt leads to, and no slot is lost. */
#include "decode_bed.h"

#include <sys/wait.h>
#include <unistd.h>

#define N_TICKS 4000u

static int is_endless; /* what was given up does not end */

static void kinds_script(bed_t *b)
{
    const request_t *r = test.requests;
    switch (test.phase++) {
    case 0:
        tell_decode(0, 2); /* good */
        complete_all();
        CU_ASSERT_EQUAL(r[0].status, AKIN_OK);
        CU_ASSERT(r[0].is_released);
        flip(1, 3, 8 * (uint32_t)bed.layout.kv_offset + 5);
        tell_decode(1, 2); /* of the blocks that are not here one is damaged */
        complete_all();
        CU_ASSERT_EQUAL(r[1].refusal, AKIN_KV_REFUSAL_CHECKSUM);
        CU_ASSERT(r[1].is_released);
        tell_decode(4, 2); /* recycled between descriptor and read */
        disown(4);
        own(4);
        complete_all();
        CU_ASSERT_EQUAL(r[2].refusal, AKIN_KV_REFUSAL_GENERATION);
        tell_decode(5, 2); /* late */
        bed_pass(2 * AKIN_NS_PER_S);
        break;
    case 1:
        CU_ASSERT_EQUAL(r[3].status, AKIN_ERR_TIMEOUT);
        CU_ASSERT(r[3].is_released);
        tell_decode(5, 2);
        bed_lose(OWNER);
        CU_ASSERT_EQUAL(r[4].status, AKIN_ERR_PEER);
        CU_ASSERT_EQUAL(r[4].is_released, 0);
        tell_decode(6, 2); /* before it is there again */
        CU_ASSERT_EQUAL(r[5].status, AKIN_ERR_PEER);
        {
            /* The descriptors of the first life, after the restart. */
            owned_t old = test.prompts[7];
            end_owner();
            begin_owner();
            CU_ASSERT_EQUAL(test.prompts[7].blocks[0].slot, old.blocks[0].slot);
            owned_t now = test.prompts[7];
            test.prompts[7] = old;
            tell_decode(7, 2);
            test.prompts[7] = now;
        }
        complete_all();
        CU_ASSERT_EQUAL(r[6].refusal, AKIN_KV_REFUSAL_GENERATION);
        tell_decode(7, 2);
        complete_all();
        CU_ASSERT_EQUAL(r[7].status, AKIN_OK);
        tell_decode(5, 2); /* canceled while it is read */
        tell_cancel(8);
        CU_ASSERT_EQUAL(r[8].is_transferred, 0);
        break;
    case 6:
        CU_ASSERT(r[0].is_finished && r[7].is_finished);
        CU_ASSERT_EQUAL(test.n_tokens, 2);
        /* What was given up is still being read. */
        CU_ASSERT(b->net.n_reads > 0);
        CU_ASSERT(akin_kv_cache_available(b->worker.cache) < N_SLOTS);
        bed_stop();
        break;
    case 7:
        if (!is_endless)
            complete_all();
        break;
    }
}

static void test_kinds(void)
{
    is_endless = 0;
    run(1, kinds_script);
    CU_ASSERT_EQUAL(test.stats.pinned_blocks, 0);
    bed_cleanup();
}

/* A rank does not wait for ever for a read that it has given up, and says that
 * it holds slots. */
static void test_endless(void)
{
    is_endless = 1;
    run(1, kinds_script);
    CU_ASSERT(test.stats.pinned_blocks > 0);
    CU_ASSERT(akin_clock_now_ns() < 5 * AKIN_NS_PER_S);
    while (bed.net.n_reads > 0)
        bed_complete(0, AKIN_ERR_CANCELED);
    bed_free();
}

static void unreadable_script(bed_t *b)
{
    akin_worker_on_message(&b->worker, AKIN_ROUTER_RANK, AKIN_MESSAGE_DECODE,
                           "?", 1);
}

static void step_script(bed_t *b)
{
    b->step_status = AKIN_ERR_NOMEM;
    if (test.phase++ == 0)
        tell_decode(0, 3);
    complete_all();
}

static int exit_code_of(void (*script)(bed_t *b))
{
    int status = 0;
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        (void)close(STDERR_FILENO);
        run(1, script);
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

static void act(bed_t *b)
{
    const uint32_t what = bed_draw(100), k = bed_draw(N_PROMPTS);
    if (what < 25 && test.n < N_REQUESTS) {
        tell_decode(k, 2 + bed_draw(MAX_NEW - 1));
    } else if (what < 32 && test.n > 0) {
        tell_cancel(bed_draw(test.n));
    } else if (what < 36) {
        flip(k, bed_draw(test.prompts[k].n_blocks), bed_draw(UINT32_MAX));
    } else if (what < 44) {
        disown(k);
        own(k);
    } else if (what < 46) {
        bed_pass(AKIN_NS_PER_S);
    } else if (what < 47) {
        bed_lose(OWNER);
        end_owner();
        begin_owner();
    } else if (what < 52) {
        b->is_held = !b->is_held;
    } else if (b->net.n_reads > 0) {
        bed_complete(bed_draw(b->net.n_reads), AKIN_OK);
    }
}

static void random_script(bed_t *b)
{
    const uint32_t tick = test.phase++;
    if (tick % 16 == 0)
        bed_audit();
    if (tick < N_TICKS) {
        act(b);
        return;
    }
    b->is_held = 0;
    if (tick == N_TICKS + 3)
        bed_stop(); /* whatever runs */
    if (tick > N_TICKS + 3)
        complete_all();
}

static void test_random(void)
{
    uint32_t n_with[256] = {0}, n_finished = 0;
    for (uint64_t key = 1; key <= 20; key++) {
        run(key, random_script);
        CU_ASSERT_EQUAL(test.stats.pinned_blocks, 0);
        for (int i = 0; i < 256; i++)
            n_with[i] += test.n_with[i];
        n_finished += test.n_finished;
        bed_cleanup();
    }
    CU_ASSERT(n_finished > 1000);
    CU_ASSERT(n_with[-AKIN_OK] > 1000);
    CU_ASSERT(n_with[-AKIN_ERR_REFUSED] > 100);
    CU_ASSERT(n_with[-AKIN_ERR_TIMEOUT] > 100);
    CU_ASSERT(n_with[-AKIN_ERR_PEER] > 100);
    CU_ASSERT(n_with[-AKIN_ERR_FULL] > 100);
    for (int i = 0; i < 256; i++)
        if (i != -AKIN_OK && i != -AKIN_ERR_REFUSED && i != -AKIN_ERR_TIMEOUT &&
            i != -AKIN_ERR_PEER && i != -AKIN_ERR_FULL)
            CU_ASSERT_EQUAL(n_with[i], 0);
}

static const runner_test_t tests[] = {
    {"every way that a transfer ends", test_kinds},
    {"a read that does not end", test_endless},
    {"unreadable messages and failed steps end the rank", test_failures},
    {"no slot is lost, no token wrong", test_random},
};

RUNNER_MAIN("decode", tests)
