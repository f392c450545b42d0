/* Placement choice: which rank serves each expert that a step activates. */
#ifndef AKIN_EP_PLACEMENT_CHOICE_H
#define AKIN_EP_PLACEMENT_CHOICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AKIN_PLACEMENT_NO_RANK 255u

/**
 * Exactly one rank for every activated expert of one layer (METRO, arXiv
 * 2512.09277, greedy): experts with the fewest holders first, ties by index,
 * each to the holder with the fewest activated experts so far, lowest rank on
 * ties. The answer depends on the arguments alone, so all ranks agree without
 * a coordinator.
 *
 * No rank gets more than the activated experts that it holds. The largest load
 * is optimal where no activated expert has a second holder or all have the same
 * ones; it is at most ceil(log2 n_ranks) + 1 times the optimum, as of any such
 * greedy choice (Azar, Naor, Rom, "The competitiveness of on-line assignments",
 * 1995), and seldom more than one above it.
 *
 * \param[in]  holders  [n_experts] of one layer, as in a placement.
 * \param[in]  active   [(n_experts + 63) / 64] bit e: expert e is activated.
 * \param[in]  n_ranks  at most AKIN_PLACEMENT_MAX_RANKS.
 * \param[out] rank_of  [n_experts] the rank; AKIN_PLACEMENT_NO_RANK if idle.
 * \param[out] loads    [n_ranks] activated experts of each rank.
 * \return the largest load.
 */
uint32_t akin_placement_choose(const uint64_t *holders, const uint64_t *active,
                               uint32_t n_experts, uint32_t n_ranks,
                               uint8_t *rank_of, uint32_t *loads);

#ifdef __cplusplus
}
#endif

#endif
