/* Tokenizer: golden prompts, and a slow second implementation. */
#include "engine/tokenizer.h"

#include "base/rng.h"
#include "runner.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <jansson.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uninorm.h>
#include <unistr.h>

#define DIR AKIN_FIXTURES "/tokenizer/"

static akin_tokenizer_t *load(const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof(path), DIR "%s", name);
    akin_tokenizer_t *tokenizer = NULL;
    akin_error_t err = {{0}};
    if (akin_tokenizer_load(path, &tokenizer, &err) != AKIN_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(2);
    }
    return tokenizer;
}

static json_t *load_json(const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof(path), DIR "%s", name);
    json_t *json = json_load_file(path, JSON_ALLOW_NUL, NULL);
    if (json == NULL)
        exit(2);
    return json;
}

/* Encode, failing the test on an error. */
static uint32_t *encode(const akin_tokenizer_t *tokenizer, const char *text,
                        size_t bytes, size_t *n_p)
{
    uint32_t *ids = NULL;
    akin_error_t err = {{0}};
    *n_p = 0;
    akin_status_t status =
        akin_tokenizer_encode(tokenizer, text, bytes, &ids, n_p, &err);
    CU_ASSERT_EQUAL(status, AKIN_OK);
    if (status != AKIN_OK)
        fprintf(stderr, "%s\n", err.text);
    return ids;
}

/* Decode token by token; malloc'ed and NUL-terminated. Every piece must be
 * well-formed by itself. */
static char *decode(const akin_tokenizer_t *tokenizer, const uint32_t *ids,
                    size_t n, int keep_special, size_t *bytes_p)
{
    size_t room = akin_decoder_room(tokenizer);
    char *text = malloc((n + 1) * room + 1);
    if (text == NULL)
        exit(2);
    akin_decoder_t decoder = {0};
    size_t used = 0;
    int whole = 1;
    for (size_t i = 0; i <= n; i++) {
        char *at = text + used;
        size_t got = i < n ? akin_decoder_push(&decoder, tokenizer, ids[i],
                                               keep_special, at)
                           : akin_decoder_finish(&decoder, at);
        whole = whole && got <= room && u8_check((uint8_t *)at, got) == NULL;
        used += got;
    }
    CU_ASSERT(whole);
    text[used] = '\0';
    *bytes_p = used;
    return text;
}

static uint32_t *ids_of(const json_t *array, size_t *n_p)
{
    *n_p = json_array_size(array);
    uint32_t *ids = malloc((*n_p + 1) * sizeof(*ids));
    if (ids == NULL)
        exit(2);
    for (size_t i = 0; i < *n_p; i++)
        ids[i] = (uint32_t)json_integer_value(json_array_get(array, i));
    return ids;
}

static void golden_prompts_encode(void)
{
    akin_tokenizer_t *tokenizer = load("tokenizer.json");
    json_t *cases = load_json("golden.json");
    CU_ASSERT_EQUAL(json_array_size(cases), 16);
    CU_ASSERT_EQUAL(akin_tokenizer_size(tokenizer), 4096);
    size_t i = 0;
    json_t *one = NULL;
    json_array_foreach(cases, i, one)
    {
        const json_t *prompt = json_object_get(one, "prompt");
        size_t n = 0;
        size_t n_want = 0;
        uint32_t *ids = encode(tokenizer, json_string_value(prompt),
                               json_string_length(prompt), &n);
        uint32_t *want = ids_of(json_object_get(one, "prompt_tokens"), &n_want);
        CU_ASSERT_EQUAL(n, n_want);
        CU_ASSERT(n == n_want && memcmp(ids, want, n * sizeof(*ids)) == 0);
        free(ids);
        free(want);
    }
    json_decref(cases);
    akin_tokenizer_destroy(tokenizer);
}

static void golden_tokens_decode(void)
{
    akin_tokenizer_t *tokenizer = load("tokenizer.json");
    json_t *cases = load_json("golden.json");
    size_t i = 0;
    json_t *one = NULL;
    json_array_foreach(cases, i, one)
    {
        size_t n = 0;
        size_t bytes = 0;
        uint32_t *ids = ids_of(json_object_get(one, "tokens"), &n);
        char *text = decode(tokenizer, ids, n, 0, &bytes);
        CU_ASSERT_STRING_EQUAL(text,
                               json_string_value(json_object_get(one, "text")));
        free(text);
        free(ids);
    }
    json_decref(cases);
    akin_tokenizer_destroy(tokenizer);
}

