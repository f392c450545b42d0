/* Config source: the bounds of a job file and where includes are allowed. */
#include "config_rows.h"

#include <string.h>

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
    text = repeat("a=", "(", 500000, "");
    refuse(config, text, "job:1: groups are nested more than 16 deep");
    free(text);
    text = repeat("a=[", "1,", 9000, "1];");
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

static const runner_test_t tests[] = {
    {"bounds", test_bounds},
    {"text has no includes", test_text_has_no_includes},
};
RUNNER_MAIN("config_source", tests)
