/* Loading: files that must be refused, with the key named, and variants that
 * must load. */
#include "engine/tokenizer.h"

#include "runner.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIR AKIN_FIXTURES "/tokenizer/"

/*
 * Change one value of mini.json. `path` has keys and indices between '/';
 * `value` is JSON, or NULL to take the entry out.
 */
static void edit(json_t *json, const char *path, const char *value)
{
    char copy[128];
    (void)snprintf(copy, sizeof(copy), "%s", path);
    char *last = strrchr(copy, '/');
    if (last != NULL)
        *last++ = '\0';
    else
        last = copy;
    char *save = NULL;
    char *key = last == copy ? NULL : strtok_r(copy, "/", &save);
    for (; key != NULL; key = strtok_r(NULL, "/", &save))
        json = json_is_array(json)
                   ? json_array_get(json, (size_t)strtoul(key, NULL, 10))
                   : json_object_get(json, key);
    json_t *parsed =
        value == NULL ? NULL : json_loads(value, JSON_DECODE_ANY, NULL);
    if (json_is_array(json)) {
        size_t index = (size_t)strtoul(last, NULL, 10);
        if (index == json_array_size(json))
            json_array_append_new(json, parsed);
        else
            json_array_set_new(json, index, parsed);
    } else if (value == NULL) {
        json_object_del(json, last);
    } else {
        json_object_set_new(json, last, parsed);
    }
}

/* Parse mini.json with one or two changes. */
static akin_status_t parse_edited(const char *const edits[4],
                                  akin_tokenizer_t **tokenizer_p,
                                  akin_error_t *err)
{
    json_t *json = json_load_file(DIR "mini.json", 0, NULL);
    if (json == NULL)
        exit(2);
    for (size_t i = 0; i < 4 && edits[i] != NULL; i += 2)
        edit(json, edits[i], edits[i + 1]);
    char *text = json_dumps(json, 0);
    akin_status_t status =
        akin_tokenizer_parse(text, strlen(text), "edited", tokenizer_p, err);
    free(text);
    json_decref(json);
    return status;
}

#define SPLIT "pre_tokenizer/pretokenizers/0"
#define BYTE_LEVEL "pre_tokenizer/pretokenizers/1"