/* The reference: strings of the alphabet, and each time a scan for the pair of
 * the lowest rank. */
typedef struct reference {
    json_t *file;
    json_t *vocab;
    json_t *ranks; /* "a b" to its rank */
    pcre2_code *regex;
    char alphabet[256][3];
} reference_t;

static void fill_alphabet(reference_t *ref)
{
    int next = 256;
    for (int b = 0; b < 256; b++) {
        int itself = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) ||
                     (b >= 0xae && b <= 0xff);
        int c = itself ? b : next++;
        if (c < 0x80) {
            ref->alphabet[b][0] = (char)c;
        } else {
            ref->alphabet[b][0] = (char)(0xc0 | c >> 6);
            ref->alphabet[b][1] = (char)(0x80 | (c & 0x3f));
        }
    }
}

static void reference_init(reference_t *ref, const char *name)
{
    memset(ref, 0, sizeof(*ref));
    ref->file = load_json(name);
    const json_t *model = json_object_get(ref->file, "model");
    ref->vocab = json_object_get(model, "vocab");
    ref->ranks = json_object();
    size_t rank = 0;
    json_t *merge = NULL;
    json_array_foreach(json_object_get(model, "merges"), rank, merge)
    {
        char key[512];
        (void)snprintf(key, sizeof(key), "%s %s",
                       json_string_value(json_array_get(merge, 0)),
                       json_string_value(json_array_get(merge, 1)));
        json_object_set_new(ref->ranks, key, json_integer((json_int_t)rank));
    }
    const char *regex = NULL;
    if (json_unpack(ref->file, "{s:{s:[{s:{s:s}}]}}", "pre_tokenizer",
                    "pretokenizers", "pattern", "Regex", &regex) != 0 &&
        regex == NULL)
        exit(2);
    int code = 0;
    PCRE2_SIZE at = 0;
    ref->regex = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED,
                               PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
    if (ref->regex == NULL)
        exit(2);
    fill_alphabet(ref);
}

static void reference_cleanup(reference_t *ref)
{
    json_decref(ref->file);
    json_decref(ref->ranks);
    pcre2_code_free(ref->regex);
}

enum { PIECE_MAX = 256, PART_MAX = 512, IDS_MAX = 4096 };

typedef struct parts {
    char text[PIECE_MAX][PART_MAX];
    size_t n;
} parts_t;

static int merge_lowest(const reference_t *ref, parts_t *parts)
{
    json_int_t best = -1;
    size_t best_at = 0;
    for (size_t i = 0; i + 1 < parts->n; i++) {
        char key[2 * PART_MAX + 2];
        (void)snprintf(key, sizeof(key), "%s %s", parts->text[i],
                       parts->text[i + 1]);
        const json_t *rank = json_object_get(ref->ranks, key);
        if (rank != NULL && (best < 0 || json_integer_value(rank) < best)) {
            best = json_integer_value(rank);
            best_at = i;
        }
    }
    if (best < 0)
        return 0;
    char *left = parts->text[best_at];
    size_t n_left = strlen(left);
    size_t n_right = strlen(parts->text[best_at + 1]);
    if (n_left + n_right >= PART_MAX)
        exit(2);
    memmove(left + n_left, parts->text[best_at + 1], n_right + 1);
    memmove(parts->text[best_at + 1], parts->text[best_at + 2],
            (parts->n - best_at - 2) * sizeof(parts->text[0]));
    parts->n--;
    return 1;
}

static size_t reference_piece(const reference_t *ref, const uint8_t *piece,
                              size_t n, uint32_t *ids)
{
    static parts_t parts;
    if (n > PIECE_MAX)
        exit(2);
    for (size_t i = 0; i < n; i++)
        strcpy(parts.text[i], ref->alphabet[piece[i]]);
    parts.n = n;
    while (merge_lowest(ref, &parts))
        continue;
    for (size_t i = 0; i < parts.n; i++)
        ids[i] = (uint32_t)json_integer_value(
            json_object_get(ref->vocab, parts.text[i]));
    return parts.n;
}

