/* Chat: ChatML text, messages from JSON, and what is refused. */
#include "engine/chat.h"

#include "runner.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void messages_render(void)
{
    static const akin_chat_message_t messages[] = {
        {"system", "Be brief.", 9},
        {"user", "Hi\0there", 8},
        {"assistant", " Hello\n", 7},
        {"user", NULL, 0},
    };
    static const char want[] = "<|im_start|>system\nBe brief.<|im_end|>\n"
                               "<|im_start|>user\nHi\0there<|im_end|>\n"
                               "<|im_start|>assistant\n Hello\n<|im_end|>\n"
                               "<|im_start|>user\n<|im_end|>\n"
                               "<|im_start|>assistant\n";
    char *text = NULL;
    size_t bytes = 0;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_chat_render(messages, 4, &text, &bytes, &err),
                          AKIN_OK);
    CU_ASSERT_EQUAL(bytes, sizeof(want) - 1);
    CU_ASSERT(bytes == sizeof(want) - 1 &&
              memcmp(text, want, sizeof(want)) == 0);
    free(text);
}

static void wrong_messages_are_refused(void)
{
    static const akin_chat_message_t messages[] = {
        {"user", "a", 1}, {"tool", "b", 1}, {NULL, "c", 1}, {"user", NULL, 1}};
    static const char *const named[] = {"messages[0].role", "messages[0].role",
                                        "messages[0].content"};
    akin_error_t err = {{0}};
    char *text = NULL;
    size_t bytes = 0;
    CU_ASSERT_EQUAL(akin_chat_render(messages, 0, &text, &bytes, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_EQUAL(akin_chat_render(messages, 2, &text, &bytes, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "messages[1].role"));
    for (size_t i = 1; i < 4; i++) {
        CU_ASSERT_EQUAL(akin_chat_render(&messages[i], 1, &text, &bytes, &err),
                        AKIN_ERR_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, named[i - 1]));
    }
    CU_ASSERT_PTR_NULL(text);
}

static akin_status_t render(const char *json_text, char **text_p,
                            size_t *bytes_p, akin_error_t *err)
{
    json_t *json =
        json_loads(json_text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (json == NULL)
        exit(2);
    akin_status_t status = akin_chat_render_json(json, text_p, bytes_p, err);
    json_decref(json);
    return status;
}

static void json_renders(void)
{
    static const char want[] = "<|im_start|>user\nab\0c<|im_end|>\n"
                               "<|im_start|>assistant\n";
    static const char *const cases[] = {
        "[{\"role\": \"user\", \"content\": \"ab\\u0000c\"}]",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"ab\\u0000c\"}], "
        "\"model\": \"m\"}",
        "[{\"role\": \"user\", \"content\": ["
        "{\"type\": \"text\", \"text\": \"a\"}, "
        "{\"type\": \"text\", \"text\": \"\"}, "
        "{\"type\": \"text\", \"text\": \"b\\u0000c\"}]}]",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = NULL;
        size_t bytes = 0;
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL_FATAL(render(cases[i], &text, &bytes, &err), AKIN_OK);
        CU_ASSERT(bytes == sizeof(want) - 1 &&
                  memcmp(text, want, sizeof(want)) == 0);
        free(text);
    }
}

static void wrong_json_is_refused(void)
{
#define USER "{\"role\": \"user\", \"content\": \"a\"}, "
    static const struct {
        const char *json;
        akin_status_t status;
        const char *message;
    } cases[] = {
        {"[]", AKIN_ERR_INVALID, "at least one"},
        {"{}", AKIN_ERR_FORMAT, "messages"},
        {"\"hi\"", AKIN_ERR_FORMAT, "messages"},
        {"{\"messages\": {}}", AKIN_ERR_FORMAT, "messages"},
        {"[" USER "3]", AKIN_ERR_FORMAT, "messages[1] "},
        {"[" USER "{\"content\": \"a\"}]", AKIN_ERR_FORMAT, "messages[1].role"},
        {"[" USER "{\"role\": 1, \"content\": \"a\"}]", AKIN_ERR_FORMAT,
         "messages[1].role"},
        {"[{\"role\": \"user\\u0000\", \"content\": \"a\"}]", AKIN_ERR_FORMAT,
         "messages[0].role"},
        {"[" USER "{\"role\": \"User\", \"content\": \"a\"}]", AKIN_ERR_INVALID,
         "messages[1].role"},
        {"[" USER "{\"role\": \"user\"}]", AKIN_ERR_FORMAT,
         "messages[1].content"},
        {"[{\"role\": \"user\", \"content\": null}]", AKIN_ERR_FORMAT,
         "messages[0].content"},
        {"[{\"role\": \"user\", \"content\": [\"a\"]}]", AKIN_ERR_FORMAT,
         "messages[0].content[0].type"},
        {"[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": "
         "\"a\"}, {\"type\": \"image_url\"}]}]",
         AKIN_ERR_FORMAT, "messages[0].content[1].type"},
        {"[{\"role\": \"user\", \"content\": [{\"type\": \"text\"}]}]",
         AKIN_ERR_FORMAT, "messages[0].content[0].text"},
        {"[{\"role\": \"assistant\", \"content\": \"a\", \"tool_calls\": "
         "[]}]",
         AKIN_ERR_UNSUPPORTED, "messages[0].tool_calls"},
    };
#undef USER
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = NULL;
        size_t bytes = 0;
        akin_error_t err = {{0}};
        akin_status_t status = render(cases[i].json, &text, &bytes, &err);
        CU_ASSERT_EQUAL(status, cases[i].status);
        CU_ASSERT_PTR_NULL(text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].message));
        if (strstr(err.text, cases[i].message) == NULL)
            fprintf(stderr, "%s: \"%s\"\n", cases[i].json, err.text);
    }
}

static void null_json_is_refused(void)
{
    char *text = NULL;
    size_t bytes = 0;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_chat_render_json(NULL, &text, &bytes, &err),
                    AKIN_ERR_FORMAT);
}

static const runner_test_t tests[] = {
    {"messages render", messages_render},
    {"wrong messages are refused", wrong_messages_are_refused},
    {"JSON renders", json_renders},
    {"wrong JSON is refused", wrong_json_is_refused},
    {"NULL JSON is refused", null_json_is_refused},
};

RUNNER_MAIN("chat", tests)
