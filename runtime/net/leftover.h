/* Leftover: shared memory that a killed process had no time to mark for
 * removal. */
#ifndef AKIN_NET_LEFTOVER_H
#define AKIN_NET_LEFTOVER_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Remove the System V segments that a process made, that nobody is attached to
 * and that have no key by which anybody could find them. UCX marks its own for
 * removal as soon as it is attached to them; only a process that is killed
 * within those microseconds leaves one, for ever.
 *
 * \param[in] pid    of a process that is gone.
 * \param[in] since  when it began, or before: a segment that is older is that
 *                   of another process of that number.
 * \return how many were removed.
 */
uint32_t akini_leftover_remove(pid_t pid, time_t since);

#ifdef __cplusplus
}
#endif

#endif
