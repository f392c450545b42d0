/* Config: values from every source in order, refusals, bad tables. */
#include "base/log.h"
#include "config_rows.h"

#include <string.h>

static void test_defaults(void)
{
    akin_config_t *config = config_make();
    CU_ASSERT_STRING_EQUAL(akin_config_string(config, "model.path"), "");
    CU_ASSERT_EQUAL(akin_config_bytes(config, "kv.slab"), 268435456);
    CU_ASSERT_EQUAL(akin_config_int(config, "kv.block_tokens"), 16);
    CU_ASSERT_EQUAL(akin_config_ns(config, "kv.lease.time"), 30000000000);
    CU_ASSERT_STRING_EQUAL(akin_config_string(config, "routing.decode"),
                           "union");
    CU_ASSERT_EQUAL(akin_config_float(config, "routing.tau"), 0.1);
    CU_ASSERT_EQUAL(akin_config_bool(config, "routing.sticky"), 1);
    CU_ASSERT_STRING_EQUAL(akin_config_origin(config, "seed"), "default");
    akin_config_destroy(config);
    akin_config_destroy(NULL);
}

static void test_sources_in_order(void)
{
    akin_config_t *config = config_make();
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(
        akin_config_read_text(config,
                              "# comment at the end of a line\n"
                              "seed = 5000000000L;\n"
                              "kv: { slab = \"1.5GiB\";\n"
                              "      lease = { time = \"250ms\" } }\n"
                              "routing: { tau = 1; sticky = FALSE; }",
                              "job", &err),
        AKIN_OK);
    CU_ASSERT_EQUAL(akin_config_int(config, "seed"), 5000000000);
    CU_ASSERT_EQUAL(akin_config_bytes(config, "kv.slab"), 1610612736);
    CU_ASSERT_EQUAL(akin_config_ns(config, "kv.lease.time"), 250000000);
    CU_ASSERT_EQUAL(akin_config_float(config, "routing.tau"), 1.0);
    CU_ASSERT_EQUAL(akin_config_bool(config, "routing.sticky"), 0);
    CU_ASSERT_STRING_EQUAL(akin_config_origin(config, "seed"), "job:2");
    CU_ASSERT_STRING_EQUAL(akin_config_origin(config, "kv.lease.time"),
                           "job:4");
    char v1[] = "AKIN_KV_LEASE_TIME=2s";
    char v2[] = "AKIN_SEED=7";
    char v3[] = "AKIN_SEED_OTHER=x";
    char v4[] = "AKIN_SEED=8";
    char v5[] = "AKIN_MODEL_PATH=a=b";
    char *const environment[] = {v1, v3, v2, v4, v5, NULL};
    CU_ASSERT_EQUAL(akin_config_read_environment(config, environment, &err),
                    AKIN_OK);
    CU_ASSERT_EQUAL(akin_config_ns(config, "kv.lease.time"), 2000000000);
    /* As getenv() has it, the first of two wins. */
    CU_ASSERT_EQUAL(akin_config_int(config, "seed"), 7);
    CU_ASSERT_STRING_EQUAL(akin_config_origin(config, "seed"), "AKIN_SEED");
    CU_ASSERT_STRING_EQUAL(akin_config_string(config, "model.path"), "a=b");
    config_set(config, "seed=-9");
    config_set(config, "model.path=");
    CU_ASSERT_EQUAL(akin_config_int(config, "seed"), -9);
    CU_ASSERT_STRING_EQUAL(akin_config_origin(config, "seed"), "--set");
    CU_ASSERT_STRING_EQUAL(akin_config_string(config, "model.path"), "");
    akin_config_destroy(config);
}

static void test_environment_is_all_or_nothing(void)
{
    akin_config_t *config = config_make();
    akin_error_t err = {{0}};
    char v1[] = "AKIN_KV_SLAB=1GiB";
    char v2[] = "AKIN_ROUTING_TAU=2";
    char *const environment[] = {v1, v2, NULL};
    CU_ASSERT_EQUAL(akin_config_read_environment(config, environment, &err),
                    AKIN_ERR_CONFIG);
    CU_ASSERT_STRING_EQUAL(err.text,
                           "AKIN_ROUTING_TAU: 2 is out of range: 0 to 1");
    CU_ASSERT_EQUAL(akin_config_bytes(config, "kv.slab"), 268435456);
    akin_config_destroy(config);
}

