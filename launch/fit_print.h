/* fit: how its outcome is told. */
#ifndef AKIN_LAUNCH_FIT_PRINT_H
#define AKIN_LAUNCH_FIT_PRINT_H

#include "routing/fit_auto.h"
#include "routing/route_statistics.h"

struct json_t;

/** A fit that was made, and what it was made of. */
typedef struct akin_fit_outcome {
    const char *trace_path;
    const char *fit_path;
    const akin_replay_set_t *set;
    const akin_fit_t *fit;
    const akin_fit_auto_report_t *report;
    const akin_route_correlation_t *correlation;
    int stands_in; /* rows of decode play the prompt */
} akin_fit_outcome_t;

void akin_fit_print(const akin_fit_outcome_t *outcome);
struct json_t *akin_fit_json(const akin_fit_outcome_t *outcome);

/** What is in a fit file; the loads of ranks are those of steps with `batch`
 * requests. */
void akin_fit_show_print(const char *path, const akin_fit_t *fit, double batch);
struct json_t *akin_fit_show_json(const akin_fit_t *fit, double batch);

#endif
