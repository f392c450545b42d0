/* Request bodies: JSON of a completion or chat request to a request. */
#include "engine/chat.h"
#include "roles/request_reader.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_MAX_TOKENS 16 /* of OpenAI's /v1/completions */

/* Below this the draw is greedy anyhow, and logits divided by the temperature
 * could leave the range of a float. */
#define MIN_TEMPERATURE 1e-5F

static akin_status_t read_sampling(const akini_reader_t *r)
{
    static const akini_range_t temperature = {0, 2, 0, 0,
                                              "a number from 0 to 2"};
    static const akini_range_t top_p = {0, 1, 1, 0,
                                        "a number above 0, at most 1"};
    static const akini_range_t min_p = {0, 1, 0, 1,
                                        "a number from 0 to below 1"};
    static const akini_range_t penalty = {0, 1e6, 1, 0, "a number above 0"};

    akin_sampling_t *sampling = &r->request->sampling;
    sampling->temperature = 1.0F;
    sampling->top_p = 1.0F;
    sampling->repetition_penalty = 1.0F;
    akin_status_t status;
    if ((status = akini_reader_number(r, "temperature", &temperature,
                                      &sampling->temperature)) != AKIN_OK ||
        (status = akini_reader_number(r, "top_p", &top_p, &sampling->top_p)) !=
            AKIN_OK ||
        (status = akini_reader_number(r, "min_p", &min_p, &sampling->min_p)) !=
            AKIN_OK ||
        (status = akini_reader_number(r, "repetition_penalty", &penalty,
                                      &sampling->repetition_penalty)) !=
            AKIN_OK)
        return status;

    if (sampling->temperature < MIN_TEMPERATURE)
        sampling->temperature = 0.0F;

    int64_t top_k = 0;
    status =
        akini_reader_integer(r, "top_k", -1, UINT32_MAX,
                             "a whole number above 0 (0 or -1: off)", &top_k);
    if (status != AKIN_OK)
        return status;
    sampling->top_k = top_k < 0 ? 0 : (uint32_t)top_k;

    if (akini_reader_get(r, "seed") == NULL) {
        sampling->seed = akin_sampling_seed_from_id(r->request->custom_id);
    } else {
        int64_t seed = 0;
        status = akini_reader_integer(r, "seed", INT64_MIN, INT64_MAX,
                                      "a whole number of 64 bits", &seed);
        if (status != AKIN_OK)
            return status;
        sampling->seed = (uint64_t)seed;
    }
    akin_error_t err = {{0}};
    if (akin_sampling_check(sampling, &err) != AKIN_OK)
        return akin_request_error_set(r->error, 400, NULL, "invalid_value",
                                      "%s", err.text);
    return AKIN_OK;
}

static akin_status_t read_stop(const akini_reader_t *r)
{
    static const char what[] = "a text, or an array of 1 to 4 texts";
    json_t *value = akini_reader_get(r, "stop");
    if (value == NULL)
        return AKIN_OK;
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    if (json_is_array(value) && n == 0)
        return AKIN_OK;
    if (n > AKIN_REQUEST_MAX_STOPS)
        return akini_reader_refuse(r, "stop", what, value);
    for (size_t i = 0; i < n; i++) {
        const json_t *item =
            json_is_array(value) ? json_array_get(value, i) : value;
        if (!json_is_string(item))
            return akini_reader_refuse(r, "stop", what, value);
        size_t bytes = json_string_length(item);
        if (bytes == 0 || bytes > AKIN_REQUEST_STOP_BYTES)
            return akin_request_error_set(
                r->error, 400, "stop", "invalid_value",
                "stop text %zu has %zu bytes; from 1 to %d are possible", i + 1,
                bytes, AKIN_REQUEST_STOP_BYTES);
        char *copy = malloc(bytes + 1);
        if (copy == NULL)
            return akini_reader_nomem(r->error);
        memcpy(copy, json_string_value(item), bytes + 1);
        r->request->stops[r->request->n_stops] = copy;
        r->request->stop_bytes[r->request->n_stops] = bytes;
        r->request->n_stops++;
    }
    if (r->limits->tokenizer == NULL)
        return akin_request_error_set(
            r->error, 400, "stop", "unsupported_parameter",
            "stop needs a tokenizer, which this model has not got: leave it "
            "out");
    return AKIN_OK;
}

