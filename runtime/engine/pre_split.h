/* Pre-split: the pre-tokenizer's regex cuts text into pieces to merge. */
#ifndef AKIN_ENGINE_PRE_SPLIT_H
#define AKIN_ENGINE_PRE_SPLIT_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/** A compiled regex; read-only, any number of threads may split with it. */
typedef struct akini_pre_split akini_pre_split_t;

/**
 * Compile a regex with Unicode properties. White space is that of the Unicode
 * property, as in the regex engine of the `tokenizers` library.
 *
 * \param[in]  regex    UTF-8, NUL-terminated.
 * \param[out] split_p  owned by the caller.
 * \param[out] err      what is wrong, and at which byte of the regex.
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT: it does not compile.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akini_pre_split_create(const char *regex,
                                     akini_pre_split_t **split_p,
                                     akin_error_t *err) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akini_pre_split_destroy(akini_pre_split_t *split);

/** One thread's walk over the pieces of texts. */
typedef struct akini_splitter akini_splitter_t;

/**
 * \param[in]  split       must outlive the splitter.
 * \param[out] splitter_p  owned by the caller.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t
akini_splitter_create(const akini_pre_split_t *split,
                      akini_splitter_t **splitter_p) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akini_splitter_destroy(akini_splitter_t *splitter);

/**
 * Start on a text.
 *
 * \param[in] text  well-formed UTF-8; borrowed until the next start.
 * \param[in] n     bytes.
 */
void akini_splitter_start(akini_splitter_t *splitter, const char *text,
                          size_t n);

/**
 * The next piece: a match, or what lies between two matches ("Isolated").
 * Pieces follow one another without holes; none is empty.
 *
 * \param[out] piece_p  borrowed from the text.
 * \param[out] n_p      its bytes; 0 at the end of the text.
 * \param[out] err      the byte of the text where the regex gave up.
 * \return AKIN_OK
 * \return AKIN_ERR_TIMEOUT: the regex took more steps than the text allows.
 *         The bound counts steps, not time, so that a text is refused always
 *         or never.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akini_splitter_next(akini_splitter_t *splitter,
                                  const char **piece_p, size_t *n_p,
                                  akin_error_t *err) AKIN_MUST_CHECK;

#endif
