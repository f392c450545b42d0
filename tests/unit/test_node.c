/* Node: what is read of machines whose parts are known, and XML that is no
 * machine's. */
#include "launch/node.h"

#include "runner.h"
#include "scratch_file.h"
#include "topologies.h"

#include <sched.h>
#include <stdint.h>

static akin_closeness_t closeness(const akin_node_t *node, uint32_t gpu,
                                  uint32_t nic)
{
    return (akin_closeness_t)node->closeness[gpu * node->n_nics + nic];
}

static void test_mi300x(void)
{
    akin_node_t node = topology_read(MI300X);
    CU_ASSERT_EQUAL(node.n_numa, 2);
    CU_ASSERT_EQUAL_FATAL(node.n_cores, 96);
    CU_ASSERT_EQUAL_FATAL(node.n_gpus, 8);
    CU_ASSERT_EQUAL_FATAL(node.n_nics, 9);
    CU_ASSERT(topology_is_set(node.cores[0].pus, "0,96"));
    CU_ASSERT(topology_is_set(node.cores[95].pus, "95,191"));
    CU_ASSERT_EQUAL(node.cores[47].numa, 0);
    CU_ASSERT_EQUAL(node.cores[48].numa, 1);
    for (uint32_t g = 0; g < 8; g++) {
        char name[16], device[16];
        (void)snprintf(name, sizeof(name), "rsmi%u", g);
        (void)snprintf(device, sizeof(device), "mlx5_%u:1", g);
        CU_ASSERT_STRING_EQUAL(node.gpus[g].name, name);
        CU_ASSERT_STRING_EQUAL(node.gpus[g].model, "AMD Instinct MI300X");
        CU_ASSERT_EQUAL(node.gpus[g].memory_bytes, 206158430208); /* 192 GiB */
        CU_ASSERT_EQUAL(node.gpus[g].numa, g / 4);
        CU_ASSERT_STRING_EQUAL(node.nics[g].device, device);
        CU_ASSERT_EQUAL(node.nics[g].state, AKIN_LINK_UNKNOWN);
        for (uint32_t i = 0; i < 8; i++)
            CU_ASSERT_EQUAL(closeness(&node, g, i), i == g ? AKIN_CLOSE_SWITCH
                                                    : i / 4 == g / 4
                                                        ? AKIN_CLOSE_NUMA
                                                        : AKIN_CLOSE_SYSTEM);
    }
    CU_ASSERT_STRING_EQUAL(node.nics[8].device, "eno1");
    CU_ASSERT_FALSE(node.nics[8].is_rdma);
    akin_node_cleanup(&node);
    akin_node_cleanup(&node);
}

/* A captured machine: four packages of two GPUs, whose numbers do not follow
 * the NUMA nodes, each with an Ethernet NIC below one GPU's host bridge. */
