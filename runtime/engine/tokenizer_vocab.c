/* Vocabulary: added tokens, tokens and merges of tokenizer.json. */
#include "engine/tokenizer_state.h"

#include "engine/byte_level.h"
#include "engine/utf8.h"

#include <stdlib.h>
#include <string.h>

static akin_status_t no_memory(akin_error_t *err)
{
    return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
}

/* An id of the file; `AKINI_TOKEN_NONE` if it is none. */
static uint32_t read_id(const json_t *value)
{
    json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
    return id >= 0 && id < (json_int_t)AKINI_TOKEN_ID_LIMIT ? (uint32_t)id
                                                            : AKINI_TOKEN_NONE;
}

static akin_status_t read_flags(const json_t *entry, size_t index,
                                int *special_p, akin_error_t *err)
{
    static const char *const flags[] = {"single_word", "lstrip", "rstrip",
                                        "normalized", "special"};
    enum { SPECIAL = 4 };
    for (int i = 0; i <= SPECIAL; i++) {
        const json_t *value = json_object_get(entry, flags[i]);
        if (!json_is_boolean(value))
            return akin_error_set(err, AKIN_ERR_FORMAT,
                                  "added_tokens[%zu].%s must be a boolean",
                                  index, flags[i]);
        if (i == SPECIAL)
            *special_p = json_is_true(value);
        else if (json_is_true(value))
            return akin_error_set(err, AKIN_ERR_UNSUPPORTED,
                                  "added_tokens[%zu].%s: only false is "
                                  "supported",
                                  index, flags[i]);
    }
    return AKIN_OK;
}

static akin_status_t read_added_token(akin_tokenizer_t *tokenizer,
                                      const json_t *entry, size_t index,
                                      akin_error_t *err)
{
    uint32_t id = read_id(json_object_get(entry, "id"));
    if (id == AKINI_TOKEN_NONE)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "added_tokens[%zu].id must be an integer from 0 "
                              "to %u",
                              index, AKINI_TOKEN_ID_LIMIT - 1);
    const json_t *content = json_object_get(entry, "content");
    size_t n = json_string_length(content);
    if (n == 0 || n > AKINI_ADDED_BYTES_MAX)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "added_tokens[%zu].content must be a string of 1 "
                              "to %d bytes",
                              index, AKINI_ADDED_BYTES_MAX);
    int special = 0;
    akin_status_t status = read_flags(entry, index, &special, err);
    if (status != AKIN_OK)
        return status;
    const char *text = json_string_value(content);
    status = akini_token_table_add(&tokenizer->tokens, id, text, n,
                                   special ? AKINI_TOKEN_SPECIAL
                                           : AKINI_TOKEN_ADDED);
    if (status == AKIN_ERR_EXISTS)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "added_tokens[%zu].id: %u is there twice", index,
                              id);
    if (status == AKIN_OK)
        status = akini_added_tokens_add(&tokenizer->added, text, n, id);
    if (status == AKIN_ERR_EXISTS)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "added_tokens[%zu].content is there twice",
                              index);
    return status == AKIN_OK ? AKIN_OK : no_memory(err);
}

static akin_status_t read_added(akin_tokenizer_t *tokenizer, const json_t *root,
                                akin_error_t *err)
{
    const json_t *entries = json_object_get(root, "added_tokens");
    if (entries == NULL || json_is_null(entries))
        return AKIN_OK;
    if (!json_is_array(entries))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "added_tokens must be an array");
    size_t index = 0;
    json_t *entry = NULL;
    json_array_foreach(entries, index, entry)
    {
        akin_status_t status = read_added_token(tokenizer, entry, index, err);
        if (status != AKIN_OK)
            return status;
    }
    return AKIN_OK;
}

