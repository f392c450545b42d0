/* Added tokens: a trie whose edges and ends are entries of pair maps. */
#include "engine/added_tokens.h"

#include "engine/token_table.h"

/* The child of a node, or AKINI_PAIR_NONE. */
static uint64_t child(const akini_added_tokens_t *added, uint32_t node,
                      char byte)
{
    return akini_pair_map_get(&added->edges,
                              akini_pair_key(node, (unsigned char)byte));
}

akin_status_t akini_added_tokens_add(akini_added_tokens_t *added,
                                     const char *content, size_t n, uint32_t id)
{
    if (n == 0 || n > AKINI_ADDED_BYTES_MAX)
        return AKIN_ERR_RANGE;
    uint32_t node = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t next = child(added, node, content[i]);
        if (next == AKINI_PAIR_NONE) {
            next = added->n_nodes + 1;
            akin_status_t status = akini_pair_map_add(
                &added->edges, akini_pair_key(node, (unsigned char)content[i]),
                next);
            if (status != AKIN_OK)
                return status;
            added->n_nodes++;
        }
        node = (uint32_t)next;
    }
    akin_status_t status = akini_pair_map_add(&added->ends, node, id);
    if (status == AKIN_OK)
        added->starts[(unsigned char)content[0]] = 1;
    return status;
}

/* The longest token that text starts with: its length, or 0. */
static size_t longest(const akini_added_tokens_t *added, const char *text,
                      size_t n, uint32_t *id_p)
{
    size_t best = 0;
    uint32_t node = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t next = child(added, node, text[i]);
        if (next == AKINI_PAIR_NONE)
            break;
        node = (uint32_t)next;
        uint64_t id = akini_pair_map_get(&added->ends, node);
        if (id != AKINI_PAIR_NONE) {
            best = i + 1;
            *id_p = (uint32_t)id;
        }
    }
    return best;
}

size_t akini_added_tokens_search(const akini_added_tokens_t *added,
                                 const char *text, size_t n, size_t *at_p,
                                 uint32_t *id_p)
{
    for (size_t at = 0; at < n; at++) {
        if (!added->starts[(unsigned char)text[at]])
            continue;
        size_t found = longest(added, text + at, n - at, id_p);
        if (found > 0) {
            *at_p = at;
            return found;
        }
    }
    *at_p = n;
    return 0;
}

uint32_t akini_added_tokens_find(const akini_added_tokens_t *added,
                                 const char *text, size_t n)
{
    uint32_t id = AKINI_TOKEN_NONE;
    return n > 0 && longest(added, text, n, &id) == n ? id : AKINI_TOKEN_NONE;
}

void akini_added_tokens_cleanup(akini_added_tokens_t *added)
{
    akini_pair_map_cleanup(&added->edges);
    akini_pair_map_cleanup(&added->ends);
    *added = (akini_added_tokens_t){0};
}
