/* Lanes: sixteen floats at a time, and one clone of a function per
 * instruction set. */
#ifndef AKIN_ROUTING_LANES_H
#define AKIN_ROUTING_LANES_H

#include <stdint.h>

/*
 * Clones are picked by the loader before a sanitizer has started, so those
 * builds do without, and so do compilers that are not known to support them.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) &&         \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define AKINI_CLONES                                                           \
    __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define AKINI_CLONES
#endif

/* A part of a clone: always inlined, so that it has the clone's instructions.
 */
#define AKINI_INLINE static inline __attribute__((always_inline))

enum {
    AKINI_LANES = 16,
    /* Float lanes are added up over this many cells, then go to a double. */
    AKINI_FLUSH_CELLS = 512
};

/*
 * The compiler splits these to what the target has. The arrays they are read
 * from are those of the caller, hence may_alias and the alignment of a float.
 */
typedef float akini_lanes_t
    __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t akini_lanes_int_t
    __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t akini_lanes_bits_t
    __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint16_t akini_lanes_count_t
    __attribute__((vector_size(32), aligned(2), may_alias));

/* Half the lanes, in float and in double. */
typedef float akini_half_t __attribute__((vector_size(32)));
typedef double akini_wide_t __attribute__((vector_size(64)));

/** Add lanes of float to as many of double. */
AKINI_INLINE void akini_lanes_widen(const akini_lanes_t *lanes,
                                    akini_wide_t *wide)
{
    akini_lanes_t part = *lanes;
    akini_half_t low =
        __builtin_shufflevector(part, part, 0, 1, 2, 3, 4, 5, 6, 7);
    akini_half_t high =
        __builtin_shufflevector(part, part, 8, 9, 10, 11, 12, 13, 14, 15);
    wide[0] += __builtin_convertvector(low, akini_wide_t);
    wide[1] += __builtin_convertvector(high, akini_wide_t);
}

/** Sum of the lanes of double, half by half. */
AKINI_INLINE double akini_lanes_fold(const akini_wide_t *wide)
{
    akini_wide_t eight = wide[0] + wide[1];
    double four[4];
    for (int lane = 0; lane < 4; lane++)
        four[lane] = eight[lane] + eight[lane + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

#endif
