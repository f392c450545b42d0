/* Batch lines: what is taken, with which defaults, and what is refused. */
#include "roles/batch_parse.h"
#include "runner.h"
#include "scratch_file.h"

#include <jansson.h>
#include <math.h>

#define ENVELOPE(url, body)                                                    \
    "{\"custom_id\":\"r1\",\"method\":\"POST\",\"url\":\"" url                 \
    "\",\"body\":" body "}"
#define COMPLETION(fields)                                                     \
    ENVELOPE("/v1/completions", "{\"prompt\":[1,2,3]" fields "}")
#define CHAT(fields)                                                           \
    ENVELOPE("/v1/chat/completions",                                           \
             "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]" fields   \
             "}")

static akin_tokenizer_t *tokenizer;
static akin_request_limits_t limits = {
    .model = "models/tiny-moe/", .vocab_size = 4096, .max_positions = 1024};

static akin_status_t parse_bytes(const char *text, size_t bytes,
                                 akin_request_t **request_p,
                                 akin_request_error_t *error)
{
    /* A copy of exactly its size, so that a sanitizer sees a read beyond. */
    char *copy = malloc(bytes == 0 ? 1 : bytes);
    if (copy == NULL)
        abort();
    memcpy(copy, text, bytes);
    akin_batch_line_t line = {.number = 7, .text = copy, .bytes = bytes};
    akin_status_t status = akin_batch_parse(&limits, &line, request_p, error);
    free(copy);
    return status;
}

static akin_request_t *parse(const char *text)
{
    akin_request_t *request;
    akin_request_error_t error;
    akin_status_t status = parse_bytes(text, strlen(text), &request, &error);
    if (status != AKIN_OK)
        (void)fprintf(stderr, "\n%s\n  -> %s\n", text, error.message);
    CU_ASSERT_EQUAL_FATAL(status, AKIN_OK);
    return request;
}

static void test_completion_defaults(void)
{
    akin_request_t *r = parse(COMPLETION(""));
    CU_ASSERT_EQUAL(r->kind, AKIN_REQUEST_COMPLETION);
    CU_ASSERT_STRING_EQUAL(r->custom_id, "r1");
    CU_ASSERT_EQUAL(r->line, 7);
    CU_ASSERT_EQUAL(r->n_prompt, 3);
    CU_ASSERT_EQUAL(r->prompt[2], 3);
    CU_ASSERT_EQUAL(r->max_tokens, 16);
    CU_ASSERT_EQUAL(r->sampling.temperature, 1.0F);
    CU_ASSERT_EQUAL(r->sampling.top_p, 1.0F);
    CU_ASSERT_EQUAL(r->sampling.top_k, 0);
    CU_ASSERT_EQUAL(r->sampling.seed, akin_sampling_seed_from_id("r1"));
    CU_ASSERT_EQUAL(r->want_logprobs, 0);
    CU_ASSERT_EQUAL(r->ignore_eos, 0);
    CU_ASSERT_EQUAL(r->n_stops, 0);
    akin_request_destroy(r);
}

/* A run that fixes the number of tokens takes what room there is. */
static void test_fixed_tokens(void)
{
    limits.n_tokens = 128;
    akin_request_t *r = parse(COMPLETION(",\"max_tokens\":5000"));
    CU_ASSERT_EQUAL(r->max_tokens, 128);
    akin_request_destroy(r);
    r = parse(CHAT(",\"max_completion_tokens\":3"));
    CU_ASSERT_EQUAL(r->max_tokens, 128);
    akin_request_destroy(r);
    limits.max_positions = 130;
    r = parse(COMPLETION(""));
    CU_ASSERT_EQUAL(r->max_tokens, 127);
    akin_request_destroy(r);
    limits.max_positions = 1024;
    limits.n_tokens = 0;
}