static const struct must_fail {
    const char *path;
    const char *value;
    akin_status_t status;
    const char *message;
} must_fail[] = {
    {"truncation", "{\"max_length\": 8}", AKIN_ERR_UNSUPPORTED, "truncation"},
    {"padding", "{}", AKIN_ERR_UNSUPPORTED, "padding"},
    {"normalizer", "{\"type\": \"NFKC\"}", AKIN_ERR_UNSUPPORTED,
     "normalizer: \"NFKC\""},
    {"normalizer", "7", AKIN_ERR_FORMAT, "normalizer"},
    {"pre_tokenizer", NULL, AKIN_ERR_UNSUPPORTED, "pre_tokenizer"},
    {"pre_tokenizer", "[]", AKIN_ERR_FORMAT, "pre_tokenizer"},
    {"pre_tokenizer/type", "\"Metaspace\"", AKIN_ERR_UNSUPPORTED, "Metaspace"},
    {"pre_tokenizer/pretokenizers", "{}", AKIN_ERR_FORMAT, "pretokenizers"},
    {"pre_tokenizer/pretokenizers/2", "{\"type\": \"Digits\"}",
     AKIN_ERR_UNSUPPORTED, "3 steps"},
    {SPLIT "/type", "\"Punctuation\"", AKIN_ERR_UNSUPPORTED,
     "pretokenizers[0]"},
    {SPLIT "/type", NULL, AKIN_ERR_FORMAT, "pretokenizers[0]"},
    {SPLIT "/behavior", "\"Removed\"", AKIN_ERR_UNSUPPORTED, "behavior"},
    {SPLIT "/behavior", NULL, AKIN_ERR_FORMAT, "behavior"},
    {SPLIT "/invert", "true", AKIN_ERR_UNSUPPORTED, "invert"},
    {SPLIT "/invert", "1", AKIN_ERR_FORMAT, "invert"},
    {SPLIT "/pattern", "{\"String\": \" \"}", AKIN_ERR_UNSUPPORTED, "pattern"},
    {SPLIT "/pattern", "\" \"", AKIN_ERR_FORMAT, "pattern"},
    {SPLIT "/pattern/Regex", "\"a(b\"", AKIN_ERR_FORMAT, "pattern.Regex"},
    {SPLIT "/pattern/Regex", "[]", AKIN_ERR_FORMAT, "pattern"},
    {BYTE_LEVEL "/type", "\"Split\"", AKIN_ERR_UNSUPPORTED, "pretokenizers[1]"},
    {BYTE_LEVEL "/add_prefix_space", "true", AKIN_ERR_UNSUPPORTED,
     "add_prefix_space"},
    {BYTE_LEVEL "/use_regex", NULL, AKIN_ERR_UNSUPPORTED, "use_regex"},
    {"post_processor", "{\"type\": \"TemplateProcessing\"}",
     AKIN_ERR_UNSUPPORTED, "post_processor"},
    {"post_processor", "\"ByteLevel\"", AKIN_ERR_FORMAT, "post_processor"},
    {"decoder", "null", AKIN_ERR_UNSUPPORTED, "decoder"},
    {"decoder", "{\"type\": \"Metaspace\"}", AKIN_ERR_UNSUPPORTED, "decoder"},
    {"model", NULL, AKIN_ERR_FORMAT, "model"},
    {"model/type", "\"Unigram\"", AKIN_ERR_UNSUPPORTED, "model.type"},
    {"model/type", NULL, AKIN_ERR_FORMAT, "model"},
    {"model/dropout", "0.1", AKIN_ERR_UNSUPPORTED, "model.dropout"},
    {"model/continuing_subword_prefix", "\"##\"", AKIN_ERR_UNSUPPORTED,
     "continuing_subword_prefix"},
    {"model/end_of_word_suffix", "\"</w>\"", AKIN_ERR_UNSUPPORTED,
     "end_of_word_suffix"},
    {"model/byte_fallback", "true", AKIN_ERR_UNSUPPORTED, "byte_fallback"},
    {"model/ignore_merges", "\"yes\"", AKIN_ERR_FORMAT, "ignore_merges"},
    {"model/vocab", NULL, AKIN_ERR_FORMAT, "model.vocab"},
    {"model/vocab", "{}", AKIN_ERR_FORMAT, "model.vocab"},
    {"model/vocab", "[]", AKIN_ERR_FORMAT, "model.vocab"},
    {"model/vocab/a", "-1", AKIN_ERR_FORMAT, "model.vocab[\"a\"]"},
    {"model/vocab/a", "1.0", AKIN_ERR_FORMAT, "model.vocab[\"a\"]"},
    {"model/vocab/a", "\"1\"", AKIN_ERR_FORMAT, "model.vocab[\"a\"]"},
    {"model/vocab/a", "98", AKIN_ERR_FORMAT, "98 is there twice"},
    {"model/vocab/a", "268", AKIN_ERR_FORMAT, "268 is there twice"},
    {"model/vocab/a", "16777216", AKIN_ERR_FORMAT, "16777215"},
    {"model/vocab/a", "9223372036854775807", AKIN_ERR_FORMAT, "16777215"},
    {"model/vocab/", "300", AKIN_ERR_FORMAT, "alphabet"},
    {"model/vocab/x y", "300", AKIN_ERR_FORMAT, "model.vocab[\"x y\"]"},
    {"model/vocab/日", "300", AKIN_ERR_FORMAT, "model.vocab[\"日\"]"},
    {"model/vocab/<think>", "300", AKIN_ERR_FORMAT, "270 in added_tokens"},
    {"model/vocab/aaaa", NULL, AKIN_ERR_FORMAT, "merges[1]: its result"},
    {"model/vocab/bc", NULL, AKIN_ERR_FORMAT, "merges[9]: its result"},
    {"model/merges", NULL, AKIN_ERR_FORMAT, "model.merges"},
    {"model/merges", "{}", AKIN_ERR_FORMAT, "model.merges"},
    {"model/merges/3", "[\"a\", \"a\"]", AKIN_ERR_FORMAT,
     "model.merges[3] is there twice"},
    {"model/merges/2", "[\"a\"]", AKIN_ERR_FORMAT, "model.merges[2]"},
    {"model/merges/2", "[\"a\", \"b\", \"c\"]", AKIN_ERR_FORMAT,
     "model.merges[2]"},
    {"model/merges/2", "[\"a\", 1]", AKIN_ERR_FORMAT, "model.merges[2]"},
    {"model/merges/2", "\"ab\"", AKIN_ERR_FORMAT, "model.merges[2]"},
    {"model/merges/2", "\"a b c\"", AKIN_ERR_FORMAT, "model.merges[2]"},
    {"model/merges/2", "\" a\"", AKIN_ERR_FORMAT, "its first part"},
    {"model/merges/2", "\"a zz\"", AKIN_ERR_FORMAT, "its second part"},
    {"model/merges/2", "[\"a\", \"\"]", AKIN_ERR_FORMAT, "its second part"},
    {"model/merges/2", "null", AKIN_ERR_FORMAT, "model.merges[2]"},
    {"added_tokens", "{}", AKIN_ERR_FORMAT, "added_tokens"},
    {"added_tokens/0", "7", AKIN_ERR_FORMAT, "added_tokens[0].id"},
    {"added_tokens/1/id", "268", AKIN_ERR_FORMAT, "added_tokens[1].id"},
    {"added_tokens/1/id", "-2", AKIN_ERR_FORMAT, "added_tokens[1].id"},
    {"added_tokens/1/id", "97", AKIN_ERR_FORMAT, "97 is there twice"},
    {"added_tokens/1/content", "\"<|end|>\"", AKIN_ERR_FORMAT,
     "added_tokens[1].content"},
    {"added_tokens/1/content", "\"\"", AKIN_ERR_FORMAT,
     "added_tokens[1].content"},
    {"added_tokens/1/content", "4", AKIN_ERR_FORMAT, "added_tokens[1].content"},
    {"added_tokens/1/special", NULL, AKIN_ERR_FORMAT,
     "added_tokens[1].special"},
    {"added_tokens/2/normalized", "true", AKIN_ERR_UNSUPPORTED,
     "added_tokens[2].normalized"},
    {"added_tokens/2/single_word", "true", AKIN_ERR_UNSUPPORTED,
     "added_tokens[2].single_word"},
    {"added_tokens/2/lstrip", "true", AKIN_ERR_UNSUPPORTED,
     "added_tokens[2].lstrip"},
    {"added_tokens/2/rstrip", "true", AKIN_ERR_UNSUPPORTED,
     "added_tokens[2].rstrip"},
    {"added_tokens/2/rstrip", "0", AKIN_ERR_FORMAT, "added_tokens[2].rstrip"},
};

