/* run: a batch through a job of MPI ranks. */
#include "launch/command.h"
#include "launch/job_command.h"

#include <argp.h>

enum { OPT_ORDERED = 256, OPT_DETERMINISTIC_IDS, OPT_SUMMARY };

static const struct argp_option arguments[] = {
    {"output", 'o', "OUT.jsonl", 0, "Batch output, - for standard output", 0},
    {"ordered", OPT_ORDERED, NULL, 0, "Write answers in the order of the input",
     0},
    {"deterministic-ids", OPT_DETERMINISTIC_IDS, NULL, 0,
     "Make ids from the custom_id alone and leave times out, so that outputs "
     "of two runs compare equal",
     0},
    {"summary", OPT_SUMMARY, "FILE", 0, "Write the summary as JSON", 0},
    {0}};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    akin_job_command_t *c = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = c;
        break;
    case 'o':
        c->batch.output_path = arg;
        break;
    case OPT_ORDERED:
        c->batch.ordered = 1;
        break;
    case OPT_DETERMINISTIC_IDS:
        c->batch.deterministic_ids = 1;
        break;
    case OPT_SUMMARY:
        c->batch.summary_path = arg;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "%s: no such argument", arg);
        break;
    case ARGP_KEY_END:
        if (c->batch.output_path == NULL)
            argp_error(state, "no output: give it with -o OUT.jsonl");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int akin_command_run(int argc, char **argv)
{
    static const struct argp_child children[] = {
        {&akin_job_command_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        arguments,
        parse_option,
        NULL,
        "Run a batch of OpenAI requests through a job of one router, prefill "
        "and decode ranks.",
        children,
        NULL,
        NULL};
    akin_job_command_t command = {0};
    if (argp_parse(&argp, argc, argv, 0, NULL, &command) != 0)
        return AKIN_EXIT_USAGE;
    return akin_job_command_run(&command, "run", argc, argv);
}