static void test_completion_fields(void)
{
    akin_request_t *r = parse(COMPLETION(
        ",\"model\":\"tiny-moe\",\"max_tokens\":1021,\"temperature\":0,"
        "\"top_p\":0.25,\"top_k\":-1,\"min_p\":0.5,\"repetition_penalty\":1.5,"
        "\"seed\":-1,\"stop\":[\"a\",\"\\u0000b\"],\"logprobs\":0,"
        "\"ignore_eos\":true,\"return_token_ids\":true,\"user\":\"me\","
        "\"metadata\":{\"a\":1},\"n\":1,\"stream\":false,\"logit_bias\":{},"
        "\"presence_penalty\":0.0,\"frequency_penalty\":null,\"suffix\":null,"
        "\"response_format\":{\"type\":\"text\"}"));
    CU_ASSERT_EQUAL(r->max_tokens, 1021);
    CU_ASSERT_EQUAL(r->sampling.temperature, 0.0F);
    CU_ASSERT_EQUAL(r->sampling.top_p, 0.25F);
    CU_ASSERT_EQUAL(r->sampling.top_k, 0);
    CU_ASSERT_EQUAL(r->sampling.min_p, 0.5F);
    CU_ASSERT_EQUAL(r->sampling.repetition_penalty, 1.5F);
    CU_ASSERT_EQUAL(r->sampling.seed, UINT64_MAX);
    CU_ASSERT_EQUAL(r->n_stops, 2);
    CU_ASSERT_EQUAL(r->stop_bytes[1], 2);
    CU_ASSERT_EQUAL(memcmp(r->stops[1], "\0b", 3), 0);
    CU_ASSERT_EQUAL(r->want_logprobs, 1);
    CU_ASSERT_EQUAL(r->n_top, 0);
    CU_ASSERT_EQUAL(r->ignore_eos, 1);
    CU_ASSERT_EQUAL(r->want_token_ids, 1);
    CU_ASSERT_PTR_NULL(r->domain);
    akin_request_destroy(r);
    /* A number above 0 must not become the 0 that means "off". */
    r = parse(COMPLETION(",\"top_p\":1e-60,\"min_p\":0.99999999999"));
    CU_ASSERT(r->sampling.top_p > 0);
    CU_ASSERT(r->sampling.min_p < 1);
    akin_request_destroy(r);
    r = parse(COMPLETION(",\"stop\":[],\"model\":\"models/tiny-moe/\""));
    CU_ASSERT_EQUAL(r->n_stops, 0);
    akin_request_destroy(r);
    r = parse(ENVELOPE("/v1/completions", "{\"prompt\":[[5,6]]}"));
    CU_ASSERT_EQUAL(r->n_prompt, 2);
    akin_request_destroy(r);
    r = parse(
        COMPLETION(",\"metadata\":{\"domain\":\"m\\u00e4rchen\",\"n\":[3]}"));
    CU_ASSERT_STRING_EQUAL(r->domain, "m\xc3\xa4rchen");
    akin_request_destroy(r);
    r = parse(COMPLETION(",\"metadata\":{\"domain\":\"\"}"));
    CU_ASSERT_PTR_NULL(r->domain);
    akin_request_destroy(r);
    r = parse(COMPLETION(",\"metadata\":{\"domain\":null}"));
    CU_ASSERT_PTR_NULL(r->domain);
    akin_request_destroy(r);
    r = parse(COMPLETION(",\"metadata\":\"domain\""));
    CU_ASSERT_PTR_NULL(r->domain);
    akin_request_destroy(r);
}

static void test_chat(void)
{
    akin_request_t *r = parse(CHAT(",\"logprobs\":true,\"top_logprobs\":5,"
                                   "\"stop\":\"\\n\",\"tools\":[]"));
    uint32_t start = 0;
    CU_ASSERT_EQUAL(akin_tokenizer_find(tokenizer, "<|im_start|>", &start),
                    AKIN_OK);
    CU_ASSERT_EQUAL(r->kind, AKIN_REQUEST_CHAT);
    CU_ASSERT_EQUAL(r->prompt[0], start);
    CU_ASSERT_EQUAL(r->max_tokens, 1024 - r->n_prompt);
    CU_ASSERT_EQUAL(r->n_top, 5);
    CU_ASSERT_EQUAL(r->n_stops, 1);
    akin_request_destroy(r);
    r = parse(CHAT(",\"max_tokens\":3,\"max_completion_tokens\":3"));
    CU_ASSERT_EQUAL(r->max_tokens, 3);
    akin_request_destroy(r);
}

