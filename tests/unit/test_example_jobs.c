/* Tests of the job files in examples/jobs: each is read, and becomes a job of
 * as many ranks as its comment says. */
#include "base/config.h"
#include "engine/model.h"
#include "kv/block.h"
#include "roles/job.h"

#include "runner.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define JOBS AKIN_SOURCE_DIR "/examples/jobs"

typedef struct example {
    const char *file;
    uint32_t n_ranks;
    akin_kv_shape_t shape; /* of the model it names */
    uint64_t block_bytes;  /* as the comment says */
    uint64_t slab_blocks;
    uint32_t n_gpus; /* of all nodes: one for each rank of a worker, or none */
} example_t;

static const example_t examples[] = {
    {"quickstart.conf", 7, {6, 2, 32, 32, 4, 16}, 28672, 2340, 0},
    {"tiny-laptop.cfg", 3, {6, 2, 32, 32, 4, 16}, 28672, 585, 0},
    {"mi300x-8p16d-qwen3-30b.cfg",
     25,
     {48, 4, 128, 128, 8, 16},
     1581056,
     21732,
     24},
    {"mi300x-2p8d-ep4-qwen3-235b.cfg",
     41,
     {94, 4, 128, 128, 8, 16},
     3092480,
     13888,
     40},
    {"modelled-8p16d-qwen3-30b.cfg",
     25,
     {48, 1, 8, 128, 8, 16},
     32768,
     2048,
     0},
    {"modelled-2p8d-ep4-qwen3-235b.cfg",
     41,
     {94, 1, 8, 128, 8, 16},
     61440,
     1092,
     0},
};

#define N_EXAMPLES (sizeof(examples) / sizeof(examples[0]))

static akin_config_t *read_example(const char *file)
{
    char path[512];
    akin_config_t *config = NULL;
    akin_error_t err = {{0}};
    (void)snprintf(path, sizeof(path), "%s/%s", JOBS, file);
    CU_ASSERT_EQUAL_FATAL(
        akin_config_create(akin_job_rows, akin_job_n_rows, &config), AKIN_OK);
    akin_status_t status = akin_config_read_file(config, path, &err);
    if (status != AKIN_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(status, AKIN_OK);
    return config;
}

static void test_jobs(void)
{
    for (size_t i = 0; i < N_EXAMPLES; i++) {
        const example_t *e = &examples[i];
        akin_config_t *config = read_example(e->file);
        akin_job_t job;
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL_FATAL(akin_job_read(config, &job, &err), AKIN_OK);
        CU_ASSERT_EQUAL(akin_job_n_ranks(&job), e->n_ranks);
        CU_ASSERT_EQUAL(job.n_nodes * job.n_gpus, e->n_gpus);
        akin_config_destroy(config);
    }
}

/* The sizes in the comments are those of the block layout. */
static void test_slabs(void)
{
    for (size_t i = 0; i < N_EXAMPLES; i++) {
        const example_t *e = &examples[i];
        akin_config_t *config = read_example(e->file);
        akin_kv_layout_t layout;
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL_FATAL(akin_kv_layout_init(&e->shape, &layout, &err),
                              AKIN_OK);
        CU_ASSERT_EQUAL(akin_config_int(config, "kv.block_tokens"),
                        e->shape.block_tokens);
        CU_ASSERT_EQUAL(layout.stride_bytes, e->block_bytes);
        CU_ASSERT_EQUAL(akin_config_bytes(config, "kv.slab") /
                            layout.stride_bytes,
                        e->slab_blocks);
        akin_config_destroy(config);
    }
}

static void test_no_file_is_forgotten(void)
{
    size_t n = 0;
    DIR *dir = opendir(JOBS);
    CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        const char *dot = strrchr(entry->d_name, '.');
        n += dot != NULL &&
             (strcmp(dot, ".conf") == 0 || strcmp(dot, ".cfg") == 0);
    }
    (void)closedir(dir);
    CU_ASSERT_EQUAL(n, N_EXAMPLES);
}

static const runner_test_t tests[] = {
    {"the job files are jobs", test_jobs},
    {"their slabs hold the blocks they say", test_slabs},
    {"each file is tested", test_no_file_is_forgotten},
};

RUNNER_MAIN("example jobs", tests)
