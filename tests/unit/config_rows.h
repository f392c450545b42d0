/* A config table for tests, and what they do with it. */
#ifndef AKIN_TESTS_UNIT_CONFIG_ROWS_H
#define AKIN_TESTS_UNIT_CONFIG_ROWS_H

#include "base/config.h"
#include "runner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Groups are mixed on purpose: canonical form must open each only once. */
static const akin_config_row_t rows[] = {
    {"model.path", AKIN_CONFIG_STRING, "", NULL, 0, 0, NULL,
     "Folder of the model."},
    {"kv.slab", AKIN_CONFIG_SIZE, "bytes", "256MiB", 1048576.0, INFINITY, NULL,
     "Bytes of KV blocks on one rank."},
    {"model.layers", AKIN_CONFIG_INT, "layers", "-1", 0, 0, NULL,
     "Layers to run; -1 for all."},
    {"kv.block_tokens", AKIN_CONFIG_INT, "tokens", "16", 8, 64, NULL,
     "Tokens of one KV block."},
    {"kv.lease.time", AKIN_CONFIG_TIME, "ns", "30s", 1e6, 3.6e12, NULL,
     "Time until pinned blocks are freed."},
    {"routing.decode", AKIN_CONFIG_CHOICE, "", "union", 0, 0,
     "union|random|least-loaded", "How a decode worker is picked."},
    {"routing.tau", AKIN_CONFIG_FLOAT, "", "0.1", 0, 1, NULL,
     "Weight of the load."},
    {"routing.bias", AKIN_CONFIG_FLOAT, "", "0", 0, 0, NULL, "Any number."},
    {"routing.sticky", AKIN_CONFIG_BOOL, "", "true", 0, 0, NULL,
     "Keep a conversation on its worker."},
    {"seed", AKIN_CONFIG_INT, "", "0", 0, 0, NULL, "Seed of the run."},
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static inline akin_config_t *config_make(void)
{
    akin_config_t *config = NULL;
    CU_ASSERT_EQUAL_FATAL(akin_config_create(rows, N_ROWS, &config), AKIN_OK);
    return config;
}

static inline void config_set(akin_config_t *config, const char *setting)
{
    akin_error_t err = {{0}};
    akin_status_t status = akin_config_set(config, setting, &err);
    if (status != AKIN_OK)
        (void)printf("%s\n", err.text);
    CU_ASSERT_EQUAL(status, AKIN_OK);
}

static inline char *config_canonical(const akin_config_t *config)
{
    char *text = NULL;
    CU_ASSERT_EQUAL_FATAL(akin_config_canonical(config, &text), AKIN_OK);
    return text;
}

#endif