static void broken_files_are_refused(void)
{
    for (size_t i = 0; i < sizeof(must_fail) / sizeof(must_fail[0]); i++) {
        const struct must_fail *one = &must_fail[i];
        const char *const edits[4] = {one->path, one->value, NULL, NULL};
        akin_tokenizer_t *tokenizer = NULL;
        akin_error_t err = {{0}};
        akin_status_t status = parse_edited(edits, &tokenizer, &err);
        int refused = status == one->status && tokenizer == NULL &&
                      strncmp(err.text, "edited: ", 8) == 0 &&
                      strstr(err.text, one->message) != NULL;
        CU_ASSERT(refused);
        if (!refused)
            fprintf(stderr, "%s = %s: status %d, \"%s\"\n", one->path,
                    one->value == NULL ? "(none)" : one->value, (int)status,
                    err.text);
        akin_tokenizer_destroy(tokenizer);
    }
}

static void text_that_is_not_json(void)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "line 1"},
        {"[]", "one JSON object"},
        {"{\"a\": 1,\n \"a\": 2}", "line 2"},
        {"{\"model\": {}", "line 1"},
        {"{} {}", "line 1"},
        {"{\"a\": \"\xff\"}", "line 1"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        akin_tokenizer_t *tokenizer = NULL;
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL(akin_tokenizer_parse(cases[i].text,
                                             strlen(cases[i].text), "t.json",
                                             &tokenizer, &err),
                        AKIN_ERR_FORMAT);
        CU_ASSERT_PTR_NULL(tokenizer);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "t.json: "));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].message));
    }
}

