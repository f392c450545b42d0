/* BPE: merging the symbols of one piece by rank. */
#ifndef AKIN_ENGINE_BPE_H
#define AKIN_ENGINE_BPE_H

#include "base/status.h"
#include "engine/pair_map.h"

#include <stddef.h>
#include <stdint.h>

/** Room for merging, kept from piece to piece; zero is empty. */
typedef struct akini_bpe {
    struct akini_bpe_symbol *symbols;
    uint64_t *heap;
    size_t room; /* symbols that fit */
} akini_bpe_t;

/**
 * Merge in place until no pair is left that has a rank: always the pair of the
 * lowest rank, the leftmost of equals (Sennrich et al., ACL'16, algorithm 1).
 * O(n log n) in the symbols.
 *
 * \param[in]     merges  akini_pair_key(left id, right id) to
 *                        akini_pair_key(rank, merged id).
 * \param[in,out] bpe     room; grown as needed.
 * \param[in,out] ids     n symbols; the first *n_p hold the result.
 * \param[in]     n       below 2^31.
 * \param[out]    n_p     symbols left.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akini_bpe_merge(const akini_pair_map_t *merges, akini_bpe_t *bpe,
                              uint32_t *ids, size_t n,
                              size_t *n_p) AKIN_MUST_CHECK;

/** Free the room. */
void akini_bpe_cleanup(akini_bpe_t *bpe);

#endif
