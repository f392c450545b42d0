/* Team: loops and barriers among the threads of a parallel region. A phase of
 * a decode step may last microseconds; the barrier of OpenMP's runtime, which
 * makes a system call, would take longer than the work. */
#ifndef AKIN_BASE_TEAM_H
#define AKIN_BASE_TEAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_team akin_team_t;

/**
 * \return a team, owned by the caller; NULL: out of memory.
 */
akin_team_t *akin_team_create(void);

/** Free; NULL is allowed. No thread may be inside a call. */
void akin_team_destroy(akin_team_t *team);

/**
 * Say how many threads there are. Every thread of a region calls it first,
 * with the same number.
 *
 * \param[in] n_threads  threads that will call akin_team_barrier().
 */
void akin_team_begin(akin_team_t *team, uint32_t n_threads);

/** Next index of the loop at hand: 0, 1, 2, ..., each to one thread. */
uint32_t akin_team_take(akin_team_t *team);

/**
 * Wait for all threads; what they wrote is seen by all. Ends the loop: the
 * next one begins at 0. Spins for some microseconds, then yields the core.
 */
void akin_team_barrier(akin_team_t *team);

/** A loop that the threads share; end it with akin_team_barrier(). */
#define AKIN_TEAM_FOR(team, i, n)                                              \
    for (uint32_t i = akin_team_take(team); i < (n); i = akin_team_take(team))

#ifdef __cplusplus
}
#endif

#endif
