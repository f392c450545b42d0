/* Prefix index audit: recounts members, children and chains of every node. */
#include "kv/prefix_index.h"

#include "kv/cache.h"

#define FAIL(err, ...)                                                         \
    akin_error_set(err, AKIN_ERR_INTERNAL, "KV prefix index: " __VA_ARGS__)

static int is_live_parent(const akini_kv_prefix_index_t *index, uint32_t node)
{
    const akini_kv_node_t *n = &index->nodes[node];
    return n->parent < index->n_slots &&
           index->nodes[n->parent].serial == n->parent_serial;
}

static akin_status_t audit_members(const akini_kv_prefix_index_t *index,
                                   uint32_t node, akin_error_t *err)
{
    const akini_kv_node_t *n = &index->nodes[node];
    uint32_t members = 0, strangers = 0, prev = AKINI_KV_NONE;
    int is_shown = 0;
    for (uint32_t s = n->first; s != AKINI_KV_NONE; s = index->places[s].next) {
        const akini_kv_place_t *place = &index->places[s];
        if (place->node != node || place->prev != prev ||
            members + strangers >= index->n_slots)
            return FAIL(err, "node %u: slot %u is linked wrongly",
                        (unsigned)node, (unsigned)s);
        if (place->is_stranger)
            strangers++;
        else
            members++;
        is_shown |= s == n->shown && !place->is_stranger;
        prev = s;
    }
    if (members != n->n_members || strangers != n->n_strangers ||
        members + strangers == 0)
        return FAIL(err, "node %u: %u members, %u strangers, counted %u, %u",
                    (unsigned)node, (unsigned)n->n_members,
                    (unsigned)n->n_strangers, (unsigned)members,
                    (unsigned)strangers);
    if (is_shown != (members > 0))
        return FAIL(err, "node %u: slot %u is shown, of %u members",
                    (unsigned)node, (unsigned)n->shown, (unsigned)members);
    return AKIN_OK;
}

static akin_status_t audit_node(const akini_kv_prefix_index_t *index,
                                uint32_t node, akin_error_t *err)
{
    const akini_kv_node_t *n = &index->nodes[node];
    const uint32_t *tokens = index->tokens + (size_t)node * index->block_tokens;
    int is_root = n->parent == AKINI_KV_ROOT;
    if (is_root || is_live_parent(index, node)) {
        uint64_t parent =
            is_root ? AKIN_KV_ROOT_HASH : index->nodes[n->parent].hash;
        if (akin_kv_chain_hash(parent, tokens, index->block_tokens) != n->hash)
            return FAIL(err, "node %u: the hash is not that of its tokens",
                        (unsigned)node);
    }
    uint32_t children = 0, twins = 0;
    for (uint32_t i = 0; i < index->n_slots; i++) {
        const akini_kv_node_t *other = &index->nodes[i];
        if (other->serial == 0)
            continue;
        children += other->parent == node && other->parent_serial == n->serial;
        twins += other->hash == n->hash;
    }
    if (children != n->n_children || twins != 1)
        return FAIL(err, "node %u: %u children, counted %u; %u with its hash",
                    (unsigned)node, (unsigned)n->n_children, (unsigned)children,
                    (unsigned)twins);
    return audit_members(index, node, err);
}

akin_status_t akini_kv_prefix_index_audit(const akini_kv_prefix_index_t *index,
                                          akin_error_t *err)
{
    uint32_t chained = 0, live = 0, placed = 0, placed_by_node = 0;
    for (uint64_t b = 0; b <= index->bucket_mask; b++)
        for (uint32_t i = index->buckets[b]; i != AKINI_KV_NONE;
             i = index->nodes[i].next) {
            if (++chained > index->n_nodes || index->nodes[i].serial == 0 ||
                (index->nodes[i].hash & index->bucket_mask) != b)
                return FAIL(err, "node %u is in a wrong bucket", (unsigned)i);
        }
    for (uint32_t i = 0; i < index->n_slots; i++) {
        placed += index->places[i].node != AKINI_KV_NONE;
        const akini_kv_node_t *n = &index->nodes[i];
        if (n->serial == 0)
            continue;
        live++;
        placed_by_node += n->n_members + n->n_strangers;
        akin_status_t status = audit_node(index, i, err);
        if (status != AKIN_OK)
            return status;
    }
    uint32_t unused = 0;
    for (uint32_t i = index->free_node;
         i != AKINI_KV_NONE && unused <= index->n_slots;
         i = index->nodes[i].next)
        unused++;
    if (live != index->n_nodes || chained != live ||
        live + unused != index->n_slots || placed != placed_by_node)
        return FAIL(err,
                    "%u nodes, but %u live, %u chained, %u unused; %u "
                    "slots of %u placed",
                    (unsigned)index->n_nodes, (unsigned)live, (unsigned)chained,
                    (unsigned)unused, (unsigned)placed,
                    (unsigned)placed_by_node);
    return AKIN_OK;
}
