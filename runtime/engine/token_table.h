/* Token table: ids to bytes, and vocabulary bytes to ids. */
#ifndef AKIN_ENGINE_TOKEN_TABLE_H
#define AKIN_ENGINE_TOKEN_TABLE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/** Ids stay below this: the largest known vocabularies have 2^18. */
#define AKINI_TOKEN_ID_LIMIT (UINT32_C(1) << 24)

/** "No such token". */
#define AKINI_TOKEN_NONE UINT32_MAX

typedef enum akini_token_kind {
    AKINI_TOKEN_FREE, /* no entry: a row beyond or between the tokens */
    AKINI_TOKEN_VOCAB,
    AKINI_TOKEN_ADDED,
    AKINI_TOKEN_SPECIAL, /* added, and left out of decoded text */
} akini_token_kind_t;

typedef struct akini_token {
    size_t offset; /* of its bytes in the arena */
    uint32_t n;    /* bytes, at least 1 unless free */
    akini_token_kind_t kind;
} akini_token_t;

/** Zero is an empty table. */
typedef struct akini_token_table {
    akini_token_t *tokens;
    uint32_t n_tokens; /* highest id + 1 */
    uint32_t room;
    char *arena;
    size_t arena_used;
    size_t arena_room;
    uint32_t *slots; /* ids of vocabulary tokens by hash of their bytes */
    size_t n_slots;  /* 0 or a power of two, at least twice n_vocab */
    size_t n_vocab;
    uint32_t longest; /* bytes of the longest token */
} akini_token_table_t;

/**
 * Make room for vocabulary tokens, so that the table grows once instead of
 * many times.
 *
 * \param[in] n  vocabulary tokens that it will hold in all.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akini_token_table_reserve(akini_token_table_t *table,
                                        size_t n) AKIN_MUST_CHECK;

/**
 * Add a token.
 *
 * \param[in] id     below AKINI_TOKEN_ID_LIMIT.
 * \param[in] bytes  what it stands for; copied. Tokens of the vocabulary are
 *                   found by them afterwards.
 * \param[in] n      at least 1.
 * \param[in] kind   not AKINI_TOKEN_FREE.
 * \return AKIN_OK
 * \return AKIN_ERR_RANGE: the id or the length is too high, or n is 0.
 * \return AKIN_ERR_EXISTS: the id is taken.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akini_token_table_add(akini_token_table_t *table, uint32_t id,
                                    const char *bytes, size_t n,
                                    akini_token_kind_t kind) AKIN_MUST_CHECK;

/** Id of the vocabulary token with these bytes, or AKINI_TOKEN_NONE. */
uint32_t akini_token_table_find(const akini_token_table_t *table,
                                const char *bytes, size_t n);

/** Bytes of a token that is not free; borrowed. */
const char *akini_token_table_bytes(const akini_token_table_t *table,
                                    uint32_t id);

/** Kind of any id; AKINI_TOKEN_FREE beyond the table. */
akini_token_kind_t akini_token_table_kind(const akini_token_table_t *table,
                                          uint32_t id);

/** Free everything; the table is empty afterwards. */
void akini_token_table_cleanup(akini_token_table_t *table);

#endif
