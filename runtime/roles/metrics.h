/* Metrics: text in the exposition format of Prometheus, version 0.0.4. */
#ifndef AKIN_ROLES_METRICS_H
#define AKIN_ROLES_METRICS_H

#include "base/status.h"
#include "roles/histogram.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum akin_metrics_type {
    AKIN_METRICS_COUNTER,
    AKIN_METRICS_GAUGE,
    AKIN_METRICS_HISTOGRAM,
    AKIN_METRICS_SUMMARY
} akin_metrics_type_t;

/** A text under way. */
typedef struct akin_metrics akin_metrics_t;

/**
 * \param[out] metrics_p  owned by the caller, who ends with
 *                        akin_metrics_finish().
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_metrics_create(akin_metrics_t **metrics_p) AKIN_MUST_CHECK;

/**
 * Begin a family; its samples follow.
 *
 * \param[in] name  [a-zA-Z_:][a-zA-Z0-9_:]*, each once per text; borrowed until
 *                  the next family begins.
 * \param[in] help  one sentence; escaped.
 */
void akin_metrics_begin(akin_metrics_t *metrics, const char *name,
                        akin_metrics_type_t type, const char *help);

/**
 * A sample of the family.
 *
 * \param[in] suffix  behind the family's name: "_sum", "_count"; NULL: none.
 * \param[in] label   its name, or NULL: the sample has none.
 * \param[in] text    value of the label, any bytes; escaped.
 */
void akin_metrics_add(akin_metrics_t *metrics, const char *suffix,
                      const char *label, const char *text, double value);

/** Likewise, with two labels. */
void akin_metrics_add_two(akin_metrics_t *metrics, const char *const labels[2],
                          const char *const texts[2], double value);

/**
 * The samples of a histogram of nanoseconds, in seconds, with the buckets that
 * vLLM has for the time to the first token (0.001 to 2560 s).
 */
void akin_metrics_add_histogram(akin_metrics_t *metrics,
                                const akin_histogram_t *histogram);

/**
 * \param[out] text_p  NUL-terminated, malloc'ed, owned by the caller.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM, and then text_p is NULL.
 */
akin_status_t akin_metrics_finish(akin_metrics_t *metrics,
                                  char **text_p) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
