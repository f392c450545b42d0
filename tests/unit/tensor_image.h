/* Tensor image: small safetensors files for tests, made from a header's text.
 */
#ifndef AKIN_TESTS_UNIT_TENSOR_IMAGE_H
#define AKIN_TESTS_UNIT_TENSOR_IMAGE_H

#include "checkpoint.h"
#include "engine/safetensors.h"

#include <CUnit/CUnit.h>

/* A tensor's entry in a header. */
#define F32(name, shape, begin, end)                                           \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape                         \
    ",\"data_offsets\":[" #begin "," #end "]}"

/* An image of a header and so many bytes of data; malloc'ed to its size, so
 * that a sanitizer sees every read beyond it. */
static inline unsigned char *make_image(const char *header, size_t data_bytes,
                                        size_t *bytes_p)
{
    const size_t length = strlen(header);
    unsigned char *image = calloc(1, 8 + length + data_bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(image);
    for (size_t i = 0; i < 8; i++)
        image[i] = (unsigned char)((uint64_t)length >> 8 * i);
    memcpy(image + 8, header, length);
    *bytes_p = 8 + length + data_bytes;
    return image;
}

/* The data bytes count 1, 2, 3, ... */
static inline void write_image(const char *dir, const char *file,
                               const char *header, size_t data_bytes)
{
    char path[CHECKPOINT_PATH_BYTES];
    size_t bytes;
    unsigned char *image = make_image(header, data_bytes, &bytes);
    for (size_t i = 0; i < data_bytes; i++)
        image[bytes - data_bytes + i] = (unsigned char)(i + 1);
    checkpoint_path(dir, file, path);
    FILE *f = fopen(path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT_EQUAL(fwrite(image, 1, bytes, f), bytes);
    CU_ASSERT_EQUAL(fclose(f), 0);
    free(image);
}

/* The status of opening a set, which is closed again. */
static inline akin_status_t open_and_close(const char *dir, akin_error_t *err)
{
    akin_tensor_set_t *set = (akin_tensor_set_t *)(uintptr_t)8;
    akin_status_t status = akin_tensor_set_open(dir, &set, err);
    if (status != AKIN_OK)
        CU_ASSERT_PTR_NULL(set);
    akin_tensor_set_close(set);
    return status;
}

/* Whether a message has a piece; a miss prints both. */
static inline int says(const akin_error_t *err, const char *piece)
{
    if (strstr(err->text, piece) != NULL)
        return 1;
    (void)fprintf(stderr, "message: %s\nlacks:   %s\n", err->text, piece);
    return 0;
}

#endif
