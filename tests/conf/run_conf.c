/* Config cases: reads every NAME.conf of a folder and compares what comes out.
 *
 * NAME.env, if it is there, holds NAME=value lines of an environment. NAME.out
 * is the canonical form that a good case must have; NAME.err is the message
 * that a bad case must give. Messages name files as they are called here,
 * relative to the folder.
 */
#include "base/config.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)4 << 20)
#define VARIABLES_MAX 32

static const akin_config_row_t rows[] = {
    {"model.path", AKIN_CONFIG_STRING, "", NULL, 0, 0, NULL,
     "Folder of the model."},
    {"roles.prefill", AKIN_CONFIG_INT, "workers", "1", 1, 4096, NULL,
     "Prefill workers."},
    {"roles.decode", AKIN_CONFIG_INT, "workers", "1", 1, 4096, NULL,
     "Decode workers."},
    {"roles.ep", AKIN_CONFIG_INT, "ranks", "1", 1, 64, NULL,
     "Ranks of one worker."},
    {"kv.slab", AKIN_CONFIG_SIZE, "bytes", "256MiB", 1048576.0, 0x1p44, NULL,
     "Bytes of KV blocks on one rank."},
    {"kv.block_tokens", AKIN_CONFIG_INT, "tokens", "16", 8, 64, NULL,
     "Tokens of one KV block."},
    {"kv.lease", AKIN_CONFIG_TIME, "ns", "30s", 1e6, 3.6e12, NULL,
     "Time until pinned blocks are freed."},
    {"net.heartbeat.period", AKIN_CONFIG_TIME, "ns", "250ms", 1e6, 6e10, NULL,
     "Time between two heartbeats."},
    {"net.heartbeat.deadline", AKIN_CONFIG_TIME, "ns", "2s", 1e6, INFINITY,
     NULL, "Silence after which a peer is lost."},
    {"routing.prefill", AKIN_CONFIG_CHOICE, "", "prefix-hash", 0, 0,
     "prefix-hash|random|round-robin", "How a prefill worker is picked."},
    {"routing.decode", AKIN_CONFIG_CHOICE, "", "union", 0, 0,
     "union|random|least-loaded", "How a decode worker is picked."},
    {"routing.tau", AKIN_CONFIG_FLOAT, "", "0.1", 0, 1, NULL,
     "Weight of the load."},
    {"routing.bias", AKIN_CONFIG_FLOAT, "", "0", 0, 0, NULL, "Any number."},
    {"routing.fit", AKIN_CONFIG_STRING, "", "", 0, 0, NULL, "Fit file."},
    {"routing.sticky", AKIN_CONFIG_BOOL, "", "true", 0, 0, NULL,
     "Keep a conversation on its worker."},
    {"seed", AKIN_CONFIG_INT, "", "0", 0, 0, NULL, "Seed of the run."},
};

/* A file's text; NULL if there is none. */
static char *file_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    char *text = malloc(FILE_BYTES_MAX + 1);
    size_t bytes = 0;
    if (text != NULL) {
        bytes = fread(text, 1, FILE_BYTES_MAX, file);
        text[bytes] = '\0';
    }
    (void)fclose(file);
    return text;
}

static char *case_text(const char *name, const char *ending)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s%s", name, ending);
    return file_text(path);
}

static akin_status_t read_environment(akin_config_t *config, char *text,
                                      akin_error_t *err)
{
    char *variables[VARIABLES_MAX + 1];
    size_t n = 0;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest);
         line != NULL && n < VARIABLES_MAX; line = strtok_r(NULL, "\n", &rest))
        variables[n++] = line;
    variables[n] = NULL;
    return akin_config_read_environment(config, variables, err);
}

/* What a case gives: its canonical form, or its message and a newline. */
static char *outcome(const char *name, int *is_error_p)
{
    akin_config_t *config = NULL;
    char *result = NULL;
    char *environment = case_text(name, ".env");
    char path[512];
    akin_error_t err = {{0}};
    (void)snprintf(path, sizeof(path), "%s.conf", name);
    akin_status_t status =
        akin_config_create(rows, sizeof(rows) / sizeof(rows[0]), &config);
    if (status == AKIN_OK)
        status = akin_config_read_file(config, path, &err);
    if (status == AKIN_OK && environment != NULL)
        status = read_environment(config, environment, &err);
    if (status == AKIN_OK)
        status = akin_config_check(config, &err);
    if (status == AKIN_OK)
        status = akin_config_canonical(config, &result);
    *is_error_p = status != AKIN_OK;
    if (status != AKIN_OK) {
        result = malloc(sizeof(err.text) + 2);
        if (result != NULL)
            (void)snprintf(result, sizeof(err.text) + 2, "%s\n", err.text);
    }
    akin_config_destroy(config);
    free(environment);
    return result;
}

static int case_run(const char *name, int *is_error_p)
{
    char *out = case_text(name, ".out");
    char *err = case_text(name, ".err");
    char *got = outcome(name, is_error_p);
    const char *want = *is_error_p ? err : out;
    int failed = 1;
    if ((out == NULL) == (err == NULL))
        (void)printf("%s: needs either %s.out or %s.err\n", name, name, name);
    else if (got == NULL)
        (void)printf("%s: out of memory\n", name);
    else if (want == NULL || strcmp(got, want) != 0)
        (void)printf("%s: wanted\n%s%s: got %s\n%s", name,
                     out != NULL ? out : err, name,
                     *is_error_p ? "an error" : "a config", got);
    else
        failed = 0;
    free(out);
    free(err);
    free(got);
    return failed;
}

static int is_case(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot != NULL && strcmp(dot, ".conf") == 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: run_conf FOLDER\n");
        return 2;
    }
    struct dirent **entries = NULL;
    int n = -1;
    if (chdir(argv[1]) == 0)
        n = scandir(".", &entries, is_case, alphasort);
    if (n < 0) {
        (void)fprintf(stderr, "run_conf: %s: %s\n", argv[1], strerror(errno));
        return 2;
    }
    int failed = 0;
    int refused = 0;
    for (int i = 0; i < n; i++) {
        char *name = entries[i]->d_name;
        *strrchr(name, '.') = '\0';
        int is_error = 0;
        failed += case_run(name, &is_error);
        refused += is_error;
        free(entries[i]);
    }
    free(entries);
    (void)printf("%d cases: %d read, %d refused, %d wrong\n", n, n - refused,
                 refused, failed);
    return failed == 0 && n > 0 ? 0 : 1;
}
