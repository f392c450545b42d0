/* Move heap: a binary heap of moves by (cost, point). */
#include "routing/move_heap.h"

#include <stdlib.h>

static bool is_less(const akini_move_t *a, const akini_move_t *b)
{
    return a->cost < b->cost || (a->cost == b->cost && a->point < b->point);
}

bool akini_move_heap_push(akini_move_heap_t *heap, akini_move_t move)
{
    if (heap->n == heap->capacity) {
        size_t capacity = heap->capacity == 0 ? 16 : 2 * heap->capacity;
        akini_move_t *moves =
            realloc(heap->moves, capacity * sizeof(heap->moves[0]));
        if (moves == NULL)
            return false;
        heap->moves = moves;
        heap->capacity = capacity;
    }
    size_t i = heap->n++;
    for (; i > 0; i = (i - 1) / 2) {
        akini_move_t *parent = &heap->moves[(i - 1) / 2];
        if (!is_less(&move, parent))
            break;
        heap->moves[i] = *parent;
    }
    heap->moves[i] = move;
    return true;
}

void akini_move_heap_pop(akini_move_heap_t *heap)
{
    akini_move_t move = heap->moves[--heap->n];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= heap->n)
            break;
        if (child + 1 < heap->n &&
            is_less(&heap->moves[child + 1], &heap->moves[child]))
            child++;
        if (!is_less(&heap->moves[child], &move))
            break;
        heap->moves[i] = heap->moves[child];
        i = child;
    }
    heap->moves[i] = move;
}
