/* Job end: the router's supervisor tells the command that started mpirun that
 * the job is over. An mpirun whose hosts cannot be reached would not: it waits
 * for them. */
#ifndef AKIN_LAUNCH_JOB_END_H
#define AKIN_LAUNCH_JOB_END_H

#include "base/error.h"

/** Where the launcher hears of it; -1: it does not. */
typedef struct akin_job_end {
    int fd;
} akin_job_end_t;

/**
 * Listen from now on. Children find the way in the environment, on this host
 * only; a router elsewhere tells nobody.
 *
 * \param[out] end_p  for akin_job_end_close(), also after a failure.
 * \return AKIN_OK, AKIN_ERR_IO
 */
akin_status_t akin_job_end_listen(akin_job_end_t *end_p) AKIN_MUST_CHECK;

/**
 * Whether it was told by a process of the same user.
 *
 * \param[out] code_p  exit code of the job.
 */
int akin_job_end_is_told(const akin_job_end_t *end, int *code_p);

void akin_job_end_close(akin_job_end_t *end);

/** Tell the launcher, if there is one that listens. */
void akin_job_end_tell(int code);

#endif
