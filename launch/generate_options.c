/* generate: the command line. */
#include "launch/generate.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
    OPT_TOKENS = 256,
    OPT_CHAT,
    OPT_TEMPERATURE,
    OPT_TOP_K,
    OPT_TOP_P,
    OPT_MIN_P,
    OPT_REPETITION_PENALTY,
    OPT_SEED,
    OPT_STOP,
    OPT_KERNEL,
    OPT_BLOCK_TOKENS,
    OPT_CHUNK,
    OPT_IGNORE_EOS,
    OPT_JSON
};

static const struct argp_option options[] = {
    {"model", 'm', "DIR", 0,
     "Model directory: config.json, tokenizer.json, "
     "model.safetensors or its index",
     0},
    {NULL, 0, NULL, 0, "The prompt, one of:", 1},
    {"prompt", 'p', "TEXT", 0, "Text as it is", 1},
    {"tokens", OPT_TOKENS, "IDS", 0, "Token ids: 1,2,3", 1},
    {"chat", OPT_CHAT, "FILE", 0,
     "Chat messages: a JSON array of role and "
     "content, or an object with \"messages\"",
     1},
    {NULL, 0, NULL, 0, "Sampling:", 2},
    {"max-tokens", 'n', "N", 0, "Most tokens to generate (64)", 2},
    {"temperature", OPT_TEMPERATURE, "T", 0, "0 is greedy (0)", 2},
    {"top-k", OPT_TOP_K, "K", 0, "Of the K best tokens (all)", 2},
    {"top-p", OPT_TOP_P, "P", 0, "Of the best tokens that make up P (1)", 2},
    {"min-p", OPT_MIN_P, "P", 0,
     "Of tokens at least P as likely as the best "
     "(0)",
     2},
    {"repetition-penalty", OPT_REPETITION_PENALTY, "R", 0,
     "Divide the logits of tokens seen before (1)", 2},
    {"seed", OPT_SEED, "S", 0, "Seed of the draws (0)", 2},
    {"stop", OPT_STOP, "TEXT", 0, "End before this text; may be repeated", 2},
    {"ignore-eos", OPT_IGNORE_EOS, NULL, 0, "Go on after an end token", 2},
    {NULL, 0, NULL, 0, "Engine:", 3},
    {"kernel", OPT_KERNEL, "PATH", 0, "auto, avx512, avx2 or portable (auto)",
     3},
    {"threads", 't', "N", 0, "Threads (the cores of this process)", 3},
    {"block-tokens", OPT_BLOCK_TOKENS, "N", 0,
     "Tokens per KV block: 8, 16, 32 or 64 (16)", 3},
    {"chunk", OPT_CHUNK, "N", 0, "Prompt tokens per prefill step (256)", 3},
    {NULL, 0, NULL, 0, "Output:", 4},
    {"json", OPT_JSON, NULL, 0, "Print one JSON object instead of text", 4},
    {0}};

typedef struct parse {
    akin_generate_options_t *options;
    akin_error_t *err;
    akin_status_t status;
} parse_t;

static unsigned long long whole(parse_t *p, const char *name, const char *text,
                                unsigned long long min, unsigned long long max)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (p->status == AKIN_OK && (errno != 0 || *text < '0' || *text > '9' ||
                                 *end != '\0' || value < min || value > max))
        p->status = akin_error_set(p->err, AKIN_ERR_INVALID,
                                   "%s %s: a whole number from %llu to %llu "
                                   "is needed",
                                   name, text, min, max);
    return value;
}

static float real(parse_t *p, const char *name, const char *text)
{
    char *end;
    errno = 0;
    float value = strtof(text, &end);
    if (p->status == AKIN_OK &&
        (errno != 0 || end == text || *end != '\0' || !isfinite(value)))
        p->status = akin_error_set(p->err, AKIN_ERR_INVALID,
                                   "%s %s: a number is needed", name, text);
    return value;
}

