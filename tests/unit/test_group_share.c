/* Group share: every rank gets what every other one gave; another length or a
 * rank that is gone ends the group. */
#include "ep/group.h"

#include "local_group.h"
#include "runner.h"

#include <string.h>

#define N_RANKS 3u
#define N_WORDS 5u
#define N_ROUNDS 4u

typedef struct rank_run {
    akin_ep_group_t *group;
    uint32_t rank;
    uint32_t n_words;
    akin_status_t status;
    unsigned n_wrong;
} rank_run_t;

static uint64_t word_of(uint32_t rank, uint32_t round, uint32_t i)
{
    return (uint64_t)rank << 32 | round << 16 | i;
}

static void *run_rank(void *arg)
{
    rank_run_t *r = arg;
    for (uint32_t round = 0; round < N_ROUNDS; round++) {
        uint64_t words[N_WORDS + 1];
        akin_ep_piece_t pieces[N_RANKS];
        for (uint32_t i = 0; i < N_WORDS + 1; i++)
            words[i] = word_of(r->rank, round, i);
        r->status = akin_ep_group_share(r->group, words,
                                        r->n_words * sizeof(*words), pieces);
        if (r->status != AKIN_OK)
            return NULL;
        for (uint32_t from = 0; from < N_RANKS; from++) {
            const uint64_t *got = pieces[from].data;
            r->n_wrong += pieces[from].bytes != r->n_words * sizeof(*words);
            for (uint32_t i = 0; i < r->n_words; i++)
                r->n_wrong += got[i] != word_of(from, round, i);
        }
    }
    return NULL;
}

static void make(local_group_t *g, akin_placement_t *placement)
{
    akin_error_t err = {{0}};
    const akin_placement_params_t params = {.kind = AKIN_PLACEMENT_LINEAR,
                                            .n_layers = 2,
                                            .n_experts = 6,
                                            .n_ranks = N_RANKS};
    local_group_need(akin_placement_make(&params, placement, &err), &err);
    local_group_init(g, placement, LOCAL_GROUP_TIMEOUT_NS);
}

static void all_get_all(void)
{
    local_group_t g;
    akin_placement_t placement;
    rank_run_t runs[N_RANKS];
    make(&g, &placement);
    for (uint32_t r = 0; r < N_RANKS; r++)
        runs[r] =
            (rank_run_t){.group = g.groups[r], .rank = r, .n_words = N_WORDS};
    local_group_each(N_RANKS, run_rank, runs, sizeof(*runs));
    for (uint32_t r = 0; r < N_RANKS; r++) {
        CU_ASSERT_EQUAL(runs[r].status, AKIN_OK);
        CU_ASSERT_EQUAL(runs[r].n_wrong, 0);
        CU_ASSERT_EQUAL(akin_ep_group_rank(g.groups[r]), r);
    }
    local_group_cleanup(&g);
    akin_placement_cleanup(&placement);
}

static void other_length(void)
{
    local_group_t g;
    akin_placement_t placement;
    rank_run_t runs[N_RANKS];
    make(&g, &placement);
    for (uint32_t r = 0; r < N_RANKS; r++)
        runs[r] = (rank_run_t){.group = g.groups[r],
                               .rank = r,
                               .n_words = r == 1 ? N_WORDS + 1 : N_WORDS};
    local_group_each(N_RANKS, run_rank, runs, sizeof(*runs));
    for (uint32_t r = 0; r < N_RANKS; r++)
        CU_ASSERT_EQUAL(runs[r].status, AKIN_ERR_FORMAT);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(akin_ep_group_error(g.groups[0]),
               "rank 1 of the group shares 48 bytes, this rank 40"));
    local_group_cleanup(&g);
    akin_placement_cleanup(&placement);
}

static void lost_rank(void)
{
    local_group_t g;
    akin_placement_t placement;
    uint64_t word = 7;
    akin_ep_piece_t pieces[N_RANKS];
    make(&g, &placement);
    for (uint32_t r = 1; r < N_RANKS; r++) {
        akin_ep_exchange_destroy(g.exchanges[r]);
        g.exchanges[r] = NULL;
    }
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(
            akin_ep_group_share(g.groups[0], &word, sizeof(word), pieces),
            AKIN_ERR_PEER);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(akin_ep_group_error(g.groups[0]), "in the share of"));
    local_group_cleanup(&g);
    akin_placement_cleanup(&placement);
}

static const runner_test_t tests[] = {
    {"all get what all gave", all_get_all},
    {"another length", other_length},
    {"ranks that have left", lost_rank},
};

RUNNER_MAIN("group_share", tests)
