/* A naive model of the KV cache for its test: every answer by a walk over all
 * slots, blocks known by their whole history and not by a hash. */
#ifndef AKIN_TESTS_UNIT_KV_MODEL_H
#define AKIN_TESTS_UNIT_KV_MODEL_H

#include <stdint.h>
#include <string.h>

#define MODEL_SLOTS 24
#define MODEL_NONE UINT32_MAX
#define MODEL_ROOT 0 /* history and node number of the empty prefix */

/* What a slot is. `history` numbers the tokens from the root up to here,
 * `node` one stay of them in the index. */
typedef struct model_slot {
    uint32_t refs;
    uint64_t generation;
    uint64_t released;
    uint64_t entered;
    uint32_t history; /* 0: not a full block */
    uint32_t node;
    uint32_t parent_node;
    int is_stranger;
    int is_shown;
    int is_cached;
} model_slot_t;

typedef struct model {
    model_slot_t slots[MODEL_SLOTS];
    uint64_t clock;
    uint32_t next_node;
    uint64_t evictions;
} model_t;

static inline void model_init(model_t *m, uint64_t generation)
{
    memset(m, 0, sizeof(*m));
    m->next_node = 1;
    for (int i = 0; i < MODEL_SLOTS; i++)
        m->slots[i].generation = generation;
}

static inline int model_is_free(const model_t *m, uint32_t slot)
{
    return m->slots[slot].refs == 0 && !m->slots[slot].is_cached;
}

static inline uint32_t model_count(const model_t *m, int is_cached)
{
    uint32_t n = 0;
    for (int i = 0; i < MODEL_SLOTS; i++)
        n += (uint32_t)(is_cached ? m->slots[i].is_cached
                                  : m->slots[i].refs > 0);
    return n;
}

static inline int model_is_live(const model_t *m, uint32_t node)
{
    if (node == MODEL_ROOT)
        return 1;
    for (int i = 0; i < MODEL_SLOTS; i++)
        if (m->slots[i].history != 0 && m->slots[i].node == node)
            return 1;
    return 0;
}

/* Slot in which a match finds this history after that parent. */
static inline uint32_t model_find(const model_t *m, uint32_t history,
                                  uint32_t parent_node)
{
    for (uint32_t i = 0; i < MODEL_SLOTS; i++)
        if (m->slots[i].history == history && m->slots[i].is_shown &&
            m->slots[i].parent_node == parent_node)
            return i;
    return MODEL_NONE;
}

static inline void model_seal(model_t *m, uint32_t slot, uint32_t history,
                              uint32_t parent_history)
{
    model_slot_t *s = &m->slots[slot];
    uint32_t parent = parent_history == 0 ? MODEL_ROOT : MODEL_NONE;
    int is_ambiguous = 0;
    model_slot_t *twin = NULL;
    for (int i = 0; i < MODEL_SLOTS; i++) {
        model_slot_t *other = &m->slots[i];
        if (parent_history != 0 && other->history == parent_history) {
            parent = other->node;
            is_ambiguous |= other->is_stranger;
        }
        if (other->history == history)
            twin = other;
    }
    if (is_ambiguous)
        parent = MODEL_NONE;
    s->history = history;
    s->entered = ++m->clock;
    s->node = twin != NULL ? twin->node : m->next_node++;
    s->parent_node = twin != NULL ? twin->parent_node : parent;
    s->is_stranger = parent == MODEL_NONE || parent != s->parent_node;
    s->is_shown = !s->is_stranger;
    for (int i = 0; i < MODEL_SLOTS; i++)
        if (s != &m->slots[i] && m->slots[i].history == history &&
            m->slots[i].is_shown)
            s->is_shown = 0;
}

