/* Node trial: hwloc reads XML in a process of its own first. */
#ifndef AKIN_LAUNCH_NODE_TRIAL_H
#define AKIN_LAUNCH_NODE_TRIAL_H

#include "base/error.h"

/**
 * Call a function in a child process whose output goes nowhere, because
 * hwloc trusts the numbers in its XML and may crash or run on where they do not
 * fit together.
 *
 * \param[in] is_fine  gives whether the XML can be read.
 * \return AKIN_OK: it returned non-zero there, in time.
 * \return AKIN_ERR_FORMAT: it did not.
 * \return AKIN_ERR_IO: there is no child.
 */
akin_status_t akini_node_trial(int (*is_fine)(void *arg),
                               void *arg) AKIN_MUST_CHECK;

#endif
