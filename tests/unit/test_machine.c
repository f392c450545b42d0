/* Machines: the published ones, and one by a measurement. */
#include "runner.h"
#include "scratch_file.h"

#include "routing/cost_model.h"

#include <string.h>

static void test_published(void)
{
    const akin_machine_t *m = akin_machine_find("mi300x");
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    CU_ASSERT_EQUAL(m->memory_bytes_per_s, 5.3e12);
    /* 400 Gb/s. */
    CU_ASSERT_EQUAL(m->nic.bytes_per_s, 400e9 / 8);
    m = akin_machine_find("h200");
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    CU_ASSERT_EQUAL(m->memory_bytes_per_s, 4.8e12);
    CU_ASSERT_PTR_NULL(akin_machine_find("cpu"));
    CU_ASSERT_PTR_NULL(akin_machine_at(2));
}

/* What the command printed for the tiny model on two cores. */
static const char bench[] =
    "[{\"bench\": \"step\", \"model\": \"m\", \"batch\": 1, \"threads\": 2, "
    "\"kernel\": \"avx2\", \"bytes\": 3000000, \"seconds\": 0.0003, "
    "\"reference_seconds\": 0.0002, \"ratio\": 1.5}]";

static void test_bench(void)
{
    akin_machine_t m;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(
        akin_machine_parse_bench(bench, strlen(bench), "b", &m, &err), AKIN_OK);
    CU_ASSERT_DOUBLE_EQUAL(m.memory_bytes_per_s, 15e9, 1.0);
    CU_ASSERT_DOUBLE_EQUAL(m.expert_efficiency, 2.0 / 3.0, 1e-12);
    CU_ASSERT_STRING_EQUAL(m.name, "cpu");

    /* A model that reads these bytes lasts as long as was measured. */
    const akin_model_shape_t shape = {
        .n_layers = 1,
        .hidden = 500,
        .n_experts = 4,
        .top_k = 2,
        .moe_intermediate = 250,
        .n_heads = 1,
        .n_kv_heads = 1,
        .head_dim = 1,
        .expert_bytes = 750000,
        .resident_bytes = 1500000,
        .resident_weights = 750000,
    };
    const akin_cost_model_t model = {&shape, &m};
    const akin_cost_step_t step = {.batch = 1, .distinct = 2.0};
    CU_ASSERT_DOUBLE_EQUAL(akin_cost_model_step(&model, &step, NULL), 0.0003,
                           1e-12);

    const char *path = scratch_path("bench.json");
    scratch_write(path, bench, strlen(bench));
    akin_machine_t read;
    CU_ASSERT_EQUAL(akin_machine_read_bench(path, &read, &err), AKIN_OK);
    CU_ASSERT_EQUAL(read.memory_bytes_per_s, m.memory_bytes_per_s);
    scratch_remove(path);
    CU_ASSERT_EQUAL(akin_machine_read_bench(path, &read, &err),
                    AKIN_ERR_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "bench.json: cannot open"));
    CU_ASSERT_EQUAL(akin_machine_read_bench("/dev/zero", &read, &err),
                    AKIN_ERR_FORMAT);
    CU_ASSERT_EQUAL(akin_machine_read_bench("/", &read, &err), AKIN_ERR_IO);
}

static void test_refused(void)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "b: line"},
        {"[]", "there is no \"bench\": \"step\""},
        {"[1]", "there is no \"bench\": \"step\""},
        {"3", "b: line 1"},
        {"{\"bench\": \"kv\"}", "there is no \"bench\": \"step\""},
        {"{\"bench\": \"step\"}", "\"bytes\" is missing"},
        {"{\"bench\": \"step\", \"bytes\": 1, \"seconds\": -1}",
         "\"seconds\" is missing or no number above 0"},
        {"{\"bench\": \"step\", \"bytes\": 1, \"seconds\": 1,"
         "\"reference_seconds\": \"x\"}",
         "\"reference_seconds\" is missing"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        akin_machine_t m;
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL(akin_machine_parse_bench(cases[i].text,
                                                 strlen(cases[i].text), "b", &m,
                                                 &err),
                        AKIN_ERR_FORMAT);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].message));
    }
}

static const runner_test_t tests[] = {
    {"published machines", test_published},
    {"a machine by a measurement", test_bench},
    {"refused measurements", test_refused},
};

RUNNER_MAIN("machine", tests)
