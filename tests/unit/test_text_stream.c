/* Text stream: stop strings and characters cut by tokens at every place,
 * against a search in the whole text after each token. */
#include "engine/text_stream.h"

#include "draw.h"
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FFFD "\xef\xbf\xbd"
#define MAX_TEXT 1024u
#define MAX_IDS 64u

/* Ids of mini.json: a byte is its own token; these are longer ones. */
enum { AA = 256, HELLO = 261, E_ACUTE = 264, BC = 265, AB = 266, ABC = 267 };
enum { END = 268 /* special: gives no text */ };

static akin_tokenizer_t *tokenizer;

static void close_tokenizer(void)
{
    akin_tokenizer_destroy(tokenizer);
}

static akin_text_stream_t *create(const char *const *stops, size_t n_stops)
{
    akin_text_stream_t *stream = NULL;
    akin_error_t err = {{0}};
    if (tokenizer == NULL &&
        (akin_tokenizer_load(AKIN_FIXTURES "/tokenizer/mini.json", &tokenizer,
                             &err) != AKIN_OK ||
         atexit(close_tokenizer) != 0)) {
        (void)fprintf(stderr, "%s\n", err.text);
        exit(2);
    }
    CU_ASSERT_EQUAL_FATAL(
        akin_text_stream_create(tokenizer, stops, NULL, n_stops, &stream),
        AKIN_OK);
    return stream;
}

/* Text of a prefix of the tokens by decoding it from the start. */
static size_t decode(const uint32_t *ids, size_t n, int finish, char *text)
{
    akin_decoder_t decoder = {0};
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes +=
            akin_decoder_push(&decoder, tokenizer, ids[i], 0, text + bytes);
    if (finish)
        bytes += akin_decoder_finish(&decoder, text + bytes);
    text[bytes] = '\0';
    return bytes;
}

/* Where the first stop string of a text begins; its length if there is none. */
static size_t first_stop(const char *text, size_t bytes,
                         const char *const *stops, size_t n_stops)
{
    for (size_t at = 0; at < bytes; at++)
        for (size_t i = 0; i < n_stops; i++) {
            size_t n = strlen(stops[i]);
            if (n <= bytes - at && memcmp(text + at, stops[i], n) == 0)
                return at;
        }
    return bytes;
}

/* Where the text begins that a longer text could turn into a stop string. */
static size_t first_open(const char *text, size_t bytes,
                         const char *const *stops, size_t n_stops)
{
    for (size_t at = 0; at < bytes; at++)
        for (size_t i = 0; i < n_stops; i++)
            if (strlen(stops[i]) > bytes - at &&
                memcmp(text + at, stops[i], bytes - at) == 0)
                return at;
    return bytes;
}

/* Push tokens; after each one the stream must have given out exactly what the
 * whole text says. Returns 1 if it stopped. */
static int follow(const uint32_t *ids, size_t n, const char *const *stops,
                  size_t n_stops, char *out)
{
    char whole[MAX_TEXT];
    const char *text = NULL;
    size_t bytes = 0, got = 0, total = 0;
    unsigned wrong = 0;
    int stopped = 0;
    akin_text_stream_t *stream = create(stops, n_stops);
    for (size_t i = 0; i < n && !stopped; i++) {
        CU_ASSERT_EQUAL_FATAL(
            akin_text_stream_push(stream, ids[i], &text, &bytes, &stopped),
            AKIN_OK);
        CU_ASSERT_FATAL(got + bytes < MAX_TEXT);
        if (bytes > 0)
            memcpy(out + got, text, bytes);
        got += bytes;
        total = decode(ids, i + 1, 0, whole);
        size_t end = first_stop(whole, total, stops, n_stops);
        wrong += stopped != (end < total);
        if (!stopped)
            end = first_open(whole, total, stops, n_stops);
        wrong += got != end || memcmp(out, whole, end) != 0;
    }
    if (!stopped) {
        akin_text_stream_finish(stream, &text, &bytes);
        CU_ASSERT_FATAL(got + bytes < MAX_TEXT);
        if (bytes > 0)
            memcpy(out + got, text, bytes);
        got += bytes;
        total = decode(ids, n, 1, whole);
        wrong += got != total || memcmp(out, whole, total) != 0;
    }
    out[got] = '\0';
    CU_ASSERT_EQUAL(wrong, 0);
    akin_text_stream_destroy(stream);
    return stopped;
}

