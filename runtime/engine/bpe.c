/* BPE: a linked list of symbols and a heap of the pairs that may merge. */
#include "engine/bpe.h"

#include <stdlib.h>

#define NONE UINT32_MAX

/* Children of a heap node: four lie in one cache line, and the heap of a long
 * piece is half as deep as with two. */
enum { ARITY = 4 };

struct akini_bpe_symbol {
    uint64_t merge; /* of this symbol and the next; AKINI_PAIR_NONE: none */
    uint32_t id;
    uint32_t prev;
    uint32_t next;
};

/*
 * A heap entry is rank and position, so that the smallest is the pair to merge
 * now. An entry is stale when its position has another rank meanwhile; a rank
 * belongs to one pair, and symbols only grow, so that a pair that has gone
 * never comes back to its position.
 */
static void heap_push(uint64_t *heap, size_t *n, uint64_t entry)
{
    size_t i = (*n)++;
    while (i > 0 && heap[(i - 1) / ARITY] > entry) {
        heap[i] = heap[(i - 1) / ARITY];
        i = (i - 1) / ARITY;
    }
    heap[i] = entry;
}

static uint64_t heap_pop(uint64_t *heap, size_t *n)
{
    uint64_t top = heap[0];
    uint64_t last = heap[--(*n)];
    size_t i = 0;
    for (;;) {
        size_t first = ARITY * i + 1;
        if (first >= *n)
            break;
        size_t end = first + ARITY < *n ? first + ARITY : *n;
        size_t child = first;
        for (size_t j = first + 1; j < end; j++)
            child = heap[j] < heap[child] ? j : child;
        if (heap[child] >= last)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

static akin_status_t reserve(akini_bpe_t *bpe, size_t n)
{
    if (n <= bpe->room)
        return AKIN_OK;
    size_t room = n < 64 ? 64 : n;
    akini_bpe_cleanup(bpe);
    bpe->symbols = calloc(room, sizeof(*bpe->symbols));
    /* Every pair is pushed once at the start, and each of at most n - 1 merges
     * takes out one entry and puts in two. */
    bpe->heap = malloc(2 * room * sizeof(*bpe->heap));
    if (bpe->symbols == NULL || bpe->heap == NULL) {
        akini_bpe_cleanup(bpe);
        return AKIN_ERR_NOMEM;
    }
    bpe->room = room;
    return AKIN_OK;
}

/* Look up the pair that starts at a symbol and note it in the heap. */
static void offer(const akini_pair_map_t *merges, akini_bpe_t *bpe, size_t *n,
                  uint32_t at)
{
    struct akini_bpe_symbol *symbol = &bpe->symbols[at];
    symbol->merge = AKINI_PAIR_NONE;
    if (symbol->next == NONE)
        return;
    uint64_t key = akini_pair_key(symbol->id, bpe->symbols[symbol->next].id);
    symbol->merge = akini_pair_map_get(merges, key);
    if (symbol->merge != AKINI_PAIR_NONE)
        heap_push(bpe->heap, n,
                  akini_pair_key((uint32_t)(symbol->merge >> 32), at));
}

akin_status_t akini_bpe_merge(const akini_pair_map_t *merges, akini_bpe_t *bpe,
                              uint32_t *ids, size_t n, size_t *n_p)
{
    akin_status_t status = reserve(bpe, n);
    if (status != AKIN_OK)
        return status;
    struct akini_bpe_symbol *symbols = bpe->symbols;
    for (size_t i = 0; i < n; i++) {
        symbols[i].id = ids[i];
        symbols[i].prev = i == 0 ? NONE : (uint32_t)(i - 1);
        symbols[i].next = i + 1 == n ? NONE : (uint32_t)(i + 1);
    }
    size_t n_heap = 0;
    for (size_t i = 0; i < n; i++)
        offer(merges, bpe, &n_heap, (uint32_t)i);

    while (n_heap > 0) {
        uint64_t entry = heap_pop(bpe->heap, &n_heap);
        uint32_t at = (uint32_t)entry;
        uint64_t merge = symbols[at].merge;
        if (merge == AKINI_PAIR_NONE || merge >> 32 != entry >> 32)
            continue;
        uint32_t gone = symbols[at].next;
        symbols[at].id = (uint32_t)merge;
        symbols[at].next = symbols[gone].next;
        symbols[gone].merge = AKINI_PAIR_NONE;
        if (symbols[at].next != NONE)
            symbols[symbols[at].next].prev = at;
        offer(merges, bpe, &n_heap, at);
        if (symbols[at].prev != NONE)
            offer(merges, bpe, &n_heap, symbols[at].prev);
    }

    size_t used = 0;
    for (uint32_t at = n == 0 ? NONE : 0; at != NONE; at = symbols[at].next)
        ids[used++] = symbols[at].id;
    *n_p = used;
    return AKIN_OK;
}

void akini_bpe_cleanup(akini_bpe_t *bpe)
{
    free(bpe->symbols);
    free(bpe->heap);
    *bpe = (akini_bpe_t){0};
}
