/* Tokenizer: byte-level BPE as tokenizer.json describes it. */
#ifndef AKIN_ENGINE_TOKENIZER_H
#define AKIN_ENGINE_TOKENIZER_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_tokenizer akin_tokenizer_t;

/**
 * Load tokenizer.json: model BPE (merges as pairs or as "a b" strings),
 * normalizer NFC or none, pre-tokenizer Split by regex (Isolated) then
 * ByteLevel, added tokens.
 *
 * \param[in]  path         the file.
 * \param[out] tokenizer_p  owned by the caller; read-only afterwards, so any
 *                          number of threads may use it.
 * \param[out] err          names the file and the key.
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND, AKIN_ERR_IO
 * \return AKIN_ERR_FORMAT: not JSON, wrong type, an id twice, a merge whose
 *         parts or result are not in the vocabulary, a regex that does not
 *         compile.
 * \return AKIN_ERR_UNSUPPORTED: another model type or pipeline step, named.
 */
akin_status_t akin_tokenizer_load(const char *path,
                                  akin_tokenizer_t **tokenizer_p,
                                  akin_error_t *err) AKIN_MUST_CHECK;

/** As akin_tokenizer_load(), from the file's text; `name` is for messages. At
 * most 256 MiB. */
akin_status_t akin_tokenizer_parse(const char *text, size_t bytes,
                                   const char *name,
                                   akin_tokenizer_t **tokenizer_p,
                                   akin_error_t *err) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akin_tokenizer_destroy(akin_tokenizer_t *tokenizer);

/** Highest token id + 1, added tokens included. */
uint32_t akin_tokenizer_size(const akin_tokenizer_t *tokenizer);

/** Longest text that one call encodes: bounds the memory that a call takes
 * (about 44 bytes per byte of the longest piece). */
#define AKIN_TOKENIZER_TEXT_BYTES_MAX ((size_t)16 << 20)

/**
 * Encode text. Added tokens are cut out first, longest match at the leftmost
 * position; the rest is normalised, split and merged.
 *
 * \param[in]  text, bytes  UTF-8, NUL bytes allowed.
 * \param[out] ids_p        malloc'ed array, owned by the caller; NULL if empty.
 * \param[out] n_ids_p      its length.
 * \param[out] err          names the byte offset of invalid UTF-8.
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT: invalid UTF-8, or a byte that the vocabulary lacks.
 * \return AKIN_ERR_RANGE: more than AKIN_TOKENIZER_TEXT_BYTES_MAX.
 * \return AKIN_ERR_TIMEOUT: the split regex took more steps than a text of
 *         this length is given; the same text always ends so.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_tokenizer_encode(const akin_tokenizer_t *tokenizer,
                                    const char *text, size_t bytes,
                                    uint32_t **ids_p, size_t *n_ids_p,
                                    akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Id of an added or vocabulary token by its exact content (raw text for added
 * tokens, byte-level alphabet for the others).
 *
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_tokenizer_find(const akin_tokenizer_t *tokenizer,
                                  const char *content,
                                  uint32_t *id_p) AKIN_MUST_CHECK;

/**
 * Bytes that a token stands for (they need not be whole UTF-8 characters).
 *
 * \param[in]  id
 * \param[out] bytes_p  borrowed from the tokenizer.
 * \param[out] n_p      length; 0 for ids that have no entry (rows of the
 *                      embedding beyond the tokenizer).
 * \param[out] special_p  non-zero for added tokens marked special, which are
 *                        left out of decoded text; may be NULL.
 */
void akin_tokenizer_token(const akin_tokenizer_t *tokenizer, uint32_t id,
                          const char **bytes_p, size_t *n_p, int *special_p);

/**
 * Streaming decoder: holds back the bytes of a UTF-8 character that is not
 * complete yet. Zero-initialise it: `akin_decoder_t decoder = {0};`.
 */
typedef struct akin_decoder {
    unsigned char held[4]; /* start of an unfinished character */
    uint32_t n_held;
} akin_decoder_t;

/**
 * Append the text that a token completes to a buffer. Ill-formed bytes come
 * out as U+FFFD, one per maximal subpart, as Unicode recommends (and as the
 * streaming decoders of others print them).
 *
 * \param[in,out] decoder
 * \param[in]     id
 * \param[in]     keep_special  non-zero: special tokens are text too.
 * \param[out]    text          at least akin_decoder_room() bytes;
 *                              not NUL-terminated.
 * \return bytes written.
 */
size_t akin_decoder_push(akin_decoder_t *decoder,
                         const akin_tokenizer_t *tokenizer, uint32_t id,
                         int keep_special, char *text);

/** Flush at the end: an unfinished character comes out as U+FFFD. */
size_t akin_decoder_finish(akin_decoder_t *decoder, char *text);

/** Bytes that one push or finish can write: 3 per byte of the longest token,
 * and 12 for what was held. */
size_t akin_decoder_room(const akin_tokenizer_t *tokenizer);

#ifdef __cplusplus
}
#endif

#endif
