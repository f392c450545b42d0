/* Plan JSON: the plan as text, for programs, files and the ranks of a job. */
#ifndef AKIN_LAUNCH_PLAN_JSON_H
#define AKIN_LAUNCH_PLAN_JSON_H

#include "launch/plan.h"

#include <stdio.h>

struct json_t;

/**
 * {"nodes": [host or null...], "ranks": [{"rank", "role", "worker", "node",
 * "gpu", "nic", "cores", "threads", "numa"}...]}; "gpu" and "nic" are null
 * where there is none, "cores" is a list like "0-3,8".
 *
 * \return owned by the caller; NULL: out of memory.
 */
struct json_t *akin_plan_json(const akin_plan_t *plan);

/**
 * The same as text with one rank in a line.
 *
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akin_plan_write(const akin_plan_t *plan,
                              FILE *stream) AKIN_MUST_CHECK;

/**
 * Read such a text, or the file that has it.
 *
 * \param[in]  text    beginning with '{', or the path of a file.
 * \param[in]  origin  for messages: "AKIN_PLAN", "--plan"
 * \param[out] plan_p  for akin_plan_cleanup().
 * \param[out] err     names the origin, the line or the field.
 * \return AKIN_OK
 * \return AKIN_ERR_CONFIG: not a plan; AKIN_ERR_NOT_FOUND, AKIN_ERR_IO: no such
 *         file.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_plan_read(const char *text, const char *origin,
                             akin_plan_t *plan_p,
                             akin_error_t *err) AKIN_MUST_CHECK;

#endif
