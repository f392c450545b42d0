/* Signature: the unit vector of a prompt's expert counts. */
#include "routing/signature.h"

#include "routing/dot.h"
#include "routing/dot_block.h"
#include "routing/lanes.h"
#include "routing/signature_rows.h"

#include <math.h>
#include <string.h>

#define MAX_CELLS (1u << 24)
#define MIN_NORM 1e-9

/* Rows that are read while the signature is formed. */
enum { GROUP = 16, PART = 4 * AKINI_FLUSH_CELLS };

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

/* signature = counts * idf of cells that follow each other; a NULL IDF is 1. */
AKINI_INLINE void weigh_cells(const uint16_t *restrict counts,
                              const float *restrict idf, size_t n,
                              float *restrict signature)
{
    size_t whole = n - n % AKINI_LANES;
    for (size_t i = 0; i < whole; i += AKINI_LANES) {
        akini_lanes_t value = __builtin_convertvector(
            __builtin_convertvector(*(const akini_lanes_count_t *)(counts + i),
                                    akini_lanes_int_t),
            akini_lanes_t);
        if (idf != NULL)
            value *= *(const akini_lanes_t *)(idf + i);
        *(akini_lanes_t *)(signature + i) = value;
    }
    for (size_t i = whole; i < n; i++)
        signature[i] =
            idf != NULL ? (float)counts[i] * idf[i] : (float)counts[i];
}

/* A run of masked layers that follow each other in the model. */
typedef struct run {
    uint32_t end;    /* of its masked layers */
    size_t end_cell; /* in the signature */
    size_t shift;    /* from a cell of the signature to that of the counts */
} run_t;

static run_t next_run(const akin_signature_form_t *form, uint32_t first)
{
    const uint32_t *layers = form->layers;
    uint32_t end = layers == NULL ? form->n_layers : first + 1;
    while (end < form->n_masked && layers != NULL &&
           layers[end] == layers[end - 1] + 1)
        end++;
    return (run_t){
        .end = end,
        .end_cell = (size_t)end * form->n_experts,
        .shift = layers == NULL
                     ? 0
                     : (size_t)(layers[first] - first) * form->n_experts,
    };
}

/* Add the products of a part of the signature with some rows to their sums. */
AKINI_INLINE void add_part(const float *part, const float *rows, size_t stride,
                           uint32_t n_rows, size_t n, akini_wide_t (*wide)[2])
{
    const float *at[AKINI_DOT_ROWS];
    uint32_t first = 0;
    for (; n_rows - first >= AKINI_DOT_ROWS; first += AKINI_DOT_ROWS) {
        for (uint32_t r = 0; r < AKINI_DOT_ROWS; r++)
            at[r] = rows + (first + r) * stride;
        akini_dot_add(part, at, AKINI_DOT_ROWS, n, wide + first);
    }
    for (; first < n_rows; first++) {
        at[0] = rows + first * stride;
        akini_dot_add(part, at, 1, n, wide + first);
    }
}

/*
 * Form a signature, not yet scaled, and its products with up to GROUP rows, a
 * part at a time while that is in the cache nearest to the core. The sums are
 * those of akini_dot(). Without `signature` it is nowhere kept as a whole.
 */
AKINI_CLONES static double weigh(const akin_signature_form_t *form,
                                 const uint16_t *counts, float *signature,
                                 const float *rows, uint32_t n_rows,
                                 double *sums)
{
    const size_t n = akin_signature_size(form);
    akini_wide_t wide[GROUP + 1][2];
    for (uint32_t r = 0; r <= n_rows; r++)
        wide[r][0] = wide[r][1] = (akini_wide_t){0.0};
    float buffer[PART] __attribute__((aligned(64)));
    run_t run = {0};
    for (size_t from = 0; from < n; from += PART) {
        size_t to = n - from < PART ? n : from + PART;
        float *part = buffer;
        if (signature != NULL)
            part = signature + from;
        for (size_t cell = from, stop; cell < to; cell = stop) {
            if (cell == run.end_cell)
                run = next_run(form, run.end);
            stop = run.end_cell < to ? run.end_cell : to;
            size_t at = cell + run.shift;
            weigh_cells(counts + at, form->idf != NULL ? form->idf + at : NULL,
                        stop - cell, part + (cell - from));
        }
        add_part(part, rows + from, n, n_rows, to - from, wide);
        add_part(part, part, 0, 1, to - from, wide + n_rows);
    }
    for (uint32_t r = 0; r < n_rows; r++)
        sums[r] = akini_lanes_fold(wide[r]);
    return akini_lanes_fold(wide[n_rows]);
}

AKINI_CLONES void akini_signature_scale(float *weighted, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        weighted[i] *= scale;
}

static float inverse_norm(double squares)
{
    return (float)(1.0 / fmax(sqrt(squares), MIN_NORM));
}

void akin_signature_compute(const akin_signature_form_t *form,
                            const uint16_t *counts, float *signature)
{
    double squares = weigh(form, counts, signature, signature, 0, NULL);
    akini_signature_scale(signature, inverse_norm(squares),
                          akin_signature_size(form));
}

float akini_signature_dot_rows(const akin_signature_form_t *form,
                               const uint16_t *counts, float *weighted,
                               int is_kept, const float *rows, uint32_t n_rows,
                               double *sums)
{
    size_t n = akin_signature_size(form);
    uint32_t n_group = n_rows < GROUP ? n_rows : GROUP;
    double squares =
        weigh(form, counts, is_kept || n_rows > GROUP ? weighted : NULL, rows,
              n_group, sums);
    akini_dot_rows(weighted, rows + n_group * n, n, NULL, n_rows - n_group, n,
                   sums + n_group);
    return inverse_norm(squares);
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
