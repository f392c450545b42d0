/* Fuzz: arbitrary bytes as a prompt; decoding must give its NFC back. */
#include "engine/tokenizer.h"

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uninorm.h>
#include <unistr.h>

/* Text that grows. */
typedef struct text {
    char *bytes;
    size_t n;
} text_t;

static void append(text_t *text, const char *bytes, size_t n)
{
    text->bytes = realloc(text->bytes, text->n + n + 1);
    if (text->bytes == NULL)
        abort();
    memcpy(text->bytes + text->n, bytes, n);
    text->n += n;
}

static const akin_tokenizer_t *tokenizer(void)
{
    static akin_tokenizer_t *loaded;
    akin_error_t err = {{0}};
    if (loaded == NULL &&
        akin_tokenizer_load(AKIN_FIXTURES "/tokenizer/tokenizer.json", &loaded,
                            &err) != AKIN_OK) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return loaded;
}

/* The first of the fixture's added tokens in a prompt; none of them is the
 * start of another. */
static const char *next_added(const char *bytes, size_t n, size_t *n_added_p)
{
    static const char *const added[] = {"<|endoftext|>", "<|im_start|>",
                                        "<|im_end|>"};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++) {
        const char *at = memmem(bytes, n, added[i], strlen(added[i]));
        if (at != NULL && (first == NULL || at < first)) {
            first = at;
            *n_added_p = strlen(added[i]);
        }
    }
    return first;
}

/* What decoding must give: NFC of every stretch between added tokens, which
 * stay as they are. */
static text_t expected(const char *bytes, size_t n)
{
    text_t text = {0};
    append(&text, "", 0);
    while (n > 0) {
        size_t n_added = 0;
        const char *added = next_added(bytes, n, &n_added);
        size_t n_stretch = added == NULL ? n : (size_t)(added - bytes);
        size_t n_nfc = 0;
        uint8_t *nfc = u8_normalize(UNINORM_NFC, (const uint8_t *)bytes,
                                    n_stretch, NULL, &n_nfc);
        if (nfc == NULL && n_stretch > 0)
            abort();
        append(&text, nfc == NULL ? "" : (const char *)nfc, n_nfc);
        free(nfc);
        append(&text, bytes + n_stretch, n_added);
        bytes += n_stretch + n_added;
        n -= n_stretch + n_added;
    }
    return text;
}

static text_t decoded(const uint32_t *ids, size_t n_ids)
{
    text_t text = {0};
    append(&text, "", 0);
    char *room = malloc(akin_decoder_room(tokenizer()));
    if (room == NULL)
        abort();
    akin_decoder_t decoder = {0};
    for (size_t i = 0; i < n_ids; i++) {
        size_t n = akin_decoder_push(&decoder, tokenizer(), ids[i], 1, room);
        append(&text, room, n);
    }
    append(&text, room, akin_decoder_finish(&decoder, room));
    free(room);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    uint32_t *ids = NULL;
    size_t n_ids = 0;
    akin_error_t err = {{0}};
    akin_status_t status = akin_tokenizer_encode(
        tokenizer(), (const char *)data, size_bytes, &ids, &n_ids, &err);
    int well_formed = u8_check(data, size_bytes) == NULL;
    if (status != (well_formed ? AKIN_OK : AKIN_ERR_FORMAT))
        abort();
    if (!well_formed)
        return 0;
    text_t want = expected((const char *)data, size_bytes);
    text_t got = decoded(ids, n_ids);
    if (want.n != got.n || memcmp(want.bytes, got.bytes, want.n) != 0)
        abort();
    free(want.bytes);
    free(got.bytes);
    free(ids);
    return 0;
}