/* The label that a request carries among those of its sender. Clients may have
 * any other use of metadata. */
static akin_status_t read_domain(const akini_reader_t *r)
{
    json_t *value = json_object_get(akini_reader_get(r, "metadata"), "domain");
    if (value == NULL || json_is_null(value))
        return AKIN_OK;
    const char *text = json_string_value(value);
    size_t bytes = json_string_length(value);
    if (text == NULL || bytes > AKIN_REQUEST_ID_BYTES || strlen(text) != bytes)
        return akini_reader_refuse(r, "metadata.domain",
                                   "a text of at most 512 bytes", value);
    if (bytes > 0)
        r->request->domain = strdup(text);
    return bytes == 0 || r->request->domain != NULL
               ? AKIN_OK
               : akini_reader_nomem(r->error);
}

static akin_status_t read_logprobs(const akini_reader_t *r)
{
    static const char what[] = "a whole number from 0 to 5";
    int64_t n_top = 0;
    akin_status_t status;
    if (r->request->kind == AKIN_REQUEST_COMPLETION) {
        status = akini_reader_integer(r, "logprobs", 0, AKIN_REQUEST_MAX_TOP,
                                      what, &n_top);
        if (status != AKIN_OK)
            return status;
        r->request->want_logprobs = akini_reader_get(r, "logprobs") != NULL;
    } else {
        status = akini_reader_bool(r, "logprobs", &r->request->want_logprobs);
        if (status == AKIN_OK)
            status = akini_reader_integer(r, "top_logprobs", 0,
                                          AKIN_REQUEST_MAX_TOP, what, &n_top);
        if (status != AKIN_OK)
            return status;
        if (n_top > 0 && !r->request->want_logprobs)
            return akin_request_error_set(r->error, 400, "top_logprobs",
                                          "invalid_value",
                                          "top_logprobs needs logprobs = true");
    }
    r->request->n_top = (uint32_t)n_top;
    return AKIN_OK;
}

/* The served name is a name or a path; its last part will do as well. */
static akin_status_t check_model(const akini_reader_t *r)
{
    const json_t *value = akini_reader_get(r, "model");
    if (value == NULL)
        return AKIN_OK;
    if (!json_is_string(value))
        return akini_reader_refuse(r, "model", "a text", value);
    const char *asked = json_string_value(value);
    const char *served = r->limits->model;
    if (served == NULL || asked[0] == '\0' || strcmp(asked, served) == 0)
        return AKIN_OK;
    size_t end = strlen(served);
    while (end > 0 && served[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && served[start - 1] != '/')
        start--;
    if (strlen(asked) == end - start &&
        strncmp(asked, served + start, end - start) == 0)
        return AKIN_OK;
    char shown[AKINI_SHOWN_BYTES];
    return akin_request_error_set(
        r->error, 404, "model", "model_not_found",
        "the model %s does not exist here; this job serves \"%.*s\"",
        akini_request_show(value, shown),
        (int)(end - start < 128 ? end - start : 128), served + start);
}

static akin_status_t too_long(const akini_reader_t *r, const char *name,
                              size_t n)
{
    return akin_request_error_set(
        r->error, 400, name, "context_length_exceeded",
        "the prompt has %zu tokens; the model's context is %u tokens, of which "
        "at least one must be left for the answer",
        n, (unsigned)r->limits->max_positions);
}

static akin_status_t set_prompt_text(const akini_reader_t *r, const char *name,
                                     const char *text, size_t bytes)
{
    if (r->limits->tokenizer == NULL)
        return akin_request_error_set(
            r->error, 400, name, "unsupported_parameter",
            "%s is text, but this model has no tokenizer: give prompt as an "
            "array of token ids",
            name);
    if (bytes == 0)
        return akin_request_error_set(r->error, 400, name, "invalid_value",
                                      "%s is empty", name);
    akin_error_t err = {{0}};
    uint32_t *ids = NULL;
    size_t n = 0;
    akin_status_t status = akin_tokenizer_encode(r->limits->tokenizer, text,
                                                 bytes, &ids, &n, &err);
    if (status == AKIN_ERR_NOMEM)
        return akini_reader_nomem(r->error);
    if (status != AKIN_OK)
        return akin_request_error_set(r->error, 400, name, "invalid_value",
                                      "%s: %s", name, err.text);
    if (n > UINT32_MAX) {
        free(ids);
        return too_long(r, name, n);
    }
    r->request->prompt = ids;
    r->request->n_prompt = (uint32_t)n;
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= r->limits->vocab_size)
            return akin_request_error_set(
                r->error, 400, name, "invalid_value",
                "%s has token %u, which the model does not know (%u tokens)",
                name, (unsigned)ids[i], (unsigned)r->limits->vocab_size);
    return AKIN_OK;
}

