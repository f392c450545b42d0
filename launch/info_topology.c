/* What `akin info --topology` and `akin info --xml` show. */
#include "launch/info_topology.h"

#include "launch/command.h"
#include "launch/node.h"
#include "launch/plan_seats.h"

#include <errno.h>
#include <jansson.h>
#include <libsmartcols.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[] = {
    [AKIN_LINK_UNKNOWN] = "unknown",
    [AKIN_LINK_UP] = "up",
    [AKIN_LINK_DOWN] = "down",
};

static const char *const closeness_names[] = {
    [AKIN_CLOSE_SYSTEM] = "other NUMA node",
    [AKIN_CLOSE_NUMA] = "NUMA node",
    [AKIN_CLOSE_HOST] = "host bridge",
    [AKIN_CLOSE_SWITCH] = "PCIe switch",
};

static akin_closeness_t closeness(const akin_node_t *node, uint32_t gpu,
                                  uint32_t nic)
{
    return (akin_closeness_t)node->closeness[(size_t)gpu * node->n_nics + nic];
}

/* The closest NIC of those that a plan would use, the first of equals;
 * UINT32_MAX: there is none. */
static uint32_t nearest(const akin_node_t *node, uint32_t gpu)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < node->n_nics; i++)
        if (akini_plan_nic_suits(node, i) &&
            (best == UINT32_MAX ||
             closeness(node, gpu, i) > closeness(node, gpu, best)))
            best = i;
    return best;
}

/* The cores of a NUMA node, and their hardware threads. */
static uint32_t count_cores(const akin_node_t *node, uint32_t numa,
                            hwloc_bitmap_t pus)
{
    uint32_t n = 0;
    hwloc_bitmap_zero(pus);
    for (uint32_t i = 0; i < node->n_cores; i++)
        if (node->cores[i].numa == numa) {
            (void)hwloc_bitmap_or(pus, pus, node->cores[i].pus);
            n++;
        }
    return n;
}

static json_t *numa_json(const akin_node_t *node)
{
    json_t *all = json_array();
    hwloc_bitmap_t pus = hwloc_bitmap_alloc();
    for (uint32_t m = 0; m < node->n_numa && pus != NULL; m++) {
        char *list = NULL;
        const uint32_t n = count_cores(node, m, pus);
        (void)hwloc_bitmap_list_asprintf(&list, pus);
        (void)json_array_append_new(
            all, json_pack("{s:I, s:I, s:s?}", "numa", (json_int_t)m, "cores",
                           (json_int_t)n, "threads", list));
        free(list);
    }
    hwloc_bitmap_free(pus);
    return all;
}

static json_t *gpus_json(const akin_node_t *node)
{
    json_t *all = json_array();
    for (uint32_t g = 0; g < node->n_gpus; g++) {
        const akin_node_gpu_t *gpu = &node->gpus[g];
        const uint32_t nic = nearest(node, g);
        json_t *one =
            json_pack("{s:I, s:s, s:s, s:s, s:I, s:I}", "gpu", (json_int_t)g,
                      "name", gpu->name, "pci", gpu->pci, "model", gpu->model,
                      "numa", (json_int_t)gpu->numa, "memory_bytes",
                      (json_int_t)gpu->memory_bytes);
        if (nic != UINT32_MAX) {
            (void)json_object_set_new(one, "nic",
                                      json_string(node->nics[nic].device));
            (void)json_object_set_new(
                one, "nic_shares",
                json_string(closeness_names[closeness(node, g, nic)]));
        }
        (void)json_array_append_new(all, one);
    }
    return all;
}

static json_t *nics_json(const akin_node_t *node)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < node->n_nics; i++) {
        const akin_node_nic_t *nic = &node->nics[i];
        (void)json_array_append_new(
            all, json_pack("{s:s, s:s, s:s, s:b, s:I, s:s}", "device",
                           nic->device, "name", nic->name, "pci", nic->pci,
                           "rdma", nic->is_rdma, "numa", (json_int_t)nic->numa,
                           "state", state_names[nic->state]));
    }
    return all;
}

static struct libscols_table *create_table(const char *const *names, int n)
{
    struct libscols_table *table = scols_new_table();
    for (int i = 0; i < n && table != NULL; i++) {
        /* A star marks columns of numbers. */
        const int is_number = names[i][0] == '*';
        if (scols_table_new_column(table, names[i] + is_number, 0,
                                   is_number ? SCOLS_FL_RIGHT : 0) == NULL) {
            scols_unref_table(table);
            table = NULL;
        }
    }
    return table;
}

/* The cells of a line, a format for each and their values; 0: no memory. */
static int add_line(struct libscols_table *table, const char *const *formats,
                    ...)
{
    struct libscols_line *line = scols_table_new_line(table, NULL);
    va_list list;
    int holds = line != NULL;
    va_start(list, formats);
    for (size_t i = 0; holds && formats[i] != NULL; i++) {
        char text[512];
        if (formats[i][0] == 'u')
            (void)snprintf(text, sizeof(text), "%u", va_arg(list, uint32_t));
        else
            (void)snprintf(text, sizeof(text), "%s",
                           va_arg(list, const char *));
        holds = scols_line_set_data(line, i, text) == 0;
    }
    va_end(list);
    return holds;
}

