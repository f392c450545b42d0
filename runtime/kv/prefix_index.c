/* Prefix index: nodes in a hash table of fixed size, linked to parents. */
#include "kv/prefix_index.h"

#include "kv/cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

akin_status_t akini_kv_prefix_index_init(akini_kv_prefix_index_t *index,
                                         uint32_t n_slots,
                                         uint32_t block_tokens)
{
    *index = (akini_kv_prefix_index_t){
        .n_slots = n_slots, .block_tokens = block_tokens, .next_serial = 1};
    /* Twice as many buckets as nodes keep their chains short. */
    uint64_t n_buckets = 16;
    while (n_buckets < 2 * (uint64_t)n_slots)
        n_buckets *= 2;
    index->bucket_mask = n_buckets - 1;
    index->buckets = malloc(n_buckets * sizeof(*index->buckets));
    index->nodes = calloc(n_slots, sizeof(*index->nodes));
    index->tokens =
        calloc((size_t)n_slots * block_tokens, sizeof(*index->tokens));
    index->places = calloc(n_slots, sizeof(*index->places));
    if (index->buckets == NULL || index->nodes == NULL ||
        index->tokens == NULL || index->places == NULL) {
        akini_kv_prefix_index_cleanup(index);
        return AKIN_ERR_NOMEM;
    }
    for (uint64_t b = 0; b < n_buckets; b++)
        index->buckets[b] = AKINI_KV_NONE;
    for (uint32_t i = 0; i < n_slots; i++) {
        index->nodes[i].next = i + 1 < n_slots ? i + 1 : AKINI_KV_NONE;
        index->places[i].node = AKINI_KV_NONE;
    }
    return AKIN_OK;
}

void akini_kv_prefix_index_cleanup(akini_kv_prefix_index_t *index)
{
    free(index->buckets);
    free(index->nodes);
    free(index->tokens);
    free(index->places);
    *index = (akini_kv_prefix_index_t){0};
}

static uint32_t *node_tokens(const akini_kv_prefix_index_t *index,
                             uint32_t node)
{
    return index->tokens + (size_t)node * index->block_tokens;
}

static int has_tokens(const akini_kv_prefix_index_t *index, uint32_t node,
                      const uint32_t *tokens)
{
    return memcmp(node_tokens(index, node), tokens,
                  index->block_tokens * sizeof(*tokens)) == 0;
}

static uint64_t serial_of(const akini_kv_prefix_index_t *index, uint32_t node)
{
    return node == AKINI_KV_ROOT ? 0 : index->nodes[node].serial;
}

static int is_child(const akini_kv_prefix_index_t *index, uint32_t node,
                    uint32_t parent)
{
    const akini_kv_node_t *n = &index->nodes[node];
    return n->parent == parent && n->parent != AKINI_KV_NONE &&
           n->parent_serial == serial_of(index, parent);
}

static uint32_t find_hash(const akini_kv_prefix_index_t *index, uint64_t hash)
{
    uint32_t node = index->buckets[hash & index->bucket_mask];
    while (node != AKINI_KV_NONE && index->nodes[node].hash != hash)
        node = index->nodes[node].next;
    return node;
}

uint32_t akini_kv_prefix_index_find(const akini_kv_prefix_index_t *index,
                                    uint32_t parent, uint64_t hash,
                                    const uint32_t *tokens)
{
    uint32_t node = find_hash(index, hash);
    if (node == AKINI_KV_NONE || index->nodes[node].shown == AKINI_KV_NONE ||
        !is_child(index, node, parent) || !has_tokens(index, node, tokens))
        return AKINI_KV_NONE;
    return node;
}

/* The node that blocks after this hash are children of; AKINI_KV_NONE where
 * the hash alone does not tell. */
static uint32_t resolve_parent(const akini_kv_prefix_index_t *index,
                               uint64_t hash)
{
    if (hash == AKIN_KV_ROOT_HASH)
        return AKINI_KV_ROOT;
    uint32_t node = find_hash(index, hash);
    if (node == AKINI_KV_NONE || index->nodes[node].n_strangers > 0)
        return AKINI_KV_NONE;
    return node;
}

static uint32_t create_node(akini_kv_prefix_index_t *index, uint32_t parent,
                            uint64_t hash, const uint32_t *tokens)
{
    uint32_t node = index->free_node;
    assert(node != AKINI_KV_NONE);
    akini_kv_node_t *n = &index->nodes[node];
    index->free_node = n->next;
    uint32_t *bucket = &index->buckets[hash & index->bucket_mask];
    *n = (akini_kv_node_t){.hash = hash,
                           .serial = index->next_serial++,
                           .parent = parent,
                           .next = *bucket,
                           .first = AKINI_KV_NONE,
                           .shown = AKINI_KV_NONE};
    *bucket = node;
    index->n_nodes++;
    memcpy(node_tokens(index, node), tokens,
           index->block_tokens * sizeof(*tokens));
    if (parent != AKINI_KV_NONE)
        n->parent_serial = serial_of(index, parent);
    if (parent < index->n_slots)
        index->nodes[parent].n_children++;
    return node;
}

/* Returns the parent's shown slot if this was its last child. */
static uint32_t destroy_node(akini_kv_prefix_index_t *index, uint32_t node)
{
    akini_kv_node_t *n = &index->nodes[node];
    uint32_t *link = &index->buckets[n->hash & index->bucket_mask];
    while (*link != node)
        link = &index->nodes[*link].next;
    *link = n->next;
    uint32_t childless = AKINI_KV_NONE;
    if (n->parent < index->n_slots && is_child(index, node, n->parent)) {
        akini_kv_node_t *parent = &index->nodes[n->parent];
        if (--parent->n_children == 0)
            childless = parent->shown;
    }
    *n = (akini_kv_node_t){.next = index->free_node};
    index->free_node = node;
    index->n_nodes--;
    return childless;
}