/* Bytes as tokens. */
static size_t bytes_as_ids(const char *text, uint32_t *ids)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        ids[i] = (unsigned char)text[i];
    return n;
}

static void expect(const char *text, const char *const *stops, size_t n_stops,
                   const char *expected, int stopped)
{
    char out[MAX_TEXT];
    uint32_t ids[MAX_IDS];
    size_t n = bytes_as_ids(text, ids);
    CU_ASSERT_EQUAL(follow(ids, n, stops, n_stops, out), stopped);
    CU_ASSERT_STRING_EQUAL(out, expected);
}

static void by_hand(void)
{
    static const char *const aab[] = {"aab"};
    static const char *const two[] = {"world", "wor"};
    static const char *const inside[] = {"abcX", "bc"};
    static const char *const accent[] = {"é!"};
    expect("xaaaab", aab, 1, "xaa", 1);
    expect("xaaaa", aab, 1, "xaaaa", 0);
    expect("aab", aab, 1, "", 1);
    expect("hello world", two, 2, "hello ", 1);
    expect("hello wo", two, 2, "hello wo", 0);
    /* "bc" is complete before anybody knows whether "abcX" will be. */
    expect("abcX", inside, 2, "a", 1);
    expect("café!x", accent, 1, "caf", 1);
    expect("caf\xc3", accent, 1, "caf" FFFD, 0);
    expect("", aab, 1, "", 0);
    expect("plain", NULL, 0, "plain", 0);
    expect("a\xff"
           "b",
           aab, 1, "a" FFFD "b", 0);
}

/* One text cut into every possible set of tokens "a", "b", "c", "aa", "bc",
 * "ab" and "abc": what comes out does not depend on the cut, unless a token
 * completes two stop strings at once. */
static void every_cut(void)
{
    static const char text[] = "xaabcaabbcx";
    static const char *const stops[][2] = {{"abb", "zzz"},
                                           {"caab", "cab"},
                                           {"xaabcaabbcx", "bb"},
                                           {"cx", "bcxy"},
                                           {"bbcx!", "y"}};
    static const struct {
        const char *text;
        uint32_t id;
    } longer[] = {{"aa", AA}, {"bc", BC}, {"ab", AB}, {"abc", ABC}};
    const size_t length = sizeof(text) - 1;
    char naive[MAX_TEXT], out[MAX_TEXT];
    unsigned n_cuts = 0;
    for (uint32_t choice = 0; choice < 4096; choice++) {
        /* Two bits of the choice at each step: none or one of the longer ones
         * that fit. */
        uint32_t ids[MAX_IDS], bits = choice;
        size_t n = 0, at = 0;
        while (at < length) {
            uint32_t pick = bits & 3;
            size_t taken = 1;
            ids[n] = (unsigned char)text[at];
            bits >>= 2;
            for (size_t i = 0; i < 4 && pick > 0; i++) {
                size_t size = strlen(longer[i].text);
                if (size > length - at ||
                    memcmp(text + at, longer[i].text, size) != 0)
                    continue;
                ids[n] = longer[i].id;
                taken = size;
                pick--;
            }
            at += taken;
            n++;
        }
        n_cuts++;
        for (size_t s = 0; s < sizeof(stops) / sizeof(stops[0]); s++) {
            (void)memcpy(naive, text, length + 1);
            naive[first_stop(text, length, stops[s], 2)] = '\0';
            (void)follow(ids, n, stops[s], 2, out);
            if (s != 2) /* its second one ends before its first */
                CU_ASSERT_STRING_EQUAL(out, naive);
        }
    }
    CU_ASSERT_EQUAL(n_cuts, 4096);
}

