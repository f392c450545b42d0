/* bench ep: the command line; starts its ranks itself. */
#include "launch/bench_ep.h"

#include "launch/command.h"
#include "launch/mpirun.h"
#include "net/boot.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_RANKS 4u

enum { OPT_RANKS = 256, OPT_ROWS, OPT_ROUNDS, OPT_JSON };

static const struct argp_option arguments[] = {
    {"ranks", OPT_RANKS, "R", 0, "Ranks of the group: 2, 4, 8 or 16 (4)", 0},
    {"rows", OPT_ROWS, "N,...", 0, "Rows of each rank (1,16,64)", 0},
    {"rounds", OPT_ROUNDS, "N", 0, "Rounds per case (100)", 0},
    {"json", OPT_JSON, NULL, 0, "Print JSON", 0},
    {0}};

typedef struct options {
    akin_bench_ep_params_t bench;
    uint32_t n_ranks;
} options_t;

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    switch (key) {
    case OPT_RANKS:
        if (akin_bench_parse_list(arg, AKIN_BENCH_EP_MAX_RANKS, &o->n_ranks,
                                  1) != 1 ||
            o->n_ranks < 2 || (o->n_ranks & (o->n_ranks - 1)) != 0)
            argp_error(state, "--ranks %s: 2, 4, 8 or 16 is needed", arg);
        break;
    case OPT_ROWS:
        o->bench.n_rows = (uint32_t)akin_bench_parse_list(
            arg, AKIN_BENCH_EP_MAX_ROWS, o->bench.rows,
            AKIN_BENCH_EP_MAX_CASES);
        if (o->bench.n_rows == 0)
            argp_error(state,
                       "--rows %s: up to %u whole numbers from 1 to %u are "
                       "needed",
                       arg, AKIN_BENCH_EP_MAX_CASES, AKIN_BENCH_EP_MAX_ROWS);
        break;
    case OPT_ROUNDS:
        if (akin_bench_parse_list(arg, AKIN_BENCH_MAX_ROUNDS, &o->bench.rounds,
                                  1) != 1)
            argp_error(state,
                       "--rounds %s: a whole number from 1 to %u is "
                       "needed",
                       arg, AKIN_BENCH_MAX_ROUNDS);
        break;
    case OPT_JSON:
        o->bench.json = 1;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static int launch(uint32_t n_ranks, int argc, char **argv)
{
    akin_error_t err = {{0}};
    akin_mpirun_t command;
    char name[] = "ep";
    char **words = calloc((size_t)argc + 2, sizeof(*words));
    if (words == NULL)
        return akin_command_fail(AKIN_ERR_NOMEM, &err);
    words[0] = argv[0];
    words[1] = name;
    memcpy(words + 2, argv + 1, (size_t)(argc - 1) * sizeof(*words));
    const akin_mpirun_params_t params = {.n_ranks = n_ranks,
                                         .subcommand = "bench",
                                         .argc = argc + 1,
                                         .argv = words};
    akin_status_t status = akin_mpirun_create(&params, &command, &err);
    free(words);
    if (status != AKIN_OK)
        return akin_command_fail(status, &err);
    int code = akin_mpirun_run(&command);
    akin_mpirun_cleanup(&command);
    return code;
}

int akin_bench_ep_command(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        NULL,
        "Time dispatch and combine of one expert-parallel layer, with the "
        "vectors of Qwen3-30B-A3B, by each exchange beside the bare exchange "
        "of the same bytes: UCX puts, or one MPI_Alltoallv. UCX_TLS chooses "
        "the transport. The ratio is bare / ours: 1 is the limit, higher is "
        "better.",
        NULL,
        NULL,
        NULL};
    options_t o = {.n_ranks = DEFAULT_RANKS};
    akin_error_t err = {{0}};
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return AKIN_EXIT_USAGE;
    if (!akin_boot_is_launched())
        return launch(o.n_ranks, argc, argv);
    akin_status_t status = akin_bench_ep(&o.bench, stdout, &err);
    return status == AKIN_OK ? AKIN_EXIT_OK : akin_command_fail(status, &err);
}
