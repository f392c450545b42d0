/* Config quantities: sizes and times from text. */
#include "base/config.h"
#include "runner.h"

#include <stdio.h>

static void test_sizes(void)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"0.0", 0},
        {"4096B", 4096},
        {"256MiB", 268435456},
        {"4GiB", UINT64_C(4294967296)},
        {"1.5GB", 1500000000},
        {"1.5 GB", 1500000000},
        {"3kB", 3000},
        {"0.5KiB", 512},
        {"0.1GiB", 107374182},
        {"0.0006KiB", 1},
        {"9223372036854775807B", INT64_MAX},
        {"8191.999999999999999PiB", INT64_MAX},
    };
    static const char *const bad[] = {
        "",
        "16",
        "-1B",
        "+1B",
        "MiB",
        "1mib",
        "1K",
        "1.B",
        ".5KiB",
        "1,5B",
        "1e3B",
        "0x10B",
        " 1B",
        "1B ",
        "1BB",
        "nan",
        "1TiB1",
        "8192PiB",
        "9223372036854775808B",
        "99999999999999999999999999B",
        "1.0000000000000000001B",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        uint64_t bytes = 1;
        CU_ASSERT_EQUAL(akin_config_parse_size(good[i].text, &bytes), AKIN_OK);
        if (bytes != good[i].bytes)
            (void)printf("%s %llu\n", good[i].text, (unsigned long long)bytes);
        CU_ASSERT_EQUAL(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint64_t bytes = 77;
        CU_ASSERT_EQUAL(akin_config_parse_size(bad[i], &bytes),
                        AKIN_ERR_FORMAT);
        CU_ASSERT_EQUAL(bytes, 77);
    }
}

static void test_times(void)
{
    static const struct {
        const char *text;
        int64_t ns;
    } good[] = {
        {"0", 0},
        {"1ns", 1},
        {"40us", 40000},
        {"250ms", 250000000},
        {"2s", 2000000000},
        {"1.5min", 90000000000},
        {"1h", 3600000000000},
        {"2562047.7h", 9223371720000000000},
    };
    static const char *const bad[] = {"",   "5",    "5 minutes", "1S",
                                      "1m", "-1ms", "2562048h",  "1d"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        int64_t ns = 1;
        CU_ASSERT_EQUAL(akin_config_parse_time(good[i].text, &ns), AKIN_OK);
        CU_ASSERT_EQUAL(ns, good[i].ns);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int64_t ns = 77;
        CU_ASSERT_EQUAL(akin_config_parse_time(bad[i], &ns), AKIN_ERR_FORMAT);
        CU_ASSERT_EQUAL(ns, 77);
    }
}

static const runner_test_t tests[] = {
    {"sizes", test_sizes},
    {"times", test_times},
};
RUNNER_MAIN("config_quantity", tests)
