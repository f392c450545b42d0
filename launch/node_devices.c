/* Node devices: the GPUs and NICs of a topology, and how close they are. */
#include "launch/node_devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PCI_VENDOR_AMD = 0x1002, PCI_VENDOR_NVIDIA = 0x10de };
enum { PCI_VENDOR_INTEL = 0x8086 };
enum { PCI_DISPLAY = 0x03, PCI_ACCELERATOR = 0x12 };

/* hwloc's backends that find GPUs; the first one names a GPU that several
 * have found. */
static const char *const backends[] = {"RSMI", "NVML", "CUDA", "LevelZero",
                                       "OpenCL"};

enum { N_BACKENDS = (int)(sizeof(backends) / sizeof(backends[0])) };

/* Where backends write down a GPU's memory, in KiB. */
static const char *const memory_infos[] = {
    "RSMIVRAMSize", "CUDAGlobalMemorySize", "LevelZeroHBMSize",
    "OpenCLGlobalMemorySize"};

/* A GPU or NIC, and the objects that stand for it. */
typedef struct device {
    hwloc_obj_t pci;
    hwloc_obj_t os; /* NULL: a PCI device without a driver's name */
    int rank;       /* of a GPU's backend, 0 for NICs with RDMA, 1 others */
} device_t;

typedef struct devices {
    device_t *items;
    uint32_t n, room;
} devices_t;

static akin_status_t add_device(devices_t *list, device_t device)
{
    if (list->n == list->room) {
        const uint32_t room = list->room == 0 ? 16 : 2 * list->room;
        device_t *items = realloc(list->items, room * sizeof(*items));
        if (items == NULL)
            return AKIN_ERR_NOMEM;
        list->items = items;
        list->room = room;
    }
    list->items[list->n++] = device;
    return AKIN_OK;
}

static hwloc_obj_t pci_of(hwloc_obj_t obj)
{
    while (obj != NULL && obj->type != HWLOC_OBJ_PCI_DEVICE)
        obj = obj->parent;
    return obj;
}

/* Domain, bus, device and function as one number to compare. */
static uint64_t pci_key(hwloc_obj_t pci)
{
    const struct hwloc_pcidev_attr_s *a = &pci->attr->pcidev;
    return (uint64_t)a->domain << 24 | (uint64_t)a->bus << 16 |
           (uint64_t)a->dev << 8 | a->func;
}

static void print_pci(hwloc_obj_t pci, char *text, size_t room)
{
    const struct hwloc_pcidev_attr_s *a = &pci->attr->pcidev;
    (void)snprintf(text, room, "%04x:%02x:%02x.%x", a->domain & 0xffffffU,
                   a->bus, a->dev, a->func & 0xfU);
}

/* Index of the backend that a GPU was found by; N_BACKENDS: none. */
static int backend_of(hwloc_obj_t os)
{
    const char *backend = hwloc_obj_get_info_by_name(os, "Backend");
    int i = 0;
    while (i < N_BACKENDS &&
           (os->subtype == NULL || strcmp(os->subtype, backends[i]) != 0) &&
           (backend == NULL || strcmp(backend, backends[i]) != 0))
        i++;
    return i;
}

static akin_status_t list_backend_gpus(hwloc_topology_t topology,
                                       devices_t *list)
{
    hwloc_obj_t os = NULL;
    while ((os = hwloc_get_next_osdev(topology, os)) != NULL) {
        const int rank = backend_of(os);
        hwloc_obj_t pci = pci_of(os);
        const hwloc_obj_osdev_type_t type = os->attr->osdev.type;
        if (rank == N_BACKENDS || pci == NULL ||
            (type != HWLOC_OBJ_OSDEV_GPU && type != HWLOC_OBJ_OSDEV_COPROC))
            continue;
        if (add_device(list, (device_t){pci, os, rank}) != AKIN_OK)
            return AKIN_ERR_NOMEM;
    }
    return AKIN_OK;
}

/* Without a driver's library hwloc knows GPUs by their PCI class alone. */
static akin_status_t list_pci_gpus(hwloc_topology_t topology, devices_t *list)
{
    hwloc_obj_t pci = NULL;
    while ((pci = hwloc_get_next_pcidev(topology, pci)) != NULL) {
        const struct hwloc_pcidev_attr_s *a = &pci->attr->pcidev;
        const unsigned class = a->class_id >> 8;
        if ((class != PCI_DISPLAY && class != PCI_ACCELERATOR) ||
            (a->vendor_id != PCI_VENDOR_AMD &&
             a->vendor_id != PCI_VENDOR_NVIDIA &&
             a->vendor_id != PCI_VENDOR_INTEL))
            continue;
        if (add_device(list, (device_t){pci, NULL, N_BACKENDS}) != AKIN_OK)
            return AKIN_ERR_NOMEM;
    }
    return AKIN_OK;
}