/* Prompts and their tokens as the model's own tokenizer gave them. */
static void test_golden_prompts(void)
{
    json_t *golden =
        json_load_file(AKIN_FIXTURES "/tokenizer/golden.json", 0, NULL);
    CU_ASSERT_FATAL(json_array_size(golden) > 0);
    for (size_t i = 0; i < json_array_size(golden); i++) {
        const json_t *one = json_array_get(golden, i);
        const json_t *ids = json_object_get(one, "prompt_tokens");
        for (int in_array = 0; in_array < 2; in_array++) {
            json_t *line = json_pack(
                in_array ? "{s:s,s:s,s:s,s:{s:[O]}}" : "{s:s,s:s,s:s,s:{s:O}}",
                "custom_id", "g", "method", "POST", "url", "/v1/completions",
                "body", "prompt", json_object_get(one, "prompt"));
            char *text = json_dumps(line, 0);
            json_decref(line);
            akin_request_t *r = parse(text);
            free(text);
            CU_ASSERT_EQUAL_FATAL(r->n_prompt, json_array_size(ids));
            for (uint32_t k = 0; k < r->n_prompt; k++)
                CU_ASSERT_EQUAL(r->prompt[k],
                                json_integer_value(json_array_get(ids, k)));
            akin_request_destroy(r);
        }
    }
    json_decref(golden);
}

typedef struct refusal {
    const char *line;
    int status_code;
    int has_id;
    const char *param;
    const char *code;
    const char *says; /* part of the message */
} refusal_t;

static void check_refusals(const refusal_t *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        akin_request_t *request = (void *)&request;
        akin_request_error_t error;
        akin_status_t status =
            parse_bytes(all[i].line, strlen(all[i].line), &request, &error);
        CU_ASSERT_EQUAL(status, AKIN_ERR_INVALID);
        CU_ASSERT_PTR_NULL(request);
        if (status == AKIN_OK) {
            (void)fprintf(stderr, "\ntaken: %s\n", all[i].line);
            akin_request_destroy(request);
            continue;
        }
        int good = error.status_code == all[i].status_code &&
                   error.has_id == all[i].has_id &&
                   strcmp(error.param, all[i].param) == 0 &&
                   strcmp(error.code, all[i].code) == 0 &&
                   strncmp(error.message, "line 7: ", 8) == 0 &&
                   strstr(error.message, all[i].says) != NULL;
        CU_ASSERT(good);
        if (!good)
            (void)fprintf(stderr, "\n%s\n  -> %d %d \"%s\" \"%s\" %s\n",
                          all[i].line, error.status_code, error.has_id,
                          error.param, error.code, error.message);
        CU_ASSERT_STRING_EQUAL(error.type, "invalid_request_error");
        CU_ASSERT_STRING_EQUAL(error.custom_id, error.has_id ? "r1" : "");
    }
}

#define CHECK_REFUSALS(all) check_refusals(all, sizeof(all) / sizeof((all)[0]))

