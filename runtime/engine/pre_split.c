/* Pre-split: PCRE2, anchored at every position, under a budget of steps.
 *
 * The interpreter, not the JIT compiler: compiled code does not count the
 * steps of a repeated character (".*b"), so that no limit would stop it, and
 * where there is no compiler the same text could end otherwise. Splitting
 * takes less time than merging all the same.
 */
#include "engine/pre_split.h"

#include "engine/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

enum {
    REGEX_BYTES_MAX = 16384,
    /* Steps of one match attempt that need no accounting: ordinary pieces
     * take far fewer. */
    STEPS_FREE = 1000,
    /* A run of white space costs a few steps per byte and per alternative. */
    STEPS_PER_BYTE = 64,
    STEPS_BASE = 10000000,
    HEAP_KIB = 65536,
};

struct akini_pre_split {
    pcre2_code *code;
};

struct akini_splitter {
    const pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *context;
    const char *text;
    size_t n;
    size_t gap;       /* start of what no match has taken yet */
    size_t at;        /* where to look next */
    size_t match_end; /* end of the match that starts at `gap`; 0: none */
    uint64_t steps;   /* left of the budget */
};

/*
 * PCRE2's \s has U+180E, which lost the White_Space property in Unicode 6.3:
 * name the property instead. It may stand in a class as well.
 */
static char *with_white_space(const char *regex)
{
    static const char property[] = "p{White_Space}";
    size_t n = strlen(regex);
    char *out = malloc(n * (sizeof(property) - 1) + 1);
    if (out == NULL)
        return NULL;
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        out[used++] = regex[i];
        if (regex[i] != '\\' || i + 1 == n)
            continue;
        i++;
        if (regex[i] == 's' || regex[i] == 'S') {
            memcpy(out + used, property, sizeof(property) - 1);
            if (regex[i] == 'S')
                out[used] = 'P';
            used += sizeof(property) - 1;
        } else {
            out[used++] = regex[i];
        }
    }
    out[used] = '\0';
    return out;
}

akin_status_t akini_pre_split_create(const char *regex,
                                     akini_pre_split_t **split_p,
                                     akin_error_t *err)
{
    *split_p = NULL;
    if (strlen(regex) > REGEX_BYTES_MAX)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "the regex is longer than %d bytes",
                              REGEX_BYTES_MAX);
    akini_pre_split_t *split = malloc(sizeof(*split));
    char *rewritten = with_white_space(regex);
    if (split == NULL || rewritten == NULL) {
        free(split);
        free(rewritten);
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    }
    int code = 0;
    PCRE2_SIZE at = 0;
    /* Looking ahead for a character that the regex needs would cost a scan of
     * the text at every position, outside the budget. */
    uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED |
                       PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_START_OPTIMIZE;
    split->code = pcre2_compile((PCRE2_SPTR)rewritten, PCRE2_ZERO_TERMINATED,
                                options, &code, &at, NULL);
    free(rewritten);
    if (split->code == NULL) {
        unsigned char text[120] = {0};
        (void)pcre2_get_error_message(code, text, sizeof(text));
        free(split);
        if (code == PCRE2_ERROR_NOMEMORY)
            return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
        return akin_error_set(
            err, AKIN_ERR_FORMAT,
            "the regex does not compile: %s (near byte %zu of it)",
            (const char *)text, at);
    }
    *split_p = split;
    return AKIN_OK;
}

void akini_pre_split_destroy(akini_pre_split_t *split)
{
    if (split == NULL)
        return;
    pcre2_code_free(split->code);
    free(split);
}

akin_status_t akini_splitter_create(const akini_pre_split_t *split,
                                    akini_splitter_t **splitter_p)
{
    *splitter_p = NULL;
    akini_splitter_t *splitter = calloc(1, sizeof(*splitter));
    if (splitter == NULL)
        return AKIN_ERR_NOMEM;
    splitter->code = split->code;
    splitter->match = pcre2_match_data_create(1, NULL);
    splitter->context = pcre2_match_context_create(NULL);
    if (splitter->match == NULL || splitter->context == NULL) {
        akini_splitter_destroy(splitter);
        return AKIN_ERR_NOMEM;
    }
    (void)pcre2_set_heap_limit(splitter->context, HEAP_KIB);
    *splitter_p = splitter;
    return AKIN_OK;
}

