/* Config in canonical form: exact text, and that it reads back to the same. */
#include "base/rng.h"
#include "config_rows.h"

#include <locale.h>
#include <string.h>

static void test_canonical_text(void)
{
    akin_config_t *config = config_make();
    config_set(config, "model.path=a \"b\"\\c\n\t\x01\x7f \xc3\xa9");
    config_set(config, "seed=-2147483649");
    config_set(config, "routing.bias=-0.0");
    config_set(config, "routing.tau=1e-5");
    config_set(config, "kv.slab=1500MB");
    config_set(config, "kv.lease.time=90s");
    char *text = config_canonical(config);
    CU_ASSERT_STRING_EQUAL(
        text, "model: {\n"
              "    path = \"a \\\"b\\\"\\\\c\\n\\t\\x01\\x7f \xc3\xa9\";\n"
              "    layers = -1;\n"
              "};\n"
              "kv: {\n"
              "    slab = \"1500MB\";\n"
              "    block_tokens = 16;\n"
              "    lease: {\n"
              "        time = \"90s\";\n"
              "    };\n"
              "};\n"
              "routing: {\n"
              "    decode = \"union\";\n"
              "    tau = 1.0e-05;\n"
              "    bias = 0.0;\n"
              "    sticky = true;\n"
              "};\n"
              "seed = -2147483649L;\n");
    free(text);
    akin_config_destroy(config);
}

/* Any 64 bits, with a share of small numbers and of the ends. */
static uint64_t draw(uint64_t run, uint64_t what)
{
    uint64_t bits = akin_rng_u64(11, run, 2 * what);
    uint64_t shift = akin_rng_below(11, run, 2 * what + 1, 65);
    return shift == 64 ? UINT64_MAX : bits >> shift;
}

static void set_random(akin_config_t *config, uint64_t run)
{
    char text[256];
    (void)snprintf(text, sizeof(text), "seed=%s%llu", run % 2 ? "-" : "",
                   (unsigned long long)(draw(run, 0) >> 1));
    config_set(config, text);
    (void)snprintf(text, sizeof(text), "kv.slab=%lluB",
                   (unsigned long long)((draw(run, 1) >> 1) | 1048576));
    config_set(config, text);
    (void)snprintf(
        text, sizeof(text), "kv.lease.time=%lluns",
        (unsigned long long)(1000000 + draw(run, 2) % 3599000000001));
    config_set(config, text);
    uint64_t bits = draw(run, 3);
    double bias;
    memcpy(&bias, &bits, sizeof(bias));
    if (!isfinite(bias))
        bias = 0x1p-1074;
    (void)snprintf(text, sizeof(text), "routing.bias=%.17g", bias);
    config_set(config, text);
    CU_ASSERT_EQUAL(akin_config_float(config, "routing.bias"), bias);
    (void)snprintf(text, sizeof(text), "routing.tau=%.17g",
                   akin_rng_uniform(11, run, 100));
    config_set(config, text);
    size_t used = (size_t)snprintf(text, sizeof(text), "model.path=");
    size_t length = akin_rng_below(11, run, 101, 40);
    for (size_t i = 0; i < length; i++)
        text[used++] = (char)(1 + akin_rng_below(12, run, i, 255));
    text[used] = '\0';
    config_set(config, text);
    config_set(config,
               run % 3 ? "routing.sticky=true" : "routing.sticky=false");
    config_set(config, run % 5 ? "routing.decode=random"
                               : "routing.decode=least-loaded");
}

static void test_canonical_reads_back(void)
{
    for (uint64_t run = 0; run < 500; run++) {
        akin_config_t *one = config_make();
        akin_config_t *two = config_make();
        set_random(one, run);
        char *text = config_canonical(one);
        akin_error_t err = {{0}};
        akin_status_t status = akin_config_read_text(two, text, "form", &err);
        if (status != AKIN_OK)
            (void)printf("%s\n%s\n", err.text, text);
        CU_ASSERT_EQUAL(status, AKIN_OK);
        CU_ASSERT_EQUAL(akin_config_int(one, "seed"),
                        akin_config_int(two, "seed"));
        CU_ASSERT_EQUAL(akin_config_bytes(one, "kv.slab"),
                        akin_config_bytes(two, "kv.slab"));
        CU_ASSERT_EQUAL(akin_config_ns(one, "kv.lease.time"),
                        akin_config_ns(two, "kv.lease.time"));
        CU_ASSERT_EQUAL(akin_config_float(one, "routing.bias"),
                        akin_config_float(two, "routing.bias"));
        CU_ASSERT_EQUAL(akin_config_float(one, "routing.tau"),
                        akin_config_float(two, "routing.tau"));
        CU_ASSERT_STRING_EQUAL(akin_config_string(one, "model.path"),
                               akin_config_string(two, "model.path"));
        char *again = config_canonical(two);
        CU_ASSERT_STRING_EQUAL(text, again);
        free(text);
        free(again);
        akin_config_destroy(one);
        akin_config_destroy(two);
    }
}

static void test_locale(void)
{
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL &&
        setlocale(LC_NUMERIC, "fr_FR.UTF-8") == NULL) {
        (void)printf("(no locale with a comma here) ");
        return;
    }
    akin_config_t *config = config_make();
    config_set(config, "routing.tau=0.25");
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(
        akin_config_read_text(config, "routing: { bias = 2.5 };", "job", &err),
        AKIN_OK);
    CU_ASSERT_EQUAL(akin_config_float(config, "routing.tau"), 0.25);
    CU_ASSERT_EQUAL(akin_config_float(config, "routing.bias"), 2.5);
    char *text = config_canonical(config);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "tau = 0.25;"));
    free(text);
    akin_config_destroy(config);
    (void)setlocale(LC_NUMERIC, "C");
}

static const runner_test_t tests[] = {
    {"canonical text", test_canonical_text},
    {"canonical reads back", test_canonical_reads_back},
    {"locale", test_locale},
};
RUNNER_MAIN("config_canonical", tests)
