/* Decoder: the Unicode standard's ill-formed examples, cut at every place. */
#include "engine/tokenizer.h"

#include "base/rng.h"
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistr.h>

#define FFFD "\xef\xbf\xbd"

/* In mini.json a byte is its own token. */
static akin_tokenizer_t *load(void)
{
    akin_tokenizer_t *tokenizer = NULL;
    akin_error_t err = {{0}};
    if (akin_tokenizer_load(AKIN_FIXTURES "/tokenizer/mini.json", &tokenizer,
                            &err) != AKIN_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(2);
    }
    return tokenizer;
}

static size_t decode(const akin_tokenizer_t *tokenizer,
                     const unsigned char *bytes, size_t n, char *text)
{
    akin_decoder_t decoder = {0};
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        used +=
            akin_decoder_push(&decoder, tokenizer, bytes[i], 0, text + used);
    used += akin_decoder_finish(&decoder, text + used);
    text[used] = '\0';
    return used;
}

static void maximal_subparts(void)
{
    static const struct {
        const char *bytes;
        const char *text;
    } cases[] = {
        /* Unicode 15, tables 3-8 to 3-11 and the example of D93b. */
        {"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41",
         FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A"},
        {"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41",
         FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A"},
        {"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42",
         FFFD FFFD FFFD FFFD FFFD "A" FFFD FFFD "B"},
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", FFFD FFFD FFFD FFFD "A"},
        {"\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64",
         "a" FFFD FFFD FFFD "b" FFFD "c" FFFD FFFD "d"},
        {"\xf0\x9f\x9a\x80\xc3\xa9\xe2\x82\xac", "🚀é€"},
        {"\xf0\x9f\x9a", FFFD},
        {"\xe2\x82", FFFD},
        {"\xc3", FFFD},
    };
    akin_tokenizer_t *tokenizer = load();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[128];
        (void)decode(tokenizer, (const unsigned char *)cases[i].bytes,
                     strlen(cases[i].bytes), text);
        CU_ASSERT_STRING_EQUAL(text, cases[i].text);
    }
    akin_tokenizer_destroy(tokenizer);
}

/* The same by looking ahead instead of holding back: at each place the longest
 * start of a well-formed character, found by trying every continuation that
 * could complete it. */
static size_t well_formed_start(const unsigned char *bytes, size_t n)
{
    static const unsigned char tails[] = {0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf};
    for (size_t keep = n < 3 ? n : 3; keep > 0; keep--)
        for (size_t total = keep + 1; total <= 4; total++)
            for (size_t i = 0; i < sizeof(tails); i++) {
                unsigned char whole[4];
                memset(whole, 0x80, sizeof(whole));
                memcpy(whole, bytes, keep);
                whole[keep] = tails[i];
                if (u8_strmblen((const uint8_t[5]){whole[0], whole[1], whole[2],
                                                   whole[3], 0}) == (int)total)
                    return keep;
            }
    return 1;
}

static size_t reference(const unsigned char *bytes, size_t n, char *text)
{
    size_t used = 0;
    for (size_t at = 0; at < n;) {
        int whole = u8_mblen(bytes + at, n - at);
        if (bytes[at] == 0)
            whole = 1;
        if (whole > 0) {
            memcpy(text + used, bytes + at, (size_t)whole);
            used += (size_t)whole;
            at += (size_t)whole;
        } else {
            memcpy(text + used, FFFD, 3);
            used += 3;
            at += well_formed_start(bytes + at, n - at);
        }
    }
    return used;
}

static void random_bytes_equal_reference(void)
{
    static const unsigned char some[] = {
        0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
        0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
        0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff};
    akin_tokenizer_t *tokenizer = load();
    size_t n_wrong = 0;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        unsigned char bytes[12];
        for (uint64_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = some[akin_rng_below(seed, 1, i, sizeof(some))];
        char got[64];
        char want[64];
        size_t n = decode(tokenizer, bytes, sizeof(bytes), got);
        size_t n_want = reference(bytes, sizeof(bytes), want);
        n_wrong += n != n_want || memcmp(got, want, n) != 0;
    }
    CU_ASSERT_EQUAL(n_wrong, 0);
    akin_tokenizer_destroy(tokenizer);
}

/* What is out after k tokens is the text of the whole, cut at the last
 * character that the k tokens complete. */
static void stream_never_takes_back(void)
{
    static const char text[] = "aé日🚀ह\u0301z";
    akin_tokenizer_t *tokenizer = load();
    akin_decoder_t decoder = {0};
    char out[64];
    size_t used = 0;
    for (size_t k = 0; k < sizeof(text) - 1; k++) {
        used += akin_decoder_push(&decoder, tokenizer, (unsigned char)text[k],
                                  0, out + used);
        size_t whole = k + 1;
        while (whole > 0 && u8_check((const uint8_t *)text, whole) != NULL)
            whole--;
        CU_ASSERT_EQUAL(used, whole);
        CU_ASSERT(memcmp(out, text, used) == 0);
    }
    CU_ASSERT_EQUAL(used, sizeof(text) - 1);
    akin_tokenizer_destroy(tokenizer);
}

static void room_is_enough(void)
{
    akin_tokenizer_t *tokenizer = load();
    /* The longest token is "<|end|>x". */
    CU_ASSERT_EQUAL(akin_decoder_room(tokenizer), 3 * 8 + 12);
    akin_tokenizer_destroy(tokenizer);
}

static const runner_test_t tests[] = {
    {"maximal subparts", maximal_subparts},
    {"random bytes equal reference", random_bytes_equal_reference},
    {"stream never takes back", stream_never_takes_back},
    {"room is enough", room_is_enough},
};

RUNNER_MAIN("decoder", tests)