static void test_refused_envelopes(void)
{
    static const refusal_t all[] = {
        {"{", 400, 0, "", "invalid_json", "not valid JSON"},
        {"{} x", 400, 0, "", "invalid_json", "not valid JSON"},
        {"[]", 400, 0, "", "invalid_json", "JSON object"},
        {"null", 400, 0, "", "invalid_json", "not valid JSON"},
        {"{\"a\":\"\xff\"}", 400, 0, "", "invalid_json", "0xff"},
        {"{\"a\":1,\"a\":2}", 400, 0, "", "invalid_json", "duplicate"},
        {"{\"a\":1e999}", 400, 0, "", "invalid_json", "overflow"},
        {"{\"a\":99999999999999999999}", 400, 0, "", "invalid_json", "big"},
        {"{}", 400, 0, "custom_id", "missing_required_parameter", "missing"},
        {"{\"custom-id\":\"x\"}", 400, 0, "custom_id",
         "missing_required_parameter", "\"custom-id\""},
        {"{\"custom_id\":\"\"}", 400, 0, "custom_id", "invalid_value", "512"},
        {"{\"custom_id\":7}", 400, 0, "custom_id", "invalid_value", "not 7"},
        {"{\"custom_id\":\"a\\u0000b\"}", 400, 0, "custom_id", "invalid_value",
         "NUL"},
        {"{\"custom_id\":\"r1\"}", 400, 1, "method",
         "missing_required_parameter", "method is missing"},
        {"{\"custom_id\":\"r1\",\"method\":\"GET\"}", 400, 1, "method",
         "invalid_value", "\"GET\""},
        {"{\"custom_id\":\"r1\",\"method\":\"POST\",\"urls\":\"\"}", 400, 1,
         "url", "missing_required_parameter", "\"urls\""},
        {ENVELOPE("/v1/embeddings", "{}"), 400, 1, "url", "invalid_url",
         "/v1/embeddings"},
        {"{\"custom_id\":\"r1\",\"method\":\"POST\",\"url\":"
         "\"/v1/completions\"}",
         400, 1, "body", "missing_required_parameter", "body"},
        {ENVELOPE("/v1/completions", "[]"), 400, 1, "body", "invalid_value",
         "object"},
    };
    CHECK_REFUSALS(all);
}