static void test_mi250x(void)
{
    static const struct {
        const char *gpu, *pci, *near;
        uint32_t numa;
        akin_closeness_t how;
    } rows[] = {{"rsmi0", "0000:c1:00.0", "hsi0", 3, AKIN_CLOSE_NUMA},
                {"rsmi1", "0000:c6:00.0", "hsi0", 3, AKIN_CLOSE_HOST},
                {"rsmi2", "0000:c9:00.0", "hsi1", 1, AKIN_CLOSE_NUMA},
                {"rsmi3", "0000:ce:00.0", "hsi1", 1, AKIN_CLOSE_HOST},
                {"rsmi4", "0000:d1:00.0", "hsi2", 0, AKIN_CLOSE_NUMA},
                {"rsmi5", "0000:d6:00.0", "hsi2", 0, AKIN_CLOSE_HOST},
                {"rsmi6", "0000:d9:00.0", "hsi3", 2, AKIN_CLOSE_NUMA},
                {"rsmi7", "0000:de:00.0", "hsi3", 2, AKIN_CLOSE_HOST}};
    akin_node_t node = topology_read(MI250X);
    CU_ASSERT_EQUAL(node.n_numa, 4);
    CU_ASSERT_EQUAL(node.n_cores, 64);
    CU_ASSERT_EQUAL_FATAL(node.n_gpus, 8);
    CU_ASSERT_EQUAL_FATAL(node.n_nics, 5);
    for (uint32_t g = 0; g < 8; g++) {
        CU_ASSERT_STRING_EQUAL(node.gpus[g].name, rows[g].gpu);
        CU_ASSERT_STRING_EQUAL(node.gpus[g].pci, rows[g].pci);
        CU_ASSERT_EQUAL(node.gpus[g].numa, rows[g].numa);
        uint32_t n_found = 0;
        for (uint32_t i = 0; i < 5; i++) {
            CU_ASSERT_FALSE(node.nics[i].is_rdma);
            if (strcmp(node.nics[i].name, rows[g].near) != 0)
                continue;
            n_found++;
            CU_ASSERT_EQUAL(closeness(&node, g, i), rows[g].how);
        }
        CU_ASSERT_EQUAL(n_found, 1);
    }
    akin_node_cleanup(&node);
}

/* Three backends and a display name each GPU; it is one GPU. */
static void test_backends(void)
{
    akin_node_t node = topology_read(FOUR_GPUS);
    CU_ASSERT_EQUAL(node.n_cores, 16);
    CU_ASSERT_EQUAL_FATAL(node.n_gpus, 4);
    CU_ASSERT_EQUAL_FATAL(node.n_nics, 4);
    CU_ASSERT_STRING_EQUAL(node.gpus[3].name, "nvml3");
    CU_ASSERT_STRING_EQUAL(node.gpus[3].model, "NVIDIA A100-SXM4-40GB");
    CU_ASSERT(node.gpus[3].memory_bytes > (39ULL << 30));
    /* The interfaces of the same cards come behind the RDMA devices. */
    CU_ASSERT_STRING_EQUAL(node.nics[0].device, "mlx5_0:1");
    CU_ASSERT_STRING_EQUAL(node.nics[1].device, "mlx5_1:1");
    CU_ASSERT_STRING_EQUAL(node.nics[2].device, "ens0np0");
    CU_ASSERT_STRING_EQUAL(node.nics[3].device, "ens1np0");
    CU_ASSERT_EQUAL(closeness(&node, 1, 0), AKIN_CLOSE_SWITCH);
    CU_ASSERT_EQUAL(closeness(&node, 1, 1), AKIN_CLOSE_SYSTEM);
    akin_node_cleanup(&node);
}

/* Without a driver GPUs go by their PCI class, a board's display is none. */
static void test_pci_class(void)
{
    akin_node_t node = topology_read(ONE_NIC);
    CU_ASSERT_EQUAL_FATAL(node.n_gpus, 4);
    CU_ASSERT_STRING_EQUAL(node.gpus[0].name, "0000:41:00.0");
    CU_ASSERT_EQUAL(node.gpus[0].memory_bytes, 0);
    CU_ASSERT_EQUAL(node.gpus[2].numa, 1);
    akin_node_cleanup(&node);
}

