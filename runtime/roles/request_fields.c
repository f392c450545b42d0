/* Request fields: the table of names, and the check against it. */
#include "roles/request_fields.h"

#include "base/nearest.h"

#include <stdio.h>
#include <string.h>
#include <unistr.h>

enum { COMPLETION = 1, CHAT = 2, BOTH = COMPLETION | CHAT };

typedef struct field {
    const char *name;
    unsigned kinds;
    /* JSON array of the values that are taken; NULL: somebody else looks at
     * the value, or nobody does. null is always taken. */
    const char *neutral;
} field_t;

static const field_t fields[] = {
    /* Read by akin_request_read(). */
    {"model", BOTH, NULL},
    {"prompt", COMPLETION, NULL},
    {"messages", CHAT, NULL},
    {"max_tokens", BOTH, NULL},
    {"max_completion_tokens", BOTH, NULL},
    {"temperature", BOTH, NULL},
    {"top_p", BOTH, NULL},
    {"top_k", BOTH, NULL},
    {"min_p", BOTH, NULL},
    {"repetition_penalty", BOTH, NULL},
    {"seed", BOTH, NULL},
    {"stop", BOTH, NULL},
    {"logprobs", BOTH, NULL},
    {"top_logprobs", CHAT, NULL},
    {"ignore_eos", BOTH, NULL},
    {"return_token_ids", BOTH, NULL},
    /* Labels that change nothing in the answer. */
    {"user", BOTH, NULL},
    {"metadata", BOTH, NULL},
    {"store", BOTH, NULL},
    {"safety_identifier", BOTH, NULL},
    {"prompt_cache_key", BOTH, NULL},
    {"request_id", BOTH, NULL},
    /* OpenAI's fields for what is not done here. */
    {"n", BOTH, "[1]"},
    {"best_of", COMPLETION, "[1]"},
    {"echo", COMPLETION, "[false]"},
    {"suffix", COMPLETION, "[\"\"]"},
    {"stream", BOTH, "[false]"},
    {"stream_options", BOTH, "[]"},
    {"presence_penalty", BOTH, "[0]"},
    {"frequency_penalty", BOTH, "[0]"},
    {"logit_bias", BOTH, "[{}]"},
    {"response_format", BOTH, "[{\"type\": \"text\"}]"},
    {"service_tier", BOTH, "[\"auto\", \"default\"]"},
    {"tools", CHAT, "[[]]"},
    {"tool_choice", CHAT, "[\"none\", \"auto\"]"},
    {"parallel_tool_calls", CHAT, "[true, false]"},
    {"functions", CHAT, "[[]]"},
    {"function_call", CHAT, "[\"none\", \"auto\"]"},
    {"modalities", CHAT, "[[\"text\"]]"},
    {"audio", CHAT, "[]"},
    {"prediction", CHAT, "[]"},
    {"reasoning_effort", CHAT, "[]"},
    {"verbosity", CHAT, "[\"medium\"]"},
    {"web_search_options", CHAT, "[]"},
    /* vLLM's fields for what is not done here. */
    {"min_tokens", BOTH, "[0]"},
    {"stop_token_ids", BOTH, "[[]]"},
    {"include_stop_str_in_output", BOTH, "[false]"},
    {"skip_special_tokens", BOTH, "[true]"},
    {"spaces_between_special_tokens", BOTH, "[true]"},
    {"use_beam_search", BOTH, "[false]"},
    {"length_penalty", BOTH, "[1]"},
    {"early_stopping", BOTH, "[false]"},
    {"bad_words", BOTH, "[[]]"},
    {"allowed_token_ids", BOTH, "[]"},
    {"prompt_logprobs", BOTH, "[]"},
    {"truncate_prompt_tokens", BOTH, "[]"},
    {"add_special_tokens", BOTH, "[true, false]"},
    {"add_generation_prompt", CHAT, "[true]"},
    {"continue_final_message", CHAT, "[false]"},
    {"chat_template", CHAT, "[]"},
    {"chat_template_kwargs", CHAT, "[{}]"},
    {"documents", CHAT, "[[]]"},
    {"guided_json", BOTH, "[]"},
    {"guided_regex", BOTH, "[]"},
    {"guided_choice", BOTH, "[]"},
    {"guided_grammar", BOTH, "[]"},
    {"structured_outputs", BOTH, "[]"},
    {"logits_processors", BOTH, "[]"},
    {"return_tokens_as_token_ids", BOTH, "[false]"},
    {"priority", BOTH, "[0]"},
    {"cache_salt", BOTH, "[]"},
    {"kv_transfer_params", BOTH, "[]"},
};

#define N_FIELDS (sizeof(fields) / sizeof(fields[0]))