/* Ids of normalised text that the regex covers without gaps. */
static size_t reference_encode(const reference_t *ref, const uint8_t *text,
                               size_t n, uint32_t *ids)
{
    size_t n_ids = 0;
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    for (size_t at = 0; at < n;) {
        int rc = pcre2_match(ref->regex, text, n, at, 0, match, NULL);
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(match);
        if (rc < 0 || span[0] != at || span[1] <= at)
            exit(2);
        n_ids += reference_piece(ref, text + at, span[1] - at, ids + n_ids);
        at = span[1];
    }
    pcre2_match_data_free(match);
    return n_ids;
}

/* Random text of mixed scripts; every word stays below PIECE_MAX bytes. */
static size_t random_text(uint64_t seed, char *text)
{
    static const char *const words[] = {"the",
                                        " return",
                                        "Argument",
                                        "aaaaaaa",
                                        "int",
                                        "0x7f",
                                        "12",
                                        "'s",
                                        "'LL",
                                        "don't",
                                        " ",
                                        "  ",
                                        "\n",
                                        "\r\n",
                                        "\t",
                                        "\n\n",
                                        "/* */",
                                        "==",
                                        "->",
                                        ");\n",
                                        "é",
                                        "e\u0301",
                                        "ö",
                                        "o\u0308",
                                        "ß",
                                        "ſ",
                                        "\u212b",
                                        "Привет",
                                        "мир",
                                        "ελληνικά",
                                        "日本語",
                                        "ファイル",
                                        "。",
                                        "한국어",
                                        "\u1100\u1161\u11a8",
                                        "\u0915\u093c",
                                        "हिन्दी",
                                        "\u0323\u0301",
                                        "\u3000",
                                        "\u00a0",
                                        "\u200d",
                                        "👩",
                                        "🚀",
                                        "\ufffd",
                                        "\U0010fffd",
                                        "Ⅷ",
                                        "٣",
                                        "½",
                                        "_",
                                        "a",
                                        "b",
                                        "."};
    size_t n_words = sizeof(words) / sizeof(words[0]);
    uint64_t count = 1 + akin_rng_below(seed, 0, 0, 24);
    size_t n = 0;
    for (uint64_t i = 1; i <= count; i++) {
        const char *word = words[akin_rng_below(seed, 0, i, n_words)];
        memcpy(text + n, word, strlen(word));
        n += strlen(word);
    }
    return n;
}

static void fast_equals_reference(void)
{
    akin_tokenizer_t *tokenizer = load("tokenizer.json");
    static reference_t ref;
    reference_init(&ref, "tokenizer.json");
    size_t n_wrong = 0;
    size_t n_wrong_text = 0;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        static char text[4096];
        static uint32_t want[IDS_MAX];
        size_t bytes = random_text(seed, text);
        size_t n_nfc = 0;
        uint8_t *nfc =
            u8_normalize(UNINORM_NFC, (uint8_t *)text, bytes, NULL, &n_nfc);
        size_t n_want = reference_encode(&ref, nfc, n_nfc, want);
        size_t n = 0;
        uint32_t *ids = encode(tokenizer, text, bytes, &n);
        n_wrong += n != n_want || memcmp(ids, want, n * sizeof(*ids)) != 0;
        size_t n_back = 0;
        char *back = decode(tokenizer, ids, n, 0, &n_back);
        n_wrong_text += n_back != n_nfc || memcmp(back, nfc, n_nfc) != 0;
        free(back);
        free(ids);
        free(nfc);
    }
    CU_ASSERT_EQUAL(n_wrong, 0);
    CU_ASSERT_EQUAL(n_wrong_text, 0);
    reference_cleanup(&ref);
    akin_tokenizer_destroy(tokenizer);
}

static void long_run_merges(void)
{
    akin_tokenizer_t *tokenizer = load("mini.json");
    size_t bytes = (1 << 20) + 3;
    char *text = malloc(bytes);
    if (text == NULL)
        exit(2);
    memset(text, 'a', bytes);
    size_t n = 0;
    uint32_t *ids = encode(tokenizer, text, bytes, &n);
    /* "aaaa" (257) as often as it fits, then "aa" (256) and "a". */
    CU_ASSERT_EQUAL(n, (1 << 18) + 2);
    CU_ASSERT_EQUAL(ids[0], 257);
    CU_ASSERT_EQUAL(ids[n - 3], 257);
    CU_ASSERT_EQUAL(ids[n - 2], 256);
    CU_ASSERT_EQUAL(ids[n - 1], 'a');
    free(ids);
    free(text);
    akin_tokenizer_destroy(tokenizer);
}