/* Cores are those of the affinity mask, and an export carries them over. */
static void test_this_machine(void)
{
    cpu_set_t all, one;
    CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(all), &all), 0);
    akin_node_t node = topology_read(NULL);
    CU_ASSERT_STRING_EQUAL(node.origin, "this machine");
    int n_pus = 0;
    for (uint32_t i = 0; i < node.n_cores; i++) {
        n_pus += hwloc_bitmap_weight(node.cores[i].pus);
        CU_ASSERT(
            CPU_ISSET((size_t)hwloc_bitmap_first(node.cores[i].pus), &all));
    }
    CU_ASSERT_EQUAL(n_pus, CPU_COUNT(&all));
    const int last = hwloc_bitmap_last(node.cores[node.n_cores - 1].pus);
    CPU_ZERO(&one);
    CPU_SET((size_t)last, &one);
    CU_ASSERT_EQUAL_FATAL(sched_setaffinity(0, sizeof(one), &one), 0);
    akin_node_t bound = topology_read(NULL), back = {0};
    char *text = NULL;
    size_t bytes = 0;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_node_export(&text, &bytes, &err), AKIN_OK);
    CU_ASSERT_EQUAL(sched_setaffinity(0, sizeof(all), &all), 0);
    CU_ASSERT_EQUAL_FATAL(akin_node_read_text(text, bytes, "copy", &back, &err),
                          AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(bound.n_cores, 1);
    CU_ASSERT_EQUAL_FATAL(back.n_cores, 1);
    CU_ASSERT_EQUAL(hwloc_bitmap_weight(bound.cores[0].pus), 1);
    CU_ASSERT(hwloc_bitmap_isset(bound.cores[0].pus, (unsigned)last));
    CU_ASSERT(hwloc_bitmap_isequal(bound.cores[0].pus, back.cores[0].pus));
    CU_ASSERT_EQUAL(bound.n_gpus, back.n_gpus);
    CU_ASSERT_EQUAL(node.n_nics, back.n_nics);
    CU_ASSERT_EQUAL(node.n_numa, back.n_numa);
    free(text);
    akin_node_cleanup(&node);
    akin_node_cleanup(&bound);
    akin_node_cleanup(&back);
}

/* Read a text that is refused; the message names it and holds `word`. */
static void check_refused(const char *text, size_t bytes, const char *word)
{
    akin_node_t node = {0};
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_node_read_text(text, bytes, "n.xml", &node, &err),
                    AKIN_ERR_FORMAT);
    if (strstr(err.text, "n.xml") == NULL || strstr(err.text, word) == NULL)
        (void)fprintf(stderr, "no \"%s\" in: %s\n", word, err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "n.xml"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, word));
    CU_ASSERT_PTR_NULL(node.origin);
    akin_node_cleanup(&node);
}

#define REFUSED(text, word) check_refused(text, strlen(text), word)

static void test_versions(void)
{
    REFUSED("<?xml version=\"1.0\"?>\n<topology>\n</topology>", "hwloc 1");
    REFUSED("<topology version=\"3.0\"></topology>", "hwloc version 3.0");
    REFUSED("<topology version=\"3.0\"></topology>", "akin info --xml");
    REFUSED("<topology a=\"version='2.0'\" version='1.0'/>", "version 1.0");
    REFUSED("<!-- <topology version=\"2.0\"> --><topology/>", "hwloc 1");
}

static void test_not_xml(void)
{
    REFUSED("", "empty");
    REFUSED("{\"topology\": 1}", "no topology");
    REFUSED("<topologyx version=\"2.0\"/>", "no topology");
    REFUSED("<topology version=\"2.0\">", "cut off");
    REFUSED("<topology version=\"2.0", "cut off");
    REFUSED("<!-- <topology version=\"2.0\"/>", "no topology");
    REFUSED("<topology version=\"2.0\"><!-- ></topology>", "cut off");
    REFUSED("<topology version=\"2.0\"><!ENTITY a \"b\"></topology>",
            "declaration");
    REFUSED("<topology version=\"2.0\"/>", "machine");
    REFUSED("<topology version=\"2.0\"><object type=\"Machine\"/></topology>",
            "machine");
    check_refused("<topology\0version=\"2.0\"/>", 25, "NUL");
}