/* Few letters, so that stop strings come, nearly come and overlap. */
static void random_texts(void)
{
    static const uint32_t pool[] = {'a',  'b',     'c',   'a', 'b',
                                    AA,   BC,      AB,    ABC, 0xc3,
                                    0xa9, E_ACUTE, HELLO, END, 0xe2};
    enum { POOL = sizeof(pool) / sizeof(pool[0]) };
    static const char *const parts[] = {"a", "b", "c", "é", "aa", "o"};
    unsigned n_stopped = 0;
    for (uint32_t round = 0; round < 3000; round++) {
        uint32_t ids[MAX_IDS];
        char stops[3][32], out[MAX_TEXT];
        const char *list[3];
        size_t n = 1 + draw_below(1, round, 30);
        size_t n_stops = draw_below(2, round, 4);
        for (size_t i = 0; i < n; i++)
            ids[i] = pool[draw_below(3, 64ull * round + i, POOL)];
        for (size_t s = 0; s < n_stops; s++) {
            uint64_t index = 8ull * (3 * round + s);
            stops[s][0] = '\0';
            for (uint32_t k = 0; k < 1 + draw_below(4, index, 4); k++)
                (void)strcat(stops[s], parts[draw_below(5, index + k, 6)]);
            list[s] = stops[s];
        }
        n_stopped += follow(ids, n, list, n_stops, out) ? 1 : 0;
    }
    CU_ASSERT(n_stopped > 300 && n_stopped < 2700);
}

/* A special token gives no text and does not break a stop string that runs
 * around it. */
static void special_tokens(void)
{
    static const char *const stops[] = {"ab"};
    static const uint32_t ids[] = {'x', 'a', END, 'b', 'y'};
    char out[MAX_TEXT];
    CU_ASSERT_EQUAL(follow(ids, 5, stops, 1, out), 1);
    CU_ASSERT_STRING_EQUAL(out, "x");
    CU_ASSERT_EQUAL(follow(ids, 3, stops, 1, out), 0);
    CU_ASSERT_STRING_EQUAL(out, "xa");
}

/* The stops are copied; what a long stop string holds back comes at the end;
 * text before it is not kept. */
static void long_stops(void)
{
    enum { LONG = 5000 };
    char *stop = malloc(LONG + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(stop);
    memset(stop, 'a', LONG);
    stop[LONG - 1] = 'b';
    stop[LONG] = '\0';
    const char *list[] = {stop};
    akin_text_stream_t *stream = create(list, 1);
    memset(stop, 'z', LONG);
    free(stop);
    const char *text = NULL;
    size_t bytes = 0, total = 0;
    int stopped = 0;
    for (uint32_t i = 0; i < 2 * LONG; i++) {
        CU_ASSERT_EQUAL_FATAL(
            akin_text_stream_push(stream, 'a', &text, &bytes, &stopped),
            AKIN_OK);
        total += bytes;
    }
    CU_ASSERT_EQUAL(total, LONG + 1);
    CU_ASSERT_EQUAL(stopped, 0);
    CU_ASSERT_EQUAL(akin_text_stream_push(stream, 'b', &text, &bytes, &stopped),
                    AKIN_OK);
    CU_ASSERT_EQUAL(bytes, 0);
    CU_ASSERT_EQUAL(stopped, 1);
    akin_text_stream_destroy(stream);
    akin_text_stream_destroy(NULL);
}

/* JSON strings may have a NUL inside or in front. */
static void nul_in_stop(void)
{
    const char *stops[] = {"\0b", "c\0d"};
    const size_t lengths[] = {2, 3};
    const uint32_t ids[] = {'a', 0, 'c', 0, 'c', 0, 'd'};
    const size_t wanted[] = {1, 0, 1, 0, 2, 0, 0}; /* bytes let go each time */
    akin_text_stream_t *stream = create(NULL, 0);
    akin_text_stream_destroy(stream);
    CU_ASSERT_EQUAL_FATAL(
        akin_text_stream_create(tokenizer, stops, lengths, 2, &stream),
        AKIN_OK);
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        const char *text = NULL;
        size_t bytes = 0;
        int stopped = 0;
        CU_ASSERT_EQUAL(
            akin_text_stream_push(stream, ids[i], &text, &bytes, &stopped),
            AKIN_OK);
        CU_ASSERT_EQUAL(bytes, wanted[i]);
        CU_ASSERT_EQUAL(stopped, ids[i] == 'd');
    }
    akin_text_stream_destroy(stream);
}

static const runner_test_t tests[] = {
    {"stop strings by hand", by_hand},
    {"one text in every cut", every_cut},
    {"random texts and stops", random_texts},
    {"special tokens", special_tokens},
    {"a very long stop string", long_stops},
    {"a NUL in a stop string", nul_in_stop},
};

RUNNER_MAIN("text stream", tests)