static akin_status_t set_prompt_ids(const akini_reader_t *r,
                                    const json_t *array)
{
    size_t n = json_array_size(array);
    /* Checked before the memory is taken: the answer would be the same. */
    if (n >= r->limits->max_positions)
        return too_long(r, "prompt", n);
    r->request->prompt = malloc(n * sizeof(*r->request->prompt));
    if (r->request->prompt == NULL)
        return akini_reader_nomem(r->error);
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(array, i);
        char shown[AKINI_SHOWN_BYTES];
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) >= (json_int_t)r->limits->vocab_size)
            return akin_request_error_set(
                r->error, 400, "prompt", "invalid_value",
                "prompt[%zu] must be a token id from 0 to %u, not %s", i,
                (unsigned)r->limits->vocab_size - 1,
                akini_request_show(id, shown));
        r->request->prompt[i] = (uint32_t)json_integer_value(id);
    }
    r->request->n_prompt = (uint32_t)n;
    return AKIN_OK;
}

static akin_status_t read_prompt(const akini_reader_t *r)
{
    static const char what[] = "a text or an array of token ids";
    const json_t *value = akini_reader_get(r, "prompt");
    if (value == NULL)
        return akin_request_error_set(r->error, 400, "prompt",
                                      "missing_required_parameter",
                                      "prompt is missing");
    /* An array of one prompt is that prompt. */
    if (json_is_array(value)) {
        const json_t *first = json_array_get(value, 0);
        if (json_array_size(value) == 0)
            return akin_request_error_set(r->error, 400, "prompt",
                                          "invalid_value", "prompt is empty");
        if (json_is_string(first) || json_is_array(first)) {
            if (json_array_size(value) > 1)
                return akin_request_error_set(
                    r->error, 400, "prompt", "unsupported_parameter",
                    "prompt holds %zu prompts; give each its own line",
                    json_array_size(value));
            value = first;
        }
    }
    if (json_is_string(value))
        return set_prompt_text(r, "prompt", json_string_value(value),
                               json_string_length(value));
    if (!json_is_array(value))
        return akini_reader_refuse(r, "prompt", what, value);
    if (json_array_size(value) == 0)
        return akin_request_error_set(r->error, 400, "prompt", "invalid_value",
                                      "prompt is empty");
    return set_prompt_ids(r, value);
}

static akin_status_t read_messages(const akini_reader_t *r)
{
    const json_t *value = akini_reader_get(r, "messages");
    if (value == NULL)
        return akin_request_error_set(r->error, 400, "messages",
                                      "missing_required_parameter",
                                      "messages is missing");
    if (!json_is_array(value))
        return akini_reader_refuse(
            r, "messages", "an array of {\"role\", \"content\"}", value);
    akin_error_t err = {{0}};
    char *text = NULL;
    size_t bytes = 0;
    akin_status_t status = akin_chat_render_json(value, &text, &bytes, &err);
    if (status == AKIN_ERR_NOMEM)
        return akini_reader_nomem(r->error);
    if (status != AKIN_OK)
        return akin_request_error_set(r->error, 400, "messages",
                                      "invalid_value", "%s", err.text);
    status = set_prompt_text(r, "messages", text, bytes);
    free(text);
    return status;
}