/* Virtual interfaces lie below no PCI device and are left out. */
static akin_status_t list_nics(hwloc_topology_t topology, devices_t *list)
{
    hwloc_obj_t os = NULL;
    while ((os = hwloc_get_next_osdev(topology, os)) != NULL) {
        hwloc_obj_t pci = pci_of(os);
        const hwloc_obj_osdev_type_t type = os->attr->osdev.type;
        const int is_rdma = type == HWLOC_OBJ_OSDEV_OPENFABRICS;
        if (pci == NULL || os->name == NULL || os->name[0] == '\0' ||
            (!is_rdma && type != HWLOC_OBJ_OSDEV_NETWORK))
            continue;
        if (add_device(list, (device_t){pci, os, !is_rdma}) != AKIN_OK)
            return AKIN_ERR_NOMEM;
    }
    return AKIN_OK;
}

/* gp_index is unique, so that the order does not hang on the sort. */
static int compare_objects(hwloc_obj_t a, hwloc_obj_t b)
{
    if (a == NULL || b == NULL || a->gp_index == b->gp_index)
        return 0;
    return a->gp_index < b->gp_index ? -1 : 1;
}

static int compare_gpus(const void *a, const void *b)
{
    const device_t *x = a, *y = b;
    const uint64_t kx = pci_key(x->pci), ky = pci_key(y->pci);
    if (kx != ky)
        return kx < ky ? -1 : 1;
    return x->rank != y->rank ? x->rank - y->rank
                              : compare_objects(x->os, y->os);
}

static int compare_nics(const void *a, const void *b)
{
    const device_t *x = a, *y = b;
    const uint64_t kx = pci_key(x->pci), ky = pci_key(y->pci);
    if (x->rank != y->rank)
        return x->rank - y->rank;
    return kx != ky ? (kx < ky ? -1 : 1) : compare_objects(x->os, y->os);
}

static void copy_text(char *to, size_t room, const char *from)
{
    (void)snprintf(to, room, "%s", from != NULL ? from : "");
    /* Names of CPUs and GPUs come padded. */
    for (size_t n = strlen(to); n > 0 && to[n - 1] == ' '; n--)
        to[n - 1] = '\0';
}

/* NUMA nodes that an object's cores belong to: how many, and the first. */
static uint32_t numa_of(const akini_node_numa_t *numa, hwloc_obj_t obj,
                        uint32_t *first_p)
{
    uint32_t n = 0;
    *first_p = 0;
    while (obj != NULL && obj->complete_cpuset == NULL)
        obj = obj->parent;
    for (uint32_t i = 0; obj != NULL && i < numa->n; i++)
        if (hwloc_bitmap_intersects(obj->complete_cpuset,
                                    numa->nodes[i]->complete_cpuset) &&
            n++ == 0)
            *first_p = i;
    return n;
}

static akin_closeness_t closeness(hwloc_obj_t a, hwloc_obj_t b,
                                  const akini_node_numa_t *numa)
{
    hwloc_obj_t common = a;
    for (; common != NULL; common = common->parent) {
        hwloc_obj_t y = b;
        while (y != NULL && y != common)
            y = y->parent;
        if (y == common)
            break;
    }
    uint32_t first;
    if (common == NULL)
        return AKIN_CLOSE_SYSTEM;
    if (common->type == HWLOC_OBJ_PCI_DEVICE)
        return AKIN_CLOSE_SWITCH;
    if (common->type == HWLOC_OBJ_BRIDGE)
        return common->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST
                   ? AKIN_CLOSE_HOST
                   : AKIN_CLOSE_SWITCH;
    return numa_of(numa, common, &first) <= 1 ? AKIN_CLOSE_NUMA
                                              : AKIN_CLOSE_SYSTEM;
}

static uint64_t memory_of(hwloc_obj_t pci)
{
    for (hwloc_obj_t os = pci->io_first_child; os != NULL;
         os = os->next_sibling)
        for (size_t i = 0; i < sizeof(memory_infos) / sizeof(*memory_infos);
             i++) {
            const char *text = hwloc_obj_get_info_by_name(os, memory_infos[i]);
            const uint64_t kib = text != NULL ? strtoull(text, NULL, 10) : 0;
            if (kib > 0 && kib <= UINT64_MAX / 1024)
                return kib * 1024;
        }
    return 0;
}

static void fill_gpu(const device_t *device, const akini_node_numa_t *numa,
                     akin_node_gpu_t *gpu)
{
    const char *model = device->os != NULL
                            ? hwloc_obj_get_info_by_name(device->os, "GPUModel")
                            : NULL;
    if (model == NULL)
        model = hwloc_obj_get_info_by_name(device->pci, "PCIDevice");
    print_pci(device->pci, gpu->pci, sizeof(gpu->pci));
    copy_text(gpu->model, sizeof(gpu->model), model);
    copy_text(gpu->name, sizeof(gpu->name),
              device->os != NULL && device->os->name != NULL ? device->os->name
                                                             : gpu->pci);
    gpu->memory_bytes = memory_of(device->pci);
    (void)numa_of(numa, device->pci, &gpu->numa);
}

