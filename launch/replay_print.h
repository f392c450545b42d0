/* replay: what it prints. */
#ifndef AKIN_LAUNCH_REPLAY_PRINT_H
#define AKIN_LAUNCH_REPLAY_PRINT_H

#include "launch/replay.h"

struct json_t;

/** What was replayed, and a table of the policies. Gives an exit code. */
int akin_replay_print_table(const akin_replay_job_t *job);

/** All of it, seed by seed too; NULL: out of memory. */
struct json_t *akin_replay_json(const akin_replay_job_t *job);

#endif
