/* Team: one generation counter; the last thread to arrive opens the next. */
#include "base/team.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 64
#define SPINS 2000

/* Each counter in a line of its own: waiting threads read only the last. */
struct akin_team {
    _Alignas(LINE_BYTES) atomic_uint next;
    _Alignas(LINE_BYTES) atomic_uint arrived;
    _Alignas(LINE_BYTES) atomic_uint generation;
    atomic_uint n_threads;
};

akin_team_t *akin_team_create(void)
{
    akin_team_t *team = aligned_alloc(LINE_BYTES, sizeof(*team));
    if (team != NULL) {
        memset(team, 0, sizeof(*team));
        akin_team_begin(team, 1);
    }
    return team;
}

void akin_team_destroy(akin_team_t *team)
{
    free(team);
}

void akin_team_begin(akin_team_t *team, uint32_t n_threads)
{
    atomic_store_explicit(&team->n_threads, n_threads, memory_order_relaxed);
}

uint32_t akin_team_take(akin_team_t *team)
{
    return atomic_fetch_add_explicit(&team->next, 1, memory_order_relaxed);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

void akin_team_barrier(akin_team_t *team)
{
    unsigned generation =
        atomic_load_explicit(&team->generation, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&team->arrived, 1, memory_order_acq_rel) +
            1 ==
        atomic_load_explicit(&team->n_threads, memory_order_relaxed)) {
        atomic_store_explicit(&team->next, 0, memory_order_relaxed);
        atomic_store_explicit(&team->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&team->generation, generation + 1,
                              memory_order_release);
        return;
    }
    for (int i = 0; atomic_load_explicit(&team->generation,
                                         memory_order_acquire) == generation;
         i++) {
        if (i < SPINS)
            relax();
        else
            (void)sched_yield();
    }
}
