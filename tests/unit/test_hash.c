/* Hashing: XXH3-64 against the published sanity values of xxHash. */
#include "base/hash.h"
#include "runner.h"

#define PRIME32 UINT64_C(2654435761)
#define PRIME64 UINT64_C(11400714785074694797)

/* Length, hash with seed 0, hash with seed PRIME64 of the first bytes of the
 * sanity buffer; each length takes another path through XXH3. */
static const struct {
    size_t bytes;
    uint64_t plain;
    uint64_t seeded;
} known[] = {
    {0, UINT64_C(0x2D06800538D394C2), UINT64_C(0xA8A6B918B2F0364A)},
    {1, UINT64_C(0xC44BDFF4074EECDB), UINT64_C(0x032BE332DD766EF8)},
    {6, UINT64_C(0x27B56A84CD2D7325), UINT64_C(0x84589C116AB59AB9)},
    {12, UINT64_C(0xA713DAF0DFBB77E7), UINT64_C(0xE7303E1B2336DE0E)},
    {24, UINT64_C(0xA3FE70BF9D3510EB), UINT64_C(0x850E80FC35BDD690)},
    {48, UINT64_C(0x397DA259ECBA1F11), UINT64_C(0xADC2CBAA44ACC616)},
    {80, UINT64_C(0xBCDEFBBB2C47C90A), UINT64_C(0xC6DD0CB699532E73)},
    {195, UINT64_C(0xCD94217EE362EC3A), UINT64_C(0xBA68003D370CB3D9)},
    {512, UINT64_C(0x617E49599013CB6B), UINT64_C(0x3CE457DE14C27708)},
};

static void test_known_answers(void)
{
    unsigned char buffer[512];
    uint64_t generator = PRIME32;
    for (size_t i = 0; i < sizeof(buffer); i++) {
        buffer[i] = (unsigned char)(generator >> 56);
        generator *= PRIME64;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        CU_ASSERT_EQUAL(akin_hash64(buffer, known[i].bytes, 0), known[i].plain);
        CU_ASSERT_EQUAL(akin_hash64(buffer, known[i].bytes, PRIME64),
                        known[i].seeded);
    }
}

static void test_no_bytes(void)
{
    CU_ASSERT_EQUAL(akin_hash64(NULL, 0, 0), known[0].plain);
    CU_ASSERT_EQUAL(akin_hash64(NULL, 0, PRIME64), known[0].seeded);
}

static void test_alignment(void)
{
    /* Payloads start anywhere in a message. */
    unsigned char buffer[512 + 8];
    uint64_t first = 0;
    for (size_t shift = 0; shift < 8; shift++) {
        for (size_t i = 0; i < 512; i++)
            buffer[shift + i] = (unsigned char)i;
        uint64_t hash = akin_hash64(buffer + shift, 512, 9);
        first = shift == 0 ? hash : first;
        CU_ASSERT_EQUAL(hash, first);
    }
}

static const runner_test_t tests[] = {
    {"known answers", test_known_answers},
    {"no bytes", test_no_bytes},
    {"alignment", test_alignment},
};
RUNNER_MAIN("hash", tests)
