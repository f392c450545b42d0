/* Batch results: both shapes byte for byte, logprobs, ids and error lines. */
#include "roles/batch_format.h"
#include "runner.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static akin_tokenizer_t *tokenizer;

static uint32_t find(const char *content)
{
    uint32_t id = UINT32_MAX;
    CU_ASSERT_EQUAL_FATAL(akin_tokenizer_find(tokenizer, content, &id),
                          AKIN_OK);
    return id;
}

static char custom_id[] = "a \"quoted\" \xc3\xa4\n";
static uint32_t prompt[] = {1, 2, 3};

static akin_request_t request_of(akin_request_kind_t kind)
{
    return (akin_request_t){.kind = kind,
                            .custom_id = custom_id,
                            .prompt = prompt,
                            .n_prompt = 3,
                            .max_tokens = 4};
}

static akin_batch_format_t *create(const akin_tokenizer_t *with,
                                   int deterministic)
{
    akin_batch_format_t *format;
    const akin_batch_format_params_t params = {
        .model = "tiny", .tokenizer = with, .deterministic_ids = deterministic};
    CU_ASSERT_EQUAL_FATAL(akin_batch_format_create(&params, &format), AKIN_OK);
    return format;
}

/* A copy of the line, NUL-terminated, to be freed. */
static char *result_line(akin_batch_format_t *format,
                         const akin_request_t *request,
                         const akin_result_t *result)
{
    const char *line;
    size_t bytes;
    CU_ASSERT_EQUAL_FATAL(
        akin_batch_format_result(format, request, result, &line, &bytes),
        AKIN_OK);
    CU_ASSERT_PTR_EQUAL(memchr(line, '\n', bytes), line + bytes - 1);
    return strndup(line, bytes);
}

/* The hash that stands in all ids of a deterministic line. */
static void expected_hex(char hex[33])
{
    XXH128_hash_t h = XXH3_128bits(custom_id, strlen(custom_id));
    (void)snprintf(hex, 33, "%016llx%016llx", (unsigned long long)h.high64,
                   (unsigned long long)h.low64);
}

static void test_exact_lines(void)
{
    static const uint32_t tokens[] = {7, 8};
    const akin_result_t result = {.tokens = tokens,
                                  .n_tokens = 2,
                                  .text = "x\0\"\xe2\x82\xac",
                                  .text_bytes = 6,
                                  .finish = AKIN_FINISH_LENGTH,
                                  .n_cached = 2,
                                  .created_s = 1234};
    char hex[33];
    char expected[1024];
    expected_hex(hex);
    akin_batch_format_t *format = create(tokenizer, 1);
    akin_request_t request = request_of(AKIN_REQUEST_COMPLETION);
    char *line = result_line(format, &request, &result);
    (void)snprintf(
        expected, sizeof(expected),
        "{\"id\":\"batch_req_%s\",\"custom_id\":\"a \\\"quoted\\\" "
        "\xc3\xa4\\n\","
        "\"response\":{\"status_code\":200,\"request_id\":\"req_%s\",\"body\":{"
        "\"id\":\"cmpl-%s\",\"object\":\"text_completion\",\"created\":0,"
        "\"model\":\"tiny\",\"choices\":[{\"index\":0,\"text\":\"x\\u0000\\\""
        "\xe2\x82\xac\",\"logprobs\":null,\"finish_reason\":\"length\"}],"
        "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,"
        "\"total_tokens\":5}}},\"error\":null}\n",
        hex, hex, hex);
    CU_ASSERT_STRING_EQUAL(line, expected);
    free(line);

    request = request_of(AKIN_REQUEST_CHAT);
    request.want_token_ids = 1;
    line = result_line(format, &request, &result);
    (void)snprintf(
        expected, sizeof(expected),
        "{\"id\":\"batch_req_%s\",\"custom_id\":\"a \\\"quoted\\\" "
        "\xc3\xa4\\n\","
        "\"response\":{\"status_code\":200,\"request_id\":\"req_%s\",\"body\":{"
        "\"id\":\"chatcmpl-%s\",\"object\":\"chat.completion\",\"created\":0,"
        "\"model\":\"tiny\",\"choices\":[{\"index\":0,\"message\":{\"role\":"
        "\"assistant\",\"content\":\"x\\u0000\\\"\xe2\x82\xac\",\"refusal\":"
        "null},\"logprobs\":null,\"finish_reason\":\"length\",\"token_ids\":"
        "[7,8]}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,"
        "\"total_tokens\":5}}},\"error\":null}\n",
        hex, hex, hex);
    CU_ASSERT_STRING_EQUAL(line, expected);
    free(line);
    akin_batch_format_destroy(format);
}

