/* What all subcommands share: failing, and printing JSON. */
#include "launch/command.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A failure to write is told once. */
static int output_failed;

static void check_output(void)
{
    errno = 0;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || output_failed)
        return;
    (void)fprintf(stderr, "akin: cannot write to stdout: %s\n",
                  errno != 0 ? strerror(errno) : "an earlier write failed");
    _exit(AKIN_EXIT_FAILED);
}

int akin_command_watch_output(void)
{
    return atexit(check_output) == 0 ? AKIN_EXIT_OK : AKIN_EXIT_FAILED;
}

int akin_command_fail(akin_status_t status, const akin_error_t *err)
{
    output_failed |= fflush(stdout) != 0;
    (void)fprintf(stderr, "akin: %s\n",
                  err->text[0] != '\0' ? err->text
                                       : akin_status_string(status));
    return status == AKIN_ERR_CONFIG || status == AKIN_ERR_INVALID
               ? AKIN_EXIT_USAGE
               : AKIN_EXIT_FAILED;
}

int akin_command_print_json(json_t *json)
{
    int failed = json == NULL;
    errno = 0;
    if (!failed)
        failed = json_dumpf(json, stdout, JSON_REAL_PRECISION(9)) != 0;
    if (!failed)
        errno = 0;
    json_decref(json);
    if (failed || printf("\n") < 0 || fflush(stdout) != 0) {
        output_failed = 1;
        (void)fprintf(stderr, "akin: cannot write the result: %s\n",
                      errno != 0 ? strerror(errno) : "out of memory");
        return AKIN_EXIT_FAILED;
    }
    return AKIN_EXIT_OK;
}
