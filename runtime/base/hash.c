/* Hashing over XXH3 of libxxhash. */
#include "base/hash.h"

#include <xxhash.h>

uint64_t akin_hash64(const void *data, size_t bytes, uint64_t seed)
{
    /* XXH3 has no promise for NULL; an empty buffer hashes its seed alone. */
    return XXH3_64bits_withSeed(data != NULL ? data : "", bytes, seed);
}
