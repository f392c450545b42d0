/* What all subcommands share: failing, and printing JSON. */
#include "launch/command.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

int akin_command_fail(akin_status_t status, const akin_error_t *err)
{
    (void)fflush(stdout);
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
    if (!failed)
        failed = json_dumpf(json, stdout, JSON_REAL_PRECISION(9)) != 0;
    json_decref(json);
    errno = 0;
    if (failed || printf("\n") < 0 || fflush(stdout) != 0) {
        (void)fprintf(stderr, "akin: cannot write the result: %s\n",
                      errno != 0 ? strerror(errno) : "out of memory");
        return AKIN_EXIT_FAILED;
    }
    return AKIN_EXIT_OK;
}
