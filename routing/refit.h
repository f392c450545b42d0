/* Refit: keeps the centroids of the workers near the traffic of the last
 * seconds (ALGORITHMS.md 4, `eldr`). */
#ifndef AKIN_ROUTING_REFIT_H
#define AKIN_ROUTING_REFIT_H

#include "base/status.h"
#include "routing/policy.h"

#include <stddef.h>
#include <stdint.h>

typedef struct akini_refit akini_refit_t;

/** What a fit works on; borrowed for the call. */
typedef struct akini_refit_input {
    const float *points; /* [n_points][dim], oldest first, not zero */
    uint32_t n_points;   /* >= n_workers */
    uint32_t n_workers;
    size_t dim;
    const float *current; /* [n_workers][dim] centroids to start from */
} akini_refit_input_t;

/**
 * A fit: n_workers new centroids, in any order.
 *
 * \param[out] fitted  [n_workers][dim]
 * \return AKIN_OK; anything else: the present centroids stay.
 */
typedef akin_status_t (*akini_refit_fit_fn_t)(void *arg,
                                              const akini_refit_input_t *input,
                                              float *fitted);

typedef struct akini_refit_params {
    uint32_t n_workers;
    size_t dim;
    const float *centroids; /* [n_workers][dim] first ones, borrowed */
    int64_t window_ns;      /* 0: 5 s */
    int64_t period_ns;      /* between two starts; 0: 2.5 s */
    uint32_t max_entries;   /* of the window; 0: 4096 or what 256 MiB hold, but
                               at least n_workers */
    int is_inline;          /* fit inside the call that starts it; no thread */
    akini_refit_fit_fn_t fit; /* NULL: balanced spherical k-means */
    void *fit_arg;
} akini_refit_params_t;

/**
 * \param[out] refit_p  owned by the caller; one thread. Unless is_inline it has
 *                      a thread of its own, which sleeps between fits.
 * \return AKIN_OK, AKIN_ERR_NOMEM (also: no thread could be started)
 */
akin_status_t akini_refit_create(const akini_refit_params_t *params,
                                 akini_refit_t **refit_p) AKIN_MUST_CHECK;

/** Free; NULL is allowed. A fit under way ends after its present round. */
void akini_refit_destroy(akini_refit_t *refit);

/**
 * The centroids to route by: those of a fit that has finished since the last
 * call, or the ones so far. Never waits.
 *
 * \param[in] now_ns  never goes back.
 * \return [n_workers][dim], good until the next call.
 */
const float *akini_refit_install(akini_refit_t *refit, int64_t now_ns);

/**
 * Note a request: forget entries older than the window (one exactly at its edge
 * stays), append the signature unless it is zero, and start a fit if none is
 * pending, there are as many entries as workers, the first signature ever is
 * the window's length ago and the last start a period. Never waits.
 *
 * \param[in] signature  [dim], finite.
 */
void akini_refit_note(akini_refit_t *refit, int64_t now_ns,
                      const float *signature);

/** Counts so far; a failed fit counts once the next installation saw it. */
akin_policy_refits_t akini_refit_counts(const akini_refit_t *refit);

#endif