/* Draws and releases; 0: it could not be made or written. */
static int finish_table(struct libscols_table *table, int holds)
{
    holds = holds && scols_print_table(table) == 0;
    scols_unref_table(table);
    return holds;
}

static int print_numa(const akin_node_t *node)
{
    static const char *const names[] = {"*NUMA", "*CORES", "THREADS"};
    struct libscols_table *table = create_table(names, 3);
    hwloc_bitmap_t pus = hwloc_bitmap_alloc();
    int holds = table != NULL && pus != NULL;
    for (uint32_t m = 0; m < node->n_numa && holds; m++) {
        char *list = NULL;
        const uint32_t n = count_cores(node, m, pus);
        (void)hwloc_bitmap_list_asprintf(&list, pus);
        holds = list != NULL &&
                add_line(table, (const char *const[]){"u", "u", "s", NULL}, m,
                         n, n > 0 ? list : "-");
        free(list);
    }
    hwloc_bitmap_free(pus);
    return finish_table(table, holds);
}

static int print_gpus(const akin_node_t *node)
{
    static const char *const names[] = {"*GPU",    "NAME", "PCI",    "*NUMA",
                                        "*MEMORY", "NIC",  "SHARES", "MODEL"};
    struct libscols_table *table = create_table(names, 8);
    int holds = table != NULL;
    for (uint32_t g = 0; g < node->n_gpus && holds; g++) {
        const akin_node_gpu_t *gpu = &node->gpus[g];
        const uint32_t nic = nearest(node, g);
        char memory[32] = "-";
        if (gpu->memory_bytes > 0)
            (void)snprintf(memory, sizeof(memory), "%.0f GiB",
                           (double)gpu->memory_bytes / (1 << 30));
        holds = add_line(
            table,
            (const char *const[]){"u", "s", "s", "u", "s", "s", "s", "s", NULL},
            g, gpu->name, gpu->pci, gpu->numa, memory,
            nic != UINT32_MAX ? node->nics[nic].device : "-",
            nic != UINT32_MAX ? closeness_names[closeness(node, g, nic)] : "-",
            gpu->model[0] != '\0' ? gpu->model : "-");
    }
    return finish_table(table, holds);
}

static int print_nics(const akin_node_t *node)
{
    static const char *const names[] = {"NIC", "KIND", "PCI", "*NUMA", "STATE"};
    struct libscols_table *table = create_table(names, 5);
    int holds = table != NULL;
    for (uint32_t i = 0; i < node->n_nics && holds; i++) {
        const akin_node_nic_t *nic = &node->nics[i];
        holds = add_line(table,
                         (const char *const[]){"s", "s", "s", "u", "s", NULL},
                         nic->device, nic->is_rdma ? "RDMA" : "Ethernet",
                         nic->pci, nic->numa, state_names[nic->state]);
    }
    return finish_table(table, holds);
}

static int print_tables(const akin_node_t *node)
{
    (void)printf("%s: %u cores on %u NUMA node%s, %u GPU%s, %u NIC%s\n\n",
                 node->origin, node->n_cores, node->n_numa,
                 node->n_numa == 1 ? "" : "s", node->n_gpus,
                 node->n_gpus == 1 ? "" : "s", node->n_nics,
                 node->n_nics == 1 ? "" : "s");
    int holds = print_numa(node);
    if (holds && node->n_gpus > 0) {
        (void)printf("\n");
        holds = print_gpus(node);
    }
    if (holds && node->n_nics > 0) {
        (void)printf("\n");
        holds = print_nics(node);
    }
    return holds;
}

int akini_info_topology(const char *path, int as_json)
{
    akin_node_t node = {0};
    akin_error_t err = {{0}};
    const akin_status_t status = akin_node_read(path, &node, &err);
    if (status != AKIN_OK)
        return akin_command_fail(status, &err);
    int code = AKIN_EXIT_OK;
    if (as_json)
        code = akin_command_print_json(
            json_pack("{s:s, s:o, s:o, s:o}", "origin", node.origin, "numa",
                      numa_json(&node), "gpus", gpus_json(&node), "nics",
                      nics_json(&node)));
    else if (!print_tables(&node)) {
        (void)fprintf(stderr, "akin: cannot print the topology: %s\n",
                      errno != 0 ? strerror(errno) : "out of memory");
        code = AKIN_EXIT_FAILED;
    }
    akin_node_cleanup(&node);
    return code;
}

int akini_info_xml(void)
{
    char *text = NULL;
    size_t bytes = 0;
    akin_error_t err = {{0}};
    const akin_status_t status = akin_node_export(&text, &bytes, &err);
    if (status != AKIN_OK)
        return akin_command_fail(status, &err);
    /* What could not be written is told when the process ends. */
    const int holds = fwrite(text, 1, bytes, stdout) == bytes;
    free(text);
    return holds ? AKIN_EXIT_OK : AKIN_EXIT_FAILED;
}
