/* Fit placement in JSON: the key `placement` of a fit file. */
#ifndef AKIN_ROUTING_FIT_PLACEMENT_JSON_H
#define AKIN_ROUTING_FIT_PLACEMENT_JSON_H

#include "routing/fit.h"
#include "routing/fit_json.h"

/** Read the key `placement`, if it is there: one map per cluster, all of the
 * same ranks and replicas. */
akin_status_t akini_fit_placement_read(const akini_fit_json_t *json,
                                       akin_fit_t *fit) AKIN_MUST_CHECK;

/** The maps as a list; NULL: out of memory. */
struct json_t *akini_fit_placement_json(const akin_fit_t *fit);

#endif
