/* calibrate: prompts through a job of MPI ranks, for the experts that their
 * tokens choose. */
#include "launch/command.h"
#include "launch/job_command.h"

#include <argp.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_TOKENS 128u
#define MAX_TOKENS 1000000u

enum { OPT_TOKENS = 256, OPT_JSON };

/* Every token must be computed for its experts to be seen. Where a request is
 * decoded does not matter to them: no fit is needed to make the first one. */
static const char *const own_settings[] = {
    "kv.prefix_cache=false", "routing.decode=jsq", "routing.fit="};

#define N_OWN_SETTINGS (sizeof(own_settings) / sizeof(own_settings[0]))

typedef struct options {
    akin_job_command_t command;
    akin_router_calibration_t calibration;
} options_t;

static const struct argp_option arguments[] = {
    {"output", 'o', "TRACE", 0,
     "Index of the trace, as TRACE.json; its data lie beside it", 0},
    {"tokens", OPT_TOKENS, "N", 0,
     "Tokens to generate for every prompt, fewer where the model's context "
     "ends (128)",
     0},
    {"json", OPT_JSON, NULL, 0, "Print one JSON object at the end", 0},
    {0}};

static uint32_t parse_tokens(const char *text, struct argp_state *state)
{
    unsigned long value = 0;
    if (isdigit((unsigned char)text[0]) && strlen(text) <= 7 &&
        text[strspn(text, "0123456789")] == '\0')
        value = strtoul(text, NULL, 10);
    if (value < 1 || value > MAX_TOKENS)
        argp_error(state,
                   "--tokens: a whole number from 1 to %u is needed, not %s",
                   MAX_TOKENS, text);
    return (uint32_t)value;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->command;
        break;
    case 'o':
        if (strcmp(arg, "-") == 0)
            argp_error(state, "-o: a trace is two files: give it a name");
        o->calibration.trace_path = arg;
        break;
    case OPT_TOKENS:
        o->calibration.n_tokens = parse_tokens(arg, state);
        break;
    case OPT_JSON:
        o->calibration.as_json = 1;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "%s: no such argument", arg);
        break;
    case ARGP_KEY_END:
        if (o->calibration.trace_path == NULL)
            argp_error(state, "no trace: give it with -o TRACE");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int akin_command_calibrate(int argc, char **argv)
{
    static const struct argp_child children[] = {
        {&akin_job_command_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        arguments,
        parse_option,
        NULL,
        "Record the experts that the tokens of prompts and greedy answers "
        "choose, in a trace for `akin fit` and `akin replay`."
        "\vWhatever sampling the lines of the input ask for, answers are "
        "greedy, and an end token does not end them. The prefix cache is off. "
        "A record has a row for every token that was computed: those of the "
        "prompt and of the answer, but for the last one, which nothing "
        "follows. Its id is the line's custom_id, its domain the line's "
        "body.metadata.domain.",
        children,
        NULL,
        NULL};
    options_t o = {.calibration = {.n_tokens = DEFAULT_TOKENS}};
    o.command.calibration = &o.calibration;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return AKIN_EXIT_USAGE;
    for (size_t i = 0; i < N_OWN_SETTINGS; i++)
        o.command.settings[o.command.n_settings++] = own_settings[i];
    return akin_job_command_run(&o.command, "calibrate", argc, argv);
}
