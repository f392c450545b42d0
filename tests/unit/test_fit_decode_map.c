/* Fit decode map: what a fit file may say of it, and what is refused. */
#include "runner.h"

#include "routing/fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAP                                                                    \
    "{\"carry\": 0.5, \"prompt_tokens\": 48, \"prompt_mean\": [0.25, 0.75], "  \
    "\"decode_mean\": [0.5, 0.25], \"axes\": [[0.6, -0.8]], "                  \
    "\"responses\": [[1, -0.5]]}"

static akin_status_t parse(const char *map, akin_fit_t *fit, akin_error_t *err)
{
    char *text = NULL;
    CU_ASSERT_FATAL(asprintf(&text,
                             "{\"L\": 1, \"e\": 2, \"centroids\": "
                             "[[0.6, 0.8]], \"decode_map\": %s}",
                             map) >= 0);
    akin_status_t status =
        akin_fit_parse(text, strlen(text), "a.json", fit, err);
    free(text);
    return status;
}

/* Prompt rates (0.5, 0.5) of 48 tokens: x = (0.25, -0.25), a score of 0.35. */
static void test_read(void)
{
    akin_fit_t fit;
    float rates[2];
    const uint16_t counts[2] = {24, 24};
    CU_ASSERT_EQUAL_FATAL(parse(MAP, &fit, NULL), AKIN_OK);
    CU_ASSERT_EQUAL(fit.decode_map.n_axes, 1);
    akin_decode_map_apply(&fit.decode_map, counts, 48, rates);
    CU_ASSERT_DOUBLE_EQUAL(rates[0], 0.5 + 0.5 * 0.25 + 0.35, 1e-6);
    /* 0.25 - 0.125 - 0.175 is no rate. */
    CU_ASSERT_EQUAL(rates[1], 1e-4f);
    akin_fit_cleanup(&fit);

    CU_ASSERT_EQUAL_FATAL(parse("{\"carry\": 1, \"prompt_tokens\": 1, "
                                "\"prompt_mean\": [0, 1], \"decode_mean\": "
                                "[0.25, 0.75], \"axes\": [], "
                                "\"responses\": null}",
                                &fit, NULL),
                          AKIN_OK);
    CU_ASSERT_EQUAL(fit.decode_map.n_axes, 0);
    CU_ASSERT_PTR_NULL(fit.decode_map.axes);
    CU_ASSERT_EQUAL(fit.decode_map.decode_mean[1], 0.75f);
    akin_fit_cleanup(&fit);
    CU_ASSERT_EQUAL_FATAL(parse("null", &fit, NULL), AKIN_OK);
    CU_ASSERT_PTR_NULL(fit.decode_map.prompt_mean);
    akin_fit_cleanup(&fit);
}

static char *replace(const char *from, const char *to)
{
    const char *at = strstr(MAP, from);
    char *text = NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    CU_ASSERT_FATAL(asprintf(&text, "%.*s%s%s", (int)(at - MAP), MAP, to,
                             at + strlen(from)) >= 0);
    return text;
}

static void refuse(const char *map, const char *message)
{
    akin_fit_t fit;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(parse(map, &fit, &err), AKIN_ERR_FORMAT);
    CU_ASSERT_PTR_NULL(fit.centroids);
    CU_ASSERT_PTR_NULL(fit.decode_map.prompt_mean);
    if (strstr(err.text, "a.json: ") != err.text ||
        strstr(err.text, message) == NULL) {
        printf("%s\n", err.text);
        CU_FAIL("another message was expected");
    }
}

static void test_refuses(void)
{
    static const char *const changes[][3] = {
        {"\"carry\": 0.5, ", "", "decode_map: carry is missing"},
        {"0.5,", "1.5,", "decode_map: carry is 1.5, must be a number from 0"},
        {"48", "0", "decode_map: prompt_tokens is 0"},
        {"48", "\"48\"", "decode_map: prompt_tokens is \"48\""},
        {"\"prompt_mean\": [0.25, 0.75], ", "", "prompt_mean is missing"},
        {"[0.25, 0.75]", "[0.25]", "prompt_mean is a list of 1, must be a"},
        {"[0.25, 0.75]", "[0.25, 1.75]", "prompt_mean[1] is 1.75"},
        {"[0.5, 0.25]", "[-0.5, 0.25]", "decode_mean[0] is -0.5"},
        {"[0.5, 0.25]", "[0.5, 0.25, 0]", "decode_mean is a list of 3"},
        {"[[0.6, -0.8]]", "[[0.6]]", "axes[0] is a list of 1"},
        {"[[0.6, -0.8]]", "[0.6]", "axes[0] is 0.6"},
        {"[[0.6, -0.8]]", "7", "axes is 7, must be a list of at most 64"},
        {"[[0.6, -0.8]]", "[[6, -8]]", "axes[0] has the length 10"},
        {"[[0.6, -0.8]]", "[]", "0 axes, but 1 responses"},
        {"[[1, -0.5]]", "[[1, 1e39]]", "responses[0][1] is"},
        {"[[1, -0.5]]", "[[1, null]]", "responses[0][1] is null"},
        {"[[1, -0.5]]", "[{}]", "responses[0] is an object"},
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        char *map = replace(changes[i][0], changes[i][1]);
        refuse(map, changes[i][2]);
        free(map);
    }
    refuse("[]", "decode_map is a list of 0, must be an object");
    refuse("3", "decode_map is 3, must be an object");
    char many[65 * 3 + 16] = "{\"axes\": [";
    for (int i = 0; i < 65; i++)
        strcat(many, i == 0 ? "[]" : ",[]");
    strcat(many, "]}");
    refuse(many, "axes is a list of 65, must be a list of at most 64");
}

static const runner_test_t tests[] = {
    {"read", test_read},
    {"refuses", test_refuses},
};

RUNNER_MAIN("fit_decode_map", tests)
