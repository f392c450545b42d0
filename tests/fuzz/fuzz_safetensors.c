/* Fuzz target: the header and offsets of a safetensors image. */
#include "engine/safetensors_header.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    akin_error_t err = {{0}};
    akini_tensor_header_t header = {0};
    akin_status_t status =
        akini_tensor_header_parse(data, size, "fuzz", &header, &err);
    if (status != akin_tensor_image_check(data, size, "fuzz", NULL))
        abort();
    if (status != AKIN_OK) {
        /* A refusal says why, and names the file. */
        if (strstr(err.text, "fuzz") == NULL)
            abort();
        return 0;
    }
    /* What was taken covers the end of the image, once, without a gap. */
    const uint8_t *end = data + size - header.bytes;
    for (size_t i = 0; i < header.n_tensors; i++) {
        const akin_tensor_t *tensor = &header.tensors[i];
        if (tensor->data != end || tensor->dtype_name == NULL ||
            tensor->n_dims > AKIN_TENSOR_MAX_DIMS)
            abort();
        end += tensor->bytes;
    }
    if (end != data + size)
        abort();
    akini_tensor_header_cleanup(&header);
    return 0;
}
