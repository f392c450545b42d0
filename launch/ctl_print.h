/* Ctl print: a job's status for people. */
#ifndef AKIN_LAUNCH_CTL_PRINT_H
#define AKIN_LAUNCH_CTL_PRINT_H

struct json_t;

/** Print the answer to "status" on stdout. Gives the exit code. */
int akin_ctl_print_status(const struct json_t *status);

#endif
