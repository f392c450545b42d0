/* Request fields: every name that a body may have, and the values of those
 * that mean "no" to what is not done here. */
#ifndef AKIN_ROLES_REQUEST_FIELDS_H
#define AKIN_ROLES_REQUEST_FIELDS_H

#include "roles/request.h"

#include <jansson.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Room for a value in a message. */
#define AKINI_SHOWN_BYTES 64

/**
 * Text of a JSON value for a message, cut short with "..." at a character.
 *
 * \param[out] shown  at least AKINI_SHOWN_BYTES bytes.
 * \return shown
 */
const char *akini_request_show(const json_t *value, char *shown);

/**
 * Look through all fields of a body: refuse unknown ones, and those whose
 * value asks for what is not done here. The values of the others are not
 * looked at.
 *
 * \param[in]  kind
 * \param[in]  body   an object; borrowed.
 * \param[out] error  names the field and, if it is unknown, the nearest one.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID
 */
akin_status_t
akini_request_fields_check(akin_request_kind_t kind, json_t *body,
                           akin_request_error_t *error) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