/* Encode with a fixture and compare with ids that end with 0 (a NUL byte's
 * token, which no case here has). */
static void expect_ids(const akin_tokenizer_t *tokenizer, const char *text,
                       const uint32_t *want)
{
    size_t n_want = 0;
    while (want[n_want] != 0)
        n_want++;
    size_t n = 0;
    uint32_t *ids = encode(tokenizer, text, strlen(text), &n);
    CU_ASSERT_EQUAL(n, n_want);
    CU_ASSERT(n == n_want && memcmp(ids, want, n * sizeof(*ids)) == 0);
    free(ids);
}

/* mini.json: bytes are their own ids; "aa" 256, "aaaa" 257, "he" 258, "ll"
 * 259, "hell" 260, "hello" 261, " hello" 262, "ol" 263, "é" 264, "bc" 265,
 * "ab" 266, "abc" 267 (by "ab c" and by "a bc"); added: "<|end|>" 268
 * special, "<|end|>x" 269, "<think>" 270. */
static void ranks_order_merges(void)
{
    akin_tokenizer_t *tokenizer = load("mini.json");
    expect_ids(tokenizer, "hello", (uint32_t[]){261, 0});
    /* Splits into "hello" and " hello". */
    expect_ids(tokenizer, "hello hello", (uint32_t[]){261, 262, 0});
    /* "hell" + "o" ranks before "o" + "l". */
    expect_ids(tokenizer, "hellol", (uint32_t[]){261, 'l', 0});
    /* "bc" ranks before "ab": the token comes by its second pair. */
    expect_ids(tokenizer, "abc", (uint32_t[]){267, 0});
    expect_ids(tokenizer, "aab", (uint32_t[]){256, 'b', 0});
    expect_ids(tokenizer, "aaaaa", (uint32_t[]){257, 'a', 0});
    expect_ids(tokenizer, "e\u0301", (uint32_t[]){264, 0});
    akin_tokenizer_destroy(tokenizer);
}

static void added_tokens_are_cut_out(void)
{
    akin_tokenizer_t *tokenizer = load("mini.json");
    expect_ids(tokenizer, "<|end|>", (uint32_t[]){268, 0});
    expect_ids(tokenizer, "<|end|>x", (uint32_t[]){269, 0});
    expect_ids(tokenizer, "aa<|end|>y<think>bc",
               (uint32_t[]){256, 268, 'y', 270, 265, 0});
    expect_ids(tokenizer, "<<|end|>", (uint32_t[]){'<', 268, 0});
    expect_ids(tokenizer, "<thin>",
               (uint32_t[]){'<', 't', 'h', 'i', 'n', '>', 0});
    /* Normalising starts anew behind an added token: no U+226F here. */
    expect_ids(tokenizer, "<|end|>\u0338", (uint32_t[]){268, 0xcc, 0xb8, 0});
    akin_tokenizer_destroy(tokenizer);
}

static void special_tokens_are_left_out(void)
{
    akin_tokenizer_t *tokenizer = load("mini.json");
    /* The character's bytes lie on both sides of a special token. */
    static const uint32_t ids[] = {'a', 268, 0xc3, 268, 0xa9, 270, 9999999};
    size_t bytes = 0;
    char *text = decode(tokenizer, ids, 7, 0, &bytes);
    CU_ASSERT_STRING_EQUAL(text, "aé<think>");
    free(text);
    text = decode(tokenizer, ids, 7, 1, &bytes);
    CU_ASSERT_STRING_EQUAL(text, "a<|end|>\ufffd<|end|>\ufffd<think>");
    free(text);
    akin_tokenizer_destroy(tokenizer);
}