static void test_settings_refused(void)
{
    static const char *const cases[][2] = {
        {"kv.slab", "--set kv.slab: write key=value, as in kv.slab=4GiB"},
        {"=1", "--set =1: write key=value, as in kv.slab=4GiB"},
        {"kv.slb=1GiB",
         "--set: unknown key \"kv.slb\", did you mean \"kv.slab\"?"},
        {"block_tokens=16", "--set: unknown key \"block_tokens\", did you mean "
                            "\"kv.block_tokens\"?"},
        {"speed=1", "--set: unknown key \"speed\", did you mean \"seed\"?"},
        {"kv.capacity=1", "--set: unknown key \"kv.capacity\"; `akin info "
                          "--config` lists the keys"},
        {"kv=1",
         "--set: kv is a group; name one of its keys, as in kv.slab=..."},
        {"kv.block_tokens=7",
         "--set kv.block_tokens: 7 is out of range: 8 to 64 tokens"},
        {"kv.block_tokens=16.0",
         "--set kv.block_tokens: \"16.0\" is not a whole number"},
        {"kv.block_tokens= 16",
         "--set kv.block_tokens: \" 16\" is not a whole number"},
        {"seed=9223372036854775808",
         "--set seed: 9223372036854775808 does not fit 64 bits"},
        {"seed=", "--set seed: \"\" is not a whole number"},
        {"routing.tau=1.0001",
         "--set routing.tau: 1.0001 is out of range: 0 to 1"},
        {"routing.bias=nan",
         "--set routing.bias: \"nan\" is not a finite number"},
        {"routing.bias=1e999",
         "--set routing.bias: \"1e999\" is not a finite number"},
        {"routing.bias=0x10",
         "--set routing.bias: \"0x10\" is not a finite number"},
        {"routing.bias=.", "--set routing.bias: \".\" is not a finite number"},
        {"routing.sticky=1",
         "--set routing.sticky: \"1\" is neither true nor false"},
        {"routing.decode=unoin",
         "--set routing.decode: \"unoin\" is none of union, random, "
         "least-loaded; did you mean \"union\"?"},
        {"routing.decode=union|random",
         "--set routing.decode: \"union|random\" is none of union, random, "
         "least-loaded"},
        {"kv.slab=1KiB",
         "--set kv.slab: \"1KiB\" is out of range: at least 1MiB"},
        {"kv.lease.time=2h",
         "--set kv.lease.time: \"2h\" is out of range: 1ms to 1h"},
        {"kv.lease.time=30",
         "--set kv.lease.time: \"30\" has no unit; write it as \"250ms\", with "
         "one of the units ns, us, ms, s, min, h"},
    };
    akin_config_t *config = config_make();
    char *before = config_canonical(config);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL(akin_config_set(config, cases[i][0], &err),
                        AKIN_ERR_CONFIG);
        if (strcmp(err.text, cases[i][1]) != 0)
            (void)printf("%s\n", err.text);
        CU_ASSERT_STRING_EQUAL(err.text, cases[i][1]);
    }
    char *after = config_canonical(config);
    CU_ASSERT_STRING_EQUAL(before, after);
    free(before);
    free(after);
    akin_config_destroy(config);
}

static void test_required(void)
{
    akin_config_t *config = config_make();
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_config_check(config, &err), AKIN_ERR_CONFIG);
    CU_ASSERT_STRING_EQUAL(
        err.text, "model.path is not set: Folder of the model. Set it in the "
                  "job file, with AKIN_MODEL_PATH or with --set "
                  "model.path=...");
    config_set(config, "model.path=x");
    CU_ASSERT_EQUAL(akin_config_check(config, &err), AKIN_OK);
    akin_config_destroy(config);
}

static void test_bad_tables(void)
{
    static const akin_config_row_t base = {
        "a.b", AKIN_CONFIG_INT, "", "1", 0, 0, NULL, "Help."};
    akin_config_row_t bad[8][2];
    for (int i = 0; i < 8; i++) {
        bad[i][0] = base;
        bad[i][1] = base;
        bad[i][1].key = "a.c";
    }
    bad[0][1].key = "a.b";
    bad[1][1].key = "a";
    bad[2][1].key = "a..c";
    bad[3][1].key = "a.c.";
    bad[4][1].default_value = "x";
    bad[5][1].min = 5;
    bad[5][1].max = 9;
    bad[6][1].type = AKIN_CONFIG_CHOICE;
    bad[7][1].key = "1a";
    akin_error_t err = {{0}};
    /* The messages about these tables are right and would only disturb. */
    (void)freopen("/dev/null", "w", stderr);
    CU_ASSERT_EQUAL(akin_log_configure("error", &err), AKIN_OK);
    for (int i = 0; i < 8; i++) {
        akin_config_t *config = NULL;
        CU_ASSERT_EQUAL(akin_config_create(bad[i], 2, &config),
                        AKIN_ERR_INTERNAL);
        CU_ASSERT_PTR_NULL(config);
    }
    akin_config_t *empty = NULL;
    CU_ASSERT_EQUAL(akin_config_create(NULL, 0, &empty), AKIN_OK);
    char *text = config_canonical(empty);
    CU_ASSERT_STRING_EQUAL(text, "");
    free(text);
    akin_config_destroy(empty);
}

static const runner_test_t tests[] = {
    {"defaults", test_defaults},
    {"sources in order", test_sources_in_order},
    {"environment is all or nothing", test_environment_is_all_or_nothing},
    {"settings refused", test_settings_refused},
    {"required", test_required},
    {"bad tables", test_bad_tables},
};
RUNNER_MAIN("config", tests)
