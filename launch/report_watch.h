/* Report watch: load over time and choices of experts, by worker, as files
 * have them. */
#ifndef AKIN_LAUNCH_REPORT_WATCH_H
#define AKIN_LAUNCH_REPORT_WATCH_H

#include "base/status.h"

#include <jansson.h>
#include <stddef.h>

/** What akin_load_watch_json() wrote of a run, or of a policy. Zero: nothing
 * is known. */
typedef struct akin_report_watch {
    double *loads;      /* [n_workers][n_bins] requests */
    double *choices;    /* [n_workers][n_experts] in the layer */
    double *difference; /* [n_layers] bits */
    double bin_s;
    double end_s; /* the last bin ends there */
    size_t n_workers;
    size_t n_all; /* workers of the run; further ones were not watched */
    size_t n_bins;
    size_t n_experts; /* 0: choices are not known */
    size_t n_layers;
    size_t layer;
} akin_report_watch_t;

/**
 * \param[in]  json   of a run or a policy; neither "load" nor "experts" is
 *                    needed.
 * \param[out] watch  akin_report_watch_cleanup() frees what it owns.
 * \param[out] why    [size] which key is wrong, and how.
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_report_watch_read(const json_t *json,
                                     akin_report_watch_t *watch, char *why,
                                     size_t size) AKIN_MUST_CHECK;

void akin_report_watch_cleanup(akin_report_watch_t *watch);

/** Requests of the fullest worker over the mean of the workers, mean over the
 * bins in which there are any; NaN: there are none. */
double akin_report_watch_spread(const akin_report_watch_t *watch);

/** Shares of the experts in the choices of each worker, over the even share: 1
 * is what an expert has if the worker uses all alike.
 * \param[out] shares  [n_workers][n_experts] */
void akin_report_watch_shares(const akin_report_watch_t *watch, double *shares);

/** An order in which workers that use the same experts stand together: after
 * the first worker always the one, of those that are left, whose shares have
 * the largest cosine with those of the one before.
 * \param[in]  shares  [n_workers][n_experts]
 * \param[out] rows    [n_workers] */
void akin_report_watch_rows(const double *shares, size_t n_workers,
                            size_t n_experts, size_t *rows);

/** The experts by the worker that has the largest share of them, the first of
 * several in the order of rows, and by that share.
 * \param[in]  rows   [n_workers]
 * \param[out] order  [n_experts]
 * \return AKIN_OK, AKIN_ERR_NOMEM */
akin_status_t akin_report_watch_order(const double *shares, const size_t *rows,
                                      size_t n_workers, size_t n_experts,
                                      size_t *order) AKIN_MUST_CHECK;

#endif
