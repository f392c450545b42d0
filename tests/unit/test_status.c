/* Status codes: fixed numbers, a text for each, errno conversion. */
#include "base/status.h"
#include "runner.h"

#include <errno.h>

static void test_numbers(void)
{
    /* Peers of another build read these numbers from messages. */
    CU_ASSERT_EQUAL(AKIN_OK, 0);
    CU_ASSERT_EQUAL(AKIN_ERR_NOMEM, -1);
    CU_ASSERT_EQUAL(AKIN_ERR_IO, -2);
    CU_ASSERT_EQUAL(AKIN_ERR_INVALID, -3);
    CU_ASSERT_EQUAL(AKIN_ERR_CONFIG, -4);
    CU_ASSERT_EQUAL(AKIN_ERR_FORMAT, -5);
    CU_ASSERT_EQUAL(AKIN_ERR_UNSUPPORTED, -6);
    CU_ASSERT_EQUAL(AKIN_ERR_RANGE, -7);
    CU_ASSERT_EQUAL(AKIN_ERR_NOT_FOUND, -8);
    CU_ASSERT_EQUAL(AKIN_ERR_EXISTS, -9);
    CU_ASSERT_EQUAL(AKIN_ERR_BUSY, -10);
    CU_ASSERT_EQUAL(AKIN_ERR_FULL, -11);
    CU_ASSERT_EQUAL(AKIN_ERR_TIMEOUT, -12);
    CU_ASSERT_EQUAL(AKIN_ERR_PEER, -13);
    CU_ASSERT_EQUAL(AKIN_ERR_REFUSED, -14);
    CU_ASSERT_EQUAL(AKIN_ERR_CANCELED, -15);
    CU_ASSERT_EQUAL(AKIN_ERR_MPI, -16);
    CU_ASSERT_EQUAL(AKIN_ERR_UCX, -17);
    CU_ASSERT_EQUAL(AKIN_ERR_INTERNAL, -18);
}

static void test_strings(void)
{
    for (int i = 0; i < AKIN_STATUS_COUNT; i++) {
        const char *text = akin_status_string((akin_status_t)-i);
        CU_ASSERT_STRING_NOT_EQUAL(text, "unknown status");
        for (int j = 0; j < i; j++)
            CU_ASSERT_STRING_NOT_EQUAL(text,
                                       akin_status_string((akin_status_t)-j));
    }
    CU_ASSERT_STRING_EQUAL(akin_status_string(AKIN_ERR_REFUSED),
                           "block refused");
    CU_ASSERT_STRING_EQUAL(
        akin_status_string((akin_status_t)-AKIN_STATUS_COUNT),
        "unknown status");
    CU_ASSERT_STRING_EQUAL(akin_status_string((akin_status_t)1),
                           "unknown status");
}

static void test_errno(void)
{
    CU_ASSERT_EQUAL(akin_status_from_errno(ENOMEM), AKIN_ERR_NOMEM);
    CU_ASSERT_EQUAL(akin_status_from_errno(ENOENT), AKIN_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(akin_status_from_errno(ENOSPC), AKIN_ERR_FULL);
    CU_ASSERT_EQUAL(akin_status_from_errno(EACCES), AKIN_ERR_IO);
    /* A failed call that forgot errno must not look like success. */
    CU_ASSERT_NOT_EQUAL(akin_status_from_errno(0), AKIN_OK);
}

static const runner_test_t tests[] = {
    {"numbers", test_numbers},
    {"strings", test_strings},
    {"errno", test_errno},
};
RUNNER_MAIN("status", tests)
