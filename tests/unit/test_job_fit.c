/* Job fit: which policy and which tau a job comes to, and what is said of a fit
 * that is not for it. */
#include "planted_fit.h"
#include "runner.h"
#include "scratch_file.h"

#include "roles/job_fit.h"
#include "routing/policy.h"

#include <math.h>
#include <string.h>

#define MODEL AKIN_SOURCE_DIR "/examples/tiny-moe"

/* Of the tiny model. */
static const planted_shape_t shape = {6, 32, 4, 2};

static akin_status_t read_job(akin_config_t **config_p, akin_job_t *job,
                              akin_error_t *err, const char *const *settings)
{
    CU_ASSERT_EQUAL_FATAL(
        akin_config_create(akin_job_rows, akin_job_n_rows, config_p), AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akin_config_set(*config_p, "model.path=" MODEL, err),
                          AKIN_OK);
    for (size_t i = 0; settings[i] != NULL; i++)
        CU_ASSERT_EQUAL_FATAL(akin_config_set(*config_p, settings[i], err),
                              AKIN_OK);
    return akin_job_read(*config_p, job, err);
}

static void test_auto(void)
{
    static const struct {
        const char *settings[3];
        const char *setting;
        const char *policy;
    } rows[] = {
        {{NULL}, "auto", "union"},
        {{"routing.fit=f.json"}, "auto", "union-pull"},
        {{"routing.decode=auto", "routing.fit=f.json"}, "auto", "union-pull"},
        {{"routing.decode=union", "routing.fit=f.json"}, "union", "union"},
        {{"routing.decode=jsq"}, "jsq", "jsq"},
        {{"routing.decode=eldr", "routing.fit=f.json"}, "eldr", "eldr"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        akin_config_t *config;
        akin_job_t job;
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL(read_job(&config, &job, &err, rows[i].settings),
                        AKIN_OK);
        CU_ASSERT_STRING_EQUAL(job.decode_setting, rows[i].setting);
        CU_ASSERT_STRING_EQUAL(job.decode_policy, rows[i].policy);
        akin_config_destroy(config);
    }
}

/* Every policy may be asked for, and those that need a fit say so. */
static void test_all_policies(void)
{
    for (size_t i = 0; akin_policy_names[i] != NULL; i++) {
        char setting[64];
        (void)snprintf(setting, sizeof(setting), "routing.decode=%s",
                       akin_policy_names[i]);
        const char *const settings[] = {setting, NULL};
        akin_config_t *config;
        akin_job_t job;
        akin_error_t err = {{0}};
        akin_status_t status = read_job(&config, &job, &err, settings);
        CU_ASSERT_EQUAL(status, akin_policy_needs_fit(akin_policy_names[i])
                                    ? AKIN_ERR_CONFIG
                                    : AKIN_OK);
        if (status != AKIN_OK) {
            CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--set: routing.decode"));
            CU_ASSERT_PTR_NOT_NULL(strstr(err.text, akin_policy_names[i]));
            CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "routing.fit"));
        }
        akin_config_destroy(config);
    }
}

static void test_tau(void)
{
    static const char *const unset[] = {NULL};
    static const char *const same[] = {"routing.tau=0.1", NULL};
    akin_fit_t with = {.n_clusters = 2, .tau = 0.03};
    akin_fit_t without = {.n_clusters = 2, .tau = NAN};
    akin_fit_t none = {0};
    akin_config_t *config;
    akin_job_t job;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(read_job(&config, &job, &err, unset), AKIN_OK);
    CU_ASSERT_EQUAL(akin_job_tau(&job, &with), 0.03);
    CU_ASSERT_EQUAL(akin_job_tau(&job, &without), 0.1);
    CU_ASSERT_EQUAL(akin_job_tau(&job, &none), 0.1);
    CU_ASSERT_EQUAL(akin_job_tau(&job, NULL), 0.1);
    akin_config_destroy(config);
    /* Set is set, even to the default. */
    CU_ASSERT_EQUAL(read_job(&config, &job, &err, same), AKIN_OK);
    CU_ASSERT_EQUAL(akin_job_tau(&job, &with), 0.1);
    akin_config_destroy(config);
}

/* A job with n decode workers and the fit of that path. */
static akin_status_t check(uint32_t n_decode, const char *path,
                           akin_error_t *err)
{
    char fit[1200], decode[40];
    (void)snprintf(fit, sizeof(fit), "routing.fit=%s", path);
    (void)snprintf(decode, sizeof(decode), "roles.decode=%u", n_decode);
    const char *const settings[] = {fit, decode, NULL};
    akin_config_t *config;
    akin_job_t job;
    CU_ASSERT_EQUAL_FATAL(read_job(&config, &job, err, settings), AKIN_OK);
    akin_status_t status = akin_job_fit_check(&job, err);
    akin_config_destroy(config);
    return status;
}

static void test_check(void)
{
    const char *path = scratch_path("fit.json");
    akin_error_t err = {{0}};
    akin_fit_t fit = planted_fit(&shape, 2);
    CU_ASSERT_EQUAL_FATAL(akin_fit_write(&fit, path, &err), AKIN_OK);
    akin_fit_cleanup(&fit);
    CU_ASSERT_EQUAL(check(2, path, &err), AKIN_OK);
    CU_ASSERT_EQUAL(check(2, "", &err), AKIN_OK);

    CU_ASSERT_EQUAL(check(3, path, &err), AKIN_ERR_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--set: routing.fit: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "k (decode workers) is 2"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "this job has 3"));

    const planted_shape_t other = {5, 32, 4, 2};
    fit = planted_fit(&other, 2);
    CU_ASSERT_EQUAL_FATAL(akin_fit_write(&fit, path, &err), AKIN_OK);
    akin_fit_cleanup(&fit);
    CU_ASSERT_EQUAL(check(2, path, &err), AKIN_ERR_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "L (layers) is 5"));

    scratch_write(path, "{\"L\":", 5);
    CU_ASSERT_EQUAL(check(2, path, &err), AKIN_ERR_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "routing.fit"));
    scratch_remove(path);
    CU_ASSERT_EQUAL(check(2, "/nonexistent/fit.json", &err), AKIN_ERR_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/nonexistent/fit.json"));
}

static const runner_test_t tests[] = {
    {"auto", test_auto},
    {"all policies", test_all_policies},
    {"tau", test_tau},
    {"check", test_check},
};

RUNNER_MAIN("job fit", tests)
