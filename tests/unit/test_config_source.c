/* Config source: the bounds of a job file and where includes are allowed. */
#include "config_rows.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Read must fail with this status and message, and change nothing. */
static void refuse(akin_config_t *config, const char *text, const char *message)
{
    char *before = config_canonical(config);
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_config_read_text(config, text, "job", &err),
                    AKIN_ERR_CONFIG);
    if (strcmp(err.text, message) != 0)
        (void)printf("%s\n", err.text);
    CU_ASSERT_STRING_EQUAL(err.text, message);
    char *after = config_canonical(config);
    CU_ASSERT_STRING_EQUAL(before, after);
    free(before);
    free(after);
}

/* `n` times a text, between two others. */
static char *repeat(const char *head, const char *text, size_t n,
                    const char *tail)
{
    size_t length = strlen(text);
    char *all = malloc(strlen(head) + n * length + strlen(tail) + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(all);
    char *p = stpcpy(all, head);
    for (size_t i = 0; i < n; i++)
        p = stpcpy(p, text);
    (void)stpcpy(p, tail);
    return all;
}

static void test_bounds(void)
{
    akin_config_t *config = config_make();
    akin_error_t err = {{0}};
    /* 17 levels, and as many as a stack could not bear. */
    char *text = repeat("", "a:{", 17, "");
    refuse(config, text, "job:1: groups are nested more than 16 deep");
    free(text);
    text = repeat("", "a:{", 300000, "");
    refuse(config, text, "job:1: groups are nested more than 16 deep");
    free(text);
    text = repeat("", "a=1;", 9000, "");
    refuse(config, text, "job:1: more than 8192 settings");
    free(text);
    text = repeat("", "# filling\n", 104858, "");
    refuse(config, text, "job:104858: more than 1048576 bytes of settings");
    free(text);
    text = repeat("", "# filling\n", 104857, "seed=5;");
    CU_ASSERT_EQUAL(akin_config_read_text(config, text, "job", &err),
                    AKIN_ERR_CONFIG);
    free(text);
    text = repeat("", "# filling\n", 104856, "seed=5;");
    CU_ASSERT_EQUAL(akin_config_read_text(config, text, "job", &err), AKIN_OK);
    CU_ASSERT_STRING_EQUAL(akin_config_origin(config, "seed"), "job:104857");
    free(text);
    /* A value of any length is text; a name of any length is unknown. */
    text = repeat("model: { path = \"", "x", 100000, "\"; };");
    CU_ASSERT_EQUAL(akin_config_read_text(config, text, "job", &err), AKIN_OK);
    CU_ASSERT_EQUAL(strlen(akin_config_string(config, "model.path")), 100000);
    free(text);
    text = repeat("", "x", 100000, " = 1;");
    CU_ASSERT_EQUAL(akin_config_read_text(config, text, "job", &err),
                    AKIN_ERR_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "job:1: unknown key \"xxx"));
    free(text);
    akin_config_destroy(config);
}

static void test_text_has_no_includes(void)
{
    akin_config_t *config = config_make();
    refuse(config, "seed = 1;\n@include \"/etc/passwd\"\n",
           "job:2: @include works only in a file");
    akin_config_destroy(config);
}

static void refuse_file(const char *path, akin_status_t status,
                        const char *reason)
{
    akin_config_t *config = config_make();
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_config_read_file(config, path, &err), status);
    CU_ASSERT_EQUAL(strncmp(err.text, path, strlen(path)), 0);
    CU_ASSERT_STRING_EQUAL(err.text + strlen(path), reason);
    akin_config_destroy(config);
}

static void test_files_that_cannot_be_read(void)
{
    char folder[] = "/tmp/akin_config_XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/job.conf", folder);
    refuse_file(path, AKIN_ERR_NOT_FOUND, ": No such file or directory");
    refuse_file(folder, AKIN_ERR_IO, ": not a regular file");
    /* Nobody writes to it: reading it would wait for ever. */
    CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
    refuse_file(path, AKIN_ERR_IO, ": not a regular file");
    CU_ASSERT_EQUAL(unlink(path), 0);
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fclose(file), 0);
    CU_ASSERT_EQUAL(truncate(path, 1 << 21), 0);
    refuse_file(path, AKIN_ERR_CONFIG, ": larger than 1048576 bytes");
    (void)unlink(path);
    (void)rmdir(folder);
    refuse_file("/dev/zero", AKIN_ERR_IO, ": not a regular file");
}

static void test_include_bomb(void)
{
    /* Each file names the next many times: without bounds 512^7 lines. */
    char folder[] = "/tmp/akin_config_XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    char path[64];
    for (int i = 0; i < 8; i++) {
        (void)snprintf(path, sizeof(path), "%s/%d", folder, i);
        FILE *file = fopen(path, "w");
        CU_ASSERT_PTR_NOT_NULL_FATAL(file);
        for (int line = 0; i < 7 && line < 512; line++)
            (void)fprintf(file, "@include \"%d\"\n", i + 1);
        CU_ASSERT_EQUAL(fclose(file), 0);
    }
    akin_config_t *config = config_make();
    akin_error_t err = {{0}};
    (void)snprintf(path, sizeof(path), "%s/0", folder);
    CU_ASSERT_EQUAL(akin_config_read_file(config, path, &err), AKIN_ERR_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(err.text, ": more than 8192 settings and includes"));
    akin_config_destroy(config);
    for (int i = 0; i < 8; i++) {
        (void)snprintf(path, sizeof(path), "%s/%d", folder, i);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

static const runner_test_t tests[] = {
    {"bounds", test_bounds},
    {"text has no includes", test_text_has_no_includes},
    {"files that cannot be read", test_files_that_cannot_be_read},
    {"include bomb", test_include_bomb},
};
RUNNER_MAIN("config_source", tests)
