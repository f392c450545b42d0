/* Modelled KV: rows of bytes that follow from a sequence's tokens, in place of
 * keys and values. */
#include "engine/modelled_kv.h"

#include <string.h>

/* Words of a row differ by it before they are mixed. */
#define STRIDE UINT64_C(0x9e3779b97f4a7c15)

/* Keys or values of a token in a layer. */
static unsigned char *row_of(const akin_kv_view_t *view, const uint32_t *slots,
                             uint32_t position, uint32_t layer, int is_value)
{
    const akin_kv_layout_t *layout = view->layout;
    const akin_kv_shape_t *shape = &layout->shape;
    unsigned char *slot =
        akin_kv_slot(view, slots[position / shape->block_tokens]);
    uint16_t *head = is_value ? akin_kv_values(layout, slot, layer, 0)
                              : akin_kv_keys(layout, slot, layer, 0);
    return (unsigned char *)(head + (size_t)(position % shape->block_tokens) *
                                        shape->head_dim);
}

static size_t words_of(const akin_kv_view_t *view)
{
    return view->layout->shape.head_dim * sizeof(uint16_t) / sizeof(uint64_t);
}

void akini_modelled_kv_write(const akin_kv_view_t *view, const uint32_t *slots,
                             uint32_t position, uint64_t name)
{
    const size_t n_words = words_of(view);
    uint64_t at = name;
    for (uint32_t l = 0; l < view->layout->shape.n_layers; l++)
        for (int half = 0; half < 2; half++) {
            unsigned char *row = row_of(view, slots, position, l, half);
            for (size_t i = 0; i < n_words; i++) {
                memcpy(row + i * sizeof(at), &at, sizeof(at));
                at = akini_modelled_mix(at + STRIDE);
            }
        }
}

uint64_t akini_modelled_kv_name(const akin_kv_view_t *view,
                                const uint32_t *slots, uint32_t position)
{
    uint64_t name;
    memcpy(&name, row_of(view, slots, position, 0, 0), sizeof(name));
    return name;
}

uint64_t akini_modelled_kv_read(const akin_kv_view_t *view,
                                const uint32_t *slots, uint32_t position)
{
    const size_t n_words = words_of(view);
    uint64_t sum = 0;
    for (uint32_t l = 0; l < view->layout->shape.n_layers; l++)
        for (int half = 0; half < 2; half++) {
            const unsigned char *row = row_of(view, slots, position, l, half);
            for (size_t i = 0; i < n_words; i++) {
                uint64_t word;
                memcpy(&word, row + i * sizeof(word), sizeof(word));
                sum = akini_modelled_mix(sum ^ word);
            }
        }
    return sum;
}