static void files_that_cannot_be_read(void)
{
    akin_tokenizer_t *tokenizer = NULL;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_tokenizer_load(DIR "absent.json", &tokenizer, &err),
                    AKIN_ERR_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "absent.json: "));
    CU_ASSERT_EQUAL(akin_tokenizer_load(DIR, &tokenizer, &err), AKIN_ERR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not a regular file"));
    CU_ASSERT_PTR_NULL(tokenizer);
}

/* Ids of a text under a changed mini.json; `want` ends with UINT32_MAX. */
static void expect_ids(const char *const edits[4], const char *text,
                       const uint32_t *want)
{
    akin_tokenizer_t *tokenizer = NULL;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(parse_edited(edits, &tokenizer, &err), AKIN_OK);
    uint32_t *ids = NULL;
    size_t n = 0;
    CU_ASSERT_EQUAL(
        akin_tokenizer_encode(tokenizer, text, strlen(text), &ids, &n, &err),
        AKIN_OK);
    size_t n_want = 0;
    while (want[n_want] != UINT32_MAX)
        n_want++;
    CU_ASSERT_EQUAL(n, n_want);
    CU_ASSERT(n == n_want && memcmp(ids, want, n * sizeof(*ids)) == 0);
    free(ids);
    akin_tokenizer_destroy(tokenizer);
}

static void variants_load(void)
{
    /* Merges as strings; ranks are the order of the list. */
    expect_ids((const char *const[4]){"model/merges",
                                      "[\"a b\", \"b c\", \"a bc\"]", NULL,
                                      NULL},
               "abcbc", (const uint32_t[]){266, 'c', 265, UINT32_MAX});
    expect_ids((const char *const[4]){"model/merges",
                                      "[\"b c\", \"a b\", \"a bc\"]", NULL,
                                      NULL},
               "abcbc", (const uint32_t[]){267, 265, UINT32_MAX});
    /* Both forms in one list. */
    expect_ids((const char *const[4]){"model/merges/0", "\"a a\"", NULL, NULL},
               "aaaa", (const uint32_t[]){257, UINT32_MAX});
    /* A whole piece that is a token needs no merges. */
    expect_ids((const char *const[4]){"model/merges", "[]",
                                      "model/ignore_merges", "true"},
               "abc hello helloo",
               (const uint32_t[]){267, 262, ' ', 'h', 'e', 'l', 'l', 'o', 'o',
                                  UINT32_MAX});
    expect_ids((const char *const[4]){"model/merges", "[]", NULL, NULL}, "abc",
               (const uint32_t[]){'a', 'b', 'c', UINT32_MAX});
    /* Without a normalizer the combining accent stays. */
    expect_ids((const char *const[4]){"normalizer", "null", NULL, NULL},
               "e\u0301", (const uint32_t[]){'e', 0xcc, 0x81, UINT32_MAX});
    expect_ids(
        (const char *const[4]){"normalizer", NULL, "added_tokens", NULL},
        "<think>",
        (const uint32_t[]){'<', 't', 'h', 'i', 'n', 'k', '>', UINT32_MAX});
    /* An added token may stand in the vocabulary with the same id. */
    expect_ids((const char *const[4]){"model/vocab/<think>", "270", NULL, NULL},
               "<think>", (const uint32_t[]){270, UINT32_MAX});
    expect_ids(
        (const char *const[4]){"added_tokens/0/id", "16777215", NULL, NULL},
        "<|end|>", (const uint32_t[]){16777215, UINT32_MAX});
}

static void missing_byte_is_refused(void)
{
    akin_tokenizer_t *tokenizer = NULL;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(
        parse_edited((const char *const[4]){"model/vocab/z", NULL, NULL, NULL},
                     &tokenizer, &err),
        AKIN_OK);
    uint32_t *ids = NULL;
    size_t n = 0;
    CU_ASSERT_EQUAL(akin_tokenizer_encode(tokenizer, "xyz", 3, &ids, &n, &err),
                    AKIN_ERR_FORMAT);
    CU_ASSERT_PTR_NULL(ids);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "byte 0x7a"));
    akin_tokenizer_destroy(tokenizer);
}

static const runner_test_t tests[] = {
    {"broken files are refused", broken_files_are_refused},
    {"text that is not JSON", text_that_is_not_json},
    {"files that cannot be read", files_that_cannot_be_read},
    {"variants load", variants_load},
    {"missing byte is refused", missing_byte_is_refused},
};

RUNNER_MAIN("tokenizer_load", tests)
