/* Node: what a machine of the cluster has for ranks, read with hwloc. */
#include "launch/node.h"

#include "launch/node_devices.h"
#include "launch/node_trial.h"
#include "launch/node_xml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bounds of what is worked through; the largest machines stay far below. */
enum { MAX_NUMA = 1024, MAX_CORES = 65536 };

static const char this_machine[] = "this machine";

/* hwloc complains on stderr about XML that it cannot read; the caller gets an
 * error that says more. The variable is the only switch that hwloc has. */
static int load(hwloc_topology_t topology)
{
    static const char hide[] = "HWLOC_HIDE_ERRORS";
    const int was_set = getenv(hide) != NULL;
    if (!was_set)
        (void)setenv(hide, "2", 0);
    const int failed = hwloc_topology_load(topology) != 0;
    if (!was_set)
        (void)unsetenv(hide);
    return failed;
}

/* With disallowed cores, too, so that devices keep their NUMA node. */
static akin_status_t open_topology(hwloc_topology_t *topology_p)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return AKIN_ERR_NOMEM;
    if (hwloc_topology_set_io_types_filter(topology,
                                           HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
        hwloc_topology_set_flags(topology,
                                 HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0) {
        hwloc_topology_destroy(topology);
        return AKIN_ERR_NOMEM;
    }
    *topology_p = topology;
    return AKIN_OK;
}

static akin_status_t load_this_machine(hwloc_topology_t *topology_p,
                                       akin_error_t *err)
{
    hwloc_topology_t topology = NULL;
    akin_status_t status = open_topology(&topology);
    if (status != AKIN_OK)
        return status;
    errno = 0;
    if (load(topology)) {
        const int why = errno;
        hwloc_topology_destroy(topology);
        return akin_error_set(err, AKIN_ERR_IO,
                              "hwloc cannot read this machine: %s",
                              why != 0 ? strerror(why) : "no reason given");
    }
    *topology_p = topology;
    return AKIN_OK;
}

/* Cores that may be used: those of the cgroup and, on this machine, of this
 * thread's affinity mask. NULL: out of memory. */
static hwloc_bitmap_t usable_pus(hwloc_topology_t topology)
{
    hwloc_bitmap_t pus =
        hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology));
    hwloc_bitmap_t bound = hwloc_bitmap_alloc();
    if (pus != NULL && bound != NULL &&
        hwloc_topology_is_thissystem(topology) &&
        hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_THREAD) == 0 &&
        hwloc_bitmap_intersects(pus, bound))
        (void)hwloc_bitmap_and(pus, pus, bound);
    if (bound == NULL) {
        hwloc_bitmap_free(pus);
        pus = NULL;
    }
    hwloc_bitmap_free(bound);
    return pus;
}

/* Memory alone (of a GPU, CXL) is no place for ranks, and a second memory of
 * the same cores is no second place. */
static int has_own_cores(hwloc_obj_t numa, hwloc_obj_t before)
{
    return numa->complete_cpuset != NULL &&
           !hwloc_bitmap_iszero(numa->complete_cpuset) &&
           (before == NULL ||
            !hwloc_bitmap_intersects(numa->complete_cpuset,
                                     before->complete_cpuset));
}

static akin_status_t list_numa(hwloc_topology_t topology, const char *origin,
                               akini_node_numa_t *numa, akin_error_t *err)
{
    const int n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    if (n < 1 || n > MAX_NUMA)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: %d NUMA nodes; a machine has 1 to %d here",
                              origin, n, MAX_NUMA);
    numa->nodes = calloc((size_t)n, sizeof(*numa->nodes));
    if (numa->nodes == NULL)
        return AKIN_ERR_NOMEM;
    for (int i = 0; i < n; i++) {
        hwloc_obj_t obj =
            hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, (unsigned)i);
        if (obj != NULL &&
            has_own_cores(obj, numa->n > 0 ? numa->nodes[numa->n - 1] : NULL))
            numa->nodes[numa->n++] = obj;
    }
    return AKIN_OK;
}

