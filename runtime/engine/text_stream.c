/* Text stream: decoding with stop strings. */
#include "engine/text_stream.h"

#include <stdlib.h>
#include <string.h>

typedef struct stop {
    char *text;
    size_t bytes;
} stop_t;

struct akin_text_stream {
    const akin_tokenizer_t *tokenizer;
    akin_decoder_t decoder;
    stop_t *stops;
    size_t n_stops;
    char *text;      /* released text, then the text that is held back */
    size_t released; /* bytes handed out by the last call */
    size_t bytes;    /* bytes in all */
    size_t capacity;
};

akin_status_t akin_text_stream_create(const akin_tokenizer_t *tokenizer,
                                      const char *const *stops,
                                      const size_t *stop_bytes, size_t n_stops,
                                      akin_text_stream_t **stream_p)
{
    *stream_p = NULL;
    akin_text_stream_t *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return AKIN_ERR_NOMEM;
    s->tokenizer = tokenizer;
    s->stops = calloc(n_stops > 0 ? n_stops : 1, sizeof(*s->stops));
    if (s->stops == NULL)
        goto err_destroy;
    for (; s->n_stops < n_stops; s->n_stops++) {
        const char *text = stops[s->n_stops];
        stop_t *stop = &s->stops[s->n_stops];
        stop->bytes =
            stop_bytes != NULL ? stop_bytes[s->n_stops] : strlen(text);
        stop->text = malloc(stop->bytes);
        if (stop->text == NULL)
            goto err_destroy;
        memcpy(stop->text, text, stop->bytes);
    }
    *stream_p = s;
    return AKIN_OK;

err_destroy:
    akin_text_stream_destroy(s);
    return AKIN_ERR_NOMEM;
}

void akin_text_stream_destroy(akin_text_stream_t *stream)
{
    if (stream == NULL)
        return;
    for (size_t i = 0; i < stream->n_stops; i++)
        free(stream->stops[i].text);
    free(stream->stops);
    free(stream->text);
    free(stream);
}

/* Drop what the last call handed out and make room for more. */
static akin_status_t make_room(akin_text_stream_t *s, size_t room)
{
    if (s->bytes > s->released)
        memmove(s->text, s->text + s->released, s->bytes - s->released);
    s->bytes -= s->released;
    s->released = 0;
    if (s->bytes + room <= s->capacity)
        return AKIN_OK;
    size_t capacity = 2 * (s->bytes + room);
    char *text = realloc(s->text, capacity);
    if (text == NULL)
        return AKIN_ERR_NOMEM;
    s->text = text;
    s->capacity = capacity;
    return AKIN_OK;
}

/* Where the first stop string begins; the end of the text if none does. */
static size_t find_stop(const akin_text_stream_t *s)
{
    size_t first = s->bytes;
    for (size_t i = 0; i < s->n_stops; i++) {
        const char *at =
            memmem(s->text, s->bytes, s->stops[i].text, s->stops[i].bytes);
        if (at != NULL && (size_t)(at - s->text) < first)
            first = (size_t)(at - s->text);
    }
    return first;
}

/* Length of the longest end of the text that begins a stop string. */
static size_t open_end(const akin_text_stream_t *s)
{
    size_t longest = 0;
    for (size_t i = 0; i < s->n_stops; i++) {
        size_t n = s->stops[i].bytes - 1;
        n = n < s->bytes ? n : s->bytes;
        for (; n > longest; n--)
            if (memcmp(s->text + s->bytes - n, s->stops[i].text, n) == 0)
                longest = n;
    }
    return longest;
}

static void release(akin_text_stream_t *s, size_t bytes, const char **text_p,
                    size_t *bytes_p)
{
    s->released = bytes;
    *text_p = s->text;
    *bytes_p = bytes;
}

akin_status_t akin_text_stream_push(akin_text_stream_t *stream, uint32_t id,
                                    const char **text_p, size_t *bytes_p,
                                    int *stopped_p)
{
    *bytes_p = 0;
    *stopped_p = 0;
    akin_status_t status =
        make_room(stream, akin_decoder_room(stream->tokenizer));
    if (status != AKIN_OK)
        return status;
    stream->bytes += akin_decoder_push(&stream->decoder, stream->tokenizer, id,
                                       0, stream->text + stream->bytes);
    size_t end = find_stop(stream);
    if (end < stream->bytes) {
        *stopped_p = 1;
        stream->bytes = end;
    } else {
        end = stream->bytes - open_end(stream);
    }
    release(stream, end, text_p, bytes_p);
    return AKIN_OK;
}

void akin_text_stream_finish(akin_text_stream_t *stream, const char **text_p,
                             size_t *bytes_p)
{
    *bytes_p = 0;
    *text_p = stream->text;
    if (make_room(stream, akin_decoder_room(stream->tokenizer)) == AKIN_OK)
        stream->bytes +=
            akin_decoder_finish(&stream->decoder, stream->text + stream->bytes);
    release(stream, stream->bytes, text_p, bytes_p);
}
