/* Tokenizer: its life and what may be asked about its tokens. */
#include "engine/tokenizer.h"

#include "engine/byte_level.h"
#include "engine/tokenizer_state.h"

#include <stdlib.h>
#include <string.h>

void akin_tokenizer_destroy(akin_tokenizer_t *tokenizer)
{
    if (tokenizer == NULL)
        return;
    akini_token_table_cleanup(&tokenizer->tokens);
    akini_pair_map_cleanup(&tokenizer->merges);
    akini_added_tokens_cleanup(&tokenizer->added);
    akini_pre_split_destroy(tokenizer->split);
    free(tokenizer);
}

uint32_t akin_tokenizer_size(const akin_tokenizer_t *tokenizer)
{
    return tokenizer->tokens.n_tokens;
}

akin_status_t akin_tokenizer_find(const akin_tokenizer_t *tokenizer,
                                  const char *content, uint32_t *id_p)
{
    size_t n = strlen(content);
    uint32_t id = akini_added_tokens_find(&tokenizer->added, content, n);
    /* Two bytes of the byte-level alphabet stand for at least one byte. */
    if (id == AKINI_TOKEN_NONE && n > 0 && n / 2 <= tokenizer->tokens.longest) {
        char *bytes = malloc(n);
        if (bytes == NULL)
            return AKIN_ERR_NOMEM;
        size_t n_bytes = 0;
        if (akini_byte_level_decode(content, n, bytes, &n_bytes) == 0)
            id = akini_token_table_find(&tokenizer->tokens, bytes, n_bytes);
        free(bytes);
    }
    if (id == AKINI_TOKEN_NONE)
        return AKIN_ERR_NOT_FOUND;
    *id_p = id;
    return AKIN_OK;
}

void akin_tokenizer_token(const akin_tokenizer_t *tokenizer, uint32_t id,
                          const char **bytes_p, size_t *n_p, int *special_p)
{
    const akini_token_table_t *table = &tokenizer->tokens;
    akini_token_kind_t kind = akini_token_table_kind(table, id);
    int known = kind != AKINI_TOKEN_FREE;
    *bytes_p = known ? akini_token_table_bytes(table, id) : "";
    *n_p = known ? table->tokens[id].n : 0;
    if (special_p != NULL)
        *special_p = kind == AKINI_TOKEN_SPECIAL;
}

size_t akin_decoder_room(const akin_tokenizer_t *tokenizer)
{
    return (size_t)tokenizer->tokens.longest * 3 + 12;
}
