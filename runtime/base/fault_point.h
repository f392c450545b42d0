/* Fault point: a named place where a test build kills, stops or slows the
 * process on request. */
#ifndef AKIN_BASE_FAULT_POINT_H
#define AKIN_BASE_FAULT_POINT_H

#include "base/error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * AKIN_FAULT is a list of items with commas between them:
 *
 *     RANK[.LIFE]:POINT#N=ACTION
 *
 * When rank RANK, in its life LIFE (0 unless said), comes to the point POINT
 * for the N-th time, from 1, it does ACTION:
 *     kill        SIGKILL to itself
 *     stop        SIGSTOP to itself
 *     sleep-MS    the thread sleeps for so many milliseconds
 *     exit-CODE   _exit(CODE)
 * POINT is "before-send.TOKENS", "after-receive.DECODE", "mid-step" and so on:
 * tests/fault/points lists them all.
 *
 * AKIN_FAULT_LOG names a file to which every process appends a line
 * "RANK.LIFE ROLE POINT" when it comes to a point for the first time, and
 * "RANK.LIFE ROLE POINT ACTION" before it does an action.
 */

#ifdef AKIN_FAULTS

/**
 * Read AKIN_FAULT and AKIN_FAULT_LOG for this process. Before it no point does
 * anything.
 *
 * \param[in]  role  for the log; static.
 * \param[out] err   names the bad item.
 * \return AKIN_OK, AKIN_ERR_CONFIG, AKIN_ERR_NOMEM
 */
akin_status_t akin_fault_points_init(uint32_t rank, uint32_t life,
                                     const char *role,
                                     akin_error_t *err) AKIN_MUST_CHECK;

/** The role is known, or another one, from now on; static. */
void akin_fault_points_set_role(const char *role);

/** This process comes to a point, any thread. The point's name is `place`, or
 * "place.detail" with a detail. */
void akin_fault_point(const char *place, const char *detail);

#define AKIN_FAULT_POINT(place, detail) akin_fault_point((place), (detail))

#else

#define AKIN_FAULT_POINT(place, detail) ((void)0)

#endif

#ifdef __cplusplus
}
#endif

#endif
