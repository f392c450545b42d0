/* Cache bed: a cache over blocks of eight tokens that are next to nothing. */
#ifndef AKIN_TESTS_UNIT_CACHE_BED_H
#define AKIN_TESTS_UNIT_CACHE_BED_H

#include "kv/cache.h"
#include "runner.h"

#include <stdlib.h>

#define BLOCK 8

static akin_kv_layout_t layout;

static akin_kv_view_t create_view(uint32_t n_slots)
{
    const akin_kv_shape_t shape = {.n_layers = 1,
                                   .n_kv_heads = 1,
                                   .head_dim = 2,
                                   .n_experts = 2,
                                   .top_k = 1,
                                   .block_tokens = BLOCK};
    CU_ASSERT_EQUAL_FATAL(akin_kv_layout_init(&shape, &layout, NULL), AKIN_OK);
    akin_kv_view_t view = {.layout = &layout, .n_slots = n_slots};
    view.base = calloc(n_slots, layout.stride_bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(view.base);
    return view;
}

static akin_kv_cache_t *create_cache(const akin_kv_view_t *view)
{
    akin_kv_cache_t *cache = NULL;
    CU_ASSERT_EQUAL_FATAL(akin_kv_cache_create(view, 1, &cache), AKIN_OK);
    return cache;
}

static void check_audit(const akin_kv_cache_t *cache)
{
    akin_error_t err = {{0}};
    if (akin_kv_cache_audit(cache, &err) != AKIN_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        CU_FAIL_FATAL("audit");
    }
}

#endif