static void test_refused_fields(void)
{
    static const refusal_t all[] = {
        {COMPLETION(",\"temprature\":1"), 400, 1, "temprature",
         "unknown_parameter", "did you mean \"temperature\"?"},
        {COMPLETION(",\"zzzzzzzz\":null"), 400, 1, "zzzzzzzz",
         "unknown_parameter", "unknown field \"zzzzzzzz\""},
        {COMPLETION(",\"messages\":[]"), 400, 1, "messages",
         "unknown_parameter", "/v1/chat/completions"},
        {CHAT(",\"prompt\":\"x\""), 400, 1, "prompt", "unknown_parameter",
         "belongs to /v1/completions"},
        {COMPLETION(",\"n\":2"), 400, 1, "n", "unsupported_parameter", "n = 2"},
        {COMPLETION(",\"stream\":true"), 400, 1, "stream",
         "unsupported_parameter", "stream = true"},
        {COMPLETION(",\"echo\":true"), 400, 1, "echo", "unsupported_parameter",
         "echo"},
        {COMPLETION(",\"presence_penalty\":0.1"), 400, 1, "presence_penalty",
         "unsupported_parameter", "0.1"},
        {COMPLETION(",\"logit_bias\":{\"5\":1}"), 400, 1, "logit_bias",
         "unsupported_parameter", "logit_bias"},
        {CHAT(",\"tools\":[{}]"), 400, 1, "tools", "unsupported_parameter",
         "tools"},
        {CHAT(",\"response_format\":{\"type\":\"json_object\"}"), 400, 1,
         "response_format", "unsupported_parameter", "json_object"},
        {COMPLETION(",\"guided_regex\":\"a*\""), 400, 1, "guided_regex",
         "unsupported_parameter", "leave it out"},
        {COMPLETION(",\"temperature\":2.1"), 400, 1, "temperature",
         "invalid_value", "from 0 to 2, not 2.1"},
        {COMPLETION(",\"temperature\":-0.1"), 400, 1, "temperature",
         "invalid_value", "-0.1"},
        {COMPLETION(",\"temperature\":\"1\""), 400, 1, "temperature",
         "invalid_value", "\"1\""},
        {COMPLETION(",\"temperature\":true"), 400, 1, "temperature",
         "invalid_value", "true"},
        {COMPLETION(",\"top_p\":0"), 400, 1, "top_p", "invalid_value",
         "above 0"},
        {COMPLETION(",\"top_p\":1.01"), 400, 1, "top_p", "invalid_value",
         "1.01"},
        {COMPLETION(",\"min_p\":1"), 400, 1, "min_p", "invalid_value",
         "below 1"},
        {COMPLETION(",\"repetition_penalty\":0"), 400, 1, "repetition_penalty",
         "invalid_value", "above 0"},
        {COMPLETION(",\"top_k\":-2"), 400, 1, "top_k", "invalid_value", "-2"},
        {COMPLETION(",\"top_k\":1.5"), 400, 1, "top_k", "invalid_value", "1.5"},
        {COMPLETION(",\"seed\":1.0"), 400, 1, "seed", "invalid_value",
         "64 bits"},
        {COMPLETION(",\"stop\":\"\""), 400, 1, "stop", "invalid_value",
         "0 bytes"},
        {COMPLETION(",\"stop\":[1]"), 400, 1, "stop", "invalid_value", "[1]"},
        {COMPLETION(",\"stop\":[\"a\",\"b\",\"c\",\"d\",\"e\"]"), 400, 1,
         "stop", "invalid_value", "1 to 4"},
        {COMPLETION(",\"metadata\":{\"domain\":7}"), 400, 1, "metadata.domain",
         "invalid_value", "not 7"},
        {COMPLETION(",\"metadata\":{\"domain\":\"a\\u0000\"}"), 400, 1,
         "metadata.domain", "invalid_value", "at most 512 bytes"},
        {COMPLETION(",\"logprobs\":6"), 400, 1, "logprobs", "invalid_value",
         "0 to 5"},
        {COMPLETION(",\"logprobs\":true"), 400, 1, "logprobs", "invalid_value",
         "true"},
        {CHAT(",\"logprobs\":1"), 400, 1, "logprobs", "invalid_value",
         "true or false"},
        {CHAT(",\"top_logprobs\":1"), 400, 1, "top_logprobs", "invalid_value",
         "needs logprobs"},
        {CHAT(",\"logprobs\":true,\"top_logprobs\":6"), 400, 1, "top_logprobs",
         "invalid_value", "0 to 5"},
        {COMPLETION(",\"ignore_eos\":1"), 400, 1, "ignore_eos", "invalid_value",
         "true or false"},
        {COMPLETION(",\"model\":\"other\""), 404, 1, "model", "model_not_found",
         "serves \"tiny-moe\""},
        {COMPLETION(",\"model\":\"iny-moe\""), 404, 1, "model",
         "model_not_found", "iny-moe"},
        {COMPLETION(",\"model\":5"), 400, 1, "model", "invalid_value", "5"},
    };
    CHECK_REFUSALS(all);
}