/* One entry of model.vocab; `bytes` has room for the key. */
static akin_status_t read_token(akin_tokenizer_t *tokenizer, const char *key,
                                const json_t *value, char *bytes,
                                akin_error_t *err)
{
    char shown[48];
    (void)akini_utf8_shown(key, shown);
    uint32_t id = read_id(value);
    if (id == AKINI_TOKEN_NONE)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "model.vocab[\"%s\"] must be an integer from 0 "
                              "to %u",
                              shown, AKINI_TOKEN_ID_LIMIT - 1);
    size_t n_key = strlen(key);
    uint32_t added = akini_added_tokens_find(&tokenizer->added, key, n_key);
    if (added != AKINI_TOKEN_NONE)
        /* Some files list an added token here as well. */
        return added == id
                   ? AKIN_OK
                   : akin_error_set(err, AKIN_ERR_FORMAT,
                                    "model.vocab[\"%s\"] is %u, but %u in "
                                    "added_tokens",
                                    shown, id, added);
    size_t n = 0;
    if (n_key == 0 || akini_byte_level_decode(key, n_key, bytes, &n) != 0)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "model.vocab[\"%s\"] is not written in the "
                              "byte-level alphabet",
                              shown);
    akin_status_t status = akini_token_table_add(&tokenizer->tokens, id, bytes,
                                                 n, AKINI_TOKEN_VOCAB);
    if (status == AKIN_ERR_EXISTS)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "model.vocab[\"%s\"]: the id %u is there twice",
                              shown, id);
    return status == AKIN_OK ? AKIN_OK : no_memory(err);
}

static akin_status_t read_tokens(akin_tokenizer_t *tokenizer,
                                 const json_t *model, akin_error_t *err)
{
    json_t *vocab = json_object_get(model, "vocab");
    if (!json_is_object(vocab) || json_object_size(vocab) == 0)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "model.vocab must be an object of tokens and "
                              "their ids");
    size_t longest = 0;
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(vocab, key, value)
    {
        size_t n = strlen(key);
        longest = n > longest ? n : longest;
    }
    char *bytes = malloc(longest + 1);
    if (bytes == NULL ||
        akini_token_table_reserve(&tokenizer->tokens,
                                  json_object_size(vocab)) != AKIN_OK) {
        free(bytes);
        return no_memory(err);
    }
    akin_status_t status = AKIN_OK;
    json_object_foreach(vocab, key, value)
    {
        status = read_token(tokenizer, key, value, bytes, err);
        if (status != AKIN_OK)
            break;
    }
    free(bytes);
    for (int byte = 0; byte < 256; byte++) {
        char c = (char)byte;
        tokenizer->byte_ids[byte] =
            akini_token_table_find(&tokenizer->tokens, &c, 1);
    }
    return status;
}

/*
 * Find a part of a merge.
 * \param[out] bytes  what it stands for; room for twice the longest token.
 * \return its id, or AKINI_TOKEN_NONE.
 */
static uint32_t find_part(const akin_tokenizer_t *tokenizer, const char *part,
                          size_t n_part, char *bytes, size_t *n_p)
{
    if (n_part > 2 * (size_t)tokenizer->tokens.longest ||
        akini_byte_level_decode(part, n_part, bytes, n_p) != 0)
        return AKINI_TOKEN_NONE;
    return akini_token_table_find(&tokenizer->tokens, bytes, *n_p);
}

/* Cut a merge, ["a", "b"] or "a b", into its parts. A space is not of the
 * byte-level alphabet. Returns 0 if it is neither. */
static int cut_merge(const json_t *merge, const char *parts[2],
                     size_t n_parts[2])
{
    if (json_is_string(merge)) {
        const char *text = json_string_value(merge);
        const char *space = strchr(text, ' ');
        if (space == NULL || strchr(space + 1, ' ') != NULL)
            return 0;
        parts[0] = text;
        n_parts[0] = (size_t)(space - text);
        parts[1] = space + 1;
        n_parts[1] = strlen(space + 1);
        return 1;
    }
    if (!json_is_array(merge) || json_array_size(merge) != 2)
        return 0;
    for (size_t i = 0; i < 2; i++) {
        const json_t *part = json_array_get(merge, i);
        parts[i] = json_string_value(part);
        n_parts[i] = json_string_length(part);
        if (parts[i] == NULL)
            return 0;
    }
    return 1;
}

/* One entry of model.merges; `bytes` has room for four times the longest
 * token. */
