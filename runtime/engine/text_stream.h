/* Text stream: tokens to text that may be shown, up to a stop string. */
#ifndef AKIN_ENGINE_TEXT_STREAM_H
#define AKIN_ENGINE_TEXT_STREAM_H

#include "base/error.h"
#include "engine/tokenizer.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_text_stream akin_text_stream_t;

/**
 * \param[in]  tokenizer  borrowed; must outlive the stream.
 * \param[in]  stops      [n_stops] non-empty strings; copied.
 * \param[in]  stop_bytes [n_stops] their lengths, since a NUL may be inside;
 *                        NULL: each ends with its first NUL.
 * \param[out] stream_p   owned by the caller.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t
akin_text_stream_create(const akin_tokenizer_t *tokenizer,
                        const char *const *stops, const size_t *stop_bytes,
                        size_t n_stops,
                        akin_text_stream_t **stream_p) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akin_text_stream_destroy(akin_text_stream_t *stream);

/**
 * Add a token. Text that may still turn out to begin a stop string, and bytes
 * of an unfinished character, are held back. The text ends before the stop
 * string that begins first.
 *
 * \param[in]  id         token; special ones give no text.
 * \param[out] text_p     new text, borrowed until the next call; not
 *                        NUL-terminated.
 * \param[out] bytes_p    its length.
 * \param[out] stopped_p  non-zero: a stop string was found; nothing may be
 *                        pushed any more.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM: nothing was added.
 */
akin_status_t akin_text_stream_push(akin_text_stream_t *stream, uint32_t id,
                                    const char **text_p, size_t *bytes_p,
                                    int *stopped_p) AKIN_MUST_CHECK;

/** What was held back, when the tokens end without a stop string. */
void akin_text_stream_finish(akin_text_stream_t *stream, const char **text_p,
                             size_t *bytes_p);

#ifdef __cplusplus
}
#endif

#endif