static uint32_t numa_of_core(const akini_node_numa_t *numa, hwloc_obj_t core,
                             uint32_t guess)
{
    for (uint32_t i = 0; i < numa->n; i++) {
        /* Neighbours mostly lie in the same one. */
        const uint32_t at = (guess + i) % numa->n;
        if (hwloc_bitmap_intersects(core->cpuset,
                                    numa->nodes[at]->complete_cpuset))
            return at;
    }
    return 0;
}

static akin_status_t add_core(const akini_node_numa_t *numa, hwloc_obj_t obj,
                              hwloc_const_bitmap_t usable, akin_node_t *node)
{
    akin_node_core_t *core = &node->cores[node->n_cores];
    if (!hwloc_bitmap_intersects(obj->cpuset, usable))
        return AKIN_OK;
    core->pus = hwloc_bitmap_alloc();
    if (core->pus == NULL ||
        hwloc_bitmap_and(core->pus, obj->cpuset, usable) != 0) {
        hwloc_bitmap_free(core->pus);
        core->pus = NULL;
        return AKIN_ERR_NOMEM;
    }
    core->numa = numa_of_core(
        numa, obj, node->n_cores > 0 ? node->cores[node->n_cores - 1].numa : 0);
    node->n_cores++;
    return AKIN_OK;
}

/* Some virtual machines have hardware threads and no cores; each is one then.
 */
static akin_status_t read_cores(hwloc_topology_t topology,
                                const akini_node_numa_t *numa,
                                hwloc_const_bitmap_t usable, akin_node_t *node,
                                akin_error_t *err)
{
    const int n_pus = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    if (n_pus > MAX_CORES)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: %d hardware threads, more than a machine "
                              "may have here (%d)",
                              node->origin, n_pus, MAX_CORES);
    if (n_pus > 0) {
        node->cores = calloc((size_t)n_pus, sizeof(*node->cores));
        if (node->cores == NULL)
            return AKIN_ERR_NOMEM;
    }
    hwloc_obj_t last = NULL;
    akin_status_t status = AKIN_OK;
    for (int i = 0; i < n_pus && status == AKIN_OK; i++) {
        hwloc_obj_t pu =
            hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, (unsigned)i);
        hwloc_obj_t core =
            hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
        if (core == NULL)
            core = pu;
        if (core != last)
            status = add_core(numa, core, usable, node);
        last = core;
    }
    if (status == AKIN_OK && node->n_cores == 0)
        status = akin_error_set(err, AKIN_ERR_FORMAT,
                                "%s: a machine without cores that may be used",
                                node->origin);
    return status;
}

static akin_status_t read_topology(hwloc_topology_t topology,
                                   const char *origin, akin_node_t *node_p,
                                   akin_error_t *err)
{
    akin_node_t node = {.origin = strdup(origin)};
    akini_node_numa_t numa = {0};
    hwloc_bitmap_t usable = usable_pus(topology);
    akin_status_t status =
        node.origin != NULL && usable != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
    if (status == AKIN_OK)
        status = list_numa(topology, origin, &numa, err);
    node.n_numa = numa.n > 0 ? numa.n : 1;
    if (status == AKIN_OK)
        status = read_cores(topology, &numa, usable, &node, err);
    if (status == AKIN_OK)
        status = akini_node_devices_read(topology, &numa, &node, err);
    free(numa.nodes);
    hwloc_bitmap_free(usable);
    if (status != AKIN_OK)
        akin_node_cleanup(&node);
    else
        *node_p = node;
    return status;
}

typedef struct xml {
    const char *text;
    size_t bytes; /* the NUL included */
    const char *origin;
    akin_node_t *node;
    akin_error_t *err;
} xml_t;

static akin_status_t read_xml(const xml_t *xml)
{
    hwloc_topology_t topology = NULL;
    akin_status_t status = open_topology(&topology);
    if (status != AKIN_OK)
        return status;
    if (hwloc_topology_set_xmlbuffer(topology, xml->text, (int)xml->bytes) !=
            0 ||
        load(topology))
        status = AKIN_ERR_FORMAT;
    else
        status = read_topology(topology, xml->origin, xml->node, xml->err);
    hwloc_topology_destroy(topology);
    return status;
}

