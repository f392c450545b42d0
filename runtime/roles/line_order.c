/* Line order: a ring of lines. */
#include "roles/line_order.h"

#include <stdlib.h>
#include <string.h>

akin_status_t akini_line_order_init(akini_line_order_t *order, uint32_t size)
{
    *order = (akini_line_order_t){.size = size};
    order->ring = calloc(size, sizeof(*order->ring));
    return order->ring == NULL ? AKIN_ERR_NOMEM : AKIN_OK;
}

void akini_line_order_cleanup(akini_line_order_t *order)
{
    if (order->ring != NULL)
        for (uint32_t i = 0; i < order->size; i++)
            free(order->ring[i].line);
    free(order->ring);
    *order = (akini_line_order_t){0};
}

akin_status_t akini_line_order_hold(akini_line_order_t *order,
                                    uint64_t sequence, const char *line,
                                    size_t bytes)
{
    akini_held_line_t *held = &order->ring[sequence % order->size];
    if (sequence < order->next || sequence - order->next >= order->size ||
        held->line != NULL)
        return AKIN_ERR_INVALID;
    held->line = malloc(bytes);
    if (held->line == NULL)
        return AKIN_ERR_NOMEM;
    memcpy(held->line, line, bytes);
    held->bytes = bytes;
    order->held_bytes += bytes;
    order->n_held++;
    return AKIN_OK;
}

const char *akini_line_order_first(const akini_line_order_t *order,
                                   size_t *bytes_p)
{
    const akini_held_line_t *held = &order->ring[order->next % order->size];
    *bytes_p = held->bytes;
    return held->line;
}

void akini_line_order_advance(akini_line_order_t *order)
{
    akini_held_line_t *held = &order->ring[order->next % order->size];
    free(held->line);
    order->held_bytes -= held->bytes;
    order->n_held--;
    order->next++;
    *held = (akini_held_line_t){0};
}