typedef struct shown {
    char *text;
    size_t bytes;
} shown_t;

/* Stops the dump as soon as there is more text than is shown. */
static int show_part(const char *text, size_t bytes, void *data)
{
    shown_t *shown = data;
    size_t room = AKINI_SHOWN_BYTES - shown->bytes;
    size_t n = bytes < room ? bytes : room;
    memcpy(shown->text + shown->bytes, text, n);
    shown->bytes += n;
    return shown->bytes == AKINI_SHOWN_BYTES ? -1 : 0;
}

const char *akini_request_show(const json_t *value, char *shown)
{
    shown_t part = {.text = shown};
    (void)json_dump_callback(value, show_part, &part, JSON_ENCODE_ANY);
    if (part.bytes < AKINI_SHOWN_BYTES) {
        shown[part.bytes] = '\0';
        return shown;
    }
    size_t keep = AKINI_SHOWN_BYTES - sizeof("...");
    const uint8_t *bad = u8_check((const uint8_t *)shown, keep);
    if (bad != NULL)
        keep = (size_t)(bad - (const uint8_t *)shown);
    memcpy(shown + keep, "...", sizeof("..."));
    return shown;
}

/* Equal as JSON, except that 0 and 0.0 are the same number. */
static int equal_values(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) {
        double x = json_number_value(a);
        double y = json_number_value(b);
        return x <= y && x >= y;
    }
    return json_equal(a, b);
}

static akin_status_t check_neutral(const field_t *field, const json_t *value,
                                   akin_request_error_t *error)
{
    char shown[AKINI_SHOWN_BYTES];
    json_t *neutral = json_loads(field->neutral, 0, NULL);
    if (neutral == NULL) {
        (void)akin_request_error_set(error, 500, NULL, NULL, "out of memory");
        return AKIN_ERR_NOMEM;
    }
    int taken = 0;
    for (size_t i = 0; i < json_array_size(neutral); i++)
        taken |= equal_values(json_array_get(neutral, i), value);
    size_t n_neutral = json_array_size(neutral);
    json_decref(neutral);
    if (taken)
        return AKIN_OK;
    if (n_neutral == 0)
        return akin_request_error_set(
            error, 400, field->name, "unsupported_parameter",
            "%s is not supported (it is %s): leave it out", field->name,
            akini_request_show(value, shown));
    return akin_request_error_set(
        error, 400, field->name, "unsupported_parameter",
        "%s = %s is not supported: leave it out (only values in %s are taken)",
        field->name, akini_request_show(value, shown), field->neutral);
}

static akin_status_t refuse_unknown(unsigned kind, const char *name,
                                    akin_request_error_t *error)
{
    json_t *text = json_string(name);
    char shown[AKINI_SHOWN_BYTES] = "?";
    if (text != NULL)
        (void)akini_request_show(text, shown);
    json_decref(text);

    akin_nearest_t nearest;
    akin_nearest_init(&nearest, name);
    for (size_t i = 0; i < N_FIELDS; i++)
        if ((fields[i].kinds & kind) != 0)
            akin_nearest_offer(&nearest, fields[i].name,
                               strlen(fields[i].name));
    if (nearest.name[0] == '\0')
        return akin_request_error_set(error, 400, name, "unknown_parameter",
                                      "unknown field %s", shown);
    return akin_request_error_set(error, 400, name, "unknown_parameter",
                                  "unknown field %s; did you mean \"%s\"?",
                                  shown, nearest.name);
}

akin_status_t akini_request_fields_check(akin_request_kind_t kind, json_t *body,
                                         akin_request_error_t *error)
{
    static const char *const urls[] = {"/v1/completions",
                                       "/v1/chat/completions"};
    const unsigned bit = kind == AKIN_REQUEST_CHAT ? CHAT : COMPLETION;
    akin_status_t status = AKIN_OK;
    const char *name;
    json_t *value;
    json_object_foreach(body, name, value)
    {
        const field_t *field = NULL;
        for (size_t i = 0; i < N_FIELDS && field == NULL; i++)
            if (strcmp(fields[i].name, name) == 0)
                field = &fields[i];
        if (field == NULL)
            status = refuse_unknown(bit, name, error);
        else if (json_is_null(value))
            continue;
        else if ((field->kinds & bit) == 0)
            status =
                akin_request_error_set(error, 400, name, "unknown_parameter",
                                       "%s has no field %s: it belongs to %s",
                                       urls[kind == AKIN_REQUEST_CHAT], name,
                                       urls[kind != AKIN_REQUEST_CHAT]);
        else if (field->neutral != NULL)
            status = check_neutral(field, value, error);
        if (status != AKIN_OK)
            break;
    }
    return status;
}