/* One GPU for each PCI address. */
static akin_status_t read_gpus(devices_t *list, const akini_node_numa_t *numa,
                               akin_node_t *node)
{
    if (list->n == 0)
        return AKIN_OK;
    qsort(list->items, list->n, sizeof(*list->items), compare_gpus);
    uint32_t n = 1;
    for (uint32_t i = 1; i < list->n; i++)
        if (pci_key(list->items[i].pci) != pci_key(list->items[n - 1].pci))
            list->items[n++] = list->items[i];
    list->n = n;
    node->gpus = calloc(n, sizeof(*node->gpus));
    if (node->gpus == NULL)
        return AKIN_ERR_NOMEM;
    node->n_gpus = n;
    for (uint32_t i = 0; i < n; i++)
        fill_gpu(&list->items[i], numa, &node->gpus[i]);
    return AKIN_OK;
}

static akin_status_t read_nics(devices_t *list, const akini_node_numa_t *numa,
                               int is_here, akin_node_t *node)
{
    if (list->n == 0)
        return AKIN_OK;
    qsort(list->items, list->n, sizeof(*list->items), compare_nics);
    node->nics = calloc(list->n, sizeof(*node->nics));
    if (node->nics == NULL)
        return AKIN_ERR_NOMEM;
    node->n_nics = list->n;
    for (uint32_t i = 0; i < list->n; i++) {
        const device_t *device = &list->items[i];
        akin_node_nic_t *nic = &node->nics[i];
        nic->is_rdma = device->rank == 0;
        print_pci(device->pci, nic->pci, sizeof(nic->pci));
        copy_text(nic->name, sizeof(nic->name), device->os->name);
        (void)snprintf(nic->device, sizeof(nic->device), "%s%s", nic->name,
                       nic->is_rdma ? ":1" : "");
        (void)numa_of(numa, device->pci, &nic->numa);
        nic->link_gbs = device->pci->attr->pcidev.linkspeed;
        nic->state = AKIN_LINK_UNKNOWN;
        if (is_here)
            akini_node_link_read(nic);
    }
    return AKIN_OK;
}

/* GPUs whose place the firmware does not tell are dealt out over the NUMA
 * nodes that they may lie at, rather than all called the first one's. */
static void spread_gpus(const devices_t *list, const akini_node_numa_t *numa,
                        akin_node_t *node)
{
    uint32_t n_unplaced = 0, i_unplaced = 0, first;
    if (numa->n < 2)
        return;
    for (uint32_t i = 0; i < node->n_gpus; i++)
        n_unplaced += numa_of(numa, list->items[i].pci, &first) == numa->n;
    for (uint32_t i = 0; i < node->n_gpus; i++)
        if (numa_of(numa, list->items[i].pci, &first) == numa->n)
            node->gpus[i].numa =
                (uint32_t)((uint64_t)i_unplaced++ * numa->n / n_unplaced);
}

static akin_status_t read_closeness(const devices_t *gpus,
                                    const devices_t *nics,
                                    const akini_node_numa_t *numa,
                                    akin_node_t *node)
{
    if (gpus->n == 0 || nics->n == 0)
        return AKIN_OK;
    node->closeness = calloc((size_t)gpus->n * nics->n, 1);
    if (node->closeness == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t g = 0; g < gpus->n; g++)
        for (uint32_t i = 0; i < nics->n; i++)
            node->closeness[(size_t)g * nics->n + i] = (uint8_t)closeness(
                gpus->items[g].pci, nics->items[i].pci, numa);
    return AKIN_OK;
}

akin_status_t akini_node_devices_read(hwloc_topology_t topology,
                                      const akini_node_numa_t *numa,
                                      akin_node_t *node, akin_error_t *err)
{
    devices_t gpus = {0}, nics = {0};
    akin_status_t status = list_backend_gpus(topology, &gpus);
    if (status == AKIN_OK && gpus.n == 0)
        status = list_pci_gpus(topology, &gpus);
    if (status == AKIN_OK)
        status = list_nics(topology, &nics);
    if (status == AKIN_OK)
        status = read_gpus(&gpus, numa, node);
    if (status == AKIN_OK &&
        (gpus.n > AKINI_NODE_MAX_GPUS || nics.n > AKINI_NODE_MAX_NICS))
        status = akin_error_set(err, AKIN_ERR_FORMAT,
                                "%s: %u GPUs and %u NICs, more than a machine "
                                "may have here (%d and %d)",
                                node->origin, gpus.n, nics.n,
                                AKINI_NODE_MAX_GPUS, AKINI_NODE_MAX_NICS);
    if (status == AKIN_OK)
        status = read_nics(&nics, numa, hwloc_topology_is_thissystem(topology),
                           node);
    if (status == AKIN_OK) {
        spread_gpus(&gpus, numa, node);
        status = read_closeness(&gpus, &nics, numa, node);
    }
    free(gpus.items);
    free(nics.items);
    return status;
}