/* After the prompt: how much may be generated. */
static akin_status_t read_max_tokens(const akini_reader_t *r)
{
    static const char what[] = "a whole number above 0";
    akin_request_t *q = r->request;
    const int chat = q->kind == AKIN_REQUEST_CHAT;
    const char *prompt_name = chat ? "messages" : "prompt";
    if (q->n_prompt == 0)
        return akin_request_error_set(r->error, 400, prompt_name,
                                      "invalid_value", "%s gives no token",
                                      prompt_name);
    if (q->n_prompt >= r->limits->max_positions)
        return too_long(r, prompt_name, q->n_prompt);
    const uint32_t room = r->limits->max_positions - q->n_prompt;
    if (r->limits->n_tokens != 0) {
        q->max_tokens = r->limits->n_tokens < room ? r->limits->n_tokens : room;
        return AKIN_OK;
    }

    int64_t old = 0;
    int64_t new = 0;
    akin_status_t status =
        akini_reader_integer(r, "max_tokens", 1, INT64_MAX, what, &old);
    if (status == AKIN_OK)
        status = akini_reader_integer(r, "max_completion_tokens", 1, INT64_MAX,
                                      what, &new);
    if (status != AKIN_OK)
        return status;
    if (old != 0 && new != 0 && old != new)
        return akin_request_error_set(
            r->error, 400, "max_tokens", "invalid_value",
            "max_tokens = %lld and max_completion_tokens = %lld contradict "
            "each other",
            (long long)old, (long long)new);
    int64_t asked = new != 0 ? new : old;
    const int given = asked != 0;
    if (!given)
        asked = chat ? room : DEFAULT_MAX_TOKENS;
    if (asked > room)
        return akin_request_error_set(
            r->error, 400, new != 0 ? "max_completion_tokens" : "max_tokens",
            "context_length_exceeded",
            "the prompt has %u tokens and max_tokens is %lld%s, together more "
            "than the model's context of %u tokens; at most %u are possible",
            (unsigned)q->n_prompt, (long long)asked, given ? "" : " by default",
            (unsigned)r->limits->max_positions, (unsigned)room);
    q->max_tokens = (uint32_t)asked;
    return AKIN_OK;
}

akin_status_t akin_request_read(const akin_request_limits_t *limits,
                                akin_request_kind_t kind, json_t *body,
                                const char *custom_id,
                                akin_request_t **request_p,
                                akin_request_error_t *error)
{
    *request_p = NULL;
    if (!json_is_object(body))
        return akin_request_error_set(error, 400, NULL, "invalid_value",
                                      "the body must be a JSON object");
    akin_request_t *request = calloc(1, sizeof(*request));
    if (request == NULL)
        return akini_reader_nomem(error);
    const akini_reader_t r = {limits, body, request, error};
    akin_status_t status = AKIN_ERR_NOMEM;
    request->kind = kind;
    request->custom_id = strdup(custom_id);
    if (request->custom_id == NULL) {
        (void)akini_reader_nomem(error);
        goto err_destroy;
    }
    if ((status = akini_request_fields_check(kind, body, error)) != AKIN_OK ||
        (status = check_model(&r)) != AKIN_OK ||
        (status = read_sampling(&r)) != AKIN_OK ||
        (status = read_logprobs(&r)) != AKIN_OK ||
        (status = akini_reader_bool(&r, "ignore_eos", &request->ignore_eos)) !=
            AKIN_OK ||
        (status = akini_reader_bool(&r, "return_token_ids",
                                    &request->want_token_ids)) != AKIN_OK ||
        (status = read_stop(&r)) != AKIN_OK ||
        (status = read_domain(&r)) != AKIN_OK ||
        (status = kind == AKIN_REQUEST_CHAT ? read_messages(&r)
                                            : read_prompt(&r)) != AKIN_OK ||
        (status = read_max_tokens(&r)) != AKIN_OK)
        goto err_destroy;
    *request_p = request;
    return AKIN_OK;

err_destroy:
    akin_request_destroy(request);
    return status;
}
