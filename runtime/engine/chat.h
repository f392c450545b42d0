/* Chat: messages to prompt text in the ChatML form that Qwen3 uses. */
#ifndef AKIN_ENGINE_CHAT_H
#define AKIN_ENGINE_CHAT_H

#include "base/error.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One message; text is borrowed, UTF-8, NUL bytes allowed in content. */
typedef struct akin_chat_message {
    const char *role; /* "system", "user" or "assistant" */
    const char *content;
    size_t content_bytes;
} akin_chat_message_t;

/**
 * Render messages as `<|im_start|>{role}\n{text}<|im_end|>\n` each, then the
 * generation prompt `<|im_start|>assistant\n`. No BOS, no default system text.
 *
 * \param[out] text_p   malloc'ed, NUL-terminated, owned by the caller.
 * \param[out] bytes_p  length without the NUL.
 * \param[out] err      names the message's index and field.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: no message, or an unknown role.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_chat_render(const akin_chat_message_t *messages,
                               size_t n_messages, char **text_p,
                               size_t *bytes_p,
                               akin_error_t *err) AKIN_MUST_CHECK;

struct json_t;

/**
 * Read messages from a JSON array of {"role", "content"}, or from an object
 * with a "messages" array; content is a string, or an array of
 * {"type": "text", "text": ...} parts, which are joined. Then render.
 *
 * \param[in]  json  jansson value; borrowed.
 * \return as akin_chat_render(), or AKIN_ERR_FORMAT: a field is missing or has
 *         the wrong type; err names it ("messages[2].content").
 * \return AKIN_ERR_UNSUPPORTED: a message carries tool_calls.
 */
akin_status_t akin_chat_render_json(const struct json_t *json, char **text_p,
                                    size_t *bytes_p,
                                    akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
