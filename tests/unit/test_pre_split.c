/* Pre-split: pieces that Python's regex module finds, gaps, and the budget. */
#include "engine/pre_split.h"

#include "runner.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static akini_splitter_t *open_splitter(const char *regex,
                                       akini_pre_split_t **split_p)
{
    akin_error_t err = {{0}};
    akini_splitter_t *splitter = NULL;
    if (akini_pre_split_create(regex, split_p, &err) != AKIN_OK ||
        akini_splitter_create(*split_p, &splitter) != AKIN_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(2);
    }
    return splitter;
}

/* Whether a text is cut into pieces of these lengths. */
static int cuts_into(akini_splitter_t *splitter, const char *text, size_t n,
                     const json_t *lengths)
{
    akini_splitter_start(splitter, text, n);
    size_t at = 0;
    for (size_t i = 0;; i++) {
        const char *piece = NULL;
        size_t n_piece = 0;
        akin_error_t err = {{0}};
        if (akini_splitter_next(splitter, &piece, &n_piece, &err) != AKIN_OK)
            return 0;
        if (n_piece == 0)
            return at == n && i == json_array_size(lengths);
        json_int_t want = json_integer_value(json_array_get(lengths, i));
        if (piece != text + at || (json_int_t)n_piece != want)
            return 0;
        at += n_piece;
    }
}

static void check_regex(const json_t *file, const char *name)
{
    akini_pre_split_t *split = NULL;
    akini_splitter_t *splitter =
        open_splitter(json_string_value(json_object_get(file, name)), &split);
    const json_t *cases = json_object_get(file, "cases");
    CU_ASSERT(json_array_size(cases) > 100);
    size_t i = 0;
    json_t *one = NULL;
    json_array_foreach(cases, i, one)
    {
        const json_t *text = json_object_get(one, "text");
        int same =
            cuts_into(splitter, json_string_value(text),
                      json_string_length(text), json_object_get(one, name));
        CU_ASSERT(same);
        if (!same)
            fprintf(stderr, "%s, case %zu: \"%s\"\n", name, i,
                    json_string_value(text));
    }
    akini_splitter_destroy(splitter);
    akini_pre_split_destroy(split);
}

static void pieces_as_python_cuts_them(void)
{
    json_t *file = json_load_file(AKIN_FIXTURES "/tokenizer/pieces.json",
                                  JSON_ALLOW_NUL, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    check_regex(file, "qwen");
    check_regex(file, "gpt_oss");
    json_decref(file);
}

/* Pieces of a text, joined with '|'. */
static void expect_pieces(const char *regex, const char *text,
                          const char *joined)
{
    akini_pre_split_t *split = NULL;
    akini_splitter_t *splitter = open_splitter(regex, &split);
    char got[256] = "";
    akini_splitter_start(splitter, text, strlen(text));
    for (;;) {
        const char *piece = NULL;
        size_t n = 0;
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL(akini_splitter_next(splitter, &piece, &n, &err),
                        AKIN_OK);
        if (n == 0)
            break;
        size_t used = strlen(got);
        (void)snprintf(got + used, sizeof(got) - used, "%s%.*s",
                       used == 0 ? "" : "|", (int)n, piece);
    }
    CU_ASSERT_STRING_EQUAL(got, joined);
    akini_splitter_destroy(splitter);
    akini_pre_split_destroy(split);
}

static void gaps_are_pieces(void)
{
    expect_pieces("b+", "abbacca", "a|bb|acca");
    expect_pieces("b+", "ééé", "ééé");
    expect_pieces("é", "aéé日é", "a|é|é|日|é");
    /* Look-behind sees the text before; \K leaves a gap before the match. */
    expect_pieces("(?<=a)b", "abbab", "a|b|ba|b");
    expect_pieces("a\\Kb", "xabab", "xa|b|a|b");
    /* An empty match ends the piece before it and takes nothing. */
    expect_pieces("x*", "aéx日", "a|é|x|日");
    expect_pieces("(?=b)", "aabab", "aa|ba|b");
    expect_pieces("^a", "aab", "a|ab");
}

/* White_Space as Unicode has had it since 6.3: not U+180E, but U+0085. */
static void white_space_is_the_property(void)
{
    expect_pieces("\\s",
                  "a\u180eb\xc2\x85"
                  "c",
                  "a\u180eb|\xc2\x85|c");
    expect_pieces("[^\\s]+", "a\u180eb\u3000c", "a\u180eb|\u3000|c");
    expect_pieces("\\S+", "a b", "a| |b");
    expect_pieces("[\\S]", "a b", "a| |b");
    expect_pieces("\\\\s", "a\\sb", "a|\\s|b");
}

static void hostile_regex_gives_up(void)
{
    static const char *const regexes[] = {
        "(a*)*b",      "(a+)+$b", "(?:a|aa)+b", "(?:(?:a|a)|(?:a|a))*c",
        "(?R)?a(?R)b", ".*b",     ".*.*.*b",
    };
    enum { BYTES = 200000 };
    static char text[BYTES];
    memset(text, 'a', sizeof(text));
    for (size_t i = 0; i < sizeof(regexes) / sizeof(regexes[0]); i++) {
        akini_pre_split_t *split = NULL;
        akini_splitter_t *splitter = open_splitter(regexes[i], &split);
        const char *piece = NULL;
        size_t n = 0;
        akin_error_t err = {{0}};
        akini_splitter_start(splitter, text, sizeof(text));
        CU_ASSERT_EQUAL(akini_splitter_next(splitter, &piece, &n, &err),
                        AKIN_ERR_TIMEOUT);
        CU_ASSERT_PTR_NULL(piece);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, " of 200000: "));
        akini_splitter_destroy(splitter);
        akini_pre_split_destroy(split);
    }
}

static void broken_regex_is_refused(void)
{
    static const struct {
        const char *regex;
        const char *message;
    } cases[] = {
        {"(", "byte 1 "}, {"a[b", "byte 3 "},  {"\\p{Nothing}", "byte 11 "},
        {"a\\Cb", "\\C"}, {"a++*", "compile"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        akini_pre_split_t *split = NULL;
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL(akini_pre_split_create(cases[i].regex, &split, &err),
                        AKIN_ERR_FORMAT);
        CU_ASSERT_PTR_NULL(split);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].message));
    }
    static char huge[20000];
    memset(huge, 'a', sizeof(huge) - 1);
    akini_pre_split_t *split = NULL;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akini_pre_split_create(huge, &split, &err),
                    AKIN_ERR_FORMAT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "16384"));
}

static const runner_test_t tests[] = {
    {"pieces as Python cuts them", pieces_as_python_cuts_them},
    {"gaps are pieces", gaps_are_pieces},
    {"white space is the property", white_space_is_the_property},
    {"hostile regex gives up", hostile_regex_gives_up},
    {"broken regex is refused", broken_regex_is_refused},
};

RUNNER_MAIN("pre_split", tests)
