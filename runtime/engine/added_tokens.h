/* Added tokens: a trie that finds them in raw text. */
#ifndef AKIN_ENGINE_ADDED_TOKENS_H
#define AKIN_ENGINE_ADDED_TOKENS_H

#include "base/status.h"
#include "engine/pair_map.h"

#include <stddef.h>
#include <stdint.h>

/** Bytes that one added token may have; bounds the work per text position. */
#define AKINI_ADDED_BYTES_MAX 1024

/** Zero is an empty set. */
typedef struct akini_added_tokens {
    akini_pair_map_t edges; /* (node, byte) to child node; node 0 is the root */
    akini_pair_map_t ends;  /* node to the id of the token that ends there */
    uint32_t n_nodes;       /* besides the root */
    unsigned char starts[256]; /* non-zero: a token starts with this byte */
} akini_added_tokens_t;

/**
 * Add a token.
 *
 * \param[in] content  raw text.
 * \param[in] n        its bytes, 1 to AKINI_ADDED_BYTES_MAX.
 * \param[in] id       what to report.
 * \return AKIN_OK
 * \return AKIN_ERR_RANGE: n is out of bounds.
 * \return AKIN_ERR_EXISTS: the content is there.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akini_added_tokens_add(akini_added_tokens_t *added,
                                     const char *content, size_t n,
                                     uint32_t id) AKIN_MUST_CHECK;

/**
 * Find the leftmost added token in text, the longest at that position.
 *
 * \param[in]  text   n bytes.
 * \param[out] at_p   offset of the match; n if there is none.
 * \param[out] id_p   the token.
 * \return its length; 0: none.
 */
size_t akini_added_tokens_search(const akini_added_tokens_t *added,
                                 const char *text, size_t n, size_t *at_p,
                                 uint32_t *id_p);

/** Id of the token that is exactly this text, or AKINI_TOKEN_NONE. */
uint32_t akini_added_tokens_find(const akini_added_tokens_t *added,
                                 const char *text, size_t n);

/** Free everything; the set is empty afterwards. */
void akini_added_tokens_cleanup(akini_added_tokens_t *added);

#endif
