/* Tokenizer state: what the loader fills and the encoder reads. */
#ifndef AKIN_ENGINE_TOKENIZER_STATE_H
#define AKIN_ENGINE_TOKENIZER_STATE_H

#include "engine/added_tokens.h"
#include "engine/pair_map.h"
#include "engine/pre_split.h"
#include "engine/token_table.h"
#include "engine/tokenizer.h"

#include <jansson.h>

struct akin_tokenizer {
    akini_token_table_t tokens;
    akini_pair_map_t merges; /* (left id, right id) to (rank, merged id) */
    akini_added_tokens_t added;
    akini_pre_split_t *split;
    uint32_t byte_ids[256]; /* AKINI_TOKEN_NONE: the vocabulary lacks it */
    int nfc;                /* non-zero: normalise to NFC */
    int ignore_merges;      /* non-zero: a piece that is a token stays whole */
};

/**
 * Read normalizer, pre_tokenizer, post_processor, decoder, truncation and
 * padding: whatever is between text and model.
 *
 * \param[in]  root       the file's object.
 * \param[out] tokenizer  gets nfc and split.
 * \param[out] err        names the key.
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT, AKIN_ERR_UNSUPPORTED, AKIN_ERR_NOMEM
 */
akin_status_t akini_tokenizer_read_pipeline(akin_tokenizer_t *tokenizer,
                                            const json_t *root,
                                            akin_error_t *err) AKIN_MUST_CHECK;

/** Read added_tokens and model; as akini_tokenizer_read_pipeline(). */
akin_status_t akini_tokenizer_read_vocab(akin_tokenizer_t *tokenizer,
                                         const json_t *root,
                                         akin_error_t *err) AKIN_MUST_CHECK;

#endif
