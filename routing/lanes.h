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

#endif
