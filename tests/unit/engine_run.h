/* Engine run: an engine and a slab of its own, for tests. */
#ifndef AKIN_TESTS_UNIT_ENGINE_RUN_H
#define AKIN_TESTS_UNIT_ENGINE_RUN_H

#include "engine/engine.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct engine_run {
    akin_engine_t *engine;
    akin_engine_info_t info;
    akin_kv_layout_t layout;
    akin_kv_view_t view;
} engine_run_t;

/* A test cannot go on without its engine. */
static inline void engine_run_need(akin_status_t status,
                                   const akin_error_t *err)
{
    if (status == AKIN_OK)
        return;
    (void)fprintf(stderr, "engine: %s: %s\n", akin_status_string(status),
                  err != NULL ? err->text : "");
    exit(2);
}

/** Load the cpu engine; ends the process if that fails. */
static inline akin_engine_t *engine_run_load(const akin_engine_params_t *params)
{
    akin_engine_t *engine = NULL;
    akin_error_t err = {{0}};
    engine_run_need(akin_engine_load("cpu", params, &engine, &err), &err);
    return engine;
}

/** A slab of n_slots for an engine, which is borrowed. What lies in it at
 * first is garbage: bf16 and counts that would show in any result. */
static inline void engine_run_init(engine_run_t *r, akin_engine_t *engine,
                                   uint32_t block_tokens, uint32_t n_slots)
{
    akin_kv_shape_t shape;
    akin_error_t err = {{0}};
    r->engine = engine;
    akin_engine_describe(engine, &r->info);
    akin_engine_kv_shape(engine, block_tokens, &shape);
    engine_run_need(akin_kv_layout_init(&shape, &r->layout, &err), &err);
    size_t bytes = n_slots * r->layout.stride_bytes;
    r->view = (akin_kv_view_t){
        .layout = &r->layout,
        .base = aligned_alloc(AKIN_KV_SLOT_ALIGN_BYTES, bytes),
        .n_slots = n_slots,
    };
    if (r->view.base == NULL)
        abort();
    memset(r->view.base, 0x7f, bytes);
}

static inline void engine_run_cleanup(engine_run_t *r)
{
    free(r->view.base);
}

/** Run spans; ends the process if that fails. */
static inline void engine_run_step(engine_run_t *r,
                                   const akin_engine_span_t *spans, uint32_t n)
{
    engine_run_need(akin_engine_step(r->engine, &r->view, spans, n, NULL),
                    NULL);
}

/** Key (or value) of a position: bf16 [head_dim], in the slab. */
static inline const uint16_t *engine_run_kv(const engine_run_t *r,
                                            const uint32_t *slots,
                                            uint32_t position, uint32_t layer,
                                            uint32_t head, int value)
{
    const uint32_t block_tokens = r->layout.shape.block_tokens;
    unsigned char *slot =
        akin_kv_slot(&r->view, slots[position / block_tokens]);
    const uint16_t *half = value ? akin_kv_values(&r->layout, slot, layer, head)
                                 : akin_kv_keys(&r->layout, slot, layer, head);
    return half + (size_t)(position % block_tokens) * r->layout.shape.head_dim;
}

/** Sidecar counts of the blocks that hold positions [0, n), added up; counts
 * is [n_layers][n_experts]. */
static inline void engine_run_counts(const engine_run_t *r,
                                     const uint32_t *slots, uint32_t n,
                                     uint16_t *counts)
{
    memset(counts, 0, r->layout.sidecar_bytes * sizeof(*counts));
    for (uint32_t b = 0; b * r->layout.shape.block_tokens < n; b++)
        akin_kv_sidecar_add(&r->layout, akin_kv_slot(&r->view, slots[b]),
                            counts);
}

#endif
