/* Placement choice: which rank serves each expert that a step activates. */
#include "ep/placement_choice.h"

#include <string.h>

/* The holder with the fewest activated experts, lowest rank on ties. */
static uint32_t least_loaded(uint64_t holders, const uint32_t *loads)
{
    uint32_t best = (uint32_t)__builtin_ctzll(holders);
    for (holders &= holders - 1; holders != 0; holders &= holders - 1) {
        uint32_t rank = (uint32_t)__builtin_ctzll(holders);
        if (loads[rank] < loads[best])
            best = rank;
    }
    return best;
}

/* Experts with one holder have no choice and go first. Gives the numbers of
 * holders of the others, bit n - 1 for n. */
static uint64_t serve_single(const uint64_t *holders, const uint64_t *active,
                             uint32_t n_words, uint8_t *rank_of,
                             uint32_t *loads)
{
    uint64_t numbers = 0;
    for (uint32_t w = 0; w < n_words; w++)
        for (uint64_t bits = active[w]; bits != 0; bits &= bits - 1) {
            uint32_t e = w * 64 + (uint32_t)__builtin_ctzll(bits);
            uint64_t held = holders[e];
            if ((held & (held - 1)) != 0) {
                numbers |= UINT64_C(1) << (__builtin_popcountll(held) - 1);
            } else if (held != 0) {
                uint32_t rank = (uint32_t)__builtin_ctzll(held);
                rank_of[e] = (uint8_t)rank;
                loads[rank]++;
            }
        }
    return numbers;
}

/* Experts with that many holders, in the order of their index. */
static void serve_shared(const uint64_t *holders, const uint64_t *active,
                         uint32_t n_words, int n_holders, uint8_t *rank_of,
                         uint32_t *loads)
{
    for (uint32_t w = 0; w < n_words; w++)
        for (uint64_t bits = active[w]; bits != 0; bits &= bits - 1) {
            uint32_t e = w * 64 + (uint32_t)__builtin_ctzll(bits);
            uint64_t held = holders[e];
            if ((held & (held - 1)) == 0 ||
                __builtin_popcountll(held) != n_holders)
                continue;
            uint32_t rank = least_loaded(held, loads);
            rank_of[e] = (uint8_t)rank;
            loads[rank]++;
        }
}

uint32_t akin_placement_choose(const uint64_t *holders, const uint64_t *active,
                               uint32_t n_experts, uint32_t n_ranks,
                               uint8_t *rank_of, uint32_t *loads)
{
    const uint32_t n_words = (n_experts + 63) / 64;
    memset(rank_of, (int)AKIN_PLACEMENT_NO_RANK, n_experts);
    memset(loads, 0, n_ranks * sizeof(*loads));
    uint64_t numbers = serve_single(holders, active, n_words, rank_of, loads);
    for (; numbers != 0; numbers &= numbers - 1)
        serve_shared(holders, active, n_words, __builtin_ctzll(numbers) + 1,
                     rank_of, loads);
    uint32_t largest = 0;
    for (uint32_t r = 0; r < n_ranks; r++)
        if (loads[r] > largest)
            largest = loads[r];
    return largest;
}
