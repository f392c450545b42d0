/* report: one page that shows runs, replays and simulations. */
#include "launch/command.h"
#include "launch/report_page.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct options {
    char **paths; /* [n_paths], in argv */
    size_t n_paths;
    const char *output;
} options_t;

static const struct argp_option arguments[] = {
    {"output", 'o', "REPORT.html", 0, "Page to write; - is standard output", 0},
    {0}};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    switch (key) {
    case 'o':
        o->output = arg;
        break;
    case ARGP_KEY_ARG:
        o->paths[o->n_paths++] = arg;
        break;
    case ARGP_KEY_END:
        if (o->n_paths == 0)
            argp_error(state, "no input: `akin run --summary FILE`, `akin "
                              "replay --json` and `akin sim --json` write "
                              "some");
        else if (o->output == NULL || o->output[0] == '\0')
            argp_error(state, "no output: -o REPORT.html names the page to "
                              "write");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static akin_status_t io_error(const char *path, const char *what,
                              akin_error_t *err)
{
    return akin_error_set(err, akin_status_from_errno(errno),
                          "%s: cannot %s the page: %s", path, what,
                          strerror(errno));
}

/* A page must not take the place of what it is made from. */
static akin_status_t check_output(const options_t *o, akin_error_t *err)
{
    struct stat output;
    struct stat input;
    if (stat(o->output, &output) != 0)
        return AKIN_OK;
    if (S_ISDIR(output.st_mode)) {
        errno = EISDIR;
        return io_error(o->output, "write", err);
    }
    for (size_t i = 0; i < o->n_paths; i++)
        if (stat(o->paths[i], &input) == 0 && input.st_dev == output.st_dev &&
            input.st_ino == output.st_ino)
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "-o %s would overwrite the input %s",
                                  o->output, o->paths[i]);
    return AKIN_OK;
}

static akin_status_t write_page(FILE *file, const char *path,
                                const akin_report_input_t *input,
                                akin_error_t *err)
{
    errno = 0;
    akin_status_t status = akin_report_page(file, input);
    if (status != AKIN_OK)
        return akin_error_set(err, status, "%s: out of memory", path);
    if (fflush(file) != 0 || ferror(file))
        return io_error(path, "write", err);
    return AKIN_OK;
}

/* Pipes and devices cannot be replaced, and must not be. */
static int is_special(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

static akin_status_t write_file(const akin_report_input_t *input,
                                const char *path, akin_error_t *err)
{
    char temporary[PATH_MAX];
    const int is_direct = is_special(path);
    const int n = is_direct ? snprintf(temporary, sizeof(temporary), "%s", path)
                            : snprintf(temporary, sizeof(temporary),
                                       "%s.tmp.%ld", path, (long)getpid());
    if (n < 0 || (size_t)n >= sizeof(temporary))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "the path of the page is too long");
    FILE *file = fopen(temporary, "we");
    if (file == NULL)
        return io_error(path, "create", err);
    akin_status_t status = write_page(file, path, input, err);
    if (status == AKIN_OK && !is_direct && fsync(fileno(file)) != 0)
        status = io_error(path, "write", err);
    if (fclose(file) != 0 && status == AKIN_OK)
        status = io_error(path, "write", err);
    if (status == AKIN_OK && !is_direct && rename(temporary, path) != 0)
        status = io_error(path, "rename", err);
    if (status != AKIN_OK && !is_direct)
        (void)unlink(temporary);
    return status;
}

int akin_command_report(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        "FILE.json... -o REPORT.html",
        "Show summaries of runs, replays and simulations as one page of charts "
        "and a table. The page needs no network and no script.",
        NULL,
        NULL,
        NULL};
    options_t o = {0};
    akin_error_t err = {{0}};
    akin_report_input_t input = {0};
    o.paths = calloc((size_t)argc, sizeof(*o.paths));
    if (o.paths == NULL)
        return akin_command_fail(AKIN_ERR_NOMEM, &err);
    int code = AKIN_EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) == 0) {
        const int is_stdout = strcmp(o.output, "-") == 0;
        akin_status_t status = is_stdout ? AKIN_OK : check_output(&o, &err);
        if (status == AKIN_OK)
            status = akin_report_input_read(o.paths, o.n_paths, &input, &err);
        if (status == AKIN_OK)
            status = is_stdout
                         ? write_page(stdout, "standard output", &input, &err)
                         : write_file(&input, o.output, &err);
        code =
            status == AKIN_OK ? AKIN_EXIT_OK : akin_command_fail(status, &err);
    }
    akin_report_input_cleanup(&input);
    free(o.paths);
    return code;
}
