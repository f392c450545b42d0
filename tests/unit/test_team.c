/* Tests of the team: every index once, and no thread past a barrier early. */
#include "base/team.h"

#include "runner.h"

#include <omp.h>
#include <stdatomic.h>

#define LOOPS 500u
#define ITEMS 37u

static void each_index_goes_to_one_thread(void)
{
    akin_team_t *team = akin_team_create();
    CU_ASSERT_PTR_NOT_NULL_FATAL(team);
    for (int n_threads = 1; n_threads <= 4; n_threads++) {
        static unsigned taken[LOOPS][ITEMS];
        for (uint32_t l = 0; l < LOOPS; l++)
            for (uint32_t i = 0; i < ITEMS; i++)
                taken[l][i] = 0;
#pragma omp parallel num_threads(n_threads)
        {
            akin_team_begin(team, (uint32_t)omp_get_num_threads());
            for (uint32_t l = 0; l < LOOPS; l++) {
                AKIN_TEAM_FOR(team, i, l % (ITEMS + 1))
                taken[l][i]++;
                akin_team_barrier(team);
            }
        }
        unsigned wrong = 0;
        for (uint32_t l = 0; l < LOOPS; l++)
            for (uint32_t i = 0; i < ITEMS; i++)
                wrong += taken[l][i] != (i < l % (ITEMS + 1));
        CU_ASSERT_EQUAL(wrong, 0);
    }
    akin_team_destroy(team);
}

/* A value that every thread adds to before a barrier is whole after it. */
static void a_barrier_holds_everybody(void)
{
    akin_team_t *team = akin_team_create();
    CU_ASSERT_PTR_NOT_NULL_FATAL(team);
    static atomic_uint arrived[LOOPS];
    unsigned early = 0, n_threads = 0;
#pragma omp parallel num_threads(3) reduction(+ : early)
    {
        akin_team_begin(team, (uint32_t)omp_get_num_threads());
#pragma omp single
        n_threads = (unsigned)omp_get_num_threads();
        for (uint32_t l = 0; l < LOOPS; l++) {
            atomic_fetch_add(&arrived[l], 1);
            akin_team_barrier(team);
            early += atomic_load(&arrived[l]) != n_threads;
        }
    }
    CU_ASSERT_EQUAL(early, 0);
    akin_team_destroy(team);
}

static const runner_test_t tests[] = {
    {"each index goes to one thread", each_index_goes_to_one_thread},
    {"a barrier holds everybody", a_barrier_holds_everybody},
};

RUNNER_MAIN("team", tests)