void akini_kv_prefix_index_enter(akini_kv_prefix_index_t *index, uint32_t slot,
                                 uint64_t parent_hash, uint64_t hash,
                                 const uint32_t *tokens)
{
    assert(slot < index->n_slots);
    assert(index->places[slot].node == AKINI_KV_NONE);
    uint32_t parent = resolve_parent(index, parent_hash);
    uint32_t node = find_hash(index, hash);
    if (node == AKINI_KV_NONE)
        node = create_node(index, parent, hash, tokens);
    int is_member = parent != AKINI_KV_NONE && is_child(index, node, parent) &&
                    has_tokens(index, node, tokens);
    akini_kv_node_t *n = &index->nodes[node];
    akini_kv_place_t *place = &index->places[slot];
    *place = (akini_kv_place_t){.node = node,
                                .prev = AKINI_KV_NONE,
                                .next = n->first,
                                .is_stranger = !is_member};
    if (n->first != AKINI_KV_NONE)
        index->places[n->first].prev = slot;
    n->first = slot;
    if (!is_member) {
        n->n_strangers++;
        return;
    }
    n->n_members++;
    if (n->shown == AKINI_KV_NONE)
        n->shown = slot;
}

/* Another member instead of a slot that is found no more. Members are all
 * alike. Strangers are next to unheard of, so this ends at the first step. */
static void show_other(akini_kv_prefix_index_t *index, uint32_t node)
{
    uint32_t s = index->nodes[node].first;
    while (s != AKINI_KV_NONE && index->places[s].is_stranger)
        s = index->places[s].next;
    index->nodes[node].shown = s;
}

uint32_t akini_kv_prefix_index_leave(akini_kv_prefix_index_t *index,
                                     uint32_t slot)
{
    akini_kv_place_t *place = &index->places[slot];
    uint32_t node = place->node;
    assert(node != AKINI_KV_NONE);
    akini_kv_node_t *n = &index->nodes[node];
    if (place->prev != AKINI_KV_NONE)
        index->places[place->prev].next = place->next;
    else
        n->first = place->next;
    if (place->next != AKINI_KV_NONE)
        index->places[place->next].prev = place->prev;
    place->node = AKINI_KV_NONE;
    if (place->is_stranger)
        n->n_strangers--;
    else
        n->n_members--;
    if (n->n_members + n->n_strangers == 0)
        return destroy_node(index, node);
    if (n->shown == slot)
        show_other(index, node);
    return AKINI_KV_NONE;
}

int akini_kv_prefix_index_shows(const akini_kv_prefix_index_t *index,
                                uint32_t slot)
{
    uint32_t node = index->places[slot].node;
    if (node == AKINI_KV_NONE || index->nodes[node].shown != slot)
        return 0;
    /* Without its parent a block cannot be reached. */
    return is_child(index, node, index->nodes[node].parent);
}

int akini_kv_prefix_index_has_children(const akini_kv_prefix_index_t *index,
                                       uint32_t slot)
{
    return index->nodes[index->places[slot].node].n_children > 0;
}

enum { MARK_UNKNOWN, MARK_OTHER, MARK_BELOW };

/* The node that a node builds on, if that one is still there. */
static uint32_t live_parent(const akini_kv_prefix_index_t *index, uint32_t node)
{
    uint32_t parent = index->nodes[node].parent;
    return parent < index->n_slots && is_child(index, node, parent)
               ? parent
               : AKINI_KV_NONE;
}

/* Every node is passed upwards until one is met that is known, so all of them
 * together are passed twice. */
static void mark_path(akini_kv_prefix_index_t *index, uint32_t node)
{
    uint32_t top = node;
    while (top != AKINI_KV_NONE && index->nodes[top].mark == MARK_UNKNOWN)
        top = live_parent(index, top);
    uint8_t mark = top != AKINI_KV_NONE ? index->nodes[top].mark : MARK_OTHER;
    for (; node != top; node = live_parent(index, node))
        index->nodes[node].mark = mark;
}

uint32_t akini_kv_prefix_index_mark(akini_kv_prefix_index_t *index,
                                    uint64_t hash, const uint32_t *tokens)
{
    for (uint32_t i = 0; i < index->n_slots; i++)
        index->nodes[i].mark = MARK_UNKNOWN;
    uint32_t root = find_hash(index, hash);
    if (root == AKINI_KV_NONE || !is_child(index, root, AKINI_KV_ROOT) ||
        !has_tokens(index, root, tokens))
        return 0;
    index->nodes[root].mark = MARK_BELOW;
    uint32_t n = 0;
    for (uint32_t i = 0; i < index->n_slots; i++) {
        if (index->nodes[i].serial == 0)
            continue;
        mark_path(index, i);
        n += index->nodes[i].mark == MARK_BELOW;
    }
    return n;
}

int akini_kv_prefix_index_is_marked(const akini_kv_prefix_index_t *index,
                                    uint32_t slot)
{
    const akini_kv_place_t *place = &index->places[slot];
    return place->node != AKINI_KV_NONE && !place->is_stranger &&
           index->nodes[place->node].mark == MARK_BELOW;
}

void akini_kv_prefix_index_disown(akini_kv_prefix_index_t *index, uint32_t slot)
{
    akini_kv_place_t *place = &index->places[slot];
    assert(place->node != AKINI_KV_NONE && !place->is_stranger);
    akini_kv_node_t *n = &index->nodes[place->node];
    place->is_stranger = 1;
    n->n_members--;
    n->n_strangers++;
    if (n->shown == slot)
        show_other(index, place->node);
}
