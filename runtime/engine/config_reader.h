/* Config reader: typed values of a JSON object by key, with messages that name
 * the file, the key, the value and what is allowed. */
#ifndef AKIN_ENGINE_CONFIG_READER_H
#define AKIN_ENGINE_CONFIG_READER_H

#include "base/error.h"

#include <jansson.h>
#include <stdint.h>

/** The file being read; everything is borrowed. */
typedef struct akini_config_reader {
    const json_t *root;
    const char *name; /* stands for the path in messages */
    akin_error_t *err;
} akini_config_reader_t;

/** A key's value or NULL; JSON null counts as absent. */
const json_t *akini_config_get(const json_t *object, const char *key);

/**
 * The value of a key that has two spellings.
 *
 * \param[in]  other    second spelling; NULL: there is none.
 * \param[out] value_p  NULL if the key is absent.
 * \param[out] key_p    the spelling that was found.
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT: both are there and differ.
 */
akin_status_t akini_config_get_either(const akini_config_reader_t *r,
                                      const char *key, const char *other,
                                      const json_t **value_p,
                                      const char **key_p) AKIN_MUST_CHECK;

/*
 * Failures: a key is absent (other may be NULL), a value is not what it must
 * be, a value asks for what the engine has not got.
 */
akin_status_t akini_config_missing(const akini_config_reader_t *r,
                                   const char *key,
                                   const char *other) AKIN_MUST_CHECK;
akin_status_t akini_config_wrong(const akini_config_reader_t *r,
                                 const char *key, const json_t *value,
                                 const char *expected) AKIN_MUST_CHECK;
akin_status_t akini_config_refuse(const akini_config_reader_t *r,
                                  const char *key, const json_t *value,
                                  const char *supported) AKIN_MUST_CHECK;

/*
 * Conversions: a whole number from 1 to max, a finite number from min to max, a
 * boolean. AKIN_ERR_FORMAT if the value is anything else.
 */
akin_status_t akini_config_to_size(const akini_config_reader_t *r,
                                   const char *key, const json_t *value,
                                   uint32_t max,
                                   uint32_t *size_p) AKIN_MUST_CHECK;
akin_status_t akini_config_to_real(const akini_config_reader_t *r,
                                   const char *key, const json_t *value,
                                   double min, double max,
                                   double *real_p) AKIN_MUST_CHECK;
akin_status_t akini_config_to_bool(const akini_config_reader_t *r,
                                   const char *key, const json_t *value,
                                   int *bool_p) AKIN_MUST_CHECK;

#endif
