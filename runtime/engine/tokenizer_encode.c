/* Encoding: text to ids, stretch by stretch between added tokens. */
#include "engine/tokenizer.h"

#include "engine/bpe.h"
#include "engine/tokenizer_state.h"

#include <errno.h>
#include <stdlib.h>
#include <uninorm.h>
#include <unistr.h>

typedef struct encoder {
    const akin_tokenizer_t *tokenizer;
    akini_splitter_t *splitter;
    akini_bpe_t bpe;
    uint32_t *ids;
    size_t n_ids;
    size_t room;
} encoder_t;

static akin_status_t no_memory(akin_error_t *err)
{
    return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory for the tokens");
}

static akin_status_t reserve(encoder_t *encoder, size_t n, akin_error_t *err)
{
    if (encoder->room - encoder->n_ids >= n)
        return AKIN_OK;
    size_t room = encoder->room + encoder->room / 2 + n + 64;
    uint32_t *ids = realloc(encoder->ids, room * sizeof(*ids));
    if (ids == NULL)
        return no_memory(err);
    encoder->ids = ids;
    encoder->room = room;
    return AKIN_OK;
}

static akin_status_t encode_piece(encoder_t *encoder, const char *piece,
                                  size_t n, akin_error_t *err)
{
    const akin_tokenizer_t *tokenizer = encoder->tokenizer;
    akin_status_t status = reserve(encoder, n, err);
    if (status != AKIN_OK)
        return status;
    uint32_t *ids = encoder->ids + encoder->n_ids;
    if (tokenizer->ignore_merges) {
        uint32_t whole = akini_token_table_find(&tokenizer->tokens, piece, n);
        if (whole != AKINI_TOKEN_NONE) {
            ids[0] = whole;
            encoder->n_ids++;
            return AKIN_OK;
        }
    }
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)piece[i];
        ids[i] = tokenizer->byte_ids[byte];
        if (ids[i] == AKINI_TOKEN_NONE)
            return akin_error_set(err, AKIN_ERR_FORMAT,
                                  "the vocabulary has no token for byte 0x%02x",
                                  byte);
    }
    size_t n_merged = 0;
    status =
        akini_bpe_merge(&tokenizer->merges, &encoder->bpe, ids, n, &n_merged);
    if (status != AKIN_OK)
        return no_memory(err);
    encoder->n_ids += n_merged;
    return AKIN_OK;
}

static akin_status_t encode_pieces(encoder_t *encoder, const char *text,
                                   size_t n, akin_error_t *err)
{
    akini_splitter_start(encoder->splitter, text, n);
    for (;;) {
        const char *piece = NULL;
        size_t n_piece = 0;
        akin_status_t status =
            akini_splitter_next(encoder->splitter, &piece, &n_piece, err);
        if (status == AKIN_OK && n_piece > 0)
            status = encode_piece(encoder, piece, n_piece, err);
        if (status != AKIN_OK || n_piece == 0)
            return status;
    }
}

/* Every character below U+0300, whose lead bytes end at CB, is its own NFC and
 * composes with nothing before it. */
static int may_change_in_nfc(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] >= 0xcc)
            return 1;
    return 0;
}

/* A stretch of text without added tokens. */
static akin_status_t encode_stretch(encoder_t *encoder, const char *text,
                                    size_t n, akin_error_t *err)
{
    if (n == 0)
        return AKIN_OK;
    if (!encoder->tokenizer->nfc || !may_change_in_nfc(text, n))
        return encode_pieces(encoder, text, n, err);
    size_t n_nfc = 0;
    uint8_t *nfc =
        u8_normalize(UNINORM_NFC, (const uint8_t *)text, n, NULL, &n_nfc);
    if (nfc == NULL)
        return errno == ENOMEM
                   ? no_memory(err)
                   : akin_error_set(err, AKIN_ERR_FORMAT,
                                    "the text cannot be normalised to NFC");
    akin_status_t status =
        encode_pieces(encoder, (const char *)nfc, n_nfc, err);
    free(nfc);
    return status;
}

static akin_status_t encode(encoder_t *encoder, const char *text, size_t n,
                            akin_error_t *err)
{
    while (n > 0) {
        size_t at = 0;
        uint32_t id = 0;
        size_t n_added = akini_added_tokens_search(&encoder->tokenizer->added,
                                                   text, n, &at, &id);
        akin_status_t status = encode_stretch(encoder, text, at, err);
        if (status == AKIN_OK && n_added > 0)
            status = reserve(encoder, 1, err);
        if (status != AKIN_OK)
            return status;
        if (n_added > 0)
            encoder->ids[encoder->n_ids++] = id;
        text += at + n_added;
        n -= at + n_added;
    }
    return AKIN_OK;
}

akin_status_t akin_tokenizer_encode(const akin_tokenizer_t *tokenizer,
                                    const char *text, size_t bytes,
                                    uint32_t **ids_p, size_t *n_ids_p,
                                    akin_error_t *err)
{
    *ids_p = NULL;
    if (bytes > AKIN_TOKENIZER_TEXT_BYTES_MAX)
        return akin_error_set(err, AKIN_ERR_RANGE,
                              "the text has %zu bytes; at most %zu can be "
                              "encoded at once",
                              bytes, AKIN_TOKENIZER_TEXT_BYTES_MAX);
    if (bytes == 0) {
        *n_ids_p = 0;
        return AKIN_OK;
    }
    const uint8_t *start = (const uint8_t *)text;
    const uint8_t *bad = u8_check(start, bytes);
    if (bad != NULL)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "invalid UTF-8 at byte %zu of the text (0x%02x)",
                              (size_t)(bad - start), *bad);

    encoder_t encoder = {.tokenizer = tokenizer};
    akin_status_t status =
        akini_splitter_create(tokenizer->split, &encoder.splitter);
    if (status != AKIN_OK)
        return no_memory(err);
    status = encode(&encoder, text, bytes, err);
    akini_splitter_destroy(encoder.splitter);
    akini_bpe_cleanup(&encoder.bpe);
    if (status != AKIN_OK) {
        free(encoder.ids);
        return status;
    }
    if (encoder.n_ids == 0) {
        free(encoder.ids);
        return AKIN_OK;
    }
    uint32_t *shrunk =
        realloc(encoder.ids, encoder.n_ids * sizeof(*encoder.ids));
    if (shrunk != NULL)
        encoder.ids = shrunk;
    *ids_p = encoder.ids;
    *n_ids_p = encoder.n_ids;
    return AKIN_OK;
}
