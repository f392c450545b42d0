/* Wire: golden bytes, truncations and made-up lengths. */
#include "net/wire.h"

#include "runner.h"

#include <stdlib.h>
#include <string.h>

static void pack_all(akin_packer_t *p)
{
    const uint16_t shorts[] = {0x0102, 0xfffe};
    const uint32_t words[] = {0x01020304, 0xfffffffe, 7};
    akin_packer_u8(p, 0xab);
    akin_packer_u16(p, 0x1234);
    akin_packer_u32(p, 0xdeadbeef);
    akin_packer_u64(p, UINT64_C(0x0123456789abcdef));
    akin_packer_f32(p, -1.5f);
    akin_packer_f64(p, 0.1);
    akin_packer_bytes(p, "akin", 4);
    akin_packer_u16s(p, shorts, 2);
    akin_packer_u32s(p, words, 3);
}

/* IEEE 754: -1.5f is bfc00000, 0.1 is 3fb999999999999a. */
static const unsigned char golden[] = {
    0xab, 0x34, 0x12, 0xef, 0xbe, 0xad, 0xde, 0xef, 0xcd, 0xab, 0x89, 0x67,
    0x45, 0x23, 0x01, 0x00, 0x00, 0xc0, 0xbf, 0x9a, 0x99, 0x99, 0x99, 0x99,
    0x99, 0xb9, 0x3f, 0x04, 0x00, 0x00, 0x00, 'a',  'k',  'i',  'n',  0x02,
    0x00, 0x00, 0x00, 0x02, 0x01, 0xfe, 0xff, 0x03, 0x00, 0x00, 0x00, 0x04,
    0x03, 0x02, 0x01, 0xfe, 0xff, 0xff, 0xff, 0x07, 0x00, 0x00, 0x00};

static akin_status_t unpack_all(const unsigned char *data, size_t bytes,
                                int check)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    uint8_t a = akin_unpacker_u8(&u);
    uint16_t b = akin_unpacker_u16(&u);
    uint32_t c = akin_unpacker_u32(&u);
    uint64_t d = akin_unpacker_u64(&u);
    float e = akin_unpacker_f32(&u);
    double f = akin_unpacker_f64(&u);
    size_t n_text, n_shorts, n_words;
    const char *text = akin_unpacker_bytes(&u, &n_text);
    uint16_t *shorts = akin_unpacker_u16s(&u, 2, &n_shorts);
    uint32_t *words = akin_unpacker_u32s(&u, 3, &n_words);
    if (check) {
        CU_ASSERT_EQUAL(a, 0xab);
        CU_ASSERT_EQUAL(b, 0x1234);
        CU_ASSERT_EQUAL(c, 0xdeadbeef);
        CU_ASSERT_EQUAL(d, UINT64_C(0x0123456789abcdef));
        CU_ASSERT_EQUAL(e, -1.5f);
        CU_ASSERT_EQUAL(f, 0.1);
        CU_ASSERT_EQUAL(n_text, 4);
        CU_ASSERT(text != NULL && memcmp(text, "akin", 4) == 0);
        CU_ASSERT(n_shorts == 2 && shorts[1] == 0xfffe);
        CU_ASSERT(n_words == 3 && words[1] == 0xfffffffe && words[2] == 7);
    }
    free(shorts);
    free(words);
    return akin_unpacker_finish(&u);
}

static void test_golden(void)
{
    akin_packer_t p = {0};
    pack_all(&p);
    CU_ASSERT_EQUAL(p.status, AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(p.bytes, sizeof(golden));
    CU_ASSERT_EQUAL(memcmp(p.data, golden, sizeof(golden)), 0);
    akin_packer_reset(&p);
    pack_all(&p);
    CU_ASSERT_EQUAL(p.bytes, sizeof(golden));
    akin_packer_cleanup(&p);
    CU_ASSERT_PTR_NULL(p.data);
    CU_ASSERT_EQUAL(unpack_all(golden, sizeof(golden), 1), AKIN_OK);
}

static void test_every_truncation(void)
{
    for (size_t n = 0; n < sizeof(golden); n++) {
        /* A copy of exactly n bytes lets the sanitizer see a read beyond. */
        unsigned char *copy = malloc(n > 0 ? n : 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
        memcpy(copy, golden, n);
        CU_ASSERT_EQUAL(unpack_all(copy, n, 0), AKIN_ERR_FORMAT);
        free(copy);
    }
}

static void test_left_over(void)
{
    unsigned char longer[sizeof(golden) + 1] = {0};
    memcpy(longer, golden, sizeof(golden));
    CU_ASSERT_EQUAL(unpack_all(longer, sizeof(longer), 0), AKIN_ERR_FORMAT);
}

static void test_made_up_counts(void)
{
    const unsigned char huge[8] = {0xff, 0xff, 0xff, 0xff, 1, 0, 2, 0};
    akin_unpacker_t u;
    size_t n = 99;
    akin_unpacker_init(&u, huge, sizeof(huge));
    CU_ASSERT_PTR_NULL(akin_unpacker_bytes(&u, &n));
    CU_ASSERT_EQUAL(n, 0);
    CU_ASSERT_EQUAL(akin_unpacker_finish(&u), AKIN_ERR_FORMAT);

    akin_unpacker_init(&u, huge, sizeof(huge));
    CU_ASSERT_PTR_NULL(akin_unpacker_u16s(&u, SIZE_MAX, &n));
    CU_ASSERT_EQUAL(akin_unpacker_finish(&u), AKIN_ERR_FORMAT);

    const unsigned char three[10] = {3, 0, 0, 0, 1, 0, 2, 0, 3, 0};
    akin_unpacker_init(&u, three, sizeof(three));
    CU_ASSERT_PTR_NULL(akin_unpacker_u16s(&u, 2, &n));
    CU_ASSERT_EQUAL(akin_unpacker_finish(&u), AKIN_ERR_RANGE);
    /* After a failure everything reads as zero, without moving on. */
    CU_ASSERT_EQUAL(akin_unpacker_u8(&u), 0);
    CU_ASSERT_EQUAL(akin_unpacker_finish(&u), AKIN_ERR_RANGE);
}

static void test_growth(void)
{
    akin_packer_t p = {0};
    for (uint32_t i = 0; i < 100000; i++)
        akin_packer_u32(&p, i * 2654435761u);
    CU_ASSERT_EQUAL(p.bytes, 400000);
    akin_unpacker_t u;
    akin_unpacker_init(&u, p.data, p.bytes);
    int wrong = 0;
    for (uint32_t i = 0; i < 100000; i++)
        wrong += akin_unpacker_u32(&u) != i * 2654435761u;
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(akin_unpacker_finish(&u), AKIN_OK);
    akin_packer_cleanup(&p);
}

static const runner_test_t tests[] = {
    {"golden bytes", test_golden},
    {"every truncation is refused", test_every_truncation},
    {"left over bytes are refused", test_left_over},
    {"made-up counts are refused", test_made_up_counts},
    {"growth", test_growth},
};
RUNNER_MAIN("wire", tests)
