/* Commands: the subcommands of `akin`. */
#ifndef AKIN_LAUNCH_COMMAND_H
#define AKIN_LAUNCH_COMMAND_H

#include "base/error.h"

/* Exit codes of every subcommand. */
#define AKIN_EXIT_OK 0
#define AKIN_EXIT_FAILED 1  /* something failed; a message says what */
#define AKIN_EXIT_USAGE 2   /* wrong arguments or configuration */
#define AKIN_EXIT_LINES 3   /* finished, with error lines in the output */
#define AKIN_EXIT_STOPPED 4 /* stopped by a signal; --resume goes on */

/** A subcommand; argv[0] is its full name ("akin generate"). */
typedef struct akin_command {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv);
} akin_command_t;

int akin_command_run(int argc, char **argv);
int akin_command_plan(int argc, char **argv);
int akin_command_ctl(int argc, char **argv);
int akin_command_calibrate(int argc, char **argv);
int akin_command_generate(int argc, char **argv);
int akin_command_info(int argc, char **argv);
int akin_command_compare(int argc, char **argv);
int akin_command_report(int argc, char **argv);
int akin_command_trace(int argc, char **argv);
int akin_command_fit(int argc, char **argv);
int akin_command_replay(int argc, char **argv);
int akin_command_sim(int argc, char **argv);
int akin_command_bench(int argc, char **argv);

/** From now on the process ends with a message and AKIN_EXIT_FAILED if what it
 * wrote to stdout did not arrive, --help included. Gives an exit code. */
int akin_command_watch_output(void);

/** Print "akin: message" and give the exit code that fits the status. */
int akin_command_fail(akin_status_t status, const akin_error_t *err);

struct json_t;

/** Print a JSON value and a newline on stdout; release it. Gives the exit
 * code: a full disk is a failure. */
int akin_command_print_json(struct json_t *json);

#endif