/* Value at a path of keys and indices ("choices/0/text"). */
static json_t *at(json_t *value, const char *path)
{
    char copy[128];
    char *rest = NULL;
    (void)snprintf(copy, sizeof(copy), "%s", path);
    for (char *key = strtok_r(copy, "/", &rest); key != NULL && value != NULL;
         key = strtok_r(NULL, "/", &rest))
        value = json_is_array(value)
                    ? json_array_get(value, strtoul(key, NULL, 10))
                    : json_object_get(value, key);
    return value;
}

static json_t *load(const char *line)
{
    json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    return json;
}

static void test_unique_ids(void)
{
    const akin_result_t result = {.text = "", .created_s = 1234, .n_cached = 2};
    const akin_request_t request = request_of(AKIN_REQUEST_COMPLETION);
    akin_batch_format_t *one = create(tokenizer, 0);
    akin_batch_format_t *two = create(tokenizer, 0);
    char *lines[] = {result_line(one, &request, &result),
                     result_line(one, &request, &result),
                     result_line(two, &request, &result)};
    CU_ASSERT_STRING_NOT_EQUAL(lines[0], lines[1]);
    CU_ASSERT_STRING_NOT_EQUAL(lines[0], lines[2]);
    json_t *json = load(lines[0]);
    CU_ASSERT_EQUAL(json_integer_value(at(json, "response/body/created")),
                    1234);
    CU_ASSERT_EQUAL(
        json_integer_value(at(json, "response/body/usage/"
                                    "prompt_tokens_details/cached_tokens")),
        2);
    json_decref(json);
    for (int i = 0; i < 3; i++)
        free(lines[i]);
    akin_batch_format_destroy(one);
    akin_batch_format_destroy(two);
}

/* The letter "a" in UTF-8, an euro sign in three tokens of one byte each, then
 * the end token. */
