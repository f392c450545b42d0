/* Run figures: what runs are compared by, read from their summary files. */
#ifndef AKIN_LAUNCH_RUN_FIGURES_H
#define AKIN_LAUNCH_RUN_FIGURES_H

#include "base/error.h"

#include <jansson.h>
#include <stddef.h>

/** Larger files are no summaries: one of 4,096 workers has 6 MiB. */
#define AKIN_RUN_SUMMARY_MAX_BYTES (64u << 20)

/** One row of a comparison. */
typedef struct akin_run_figure {
    const char *key;   /* in the summary; NULL: akin_run_equal_batch() */
    const char *name;  /* in the JSON of `akin compare` */
    const char *title; /* in its table */
    int digits;        /* behind the point */
    int is_change;     /* a change in percent makes sense */
} akin_run_figure_t;

extern const akin_run_figure_t akin_run_figures[];
extern const size_t akin_run_n_figures;

/**
 * Read a summary that `akin run --summary` wrote, and check that it has all
 * figures.
 *
 * \param[in]  path
 * \param[out] run_p  owned by the caller; json_decref().
 * \param[out] err    names the path and what is wrong.
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT: not a summary.
 * \return AKIN_ERR_NOT_FOUND, AKIN_ERR_IO, ...: the file cannot be read.
 */
akin_status_t akin_run_read(const char *path, json_t **run_p,
                            akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Read a file of JSON that is no longer than a summary can be.
 *
 * \param[out] json_p  owned by the caller; json_decref().
 * \param[out] err     names the path, and the line of what is no JSON.
 * \return as akin_run_read().
 */
akin_status_t akin_run_load(const char *path, json_t **json_p,
                            akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Check that JSON is a summary of a run, with all figures.
 *
 * \param[in] path  for the message.
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT: it is not; err says why.
 */
akin_status_t akin_run_check(const json_t *run, const char *path,
                             akin_error_t *err) AKIN_MUST_CHECK;

/**
 * A figure of a run; for the one with no key, NaN.
 *
 * \return the figure; NaN: the run has none (null in the file).
 */
double akin_run_figure(const json_t *run, const akin_run_figure_t *figure);

/**
 * Distinct experts per step and layer when all runs made the same steps: the
 * mean over the batch sizes that each of them had, weighted with the steps of
 * the run that had fewest of that size. Two runs of one batch differ in their
 * batch sizes, and a larger batch touches more experts, whoever composed it.
 *
 * \param[in]  runs    [n]
 * \param[in]  n       at least 1.
 * \param[out] values  [n], NaN where no size is common to all.
 * \return the steps that were compared, of each run.
 */
double akin_run_equal_batch(json_t *const *runs, size_t n, double *values);

#endif
