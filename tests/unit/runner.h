/* Runner: the main() of a CUnit test binary. CU_basic_run_tests() returns 0
 * even when assertions failed, so the exit code comes from the failure count.
 */
#ifndef AKIN_TESTS_UNIT_RUNNER_H
#define AKIN_TESTS_UNIT_RUNNER_H

#include <CUnit/Basic.h>

typedef struct runner_test {
    const char *name;
    void (*run)(void);
} runner_test_t;

/** Exit code of a test binary that cannot run here: ctest counts a skip. */
#define RUNNER_SKIP 77

/** Run a suite; returns the exit code for main(). */
static inline int runner_main(const char *suite, const runner_test_t *tests,
                              int n_tests)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    CU_pSuite s = CU_add_suite(suite, NULL, NULL);
    if (s == NULL)
        return 2;
    for (int i = 0; i < n_tests; i++)
        if (CU_add_test(s, tests[i].name, tests[i].run) == NULL)
            return 2;
    CU_basic_set_mode(CU_BRM_VERBOSE);
    if (CU_basic_run_tests() != CUE_SUCCESS)
        return 2;
    unsigned failed = CU_get_number_of_failures();
    unsigned ran = CU_get_number_of_tests_run();
    CU_cleanup_registry();
    return failed == 0 && ran == (unsigned)n_tests ? 0 : 1;
}

#define RUNNER_MAIN(suite, tests)                                              \
    int main(void)                                                             \
    {                                                                          \
        return runner_main(suite, tests,                                       \
                           (int)(sizeof(tests) / sizeof((tests)[0])));         \
    }

#endif
