/* Move heap: the cheapest of the points that may move from one sink to
 * another, with points that have left the sink dropped late. */
#ifndef AKIN_ROUTING_MOVE_HEAP_H
#define AKIN_ROUTING_MOVE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akini_move {
    double cost;
    uint32_t point;
} akini_move_t;

/** Binary heap by (cost, point). Start it zeroed, end it with free(moves). */
typedef struct akini_move_heap {
    akini_move_t *moves;
    size_t n;
    size_t capacity;
} akini_move_heap_t;

/** \return false if there is no memory; the heap is as before. */
bool akini_move_heap_push(akini_move_heap_t *heap, akini_move_t move);

/** Remove the least move; the heap is not empty. */
void akini_move_heap_pop(akini_move_heap_t *heap);

#ifdef __cplusplus
}
#endif

#endif
