/* Safetensors header: parsing and checking the header of one file image. */
#ifndef AKIN_ENGINE_SAFETENSORS_HEADER_H
#define AKIN_ENGINE_SAFETENSORS_HEADER_H

#include "engine/safetensors.h"

/** The tensors of one file, in the order of their data. */
typedef struct akini_tensor_header {
    akin_tensor_t *tensors; /* [n_tensors], name and data borrowed */
    size_t n_tensors;
    uint64_t bytes; /* of all tensors */
    char *names;    /* storage of the names */
} akini_tensor_header_t;

/**
 * Parse and check an image. Only the header is read; the data that the
 * tensors point to is not.
 *
 * \param[in]  data, bytes  the whole file; tensors point into it.
 * \param[in]  file         path for messages; tensors borrow it.
 * \param[out] header_p     owned by the caller, akini_tensor_header_cleanup().
 * \return as akin_tensor_image_check().
 */
akin_status_t akini_tensor_header_parse(const void *data, size_t bytes,
                                        const char *file,
                                        akini_tensor_header_t *header_p,
                                        akin_error_t *err) AKIN_MUST_CHECK;

/** Free; an all-zero header is allowed. */
void akini_tensor_header_cleanup(akini_tensor_header_t *header);

#endif
