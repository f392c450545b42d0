/* Chat: ChatML frames around messages, and messages from JSON. */
#include "engine/chat.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char start[] = "<|im_start|>";
static const char end[] = "<|im_end|>\n";
static const char generation_prompt[] = "<|im_start|>assistant\n";

enum {
    START_BYTES = sizeof(start) - 1,
    END_BYTES = sizeof(end) - 1,
    PROMPT_BYTES = sizeof(generation_prompt) - 1,
};

static int role_is_known(const char *role)
{
    return strcmp(role, "system") == 0 || strcmp(role, "user") == 0 ||
           strcmp(role, "assistant") == 0;
}

static akin_status_t no_memory(akin_error_t *err)
{
    return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory for the prompt");
}

static akin_status_t check_message(const akin_chat_message_t *message,
                                   size_t index, akin_error_t *err)
{
    if (message->role == NULL || !role_is_known(message->role))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "messages[%zu].role must be \"system\", \"user\" "
                              "or \"assistant\"",
                              index);
    if (message->content == NULL && message->content_bytes > 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "messages[%zu].content is missing", index);
    return AKIN_OK;
}

/* Copy bytes to where the text goes on; returns its new end. */
static char *put(char *at, const char *bytes, size_t n)
{
    if (n > 0)
        memcpy(at, bytes, n);
    return at + n;
}

akin_status_t akin_chat_render(const akin_chat_message_t *messages,
                               size_t n_messages, char **text_p,
                               size_t *bytes_p, akin_error_t *err)
{
    *text_p = NULL;
    if (n_messages == 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "messages must hold at least one message");
    size_t bytes = PROMPT_BYTES;
    for (size_t i = 0; i < n_messages; i++) {
        akin_status_t status = check_message(&messages[i], i, err);
        if (status != AKIN_OK)
            return status;
        size_t frame = START_BYTES + strlen(messages[i].role) + 1 + END_BYTES;
        if (messages[i].content_bytes > SIZE_MAX / 2 - frame - bytes)
            return no_memory(err);
        bytes += frame + messages[i].content_bytes;
    }
    char *text = malloc(bytes + 1);
    if (text == NULL)
        return no_memory(err);
    char *at = text;
    for (size_t i = 0; i < n_messages; i++) {
        at = put(at, start, START_BYTES);
        at = put(at, messages[i].role, strlen(messages[i].role));
        at = put(at, "\n", 1);
        at = put(at, messages[i].content, messages[i].content_bytes);
        at = put(at, end, END_BYTES);
    }
    at = put(at, generation_prompt, PROMPT_BYTES);
    *at = '\0';
    *text_p = text;
    *bytes_p = bytes;
    return AKIN_OK;
}

/* Text of a content part, or NULL and a message. */
static const json_t *part_text(const json_t *part, size_t message, size_t index,
                               akin_error_t *err)
{
    const json_t *type = json_object_get(part, "type");
    const json_t *text = json_object_get(part, "text");
    if (!json_is_string(type) || strcmp(json_string_value(type), "text") != 0)
        (void)akin_error_set(err, AKIN_ERR_FORMAT,
                             "messages[%zu].content[%zu].type must be \"text\"",
                             message, index);
    else if (!json_is_string(text))
        (void)akin_error_set(err, AKIN_ERR_FORMAT,
                             "messages[%zu].content[%zu].text must be a string",
                             message, index);
    else
        return text;
    return NULL;
}

/* Join an array of parts; the text is malloc'ed. */
static akin_status_t join_parts(const json_t *parts, size_t index,
                                char **text_p, size_t *bytes_p,
                                akin_error_t *err)
{
    size_t bytes = 0;
    size_t i = 0;
    json_t *part = NULL;
    json_array_foreach(parts, i, part)
    {
        const json_t *text = part_text(part, index, i, err);
        if (text == NULL)
            return AKIN_ERR_FORMAT;
        bytes += json_string_length(text);
    }
    char *joined = malloc(bytes + 1);
    if (joined == NULL)
        return no_memory(err);
    char *at = joined;
    json_array_foreach(parts, i, part)
    {
        const json_t *text = json_object_get(part, "text");
        at = put(at, json_string_value(text), json_string_length(text));
    }
    *text_p = joined;
    *bytes_p = bytes;
    return AKIN_OK;
}

/* Read one message; its content lies in the JSON value or, if it came in
 * parts, in *joined_p. */
static akin_status_t read_message(const json_t *json, size_t index,
                                  akin_chat_message_t *message, char **joined_p,
                                  akin_error_t *err)
{
    if (!json_is_object(json))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "messages[%zu] must be an object", index);
    const json_t *role = json_object_get(json, "role");
    if (!json_is_string(role) ||
        strlen(json_string_value(role)) != json_string_length(role))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "messages[%zu].role must be a string without NUL",
                              index);
    message->role = json_string_value(role);
    const json_t *calls = json_object_get(json, "tool_calls");
    if (calls != NULL && !json_is_null(calls))
        return akin_error_set(err, AKIN_ERR_UNSUPPORTED,
                              "messages[%zu].tool_calls is not supported; "
                              "leave it out",
                              index);
    const json_t *content = json_object_get(json, "content");
    if (json_is_string(content)) {
        message->content = json_string_value(content);
        message->content_bytes = json_string_length(content);
        return AKIN_OK;
    }
    if (!json_is_array(content))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "messages[%zu].content must be a string or an "
                              "array of text parts",
                              index);
    akin_status_t status =
        join_parts(content, index, joined_p, &message->content_bytes, err);
    message->content = *joined_p;
    return status;
}

static akin_status_t render_array(const json_t *array,
                                  akin_chat_message_t *messages, char **joined,
                                  char **text_p, size_t *bytes_p,
                                  akin_error_t *err)
{
    size_t n = json_array_size(array);
    for (size_t i = 0; i < n; i++) {
        akin_status_t status = read_message(json_array_get(array, i), i,
                                            &messages[i], &joined[i], err);
        if (status != AKIN_OK)
            return status;
    }
    return akin_chat_render(messages, n, text_p, bytes_p, err);
}

akin_status_t akin_chat_render_json(const struct json_t *json, char **text_p,
                                    size_t *bytes_p, akin_error_t *err)
{
    *text_p = NULL;
    const json_t *array =
        json_is_object(json) ? json_object_get(json, "messages") : json;
    if (!json_is_array(array))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "messages must be an array");
    size_t n = json_array_size(array);
    akin_chat_message_t *messages = calloc(n + 1, sizeof(*messages));
    char **joined = calloc(n + 1, sizeof(*joined));
    akin_status_t status =
        messages == NULL || joined == NULL
            ? no_memory(err)
            : render_array(array, messages, joined, text_p, bytes_p, err);
    if (joined != NULL)
        for (size_t i = 0; i < n; i++)
            free(joined[i]);
    free(joined);
    free(messages);
    return status;
}