static void test_refused_prompts(void)
{
    static const refusal_t all[] = {
        {ENVELOPE("/v1/completions", "{}"), 400, 1, "prompt",
         "missing_required_parameter", "prompt is missing"},
        {ENVELOPE("/v1/completions", "{\"prompt\":null}"), 400, 1, "prompt",
         "missing_required_parameter", "prompt is missing"},
        {ENVELOPE("/v1/completions", "{\"prompt\":\"\"}"), 400, 1, "prompt",
         "invalid_value", "empty"},
        {ENVELOPE("/v1/completions", "{\"prompt\":[]}"), 400, 1, "prompt",
         "invalid_value", "empty"},
        {ENVELOPE("/v1/completions", "{\"prompt\":[[]]}"), 400, 1, "prompt",
         "invalid_value", "empty"},
        {ENVELOPE("/v1/completions", "{\"prompt\":[\"a\",\"b\"]}"), 400, 1,
         "prompt", "unsupported_parameter", "2 prompts"},
        {ENVELOPE("/v1/completions", "{\"prompt\":[[1],[2]]}"), 400, 1,
         "prompt", "unsupported_parameter", "2 prompts"},
        {ENVELOPE("/v1/completions", "{\"prompt\":[1,\"a\"]}"), 400, 1,
         "prompt", "invalid_value", "prompt[1]"},
        {ENVELOPE("/v1/completions", "{\"prompt\":[1,4096]}"), 400, 1, "prompt",
         "invalid_value", "from 0 to 4095, not 4096"},
        {ENVELOPE("/v1/completions", "{\"prompt\":[-1]}"), 400, 1, "prompt",
         "invalid_value", "-1"},
        {ENVELOPE("/v1/completions", "{\"prompt\":[1.0]}"), 400, 1, "prompt",
         "invalid_value", "1.0"},
        {ENVELOPE("/v1/completions", "{\"prompt\":{}}"), 400, 1, "prompt",
         "invalid_value", "token ids"},
        {ENVELOPE("/v1/chat/completions", "{}"), 400, 1, "messages",
         "missing_required_parameter", "messages is missing"},
        {ENVELOPE("/v1/chat/completions", "{\"messages\":{}}"), 400, 1,
         "messages", "invalid_value", "array"},
        {ENVELOPE("/v1/chat/completions", "{\"messages\":[]}"), 400, 1,
         "messages", "invalid_value", "message"},
        {ENVELOPE("/v1/chat/completions",
                  "{\"messages\":[{\"role\":\"tool\",\"content\":\"x\"}]}"),
         400, 1, "messages", "invalid_value", "messages[0].role"},
        {COMPLETION(",\"max_tokens\":0"), 400, 1, "max_tokens", "invalid_value",
         "above 0"},
        {COMPLETION(",\"max_tokens\":1022"), 400, 1, "max_tokens",
         "context_length_exceeded",
         "3 tokens and max_tokens is 1022, together more than the model's "
         "context of 1024 tokens; at most 1021"},
        {COMPLETION(",\"max_tokens\":9223372036854775807"), 400, 1,
         "max_tokens", "context_length_exceeded", "9223372036854775807"},
        {COMPLETION(",\"max_tokens\":4,\"max_completion_tokens\":5"), 400, 1,
         "max_tokens", "invalid_value", "contradict"},
    };
    CHECK_REFUSALS(all);
}

static char *long_prompt(size_t n)
{
    json_t *ids = json_array();
    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(ids, json_integer(1));
    json_t *line =
        json_pack("{s:s,s:s,s:s,s:{s:o}}", "custom_id", "r1", "method", "POST",
                  "url", "/v1/completions", "body", "prompt", ids);
    char *text = json_dumps(line, 0);
    json_decref(line);
    return text;
}

static void test_context(void)
{
    static const struct {
        size_t n;
        const char *says; /* NULL: taken */
    } all[] = {{1008, NULL},
               {1009, "1009 tokens and max_tokens is 16 by default"},
               {1023, "at most 1 are possible"},
               {1024, "has 1024 tokens; the model's context is 1024"},
               {5000, "has 5000 tokens; the model's context is 1024"}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        akin_request_t *request;
        akin_request_error_t error;
        char *text = long_prompt(all[i].n);
        akin_status_t status =
            parse_bytes(text, strlen(text), &request, &error);
        CU_ASSERT_EQUAL(status,
                        all[i].says == NULL ? AKIN_OK : AKIN_ERR_INVALID);
        if (all[i].says != NULL) {
            CU_ASSERT_STRING_EQUAL(error.code, "context_length_exceeded");
            CU_ASSERT_PTR_NOT_NULL(strstr(error.message, all[i].says));
        }
        akin_request_destroy(request);
        free(text);
    }
}

