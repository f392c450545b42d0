/* ctl: asks a running job for its state, and drains its workers. */
#include "launch/command.h"
#include "launch/ctl_client.h"
#include "launch/ctl_print.h"

#include <argp.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

typedef struct options {
    const char *socket;
    const char *command;
    char worker[64]; /* "": none was named */
    int is_moving;
    int json;
} options_t;

enum { OPT_JSON = 256, OPT_MOVE };

static const struct argp_option arguments[] = {
    {"socket", 'S', "SOCKET", 0,
     "The job's socket (that of the one job of yours on this host)", 0},
    {"move", OPT_MOVE, NULL, 0,
     "drain: running requests begin again elsewhere at once, instead of being "
     "finished first",
     0},
    {"json", OPT_JSON, NULL, 0, "Print the router's answer as JSON", 0},
    {0}};

static int names_worker(const char *command)
{
    return strcmp(command, "drain") == 0 || strcmp(command, "resume") == 0;
}

/* The words behind drain or resume; "decode 1" may come as two. */
static void take_word(options_t *o, const char *arg, struct argp_state *state)
{
    static const char *const commands[] = {"status", "drain", "resume",
                                           "metrics"};
    const size_t length = strlen(o->worker);
    if (o->command == NULL) {
        for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
            if (strcmp(arg, commands[i]) == 0)
                o->command = commands[i];
        if (o->command == NULL)
            argp_error(state,
                       "%s: no such command: there are status, drain, resume, "
                       "metrics",
                       arg);
        return;
    }
    if (!names_worker(o->command))
        argp_error(state, "%s: no such argument", arg);
    if (length + strlen(arg) + 2 > sizeof(o->worker) ||
        strchr(o->worker, ' ') != NULL)
        argp_error(state, "%s: one worker at a time", arg);
    (void)snprintf(o->worker + length, sizeof(o->worker) - length, "%s%s",
                   length == 0 ? "" : " ", arg);
}

static void check_words(const options_t *o, struct argp_state *state)
{
    if (o->command == NULL)
        argp_error(state, "no command: status, drain, resume or metrics");
    else if (o->is_moving && strcmp(o->command, "drain") != 0)
        argp_error(state, "--move is for drain");
    else if (names_worker(o->command) && o->worker[0] == '\0')
        argp_error(state, "no worker: name one, as in `akin ctl %s decode1'",
                   o->command);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    switch (key) {
    case 'S':
        o->socket = arg;
        break;
    case OPT_MOVE:
        o->is_moving = 1;
        break;
    case OPT_JSON:
        o->json = 1;
        break;
    case ARGP_KEY_ARG:
        take_word(o, arg, state);
        break;
    case ARGP_KEY_END:
        check_words(o, state);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static json_t *make_request(const options_t *o)
{
    if (o->worker[0] == '\0')
        return json_pack("{s:s}", "command", o->command);
    if (strcmp(o->command, "drain") == 0)
        return json_pack("{s:s, s:s, s:b}", "command", o->command, "worker",
                         o->worker, "move", o->is_moving);
    return json_pack("{s:s, s:s}", "command", o->command, "worker", o->worker);
}

static int print_worker(const json_t *answer)
{
    const long long n_moved =
        (long long)json_integer_value(json_object_get(answer, "moved"));
    const char *name = json_string_value(json_object_get(answer, "worker"));
    const char *state = json_string_value(json_object_get(answer, "state"));
    (void)printf(
        "%s: %s, %lld requests there", name != NULL ? name : "?",
        state != NULL ? state : "?",
        (long long)json_integer_value(json_object_get(answer, "requests")));
    if (n_moved > 0)
        (void)printf(", %lld go on elsewhere", n_moved);
    return printf("\n") < 0 ? AKIN_EXIT_FAILED : AKIN_EXIT_OK;
}

static int print(const options_t *o, json_t *answer)
{
    if (o->json)
        return akin_command_print_json(json_incref(answer));
    if (strcmp(o->command, "status") == 0)
        return akin_ctl_print_status(answer);
    if (strcmp(o->command, "metrics") != 0)
        return print_worker(answer);
    const char *text = json_string_value(json_object_get(answer, "text"));
    return text != NULL && fputs(text, stdout) < 0 ? AKIN_EXIT_FAILED
                                                   : AKIN_EXIT_OK;
}

int akin_command_ctl(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        "status\ndrain WORKER\nresume WORKER\nmetrics",
        "Ask a running job, on the host of its rank 0: for its state, for its "
        "metrics in Prometheus' text format, to give a worker nothing new "
        "(\"decode 1\"), or to give it work again.",
        NULL,
        NULL,
        NULL};
    options_t o = {0};
    akin_error_t err = {{0}};
    akin_ctl_path_t path;
    json_t *answer = NULL;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return AKIN_EXIT_USAGE;
    akin_status_t status = AKIN_OK;
    if (o.socket == NULL) {
        status = akin_ctl_client_find(&path, &err);
        o.socket = path.text;
    }
    json_t *request = make_request(&o);
    if (status == AKIN_OK && request == NULL)
        status = akin_error_set(&err, AKIN_ERR_INVALID,
                                "the worker's name is no text");
    if (status == AKIN_OK)
        status = akin_ctl_client_ask(o.socket, request, &answer, &err);
    json_decref(request);
    if (status != AKIN_OK)
        return akin_command_fail(status, &err);
    int code = print(&o, answer);
    json_decref(answer);
    return code;
}
