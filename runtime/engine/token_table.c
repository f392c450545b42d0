/* Token table: bytes lie in one arena; an open table of ids finds them. */
#include "engine/token_table.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

static int holds(const akini_token_table_t *table, uint32_t id,
                 const char *bytes, size_t n)
{
    const akini_token_t *token = &table->tokens[id];
    return token->n == n && memcmp(table->arena + token->offset, bytes, n) == 0;
}

/* The slot that holds these bytes, or the free one where they belong. */
static uint32_t *find(const akini_token_table_t *table, const char *bytes,
                      size_t n)
{
    size_t i = (size_t)akin_hash64(bytes, n, 0) & (table->n_slots - 1);
    while (table->slots[i] != AKINI_TOKEN_NONE &&
           !holds(table, table->slots[i], bytes, n))
        i = (i + 1) & (table->n_slots - 1);
    return &table->slots[i];
}

akin_status_t akini_token_table_reserve(akini_token_table_t *table, size_t n)
{
    if (n <= table->n_slots / 2)
        return AKIN_OK;
    akini_token_table_t bigger = *table;
    bigger.n_slots = 1024;
    while (bigger.n_slots / 2 < n)
        bigger.n_slots *= 2;
    bigger.slots = malloc(bigger.n_slots * sizeof(*bigger.slots));
    if (bigger.slots == NULL)
        return AKIN_ERR_NOMEM;
    for (size_t i = 0; i < bigger.n_slots; i++)
        bigger.slots[i] = AKINI_TOKEN_NONE;
    for (size_t i = 0; i < table->n_slots; i++) {
        uint32_t id = table->slots[i];
        if (id == AKINI_TOKEN_NONE)
            continue;
        const akini_token_t *token = &table->tokens[id];
        *find(&bigger, table->arena + token->offset, token->n) = id;
    }
    free(table->slots);
    *table = bigger;
    return AKIN_OK;
}

static akin_status_t grow_tokens(akini_token_table_t *table, uint32_t id)
{
    uint32_t room = table->room == 0 ? 1024 : table->room;
    while (room <= id)
        room *= 2;
    akini_token_t *tokens = realloc(table->tokens, room * sizeof(*tokens));
    if (tokens == NULL)
        return AKIN_ERR_NOMEM;
    memset(tokens + table->room, 0, (room - table->room) * sizeof(*tokens));
    table->tokens = tokens;
    table->room = room;
    return AKIN_OK;
}

static akin_status_t grow_arena(akini_token_table_t *table, size_t n)
{
    size_t room = table->arena_room == 0 ? 4096 : table->arena_room;
    while (room - table->arena_used < n)
        room *= 2;
    char *arena = realloc(table->arena, room);
    if (arena == NULL)
        return AKIN_ERR_NOMEM;
    table->arena = arena;
    table->arena_room = room;
    return AKIN_OK;
}

akin_status_t akini_token_table_add(akini_token_table_t *table, uint32_t id,
                                    const char *bytes, size_t n,
                                    akini_token_kind_t kind)
{
    if (id >= AKINI_TOKEN_ID_LIMIT || n == 0 || n > INT32_MAX)
        return AKIN_ERR_RANGE;
    if (akini_token_table_kind(table, id) != AKINI_TOKEN_FREE)
        return AKIN_ERR_EXISTS;
    akin_status_t status = AKIN_OK;
    if (id >= table->room)
        status = grow_tokens(table, id);
    if (status == AKIN_OK && table->arena_room - table->arena_used < n)
        status = grow_arena(table, n);
    if (status == AKIN_OK)
        status = akini_token_table_reserve(table, table->n_vocab + 1);
    if (status != AKIN_OK)
        return status;

    uint32_t *slot = NULL;
    if (kind == AKINI_TOKEN_VOCAB) {
        slot = find(table, bytes, n);
        if (*slot != AKINI_TOKEN_NONE)
            return AKIN_ERR_EXISTS;
    }
    akini_token_t *token = &table->tokens[id];
    token->offset = table->arena_used;
    token->n = (uint32_t)n;
    token->kind = kind;
    memcpy(table->arena + table->arena_used, bytes, n);
    table->arena_used += n;
    if (slot != NULL) {
        *slot = id;
        table->n_vocab++;
    }
    if (id >= table->n_tokens)
        table->n_tokens = id + 1;
    if (token->n > table->longest)
        table->longest = token->n;
    return AKIN_OK;
}

uint32_t akini_token_table_find(const akini_token_table_t *table,
                                const char *bytes, size_t n)
{
    return table->n_slots == 0 ? AKINI_TOKEN_NONE : *find(table, bytes, n);
}

const char *akini_token_table_bytes(const akini_token_table_t *table,
                                    uint32_t id)
{
    return table->arena + table->tokens[id].offset;
}

akini_token_kind_t akini_token_table_kind(const akini_token_table_t *table,
                                          uint32_t id)
{
    return id < table->n_tokens ? table->tokens[id].kind : AKINI_TOKEN_FREE;
}

void akini_token_table_cleanup(akini_token_table_t *table)
{
    free(table->tokens);
    free(table->arena);
    free(table->slots);
    *table = (akini_token_table_t){0};
}
