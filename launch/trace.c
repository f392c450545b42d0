/* trace: finds the verb. */
#include "launch/trace_command.h"

#include "base/nearest.h"
#include "launch/command.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const akin_command_t verbs[] = {
    {"import", "turn published route sets or other traces into one trace",
     akin_trace_import_command},
    {"make", "make up requests whose routes are like a real model's",
     akin_trace_make_command},
    {"prompts", "write prompts that a modelled job answers by a trace",
     akin_trace_prompts_command},
    {"info", "show what a trace holds and how local its routes are",
     akin_trace_info_command},
};

#define N_VERBS (sizeof(verbs) / sizeof(verbs[0]))

uint64_t akin_trace_parse_number(const char *option, const char *text,
                                 uint64_t min, uint64_t max,
                                 const struct argp_state *state)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
        value < min || value > max)
        argp_error(state,
                   "%s %s: a whole number from %" PRIu64 " to %" PRIu64
                   " is needed",
                   option, text, min, max);
    return value;
}

void akin_trace_refuse_name(const char *option, const char *text,
                            const char *const *names, size_t n_names,
                            const struct argp_state *state)
{
    const char *nearest = akin_nearest_name(text, names, n_names);
    char list[256] = "";
    for (size_t i = 0; i < n_names; i++) {
        const size_t used = strlen(list);
        (void)snprintf(list + used, sizeof(list) - used, "%s%s",
                       i > 0 ? ", " : "", names[i]);
    }
    if (nearest != NULL)
        argp_error(state, "%s %s: did you mean \"%s\"? Known are %s", option,
                   text, nearest, list);
    else
        argp_error(state, "%s %s: known are %s", option, text, list);
}

int akin_command_trace(int argc, char **argv)
{
    const char *names[N_VERBS];
    for (size_t i = 0; i < N_VERBS; i++)
        names[i] = verbs[i].name;
    for (size_t i = 0; argc >= 2 && i < N_VERBS; i++) {
        if (strcmp(argv[1], names[i]) != 0)
            continue;
        char name[64];
        (void)snprintf(name, sizeof(name), "akin trace %s", names[i]);
        argv[1] = name;
        return verbs[i].run(argc - 1, argv + 1);
    }
    int help = argc >= 2 && strcmp(argv[1], "--help") == 0;
    FILE *stream = help ? stdout : stderr;
    if (argc >= 2 && !help) {
        const char *nearest = akin_nearest_name(argv[1], names, N_VERBS);
        (void)fprintf(stream, "akin: unknown verb \"%s\"", argv[1]);
        if (nearest != NULL)
            (void)fprintf(stream, ", did you mean \"%s\"?", nearest);
        (void)fprintf(stream, "\n");
    }
    (void)fprintf(stream, "Usage: akin trace VERB [OPTION...]\n\n");
    for (size_t i = 0; i < N_VERBS; i++)
        (void)fprintf(stream, "  %-8s %s\n", verbs[i].name, verbs[i].summary);
    return help ? AKIN_EXIT_OK : AKIN_EXIT_USAGE;
}
