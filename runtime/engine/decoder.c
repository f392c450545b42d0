/* Decoder: bytes of tokens to whole UTF-8 characters, as they come. */
#include "engine/tokenizer.h"

#include "engine/utf8.h"

#include <string.h>

static const char replacement[3] = "\xef\xbf\xbd";

static size_t put_replacement(char *text)
{
    memcpy(text, replacement, sizeof(replacement));
    return sizeof(replacement);
}

/* Take one byte; returns the bytes of text that it completes. */
static size_t push_byte(akin_decoder_t *decoder, unsigned char byte, char *text)
{
    size_t used = 0;
    decoder->held[decoder->n_held] = byte;
    akini_utf8_t class =
        akini_utf8_classify(decoder->held, decoder->n_held + 1);
    if (class == AKINI_UTF8_BAD && decoder->n_held > 0) {
        /* What was held is a maximal subpart; the byte starts anew. */
        used = put_replacement(text);
        decoder->n_held = 0;
        decoder->held[0] = byte;
        class = akini_utf8_classify(decoder->held, 1);
    }
    switch (class) {
    case AKINI_UTF8_SHORT:
        decoder->n_held++;
        break;
    case AKINI_UTF8_WHOLE:
        memcpy(text + used, decoder->held, decoder->n_held + 1);
        used += decoder->n_held + 1;
        decoder->n_held = 0;
        break;
    case AKINI_UTF8_BAD:
        used += put_replacement(text + used);
        break;
    }
    return used;
}

size_t akin_decoder_push(akin_decoder_t *decoder,
                         const akin_tokenizer_t *tokenizer, uint32_t id,
                         int keep_special, char *text)
{
    const char *bytes = NULL;
    size_t n = 0;
    int special = 0;
    akin_tokenizer_token(tokenizer, id, &bytes, &n, &special);
    if (special && !keep_special)
        return 0;
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        used += push_byte(decoder, (unsigned char)bytes[i], text + used);
    return used;
}

size_t akin_decoder_finish(akin_decoder_t *decoder, char *text)
{
    if (decoder->n_held == 0)
        return 0;
    decoder->n_held = 0;
    return put_replacement(text);
}
