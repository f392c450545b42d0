/* Signature: the unit vector of a prompt's expert counts. */
#include "routing/signature.h"

#include <math.h>

#define MAX_CELLS (1u << 24)
#define MIN_NORM 1e-9

akin_status_t akin_signature_form_check(const akin_signature_form_t *form,
                                        akin_error_t *err)
{
    if (form->n_layers == 0 || form->n_experts == 0 ||
        (uint64_t)form->n_layers * form->n_experts > MAX_CELLS)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "signature: %u layers x %u experts, must be 1 to "
                              "%u cells",
                              form->n_layers, form->n_experts, MAX_CELLS);
    if (form->layers != NULL && form->n_masked == 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "signature: layer_mask has no layers");
    for (uint32_t i = 0; form->layers != NULL && i < form->n_masked; i++) {
        if (form->layers[i] >= form->n_layers)
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "signature: layer_mask[%u] is layer %u of a "
                                  "model with %u layers",
                                  i, form->layers[i], form->n_layers);
        if (i > 0 && form->layers[i] <= form->layers[i - 1])
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "signature: layer_mask[%u] is %u, after %u; "
                                  "layers must rise",
                                  i, form->layers[i], form->layers[i - 1]);
    }
    size_t cells = (size_t)form->n_layers * form->n_experts;
    for (size_t i = 0; form->idf != NULL && i < cells; i++)
        if (!(form->idf[i] >= 0.0f && isfinite(form->idf[i])))
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "signature: the IDF of layer %zu, expert %zu "
                                  "is %g, must be finite and not negative",
                                  i / form->n_experts, i % form->n_experts,
                                  (double)form->idf[i]);
    return AKIN_OK;
}

static uint32_t count_layers(const akin_signature_form_t *form)
{
    return form->layers != NULL ? form->n_masked : form->n_layers;
}

size_t akin_signature_size(const akin_signature_form_t *form)
{
    return (size_t)count_layers(form) * form->n_experts;
}

void akin_signature_compute(const akin_signature_form_t *form,
                            const uint16_t *counts, float *signature)
{
    uint32_t n = count_layers(form);
    double squares = 0.0;
    float *out = signature;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t layer = form->layers != NULL ? form->layers[i] : i;
        size_t first = (size_t)layer * form->n_experts;
        for (uint32_t e = 0; e < form->n_experts; e++) {
            float value = (float)counts[first + e];
            if (form->idf != NULL)
                value *= form->idf[first + e];
            squares += (double)value * (double)value;
            *out++ = value;
        }
    }
    float scale = (float)(1.0 / fmax(sqrt(squares), MIN_NORM));
    size_t size = akin_signature_size(form);
    for (size_t i = 0; i < size; i++)
        signature[i] *= scale;
}

void akin_signature_df_add(const uint16_t *counts, size_t cells, uint32_t *df)
{
    for (size_t i = 0; i < cells; i++)
        df[i] += counts[i] > 0;
}

void akin_signature_idf(const uint32_t *df, uint32_t n_requests, size_t cells,
                        float *idf)
{
    for (size_t i = 0; i < cells; i++)
        idf[i] = (float)log(((double)n_requests + 1.0) / ((double)df[i] + 1.0));
}
