/* Fuzz: arbitrary bytes as tokenizer.json; what loads must also work. */
#include "engine/tokenizer.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

/* Decode every token; the room promised must do. */
static void decode(const akin_tokenizer_t *tokenizer, const uint32_t *ids,
                   size_t n)
{
    size_t room = akin_decoder_room(tokenizer);
    char *text = malloc(room);
    if (text == NULL)
        return;
    akin_decoder_t decoder = {0};
    for (size_t i = 0; i < n; i++)
        if (akin_decoder_push(&decoder, tokenizer, ids[i], 1, text) > room)
            abort();
    if (akin_decoder_finish(&decoder, text) > room)
        abort();
    free(text);
}

static void use(const akin_tokenizer_t *tokenizer)
{
    static const char text[] =
        "hello hell aaaaaaa abc <|end|>x <think> e\xcc\x81\r\n 12 "
        "\xe6\x97\xa5\xe6\x9c\xac";
    uint32_t *ids = NULL;
    size_t n_ids = 0;
    akin_error_t err = {{0}};
    akin_status_t status = akin_tokenizer_encode(
        tokenizer, text, sizeof(text) - 1, &ids, &n_ids, &err);
    if (status != AKIN_OK) {
        if (ids != NULL || err.text[0] == '\0')
            abort();
        return;
    }
    for (size_t i = 0; i < n_ids; i++)
        if (ids[i] >= akin_tokenizer_size(tokenizer))
            abort();
    decode(tokenizer, ids, n_ids);
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    akin_tokenizer_t *tokenizer = NULL;
    akin_error_t err = {{0}};
    akin_status_t status = akin_tokenizer_parse((const char *)data, size_bytes,
                                                "fuzz", &tokenizer, &err);
    if (status != AKIN_OK) {
        /* A refusal names the file and leaves nothing behind. */
        if (tokenizer != NULL || strncmp(err.text, "fuzz: ", 6) != 0)
            abort();
        return 0;
    }
    use(tokenizer);
    akin_tokenizer_destroy(tokenizer);
    return 0;
}
