/* Topologies: nodes of fixtures for tests. */
#ifndef AKIN_TESTS_UNIT_TOPOLOGIES_H
#define AKIN_TESTS_UNIT_TOPOLOGIES_H

#include "launch/node.h"

#include "runner.h"

#include <stdio.h>
#include <string.h>

#define MI300X AKIN_SOURCE_DIR "/examples/jobs/mi300x-node.xml"
#define MI250X AKIN_FIXTURES "/launch/mi250x.xml"
#define FOUR_GPUS AKIN_FIXTURES "/launch/four-gpus.xml"
#define ONE_NIC AKIN_FIXTURES "/launch/one-nic.xml"

static inline akin_node_t topology_read(const char *path)
{
    akin_node_t node = {0};
    akin_error_t err = {{0}};
    const akin_status_t status = akin_node_read(path, &node, &err);
    if (status != AKIN_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(status, AKIN_OK);
    return node;
}

/* Whether a set is "0-3,8-11"; says what it is otherwise. */
static inline int topology_is_set(hwloc_const_bitmap_t set, const char *list)
{
    char text[512];
    (void)hwloc_bitmap_list_snprintf(text, sizeof(text), set);
    if (strcmp(text, list) != 0)
        (void)fprintf(stderr, "cores %s, not %s\n", text, list);
    return strcmp(text, list) == 0;
}

#endif