static void add_stop(parse_t *p, const char *text)
{
    akin_generate_options_t *o = p->options;
    if (text[0] == '\0')
        p->status = akin_error_set(p->err, AKIN_ERR_INVALID,
                                   "--stop: the text must not be empty");
    else if (o->n_stops == AKIN_GENERATE_MAX_STOPS)
        p->status = akin_error_set(p->err, AKIN_ERR_INVALID,
                                   "--stop: at most %d of them",
                                   AKIN_GENERATE_MAX_STOPS);
    else
        o->stops[o->n_stops++] = text;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    parse_t *p = state->input;
    akin_generate_options_t *o = p->options;
    switch (key) {
    case 'm':
        o->model_dir = arg;
        break;
    case 'p':
        o->text = arg;
        break;
    case OPT_TOKENS:
        o->token_ids = arg;
        break;
    case OPT_CHAT:
        o->chat_path = arg;
        break;
    case 'n':
        o->max_tokens =
            (uint32_t)whole(p, "--max-tokens", arg, 1, UINT32_MAX / 2);
        break;
    case OPT_TEMPERATURE:
        o->sampling.temperature = real(p, "--temperature", arg);
        break;
    case OPT_TOP_K:
        o->sampling.top_k = (uint32_t)whole(p, "--top-k", arg, 0, UINT32_MAX);
        break;
    case OPT_TOP_P:
        o->sampling.top_p = real(p, "--top-p", arg);
        if (p->status == AKIN_OK && o->sampling.top_p <= 0.0f)
            p->status = akin_error_set(p->err, AKIN_ERR_INVALID,
                                       "--top-p %s: it must be above 0 and at "
                                       "most 1",
                                       arg);
        break;
    case OPT_MIN_P:
        o->sampling.min_p = real(p, "--min-p", arg);
        break;
    case OPT_REPETITION_PENALTY:
        o->sampling.repetition_penalty = real(p, "--repetition-penalty", arg);
        break;
    case OPT_SEED:
        o->sampling.seed = whole(p, "--seed", arg, 0, UINT64_MAX);
        break;
    case OPT_STOP:
        add_stop(p, arg);
        break;
    case OPT_IGNORE_EOS:
        o->ignore_eos = 1;
        break;
    case OPT_KERNEL:
        o->kernel = arg;
        break;
    case 't':
        o->n_threads = (int)whole(p, "--threads", arg, 1, 4096);
        break;
    case OPT_BLOCK_TOKENS:
        o->block_tokens = (uint32_t)whole(p, "--block-tokens", arg, 8, 64);
        break;
    case OPT_CHUNK:
        o->chunk_tokens = (uint32_t)whole(p, "--chunk", arg, 1, 65536);
        break;
    case OPT_JSON:
        o->json = 1;
        break;
    case ARGP_KEY_ARG:
        p->status = akin_error_set(p->err, AKIN_ERR_INVALID,
                                   "%s: no such argument; a prompt goes after "
                                   "-p",
                                   arg);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

akin_status_t akin_generate_parse(int argc, char **argv,
                                  akin_generate_options_t *options_p,
                                  akin_error_t *err)
{
    static const struct argp argp = {
        options, parse_option,
        NULL,    "Run one prompt through a Qwen3-MoE model in this process.",
        NULL,    NULL,
        NULL};
    *options_p = (akin_generate_options_t){
        .max_tokens = 64,
        .kernel = "auto",
        .block_tokens = 16,
        .chunk_tokens = 256,
    };
    parse_t parse = {options_p, err, AKIN_OK};
    if (argp_parse(&argp, argc, argv, 0, NULL, &parse) != 0)
        return akin_error_set(err, AKIN_ERR_INVALID, "bad arguments");
    if (parse.status != AKIN_OK)
        return parse.status;
    int n_prompts = (options_p->text != NULL) + (options_p->token_ids != NULL) +
                    (options_p->chat_path != NULL);
    if (options_p->model_dir == NULL)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "no model: give its directory with -m DIR");
    if (n_prompts != 1)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "give one prompt: -p TEXT, --tokens IDS or "
                              "--chat FILE");
    akin_status_t status = akin_sampling_check(&options_p->sampling, err);
    return status == AKIN_OK ? AKIN_OK : AKIN_ERR_INVALID;
}
