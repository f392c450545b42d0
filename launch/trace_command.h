/* trace: what its verbs share. */
#ifndef AKIN_LAUNCH_TRACE_COMMAND_H
#define AKIN_LAUNCH_TRACE_COMMAND_H

#include <stddef.h>
#include <stdint.h>

struct argp_state;

/* The verbs; argv[0] is the full name, "akin trace info". */
int akin_trace_import_command(int argc, char **argv);
int akin_trace_make_command(int argc, char **argv);
int akin_trace_prompts_command(int argc, char **argv);
int akin_trace_info_command(int argc, char **argv);

/** A whole number from `min` to `max`, or the end of the process with a
 * message that names the option. */
uint64_t akin_trace_parse_number(const char *option, const char *text,
                                 uint64_t min, uint64_t max,
                                 const struct argp_state *state);

/** The end of the process with a message that names the option, the nearest of
 * the names, and all [n_names] of them. */
void akin_trace_refuse_name(const char *option, const char *text,
                            const char *const *names, size_t n_names,
                            const struct argp_state *state);

#endif
