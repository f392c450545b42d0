/* BLAKE2b-64 against digests of another implementation (Python's hashlib). */
#include "runner.h"

#include "routing/blake2b.h"

#include <stdint.h>

static void test_lengths(void)
{
    /* Message of n bytes: byte i is (7 i + n) mod 251. */
    static const struct {
        size_t bytes;
        uint64_t hash;
    } rows[] = {
        {0, 0xe4a6a0577479b2b4},    {1, 0x00e83d0a3f7519ad},
        {63, 0x3b8f2f162db9dd58},   {127, 0xfbc9057ff50a245b},
        {128, 0xb6fbf1ad5f6d75d4},  {129, 0x0889b1dcad73dac4},
        {255, 0xe2054f347fbe8bb5},  {256, 0xad5bd3d97041f783},
        {257, 0x11c3c2137a4a1dfd},  {1000, 0x818f803264f29004},
        {1024, 0xa2a05a0f193dfe12},
    };
    uint8_t message[1024];
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        for (size_t i = 0; i < rows[r].bytes; i++)
            message[i] = (uint8_t)((i * 7 + rows[r].bytes) % 251);
        CU_ASSERT_EQUAL(akini_blake2b_64(message, rows[r].bytes), rows[r].hash);
    }
    CU_ASSERT_EQUAL(akini_blake2b_64(NULL, 0), rows[0].hash);
}

static const runner_test_t tests[] = {
    {"lengths", test_lengths},
};

RUNNER_MAIN("blake2b", tests)