static inline void model_free(model_t *m, uint32_t slot)
{
    model_slot_t old = m->slots[slot];
    m->slots[slot] = (model_slot_t){.generation = old.generation + 1};
    model_slot_t *heir = NULL;
    for (int i = 0; old.is_shown && i < MODEL_SLOTS; i++) {
        model_slot_t *s = &m->slots[i];
        if (s->history == old.history && !s->is_stranger &&
            (heir == NULL || s->entered > heir->entered))
            heir = s;
    }
    if (heir != NULL)
        heir->is_shown = 1;
}

static inline void model_unref(model_t *m, uint32_t slot)
{
    model_slot_t *s = &m->slots[slot];
    if (--s->refs > 0)
        return;
    if (s->is_shown && model_is_live(m, s->parent_node)) {
        s->is_cached = 1;
        s->released = ++m->clock;
    } else {
        model_free(m, slot);
    }
}

static inline void model_ref(model_t *m, uint32_t slot)
{
    m->slots[slot].refs++;
    m->slots[slot].is_cached = 0;
}

static inline int model_has_children(const model_t *m, uint32_t node)
{
    for (int i = 0; i < MODEL_SLOTS; i++)
        if (m->slots[i].history != 0 && m->slots[i].parent_node == node)
            return 1;
    return 0;
}

/* The cached slot that goes next: released first, those without children
 * before all others. */
static inline uint32_t model_victim(const model_t *m)
{
    for (int with_children = 0; with_children < 2; with_children++) {
        uint32_t victim = MODEL_NONE;
        for (uint32_t i = 0; i < MODEL_SLOTS; i++) {
            const model_slot_t *s = &m->slots[i];
            if (s->is_cached &&
                (with_children || !model_has_children(m, s->node)) &&
                (victim == MODEL_NONE ||
                 s->released < m->slots[victim].released))
                victim = i;
        }
        if (victim != MODEL_NONE)
            return victim;
    }
    return MODEL_NONE;
}

/* Evicts until n slots are free; zero if that is impossible. */
static inline int model_make_room(model_t *m, uint32_t n)
{
    uint32_t n_free = MODEL_SLOTS - model_count(m, 0) - model_count(m, 1);
    if (n > n_free + model_count(m, 1))
        return 0;
    for (; n_free < n; n_free++, m->evictions++)
        model_free(m, model_victim(m));
    return 1;
}

static inline void model_take(model_t *m, uint32_t slot)
{
    m->slots[slot].generation++;
    m->slots[slot].refs = 1;
}

/* Whether a slot's block builds on a node, or is of it. */
static inline int model_builds_on(const model_t *m, uint32_t slot,
                                  uint32_t node)
{
    while (m->slots[slot].node != node) {
        uint32_t parent = m->slots[slot].parent_node;
        uint32_t next = MODEL_NONE;
        for (uint32_t i = 0; parent != MODEL_ROOT && i < MODEL_SLOTS; i++)
            if (m->slots[i].history != 0 && m->slots[i].node == parent)
                next = i;
        if (next == MODEL_NONE)
            return 0;
        slot = next;
    }
    return 1;
}

/* Drops a first block and what builds on it; the blocks that were dropped. */
static inline uint32_t model_forget(model_t *m, uint32_t history)
{
    int is_doomed[MODEL_SLOTS] = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < MODEL_SLOTS; i++)
        for (uint32_t j = 0; j < MODEL_SLOTS; j++)
            if (m->slots[i].history != 0 && !m->slots[i].is_stranger &&
                m->slots[j].history == history)
                is_doomed[i] |= model_builds_on(m, i, m->slots[j].node);
    for (uint32_t i = 0; i < MODEL_SLOTS; i++) {
        if (!is_doomed[i])
            continue;
        n++;
        m->slots[i].is_stranger = 1;
        m->slots[i].is_shown = 0;
        if (m->slots[i].refs > 0)
            m->slots[i].generation++;
    }
    for (uint32_t i = 0; i < MODEL_SLOTS; i++)
        if (is_doomed[i] && m->slots[i].refs == 0)
            model_free(m, i);
    return n;
}

#endif
