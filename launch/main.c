/* akin: finds the subcommand. */
#include "launch/command.h"

#include "base/log.h"
#include "base/nearest.h"
#include "base/version.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const akin_command_t commands[] = {
    {"run", "run a batch through a job of MPI ranks", akin_command_run},
    {"plan", "place the ranks of a job on nodes, GPUs, NICs and cores",
     akin_command_plan},
    {"calibrate", "record which experts the tokens of prompts choose",
     akin_command_calibrate},
    {"ctl", "ask a running job, drain its workers", akin_command_ctl},
    {"generate", "run one prompt on the engine alone", akin_command_generate},
    {"info", "show versions, this machine, a model, the job file's keys",
     akin_command_info},
    {"compare", "show the summaries of several runs side by side",
     akin_command_compare},
    {"report", "show runs, replays, simulations as one page of charts",
     akin_command_report},
    {"trace", "import and inspect traces of routes", akin_command_trace},
    {"fit", "learn from a trace where requests should be decoded",
     akin_command_fit},
    {"replay", "compare policies on the recorded requests of a trace",
     akin_command_replay},
    {"sim", "compare policies on simulated workers of a modelled machine",
     akin_command_sim},
    {"bench", "measure parts of akin beside what bounds them",
     akin_command_bench},
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_usage(FILE *stream)
{
    (void)fprintf(stream, "Usage: akin COMMAND [OPTION...]\n\nCommands:\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        (void)fprintf(stream, "  %-10s %s\n", commands[i].name,
                      commands[i].summary);
    (void)fprintf(stream, "\n`akin COMMAND --help` tells more. AKIN_LOG sets "
                          "the log, for instance AKIN_LOG=info,kv=debug.\n");
}

static int unknown_command(const char *name)
{
    const char *names[N_COMMANDS];
    for (size_t i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i].name;
    const char *nearest = akin_nearest_name(name, names, N_COMMANDS);
    (void)fprintf(stderr, "akin: unknown command \"%s\"", name);
    if (nearest != NULL)
        (void)fprintf(stderr, ", did you mean \"%s\"?\n", nearest);
    else
        (void)fprintf(stderr, "; `akin --help` lists them\n");
    return AKIN_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    akin_error_t err = {{0}};
    argp_err_exit_status = AKIN_EXIT_USAGE;
    if (akin_command_watch_output() != AKIN_EXIT_OK)
        return AKIN_EXIT_FAILED;
    if (akin_log_configure(getenv("AKIN_LOG"), &err) != AKIN_OK) {
        (void)fprintf(stderr, "akin: AKIN_LOG: %s\n", err.text);
        return AKIN_EXIT_USAGE;
    }
    if (argc < 2) {
        print_usage(stderr);
        return AKIN_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return AKIN_EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        (void)printf("akin %s\n", AKIN_VERSION);
        return AKIN_EXIT_OK;
    }
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        char name[64];
        (void)snprintf(name, sizeof(name), "akin %s", commands[i].name);
        argv[1] = name;
        return commands[i].run(argc - 1, argv + 1);
    }
    return unknown_command(argv[1]);
}
