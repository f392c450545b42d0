/* Fuzz: the entry point that every fuzz target defines. */
#ifndef AKIN_TESTS_FUZZ_H
#define AKIN_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/**
 * Feed one input to the code under test, which may refuse it but must not
 * crash, hang or leak.
 *
 * \param[in] data  size_bytes bytes, not terminated; not NULL.
 * \param[in] size_bytes  length of the input, may be 0.
 * \return 0 always.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

#endif
