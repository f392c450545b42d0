/* Placement as JSON: round trip, the text itself, what is refused. */
#include "runner.h"

#include "ep/placement_json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char good[] = "{\"ranks\":2,\"replicas\":1,\"epoch\":7,"
                           "\"holders\":[[[0,1],[0],[1]],[[0],[1],[0,1]]]}";

static akin_status_t unpack(const char *text, akin_placement_t *p,
                            akin_error_t *err)
{
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    akin_status_t status =
        akin_placement_json_unpack(json, "a.json", 2, 3, p, err);
    json_decref(json);
    return status;
}

static void test_round_trip(void)
{
    static const uint64_t holders[] = {3, 1, 2, 1, 2, 3};
    akin_placement_t p = {0};
    CU_ASSERT_EQUAL_FATAL(unpack(good, &p, NULL), AKIN_OK);
    CU_ASSERT_EQUAL(p.n_ranks, 2);
    CU_ASSERT_EQUAL(p.n_replicas, 1);
    CU_ASSERT_EQUAL(p.epoch, 7);
    CU_ASSERT_EQUAL(memcmp(p.holders, holders, sizeof(holders)), 0);
    json_t *json = NULL;
    CU_ASSERT_EQUAL_FATAL(akin_placement_json_pack(&p, &json), AKIN_OK);
    char *text = json_dumps(json, JSON_COMPACT);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    CU_ASSERT_STRING_EQUAL(text, good);
    free(text);
    json_decref(json);
    akin_placement_cleanup(&p);
}

static void refuse(const char *text, const char *message)
{
    akin_placement_t p = {0};
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(unpack(text, &p, &err), AKIN_ERR_FORMAT);
    CU_ASSERT_STRING_EQUAL(err.text, message);
    if (strcmp(err.text, message) != 0)
        fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_PTR_NULL(p.holders);
}

#define HEAD "{\"ranks\":2,\"replicas\":1,\"epoch\":0,\"holders\":"

static void test_refused(void)
{
    refuse("[]", "a.json: must be an object with ranks, replicas, epoch and "
                 "holders");
    refuse("{\"replicas\":0}", "a.json: ranks is missing");
    refuse("{\"ranks\":65}",
           "a.json: ranks must be a whole number from 0 to 64");
    refuse("{\"ranks\":2,\"replicas\":-1}",
           "a.json: replicas must be a whole number from 0 to 2147483647");
    refuse("{\"ranks\":2,\"replicas\":0,\"epoch\":0}",
           "a.json: 2 ranks do not divide 3 experts + 0 replicas; with 1 "
           "replicas they do");
    refuse("{\"ranks\":2,\"replicas\":1,\"epoch\":0.5}",
           "a.json: epoch must be a whole number from 0 to "
           "9223372036854775807");
    refuse(HEAD "[[[0,1],[0],[1]]]}",
           "a.json: holders must be a list of 2 layers");
    refuse(HEAD "[[[0,1],[0],[1]],[[0],[1]]]}",
           "a.json: layer 1 of holders must be a list of 3 experts, some are "
           "missing");
    refuse(HEAD "[[[0,1],[],[1]],[[0],[1],[0,1]]]}",
           "a.json: layer 0, expert 1: must be a list of the ranks that hold "
           "it, at least one");
    refuse(HEAD "[[[0,1],[0],[1]],[[0],[1],[0,2]]]}",
           "a.json: layer 1, expert 2: holder 1 must be a rank from 0 to 1");
    refuse(HEAD "[[[0,1],[0],[1]],[[0],[1],[\"0\",1]]]}",
           "a.json: layer 1, expert 2: holder 0 must be a rank from 0 to 1");
    refuse(HEAD "[[[0,0],[0],[1]],[[0],[1],[0,1]]]}",
           "a.json: layer 0, expert 0: rank 0 stands there twice");
    refuse(HEAD "[[[0,1],[0],[0]],[[0],[1],[0,1]]]}",
           "a.json: placement: layer 0: rank 0 holds 3 experts, every rank "
           "must hold 2");
    akin_placement_t p = {0};
    CU_ASSERT_EQUAL(akin_placement_json_unpack(NULL, "x", 2, 3, &p, NULL),
                    AKIN_ERR_FORMAT);
}

static const runner_test_t tests[] = {
    {"round trip", test_round_trip},
    {"refused", test_refused},
};

RUNNER_MAIN("placement_json", tests)