static void test_logprobs(void)
{
    const uint32_t tokens[] = {find("a"), find("\xc3\xa2"), find("\xc4\xa4"),
                               find("\xc2\xac"), find("<|im_end|>")};
    akin_token_logprob_t logprobs[5];
    memset(logprobs, 0, sizeof(logprobs));
    for (int i = 0; i < 5; i++) {
        logprobs[i].logprob = -0.5F * (float)(i + 1);
        logprobs[i].n_top = 2;
        logprobs[i].top[0].id = find("b");
        logprobs[i].top[0].logprob = -0.25F;
        logprobs[i].top[1].id = tokens[i];
        logprobs[i].top[1].logprob = logprobs[i].logprob;
    }
    logprobs[2].logprob = -INFINITY;
    logprobs[2].top[1].id = 4095; /* beyond the tokenizer, or any token */
    logprobs[3].logprob = 0.1F;
    const akin_result_t result = {.tokens = tokens,
                                  .n_tokens = 5,
                                  .text = "a\xe2\x82\xac",
                                  .text_bytes = 4,
                                  .finish = AKIN_FINISH_STOP,
                                  .logprobs = logprobs};
    akin_batch_format_t *format = create(tokenizer, 0);
    akin_request_t request = request_of(AKIN_REQUEST_COMPLETION);
    request.want_logprobs = 1;
    request.n_top = 2;
    char *line = result_line(format, &request, &result);
    json_t *json = load(line);
    json_t *lp = at(json, "response/body/choices/0/logprobs");
    CU_ASSERT_STRING_EQUAL(json_string_value(at(lp, "tokens/0")), "a");
    CU_ASSERT_STRING_EQUAL(json_string_value(at(lp, "tokens/1")),
                           "bytes:\\xe2");
    CU_ASSERT_STRING_EQUAL(json_string_value(at(lp, "tokens/4")), "<|im_end|>");
    CU_ASSERT_EQUAL(json_real_value(at(lp, "token_logprobs/1")), -1.0);
    CU_ASSERT_EQUAL(json_real_value(at(lp, "token_logprobs/2")), -9999.0);
    CU_ASSERT_EQUAL((float)json_real_value(at(lp, "token_logprobs/3")), 0.1F);
    CU_ASSERT_EQUAL(json_object_size(at(lp, "top_logprobs/0")), 2);
    CU_ASSERT_EQUAL(json_real_value(at(lp, "top_logprobs/0/a")), -0.5);
    CU_ASSERT_EQUAL(json_real_value(at(lp, "top_logprobs/0/b")), -0.25);
    /* The chosen one is not among the best two: a third entry. */
    CU_ASSERT_EQUAL(json_object_size(at(lp, "top_logprobs/2")), 3);
    CU_ASSERT_EQUAL(json_real_value(at(lp, "top_logprobs/2/bytes:\\x82")),
                    -9999.0);
    static const int offsets[] = {0, 1, 1, 1, 2};
    for (size_t i = 0; i < 5; i++)
        CU_ASSERT_EQUAL(
            json_integer_value(json_array_get(at(lp, "text_offset"), i)),
            offsets[i]);
    json_decref(json);
    free(line);

    request.kind = AKIN_REQUEST_CHAT;
    request.n_top = 1;
    line = result_line(format, &request, &result);
    json = load(line);
    lp = at(json, "response/body/choices/0/logprobs/content");
    CU_ASSERT_EQUAL(json_array_size(lp), 5);
    CU_ASSERT_EQUAL(json_integer_value(at(lp, "1/bytes/0")), 0xe2);
    CU_ASSERT_EQUAL(json_array_size(at(lp, "1/bytes")), 1);
    CU_ASSERT_EQUAL(json_real_value(at(lp, "1/logprob")), -1.0);
    CU_ASSERT_EQUAL(json_array_size(at(lp, "1/top_logprobs")), 1);
    CU_ASSERT_STRING_EQUAL(json_string_value(at(lp, "1/top_logprobs/0/token")),
                           "b");
    json_decref(json);
    free(line);
    akin_batch_format_destroy(format);
}

static void test_without_tokenizer(void)
{
    static const uint32_t tokens[] = {7, 4000000000U};
    akin_token_logprob_t logprobs[2];
    memset(logprobs, 0, sizeof(logprobs));
    const akin_result_t result = {
        .tokens = tokens, .n_tokens = 2, .logprobs = logprobs};
    akin_batch_format_t *format = create(NULL, 1);
    akin_request_t request = request_of(AKIN_REQUEST_COMPLETION);
    request.want_logprobs = 1;
    char *line = result_line(format, &request, &result);
    json_t *json = load(line);
    json_t *choice = at(json, "response/body/choices/0");
    CU_ASSERT_STRING_EQUAL(json_string_value(at(choice, "text")), "");
    CU_ASSERT_EQUAL(json_integer_value(at(choice, "token_ids/1")),
                    4000000000LL);
    CU_ASSERT_STRING_EQUAL(json_string_value(at(choice, "logprobs/tokens/1")),
                           "token_id:4000000000");
    json_decref(json);
    free(line);
    akin_batch_format_destroy(format);
}