void akini_splitter_destroy(akini_splitter_t *splitter)
{
    if (splitter == NULL)
        return;
    pcre2_match_data_free(splitter->match);
    pcre2_match_context_free(splitter->context);
    free(splitter);
}

void akini_splitter_start(akini_splitter_t *splitter, const char *text,
                          size_t n)
{
    splitter->text = text;
    splitter->n = n;
    splitter->gap = 0;
    splitter->at = 0;
    splitter->match_end = 0;
    splitter->steps = STEPS_BASE + (uint64_t)n * STEPS_PER_BYTE;
}

static int match_once(akini_splitter_t *splitter, uint32_t limit)
{
    (void)pcre2_set_match_limit(splitter->context, limit);
    return pcre2_match(splitter->code, (PCRE2_SPTR)splitter->text, splitter->n,
                       splitter->at, PCRE2_NO_UTF_CHECK, splitter->match,
                       splitter->context);
}

/*
 * Match at `at`. An attempt that runs into its limit is made again with eight
 * times as many steps; every such attempt is charged to the text's budget.
 * \return 1: matched; 0: no match there; negative: a PCRE2 error.
 */
static int match_here(akini_splitter_t *splitter)
{
    uint64_t limit = STEPS_FREE;
    int rc = match_once(splitter, (uint32_t)limit);
    while (rc == PCRE2_ERROR_MATCHLIMIT) {
        limit *= 8;
        if (limit > splitter->steps || limit > UINT32_MAX)
            return rc;
        splitter->steps -= limit;
        rc = match_once(splitter, (uint32_t)limit);
    }
    if (rc == PCRE2_ERROR_NOMATCH)
        return 0;
    return rc < 0 ? rc : 1;
}

static akin_status_t refuse(const akini_splitter_t *splitter, int rc,
                            akin_error_t *err)
{
    if (rc == PCRE2_ERROR_NOMEMORY)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    unsigned char text[120] = {0};
    (void)pcre2_get_error_message(rc, text, sizeof(text));
    return akin_error_set(err, AKIN_ERR_TIMEOUT,
                          "the pre-tokenizer's regex gave up at byte %zu of "
                          "%zu: %s",
                          splitter->at, splitter->n, (const char *)text);
}

/* Hand out the text from `gap` to `end`. */
static void take(akini_splitter_t *splitter, size_t end, const char **piece_p,
                 size_t *n_p)
{
    *piece_p = splitter->text + splitter->gap;
    *n_p = end - splitter->gap;
    splitter->gap = end;
}

akin_status_t akini_splitter_next(akini_splitter_t *splitter,
                                  const char **piece_p, size_t *n_p,
                                  akin_error_t *err)
{
    while (splitter->match_end == 0 && splitter->at < splitter->n) {
        int rc = match_here(splitter);
        if (rc < 0)
            return refuse(splitter, rc, err);
        size_t step =
            akini_utf8_length((unsigned char)splitter->text[splitter->at]);
        if (rc == 0) {
            splitter->at += step;
            continue;
        }
        const PCRE2_SIZE *ovector = pcre2_get_ovector_pointer(splitter->match);
        size_t start = ovector[0];
        size_t end = ovector[1];
        if (end <= start || start < splitter->at) {
            /* An empty match takes nothing, yet it ends the piece before. */
            start = splitter->at;
            splitter->at += step;
        } else {
            splitter->at = end;
            splitter->match_end = end;
        }
        if (start > splitter->gap) {
            take(splitter, start, piece_p, n_p);
            return AKIN_OK;
        }
    }
    size_t end = splitter->match_end != 0 ? splitter->match_end : splitter->n;
    splitter->match_end = 0;
    take(splitter, end, piece_p, n_p);
    return AKIN_OK;
}
