/* Fit JSON: typed values of a fit file by key, with messages that name the
 * file, the key and the index. */
#ifndef AKIN_ROUTING_FIT_JSON_H
#define AKIN_ROUTING_FIT_JSON_H

#include "base/error.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/** The object being read; everything is borrowed. */
typedef struct akini_fit_json {
    const json_t *root;
    const char *name; /* stands for the path in messages */
    akin_error_t *err;
} akini_fit_json_t;

#define AKINI_FIT_JSON_DEPTH 3

/** A list of numbers, or of such lists. */
typedef struct akini_fit_list {
    const char *key;
    size_t sizes[AKINI_FIT_JSON_DEPTH]; /* outermost first */
    size_t n_sizes;
    float min;
    float max;
    const char *expected; /* of a number, for the message */
} akini_fit_list_t;

/**
 * Parse text that must be one JSON object, no key twice.
 *
 * \param[in]  name    stands for the path in messages.
 * \param[out] root_p  owned by the caller, json_decref() it.
 * \return AKIN_OK, AKIN_ERR_FORMAT, AKIN_ERR_NOMEM
 */
akin_status_t akini_fit_json_parse(const char *text, size_t bytes,
                                   const char *name, json_t **root_p,
                                   akin_error_t *err) AKIN_MUST_CHECK;

/** A key's value or NULL; JSON null counts as absent. */
const json_t *akini_fit_json_get(const akini_fit_json_t *json, const char *key);

/** Failure: the key is needed and absent. */
akin_status_t akini_fit_json_missing(const akini_fit_json_t *json,
                                     const char *key) AKIN_MUST_CHECK;

/**
 * Failure: a value is not what it must be.
 *
 * \param[in] path      key, with indexes where it has them.
 * \param[in] expected  completes "must be ...".
 */
akin_status_t akini_fit_json_wrong(const akini_fit_json_t *json,
                                   const char *path, const json_t *value,
                                   const char *expected) AKIN_MUST_CHECK;

/*
 * Values of a key: a whole number from min to max, a finite number from min to
 * max, a text. An absent key leaves the output as it is.
 */
akin_status_t akini_fit_json_whole(const akini_fit_json_t *json,
                                   const char *key, uint64_t min, uint64_t max,
                                   uint64_t *value_p) AKIN_MUST_CHECK;
akin_status_t akini_fit_json_real(const akini_fit_json_t *json, const char *key,
                                  double min, double max,
                                  double *value_p) AKIN_MUST_CHECK;
akin_status_t akini_fit_json_text(const akini_fit_json_t *json, const char *key,
                                  const char **value_p) AKIN_MUST_CHECK;

/**
 * Numbers of a key that must be there. The shape is checked before memory is
 * taken.
 *
 * \param[out] numbers_p  malloc'ed, owned by the caller.
 */
akin_status_t akini_fit_json_numbers(const akini_fit_json_t *json,
                                     const akini_fit_list_t *list,
                                     float **numbers_p) AKIN_MUST_CHECK;

#endif