static void test_errors(void)
{
    akin_batch_format_t *format = create(tokenizer, 1);
    akin_request_error_t error;
    const char *line;
    size_t bytes;
    memset(&error, 0, sizeof(error));
    error.line = 12;
    (void)akin_request_error_set(&error, 400, NULL, "invalid_json",
                                 "line 12: no \"%s\"", "JSON");
    CU_ASSERT_EQUAL_FATAL(
        akin_batch_format_error(format, &error, &line, &bytes), AKIN_OK);
    static const char expected[] =
        "{\"id\":\"batch_req_line-12\",\"custom_id\":null,\"response\":{"
        "\"status_code\":400,\"request_id\":\"req_line-12\",\"body\":{"
        "\"error\":"
        "{\"message\":\"line 12: no \\\"JSON\\\"\",\"type\":"
        "\"invalid_request_error\",\"param\":null,\"code\":\"invalid_json\"}}},"
        "\"error\":{\"code\":\"invalid_json\",\"message\":\"line 12: no "
        "\\\"JSON\\\"\"}}\n";
    CU_ASSERT_EQUAL(bytes, sizeof(expected) - 1);
    CU_ASSERT_EQUAL(memcmp(line, expected, bytes), 0);

    const akin_request_t request = request_of(AKIN_REQUEST_CHAT);
    akin_request_error_init(&error, &request);
    (void)akin_request_error_set(&error, 503, "p", NULL, "no worker is left");
    CU_ASSERT_EQUAL_FATAL(
        akin_batch_format_error(format, &error, &line, &bytes), AKIN_OK);
    json_t *json = json_loadb(line, bytes, 0, NULL);
    CU_ASSERT_STRING_EQUAL(json_string_value(at(json, "custom_id")), custom_id);
    CU_ASSERT_EQUAL(json_integer_value(at(json, "response/status_code")), 503);
    CU_ASSERT_STRING_EQUAL(
        json_string_value(at(json, "response/body/error/type")),
        "server_error");
    CU_ASSERT_STRING_EQUAL(json_string_value(at(json, "error/code")),
                           "server_error");
    json_decref(json);
    akin_batch_format_destroy(format);
    akin_batch_format_destroy(NULL);
}

/* Messages that are cut, or that carry bytes of others, stay UTF-8. */
static void test_error_text(void)
{
    akin_request_error_t error;
    char text[600];
    for (size_t n = 500; n < sizeof(text) - 4; n++) {
        memset(text, 'x', sizeof(text));
        memcpy(text + n - 4, "\xf0\x9f\x98\x80", 5);
        memset(&error, 0, sizeof(error));
        (void)akin_request_error_set(&error, 400, text, text, "%s", text);
        size_t length = strlen(error.message);
        CU_ASSERT(length == n || length >= sizeof(error.message) - 4);
        json_t *json = json_string(error.message);
        CU_ASSERT_PTR_NOT_NULL(json);
        json_decref(json);
    }
    (void)akin_request_error_set(&error, 400, "\xff", NULL, "a\xffz\xc3(");
    CU_ASSERT_STRING_EQUAL(error.message, "a?z?(");
    CU_ASSERT_STRING_EQUAL(error.param, "?");
}

static const runner_test_t tests[] = {
    {"exact lines", test_exact_lines},
    {"unique ids", test_unique_ids},
    {"logprobs", test_logprobs},
    {"without a tokenizer", test_without_tokenizer},
    {"errors", test_errors},
    {"error text", test_error_text},
};

int main(void)
{
    akin_error_t err = {{0}};
    if (akin_tokenizer_load(AKIN_FIXTURES "/tokenizer/tokenizer.json",
                            &tokenizer, &err) != AKIN_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    int rc = runner_main("batch format", tests,
                         (int)(sizeof(tests) / sizeof(tests[0])));
    akin_tokenizer_destroy(tokenizer);
    return rc;
}
