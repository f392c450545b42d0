/* Request reader: typed access to the fields of a body, with the errors that
 * name them. A field that is null counts as absent. */
#ifndef AKIN_ROLES_REQUEST_READER_H
#define AKIN_ROLES_REQUEST_READER_H

#include "roles/request_fields.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Everything that the readers of single fields need; all borrowed. */
typedef struct akini_reader {
    const akin_request_limits_t *limits;
    json_t *body;
    akin_request_t *request;
    akin_request_error_t *error;
} akini_reader_t;

/** A range of numbers; a bound with its flag set lies outside. */
typedef struct akini_range {
    double min;
    double max;
    int min_out;
    int max_out;
    const char *what; /* in words: "a number from 0 to 2" */
} akini_range_t;

/** Fill the error for lack of memory; returns AKIN_ERR_NOMEM. */
akin_status_t akini_reader_nomem(akin_request_error_t *error);

/** A field, borrowed; NULL if it is absent or null. */
json_t *akini_reader_get(const akini_reader_t *r, const char *name);

/** Fill the error with "NAME must be WHAT, not VALUE"; AKIN_ERR_INVALID. */
akin_status_t akini_reader_refuse(const akini_reader_t *r, const char *name,
                                  const char *what, const json_t *value);

/**
 * Read a field of one type; an absent one leaves the value as it is.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: another type or out of range; error is filled.
 */
akin_status_t akini_reader_bool(const akini_reader_t *r, const char *name,
                                int *value_p) AKIN_MUST_CHECK;

/** As akini_reader_bool(), for an integer in [min, max]. */
akin_status_t akini_reader_integer(const akini_reader_t *r, const char *name,
                                   int64_t min, int64_t max, const char *what,
                                   int64_t *value_p) AKIN_MUST_CHECK;

/**
 * As akini_reader_bool(), for a number. One above 0 stays above 0 as a float,
 * since 0 switches a parameter off.
 */
akin_status_t akini_reader_number(const akini_reader_t *r, const char *name,
                                  const akini_range_t *range,
                                  float *value_p) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