static void test_no_file(void)
{
    akin_node_t node = {0};
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_node_read("/nowhere/n.xml", &node, &err),
                    AKIN_ERR_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/nowhere/n.xml"));
    CU_ASSERT_EQUAL(akin_node_read(AKIN_FIXTURES, &node, &err),
                    AKIN_ERR_FORMAT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not a file"));
}

/* hwloc and its XML parsers recurse over elements. */
static void test_deep(void)
{
    enum { DEPTH = 200000 };
    static const char open[] = "<object type=\"Group\">", close[] = "</object>";
    const size_t room = (sizeof(open) + sizeof(close)) * DEPTH + 64;
    char *text = malloc(room);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    char *at = stpcpy(text, "<topology version=\"2.0\">");
    for (int i = 0; i < DEPTH; i++)
        at = stpcpy(at, open);
    for (int i = 0; i < DEPTH; i++)
        at = stpcpy(at, close);
    (void)stpcpy(at, "</topology>");
    REFUSED(text, "nested");
    free(text);
}

/* A real XML with many NICs in it: more than a bound, and fewer. */
static void check_many(int n, int is_refused)
{
    size_t bytes = 0;
    char *plain = scratch_read(ONE_NIC, &bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(plain);
    static const char mark[] = "<object type=\"OSDev\"";
    char *cut = strstr(plain, mark);
    CU_ASSERT_PTR_NOT_NULL_FATAL(cut);
    char *text = malloc(bytes + (size_t)n * 96 + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    (void)memcpy(text, plain, (size_t)(cut - plain));
    char *at = text + (cut - plain);
    for (int i = 0; i < n; i++)
        at += sprintf(at,
                      "<object type=\"OSDev\" gp_index=\"%d\" name=\"e%d\" "
                      "osdev_type=\"2\"/>",
                      1000 + i, i);
    (void)stpcpy(at, cut);
    akin_node_t node = {0};
    if (is_refused) {
        REFUSED(text, "more than");
    } else {
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL_FATAL(
            akin_node_read_text(text, strlen(text), "n.xml", &node, &err),
            AKIN_OK);
        CU_ASSERT_EQUAL(node.n_nics, (uint32_t)n + 2);
        akin_node_cleanup(&node);
    }
    free(text);
    free(plain);
}

static void test_many(void)
{
    check_many(2000, 0);
    check_many(9000, 1);
}

/* Whatever a broken copy becomes, it is refused with a message or is a machine
 * whose numbers hold together. */
static void check_broken(const char *text, size_t bytes)
{
    akin_node_t node = {0};
    akin_error_t err = {{0}};
    const akin_status_t status =
        akin_node_read_text(text, bytes, "n.xml", &node, &err);
    if (status != AKIN_OK) {
        CU_ASSERT_EQUAL(status, AKIN_ERR_FORMAT);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "n.xml"));
        return;
    }
    CU_ASSERT(node.n_cores > 0 && node.n_numa > 0);
    for (uint32_t i = 0; i < node.n_cores; i++)
        CU_ASSERT(node.cores[i].numa < node.n_numa &&
                  !hwloc_bitmap_iszero(node.cores[i].pus));
    for (uint32_t i = 0; i < node.n_gpus; i++)
        CU_ASSERT(node.gpus[i].numa < node.n_numa);
    akin_node_cleanup(&node);
}

static void test_broken(void)
{
    size_t bytes = 0;
    char *text = scratch_read(ONE_NIC, &bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    for (size_t i = 0; i < bytes; i += 37)
        check_broken(text, i);
    uint64_t draw = 1;
    for (int i = 0; i < 120; i++) {
        draw = draw * 6364136223846793005U + 1442695040888963407U;
        const size_t at = (size_t)(draw >> 33) % bytes;
        const char was = text[at];
        text[at] = "0x<>\"/ ,f9A"[(draw >> 20) % 11];
        check_broken(text, bytes);
        text[at] = was;
    }
    free(text);
}

static const runner_test_t tests[] = {
    {"mi300x", test_mi300x},     {"mi250x", test_mi250x},
    {"backends", test_backends}, {"pci_class", test_pci_class},
    {"this", test_this_machine}, {"versions", test_versions},
    {"not_xml", test_not_xml},   {"no_file", test_no_file},
    {"deep", test_deep},         {"many", test_many},
    {"broken", test_broken},
};

RUNNER_MAIN("node", tests)