static void test_long_and_raw(void)
{
    akin_request_t *request;
    akin_request_error_t error;
    akin_batch_line_t line = {.number = 9, .bytes = 5000000, .too_long = 1};
    CU_ASSERT_EQUAL(akin_batch_parse(&limits, &line, &request, &error),
                    AKIN_ERR_INVALID);
    CU_ASSERT_STRING_EQUAL(error.code, "line_too_long");
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "line 9: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "5000000"));
    static const char nul[] = "{\"custom_id\":\"a\0b\"}";
    CU_ASSERT_EQUAL(parse_bytes(nul, sizeof(nul) - 1, &request, &error),
                    AKIN_ERR_INVALID);
    CU_ASSERT_STRING_EQUAL(error.code, "invalid_json");
    /* An id of 512 bytes is taken, one of 513 is not. */
    for (int n = 512; n <= 513; n++) {
        char text[1200];
        (void)snprintf(text, sizeof(text),
                       "{\"custom_id\":\"%0*d\",\"method\":\"POST\",\"url\":"
                       "\"/v1/completions\",\"body\":{\"prompt\":[1]}}",
                       n, 0);
        akin_status_t status =
            parse_bytes(text, strlen(text), &request, &error);
        CU_ASSERT_EQUAL(status, n == 512 ? AKIN_OK : AKIN_ERR_INVALID);
        akin_request_destroy(request);
    }
    /* Every cut of a good line is refused, and every text stays UTF-8. */
    static const char good[] = ENVELOPE(
        "/v1/completions",
        "{\"prompt\":\"\xc3\xa4\xe2\x82\xac\",\"\xf0\x9f\x98\x80\":1}");
    for (size_t n = 0; n < sizeof(good); n++) {
        CU_ASSERT_EQUAL(parse_bytes(good, n, &request, &error),
                        AKIN_ERR_INVALID);
        json_t *text = json_string(error.message);
        CU_ASSERT_PTR_NOT_NULL(text);
        json_decref(text);
    }
}

static void test_without_tokenizer(void)
{
    static const refusal_t all[] = {
        {ENVELOPE("/v1/completions", "{\"prompt\":\"x\"}"), 400, 1, "prompt",
         "unsupported_parameter", "token ids"},
        {CHAT(""), 400, 1, "messages", "unsupported_parameter", "token ids"},
        {COMPLETION(",\"stop\":\"x\""), 400, 1, "stop", "unsupported_parameter",
         "tokenizer"},
    };
    limits.tokenizer = NULL;
    CHECK_REFUSALS(all);
    akin_request_destroy(parse(COMPLETION("")));
    limits.tokenizer = tokenizer;
}