/* Whether hwloc survives a text. What it takes or refuses is told later. */
static int survives(void *arg)
{
    xml_t xml = *(const xml_t *)arg;
    akin_node_t node = {0};
    xml.node = &node;
    xml.err = NULL;
    if (read_xml(&xml) == AKIN_OK)
        akin_node_cleanup(&node);
    return 1;
}

static akin_status_t try_and_read_xml(const xml_t *source)
{
    akin_error_t why = {{0}};
    xml_t xml = *source;
    akin_status_t status = akini_node_trial(survives, &xml);
    if (status == AKIN_ERR_IO)
        return akin_error_set(source->err, status,
                              "%s: no process to read it in: %s",
                              source->origin, strerror(errno));
    xml.err = &why;
    if (status == AKIN_OK)
        status = read_xml(&xml);
    if (status == AKIN_ERR_FORMAT && why.text[0] == '\0')
        return akin_error_set(source->err, status,
                              "%s: hwloc does not take this for a machine; "
                              "write the file anew with akin info --xml",
                              source->origin);
    if (status != AKIN_OK)
        return akin_error_set(source->err, status, "%s", why.text);
    return status;
}

akin_status_t akin_node_read_text(const char *text, size_t bytes,
                                  const char *origin, akin_node_t *node_p,
                                  akin_error_t *err)
{
    char *xml = NULL;
    size_t xml_bytes = 0;
    akin_status_t status =
        akini_node_xml_check(text, bytes, origin, &xml, &xml_bytes, err);
    if (status == AKIN_OK) {
        const xml_t source = {xml, xml_bytes, origin, node_p, err};
        status = try_and_read_xml(&source);
    }
    free(xml);
    return status;
}

akin_status_t akin_node_read(const char *path, akin_node_t *node_p,
                             akin_error_t *err)
{
    if (path != NULL) {
        char *text = NULL;
        size_t bytes = 0;
        akin_status_t status = akini_node_xml_load(path, &text, &bytes, err);
        if (status == AKIN_OK)
            status = akin_node_read_text(text, bytes, path, node_p, err);
        free(text);
        return status;
    }
    hwloc_topology_t topology = NULL;
    akin_status_t status = load_this_machine(&topology, err);
    if (status != AKIN_OK)
        return status;
    status = read_topology(topology, this_machine, node_p, err);
    hwloc_topology_destroy(topology);
    return status;
}

akin_status_t akin_node_export(char **text_p, size_t *bytes_p,
                               akin_error_t *err)
{
    hwloc_topology_t topology = NULL;
    char *buffer = NULL;
    int bytes = 0;
    *text_p = NULL;
    *bytes_p = 0;
    akin_status_t status = load_this_machine(&topology, err);
    if (status != AKIN_OK)
        return status;
    hwloc_bitmap_t usable = usable_pus(topology);
    /* Who reads it elsewhere sees the cores that this process may use. */
    if (usable == NULL)
        status = AKIN_ERR_NOMEM;
    else if ((hwloc_topology_is_thissystem(topology) &&
              hwloc_topology_allow(topology, usable, NULL,
                                   HWLOC_ALLOW_FLAG_CUSTOM) != 0) ||
             hwloc_topology_export_xmlbuffer(topology, &buffer, &bytes, 0) != 0)
        status = akin_error_set(err, AKIN_ERR_IO,
                                "hwloc cannot write this machine as XML: %s",
                                strerror(errno));
    /* The buffer is hwloc's own; its length counts the NUL. */
    if (status == AKIN_OK) {
        *text_p = strdup(buffer);
        *bytes_p = strlen(buffer);
        if (*text_p == NULL)
            status = AKIN_ERR_NOMEM;
    }
    if (buffer != NULL)
        hwloc_free_xmlbuffer(topology, buffer);
    hwloc_bitmap_free(usable);
    hwloc_topology_destroy(topology);
    return status;
}

void akin_node_cleanup(akin_node_t *node)
{
    for (uint32_t i = 0; node->cores != NULL && i < node->n_cores; i++)
        hwloc_bitmap_free(node->cores[i].pus);
    free(node->cores);
    free(node->gpus);
    free(node->nics);
    free(node->closeness);
    free(node->origin);
    *node = (akin_node_t){0};
}
