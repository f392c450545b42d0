/* Nearest name: what a misspelled key, option or field may have meant. */
#ifndef AKIN_BASE_NEAREST_H
#define AKIN_BASE_NEAREST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Longest word and name that are compared, with the final NUL. */
#define AKIN_NEAREST_BYTES 96

/**
 * A search under way. Start it with akin_nearest_init(), offer every known
 * name, then read `name`: it is "" if none is near enough. Owns no memory.
 */
typedef struct akin_nearest {
    const char *word; /* borrowed */
    size_t distance;  /* of `name`; meaningless while that is "" */
    char name[AKIN_NEAREST_BYTES];
} akin_nearest_t;

/**
 * Edits that turn one name into the other: insert, delete or replace a letter
 * or swap two neighbours (Damerau-Levenshtein distance in its restricted form,
 * which edits no substring twice). ASCII letters compare without case.
 *
 * \param[in] a, b  names below AKIN_NEAREST_BYTES bytes.
 * \return number of edits; SIZE_MAX if a name is too long.
 */
size_t akin_nearest_distance(const char *a, const char *b);

/**
 * Start a search.
 *
 * \param[out] nearest  the search.
 * \param[in]  word     what the user wrote; borrowed until the search ends.
 */
void akin_nearest_init(akin_nearest_t *nearest, const char *word);

/**
 * Offer one known name; the first of equally near ones wins. A name is near
 * enough if at most a third of the word's letters, but at least one, differ
 * and some letter agrees.
 *
 * \param[in,out] nearest  the search.
 * \param[in]     name     need not be NUL-terminated; copied if it is best.
 * \param[in]     bytes    its length; names too long to compare are skipped.
 */
void akin_nearest_offer(akin_nearest_t *nearest, const char *name,
                        size_t bytes);

/**
 * Search a list in one call.
 *
 * \param[in] word   what the user wrote.
 * \param[in] names  known names, each NUL-terminated.
 * \param[in] n      their number.
 * \return the nearest element of `names`, borrowed; NULL if none is near.
 */
const char *akin_nearest_name(const char *word, const char *const *names,
                              size_t n);

#ifdef __cplusplus
}
#endif

#endif