static void test_admit(void)
{
    akin_id_set_t *seen;
    akin_id_set_t *done;
    akin_request_error_t error;
    int is_done = 0;
    CU_ASSERT_EQUAL_FATAL(akin_id_set_create(&seen), AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akin_id_set_create(&done), AKIN_OK);
    CU_ASSERT_EQUAL(akin_id_set_add(done, "r1", 1, NULL), AKIN_OK);
    CU_ASSERT_EQUAL(akin_id_set_add_line(done, 7), AKIN_OK);

    akin_request_t *r = parse(COMPLETION(""));
    CU_ASSERT_EQUAL(akin_batch_admit(seen, NULL, &r, &error, &is_done),
                    AKIN_OK);
    CU_ASSERT_PTR_NOT_NULL(r);
    CU_ASSERT_EQUAL(is_done, 0);
    /* The second of that name is an error without a name. */
    CU_ASSERT_EQUAL(akin_batch_admit(seen, NULL, &r, &error, &is_done),
                    AKIN_ERR_EXISTS);
    CU_ASSERT_PTR_NULL(r);
    CU_ASSERT_EQUAL(error.has_id, 0);
    CU_ASSERT_EQUAL(error.line, 7);
    CU_ASSERT_STRING_EQUAL(error.code, "duplicate_custom_id");
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "\"r1\" is that of line 7"));
    CU_ASSERT_EQUAL(is_done, 0);
    /* In a resume its line, not its name, says that it was reported. */
    r = parse(COMPLETION(""));
    CU_ASSERT_EQUAL(akin_batch_admit(seen, done, &r, &error, &is_done),
                    AKIN_ERR_EXISTS);
    CU_ASSERT_EQUAL(is_done, 1);
    akin_id_set_destroy(seen);
    CU_ASSERT_EQUAL_FATAL(akin_id_set_create(&seen), AKIN_OK);
    r = parse(COMPLETION(""));
    CU_ASSERT_EQUAL(akin_batch_admit(seen, done, &r, &error, &is_done),
                    AKIN_OK);
    CU_ASSERT_EQUAL(is_done, 1);
    akin_request_destroy(r);
    /* A line that could not be read. */
    r = NULL;
    memset(&error, 0, sizeof(error));
    error.line = 7;
    CU_ASSERT_EQUAL(akin_batch_admit(seen, done, &r, &error, &is_done),
                    AKIN_OK);
    CU_ASSERT_EQUAL(is_done, 1);
    error.line = 8;
    CU_ASSERT_EQUAL(akin_batch_admit(seen, done, &r, &error, &is_done),
                    AKIN_OK);
    CU_ASSERT_EQUAL(is_done, 0);
    akin_id_set_destroy(seen);
    akin_id_set_destroy(done);
}

static void test_id_set(void)
{
    akin_id_set_t *set;
    CU_ASSERT_EQUAL_FATAL(akin_id_set_create(&set), AKIN_OK);
    char id[32];
    for (unsigned i = 1; i <= 50000; i++) {
        (void)snprintf(id, sizeof(id), "request-%u", i);
        if (akin_id_set_add(set, id, i, NULL) != AKIN_OK)
            CU_FAIL_FATAL("an id that was not there");
    }
    CU_ASSERT_EQUAL(akin_id_set_size(set), 50000);
    uint64_t first = 0;
    CU_ASSERT_EQUAL(akin_id_set_add(set, "request-31415", 9, &first),
                    AKIN_ERR_EXISTS);
    CU_ASSERT_EQUAL(first, 31415);
    CU_ASSERT_EQUAL(akin_id_set_has(set, "request-50000"), 1);
    CU_ASSERT_EQUAL(akin_id_set_has(set, "request-50001"), 0);
    /* Lines are another name space. */
    CU_ASSERT_EQUAL(akin_id_set_has_line(set, 1), 0);
    CU_ASSERT_EQUAL(akin_id_set_add_line(set, 1), AKIN_OK);
    CU_ASSERT_EQUAL(akin_id_set_add_line(set, 1), AKIN_ERR_EXISTS);
    CU_ASSERT_EQUAL(akin_id_set_has_line(set, 1), 1);
    akin_id_set_destroy(set);
    akin_id_set_destroy(NULL);
}

static const runner_test_t tests[] = {
    {"completion defaults", test_completion_defaults},
    {"a fixed number of tokens", test_fixed_tokens},
    {"completion fields", test_completion_fields},
    {"chat", test_chat},
    {"golden prompts", test_golden_prompts},
    {"refused envelopes", test_refused_envelopes},
    {"refused fields", test_refused_fields},
    {"refused prompts", test_refused_prompts},
    {"context", test_context},
    {"long and raw lines", test_long_and_raw},
    {"without a tokenizer", test_without_tokenizer},
    {"admit", test_admit},
    {"id set", test_id_set},
};

int main(void)
{
    akin_error_t err = {{0}};
    if (akin_tokenizer_load(AKIN_FIXTURES "/tokenizer/tokenizer.json",
                            &tokenizer, &err) != AKIN_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    limits.tokenizer = tokenizer;
    int rc = runner_main("batch parse", tests,
                         (int)(sizeof(tests) / sizeof(tests[0])));
    akin_tokenizer_destroy(tokenizer);
    return rc;
}