static akin_status_t read_merge(akin_tokenizer_t *tokenizer,
                                const json_t *merge, size_t rank, char *bytes,
                                akin_error_t *err)
{
    const char *parts[2] = {NULL, NULL};
    size_t n_parts[2] = {0, 0};
    if (!cut_merge(merge, parts, n_parts))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "model.merges[%zu] must be [\"a\", \"b\"] or "
                              "\"a b\"",
                              rank);
    uint32_t ids[2];
    size_t n = 0;
    for (size_t i = 0; i < 2; i++) {
        size_t n_bytes = 0;
        ids[i] =
            find_part(tokenizer, parts[i], n_parts[i], bytes + n, &n_bytes);
        if (ids[i] == AKINI_TOKEN_NONE)
            return akin_error_set(err, AKIN_ERR_FORMAT,
                                  "model.merges[%zu]: its %s part is not in "
                                  "model.vocab",
                                  rank, i == 0 ? "first" : "second");
        n += n_bytes;
    }
    uint32_t merged = akini_token_table_find(&tokenizer->tokens, bytes, n);
    if (merged == AKINI_TOKEN_NONE)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "model.merges[%zu]: its result is not in "
                              "model.vocab",
                              rank);
    akin_status_t status =
        akini_pair_map_add(&tokenizer->merges, akini_pair_key(ids[0], ids[1]),
                           akini_pair_key((uint32_t)rank, merged));
    if (status == AKIN_ERR_EXISTS)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "model.merges[%zu] is there twice", rank);
    return status == AKIN_OK ? AKIN_OK : no_memory(err);
}

static akin_status_t read_merges(akin_tokenizer_t *tokenizer,
                                 const json_t *model, akin_error_t *err)
{
    const json_t *merges = json_object_get(model, "merges");
    if (!json_is_array(merges))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "model.merges must be an array");
    char *bytes = malloc(4 * (size_t)tokenizer->tokens.longest);
    if (bytes == NULL ||
        akini_pair_map_reserve(&tokenizer->merges, json_array_size(merges)) !=
            AKIN_OK) {
        free(bytes);
        return no_memory(err);
    }
    akin_status_t status = AKIN_OK;
    size_t rank = 0;
    json_t *merge = NULL;
    json_array_foreach(merges, rank, merge)
    {
        status = read_merge(tokenizer, merge, rank, bytes, err);
        if (status != AKIN_OK)
            break;
    }
    free(bytes);
    return status;
}

/* Options of the model that change how it merges. */
static akin_status_t read_options(akin_tokenizer_t *tokenizer,
                                  const json_t *model, akin_error_t *err)
{
    const json_t *dropout = json_object_get(model, "dropout");
    if (dropout != NULL && !json_is_null(dropout) &&
        !(json_is_number(dropout) && json_number_value(dropout) <= 0.0))
        return akin_error_set(err, AKIN_ERR_UNSUPPORTED,
                              "model.dropout is not supported; set it to null");
    static const char *const affixes[] = {"continuing_subword_prefix",
                                          "end_of_word_suffix"};
    for (int i = 0; i < 2; i++) {
        const json_t *affix = json_object_get(model, affixes[i]);
        if (affix != NULL && !json_is_null(affix) &&
            !(json_is_string(affix) && json_string_length(affix) == 0))
            return akin_error_set(err, AKIN_ERR_UNSUPPORTED,
                                  "model.%s is not supported; byte-level BPE "
                                  "has none",
                                  affixes[i]);
    }
    const json_t *flag = json_object_get(model, "byte_fallback");
    if (flag != NULL && !json_is_false(flag))
        return akin_error_set(err, AKIN_ERR_UNSUPPORTED,
                              "model.byte_fallback: only false is supported");
    flag = json_object_get(model, "ignore_merges");
    if (flag != NULL && !json_is_boolean(flag))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "model.ignore_merges must be a boolean");
    tokenizer->ignore_merges = json_is_true(flag);
    return AKIN_OK;
}

akin_status_t akini_tokenizer_read_vocab(akin_tokenizer_t *tokenizer,
                                         const json_t *root, akin_error_t *err)
{
    const json_t *model = json_object_get(root, "model");
    const char *type = json_string_value(json_object_get(model, "type"));
    if (type == NULL)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "model must be an object with a string \"type\"");
    if (strcmp(type, "BPE") != 0) {
        char shown[48];
        return akin_error_set(
            err, AKIN_ERR_UNSUPPORTED,
            "model.type: \"%s\" is not supported; only BPE is",
            akini_utf8_shown(type, shown));
    }
    akin_status_t status = read_options(tokenizer, model, err);
    if (status == AKIN_OK)
        status = read_added(tokenizer, root, err);
    if (status == AKIN_OK)
        status = read_tokens(tokenizer, model, err);
    if (status == AKIN_OK)
        status = read_merges(tokenizer, model, err);
    return status;
}
