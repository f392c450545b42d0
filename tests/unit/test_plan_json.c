/* Tests of plans as text: what is written is read as it was, and what anybody
 * else may have written is refused by its field. */
#include "launch/plan_json.h"

#include "runner.h"

#include <stdlib.h>
#include <string.h>

#define ROW                                                                    \
    "{\"rank\": 0, \"role\": \"router\", \"worker\": 0, \"node\": 0, "         \
    "\"gpu\": null, \"nic\": null, \"cores\": \"0-1,8\", \"threads\": 2, "     \
    "\"numa\": 0}"
#define SECOND                                                                 \
    "{\"rank\": 1, \"role\": \"decode\", \"worker\": 0, \"node\": 1, "         \
    "\"gpu\": 7, \"nic\": \"mlx5_3:1\", \"cores\": \"4\", \"threads\": 1, "    \
    "\"numa\": 1}"
#define PLAN "{\"nodes\": [\"a1\", \"a2\"], \"ranks\": [" ROW ", " SECOND "]}"

static void test_read(void)
{
    akin_plan_t plan;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_plan_read(PLAN, "it", &plan, &err), AKIN_OK);
    CU_ASSERT_EQUAL(plan.n_ranks, 2);
    CU_ASSERT_EQUAL(plan.n_nodes, 2);
    CU_ASSERT_STRING_EQUAL(plan.hosts[1], "a2");
    CU_ASSERT_EQUAL(plan.ranks[0].role, AKIN_JOB_ROUTER);
    CU_ASSERT_EQUAL(plan.ranks[0].gpu, AKIN_PLAN_NO_GPU);
    CU_ASSERT_STRING_EQUAL(plan.ranks[0].nic, "");
    CU_ASSERT_EQUAL(hwloc_bitmap_weight(plan.ranks[0].cores), 3);
    CU_ASSERT(hwloc_bitmap_isset(plan.ranks[0].cores, 8));
    CU_ASSERT_EQUAL(plan.ranks[1].gpu, 7);
    CU_ASSERT_EQUAL(plan.ranks[1].node, 1);
    CU_ASSERT_STRING_EQUAL(plan.ranks[1].nic, "mlx5_3:1");
    akin_plan_cleanup(&plan);
}

static void test_round_trip(void)
{
    akin_plan_t plan, again;
    akin_error_t err = {{0}};
    char *text = NULL, *second = NULL;
    size_t bytes = 0;
    CU_ASSERT_EQUAL_FATAL(akin_plan_read(PLAN, "it", &plan, &err), AKIN_OK);
    for (int i = 0; i < 2; i++) {
        FILE *stream = open_memstream(i == 0 ? &text : &second, &bytes);
        CU_ASSERT_EQUAL(akin_plan_write(&plan, stream), AKIN_OK);
        fclose(stream);
        CU_ASSERT_EQUAL_FATAL(
            akin_plan_read(i == 0 ? text : second, "it", &again, &err),
            AKIN_OK);
        akin_plan_cleanup(&plan);
        plan = again;
    }
    CU_ASSERT_STRING_EQUAL(text, second);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"cores\": \"0-1,8\""));
    free(text);
    free(second);
    akin_plan_cleanup(&plan);
}

/* A text with one part of PLAN exchanged, and what the message has to name. */
static const struct {
    const char *part, *other, *named;
} wrong[] = {
    {"\"rank\": 1", "\"rank\": 2", "ranks[1].rank"},
    {"\"decode\"", "\"encode\"", "ranks[1].role"},
    {"\"node\": 1", "\"node\": 2", "ranks[1].node"},
    {"\"node\": 1", "\"node\": -1", "ranks[1].node"},
    {"\"gpu\": 7", "\"gpu\": \"7\"", "ranks[1].gpu"},
    {"\"mlx5_3:1\"", "\"a'b\"", "ranks[1].nic"},
    {"\"mlx5_3:1\"", "\"\"", "ranks[1].nic"},
    {"\"cores\": \"4\"", "\"cores\": \"4-\"", "ranks[1].cores"},
    {"\"cores\": \"4\"", "\"cores\": \"\"", "ranks[1].cores"},
    {"\"cores\": \"4\"", "\"cores\": \"0-4294967295\"", "ranks[1].cores"},
    {"\"cores\": \"4\"", "\"cores\": \"99999999999999999999\"",
     "ranks[1].cores"},
    {"\"cores\": \"4\"", "\"cores\": 4", "ranks[1].cores"},
    {"\"threads\": 1", "\"threads\": 0", "ranks[1].threads"},
    {"\"numa\": 1", "\"other\": 1", "ranks[1].numa"},
    {"\"a2\"", "null", "nodes[1]"},
    {"\"a2\"", "\"a 2\"", "nodes[1]"},
    {"[\"a1\", \"a2\"]", "[]", "nodes"},
    {"[" ROW ", " SECOND "]", "[]", "ranks"},
    {"\"ranks\"", "\"rank\"", "ranks"},
    {"]}", "]", "line 1"},
};

static void test_wrong(void)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char text[2048];
        akin_plan_t plan;
        akin_error_t err = {{0}};
        const char *at = strstr(PLAN, wrong[i].part);
        CU_ASSERT_PTR_NOT_NULL_FATAL(at);
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - PLAN), PLAN,
                 wrong[i].other, at + strlen(wrong[i].part));
        CU_ASSERT_EQUAL(akin_plan_read(text, "it", &plan, &err),
                        AKIN_ERR_CONFIG);
        if (strstr(err.text, wrong[i].named) == NULL)
            printf("%s: %s\n", wrong[i].named, err.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, wrong[i].named));
        CU_ASSERT_EQUAL(strncmp(err.text, "it: ", 4), 0);
    }
}

static void test_no_file(void)
{
    akin_plan_t plan;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_plan_read("/no/such/plan", "--plan", &plan, &err),
                    AKIN_ERR_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/no/such/plan"));
}

static const runner_test_t tests[] = {
    {"a plan is read", test_read},
    {"what is written is read", test_round_trip},
    {"wrong fields are named", test_wrong},
    {"a file that is not there", test_no_file},
};
RUNNER_MAIN("plan as json", tests)
