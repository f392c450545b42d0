/* bench kv: the command line; starts its two ranks itself. */
#include "launch/bench_kv.h"

#include "launch/command.h"
#include "launch/mpirun.h"
#include "net/boot.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_ROUNDS = 256, OPT_JSON };

static const struct argp_option arguments[] = {
    {"rounds", OPT_ROUNDS, "N", 0, "Rounds per case (50)", 0},
    {"json", OPT_JSON, NULL, 0, "Print JSON", 0},
    {0}};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    akin_bench_kv_params_t *params = state->input;
    switch (key) {
    case OPT_ROUNDS:
        if (akin_bench_parse_list(arg, AKIN_BENCH_MAX_ROUNDS, &params->rounds,
                                  1) != 1)
            argp_error(state,
                       "--rounds %s: a whole number from 1 to %u is "
                       "needed",
                       arg, AKIN_BENCH_MAX_ROUNDS);
        break;
    case OPT_JSON:
        params->json = 1;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static int launch(int argc, char **argv)
{
    akin_error_t err = {{0}};
    akin_mpirun_t command;
    char name[] = "kv";
    char **words = calloc((size_t)argc + 2, sizeof(*words));
    if (words == NULL)
        return akin_command_fail(AKIN_ERR_NOMEM, &err);
    words[0] = argv[0];
    words[1] = name;
    memcpy(words + 2, argv + 1, (size_t)(argc - 1) * sizeof(*words));
    const akin_mpirun_params_t params = {
        .n_ranks = 2, .subcommand = "bench", .argc = argc + 1, .argv = words};
    akin_status_t status = akin_mpirun_create(&params, &command, &err);
    free(words);
    if (status != AKIN_OK)
        return akin_command_fail(status, &err);
    int code = akin_mpirun_run(&command);
    akin_mpirun_cleanup(&command);
    return code;
}

int akin_bench_kv_command(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        NULL,
        "Time reads of KV blocks from another rank beside bare UCX reads of "
        "the same size. UCX_TLS chooses the transport. For \"read\" and "
        "\"transfer\" the ratio is bare / ours: 1 is the limit, higher is "
        "better; for \"sidecar\" it is with / without: 1 would be free.",
        NULL,
        NULL,
        NULL};
    akin_bench_kv_params_t params = {0};
    akin_error_t err = {{0}};
    if (argp_parse(&argp, argc, argv, 0, NULL, &params) != 0)
        return AKIN_EXIT_USAGE;
    if (!akin_boot_is_launched())
        return launch(argc, argv);
    akin_status_t status = akin_bench_kv(&params, stdout, &err);
    return status == AKIN_OK ? AKIN_EXIT_OK : akin_command_fail(status, &err);
}