static void tokens_are_found(void)
{
    akin_tokenizer_t *tokenizer = load("mini.json");
    uint32_t id = 0;
    CU_ASSERT_EQUAL(akin_tokenizer_find(tokenizer, "<|end|>x", &id), AKIN_OK);
    CU_ASSERT_EQUAL(id, 269);
    CU_ASSERT_EQUAL(akin_tokenizer_find(tokenizer, "Ġhello", &id), AKIN_OK);
    CU_ASSERT_EQUAL(id, 262);
    CU_ASSERT_EQUAL(akin_tokenizer_find(tokenizer, "Ā", &id), AKIN_OK);
    CU_ASSERT_EQUAL(id, 0);
    CU_ASSERT_EQUAL(akin_tokenizer_find(tokenizer, " hello", &id),
                    AKIN_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(akin_tokenizer_find(tokenizer, "<|end|", &id),
                    AKIN_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(akin_tokenizer_find(tokenizer, "", &id),
                    AKIN_ERR_NOT_FOUND);

    const char *bytes = NULL;
    size_t n = 0;
    int special = 0;
    akin_tokenizer_token(tokenizer, 262, &bytes, &n, &special);
    CU_ASSERT(n == 6 && memcmp(bytes, " hello", 6) == 0 && !special);
    akin_tokenizer_token(tokenizer, 268, &bytes, &n, &special);
    CU_ASSERT(n == 7 && memcmp(bytes, "<|end|>", 7) == 0 && special);
    akin_tokenizer_token(tokenizer, 271, &bytes, &n, &special);
    CU_ASSERT(n == 0 && !special);
    CU_ASSERT_EQUAL(akin_tokenizer_size(tokenizer), 271);
    akin_tokenizer_destroy(tokenizer);
}

static void ill_formed_text_is_refused(void)
{
    static const struct {
        const char *text;
        size_t n;
        const char *offset;
    } cases[] = {
        {"ab\x80", 3, "byte 2 "},           {"\xff", 1, "byte 0 "},
        {"abc\xc3", 4, "byte 3 "},          {"\xc0\xaf", 2, "byte 0 "},
        {"x\xed\xa0\x80", 4, "byte 1 "},    {"é\xe2\x82", 4, "byte 2 "},
        {"\xf4\x90\x80\x80", 4, "byte 0 "}, {"\0\0\xe9", 3, "byte 2 "},
        {"ok \xf0\x9f\x9a", 6, "byte 3 "},
    };
    akin_tokenizer_t *tokenizer = load("mini.json");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t *ids = NULL;
        size_t n_ids = 7;
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL(akin_tokenizer_encode(tokenizer, cases[i].text,
                                              cases[i].n, &ids, &n_ids, &err),
                        AKIN_ERR_FORMAT);
        CU_ASSERT_PTR_NULL(ids);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].offset));
    }
    akin_tokenizer_destroy(tokenizer);
}

static void empty_and_nul_text(void)
{
    akin_tokenizer_t *tokenizer = load("mini.json");
    size_t n = 0;
    uint32_t *ids = encode(tokenizer, "", 0, &n);
    CU_ASSERT(ids == NULL && n == 0);
    ids = encode(tokenizer, "a\0b", 3, &n);
    CU_ASSERT(n == 3 && ids[0] == 'a' && ids[1] == 0 && ids[2] == 'b');
    free(ids);
    akin_tokenizer_destroy(tokenizer);
}

static void too_long_text_is_refused(void)
{
    akin_tokenizer_t *tokenizer = load("mini.json");
    size_t bytes = AKIN_TOKENIZER_TEXT_BYTES_MAX + 1;
    char *text = calloc(bytes, 1);
    uint32_t *ids = NULL;
    size_t n = 0;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(
        akin_tokenizer_encode(tokenizer, text, bytes, &ids, &n, &err),
        AKIN_ERR_RANGE);
    CU_ASSERT_PTR_NULL(ids);
    free(text);
    akin_tokenizer_destroy(tokenizer);
}

static const runner_test_t tests[] = {
    {"golden prompts encode", golden_prompts_encode},
    {"golden tokens decode", golden_tokens_decode},
    {"fast equals reference", fast_equals_reference},
    {"long run merges", long_run_merges},
    {"ranks order merges", ranks_order_merges},
    {"added tokens are cut out", added_tokens_are_cut_out},
    {"special tokens are left out", special_tokens_are_left_out},
    {"tokens are found", tokens_are_found},
    {"ill-formed text is refused", ill_formed_text_is_refused},
    {"empty and NUL text", empty_and_nul_text},
    {"too long text is refused", too_long_text_is_refused},
};

RUNNER_MAIN("tokenizer", tests)
