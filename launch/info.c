/* info: versions, this machine, a model, the keys of the job file. */
#include "launch/command.h"
#include "launch/info_conf_page.h"
#include "launch/info_topology.h"
#include "launch/info_transports.h"

#include "base/thread.h"
#include "base/version.h"
#include "engine/model.h"
#include "engine/tokenizer.h"
#include "kv/block.h"
#include "math/kernels.h"
#include "roles/job.h"

#include <argp.h>
#include <hwloc.h>
#include <jansson.h>
#include <libconfig.h>
#include <mpi.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>
#include <unistring/version.h>
#include <xxhash.h>

typedef struct options {
    const char *model_dir;
    const char *kernel;
    int config;
    int is_page; /* of config */
    int transports;
    int topology;
    const char *topology_path; /* NULL: of this machine */
    int xml;
    int json;
} options_t;

enum {
    OPT_CONFIG = 256,
    OPT_KERNEL,
    OPT_TRANSPORTS,
    OPT_TOPOLOGY,
    OPT_XML,
    OPT_JSON
};

static const struct argp_option arguments[] = {
    {"model", 'm', "DIR", 0, "Show a model's shape and sizes", 0},
    {"config", OPT_CONFIG, "FORM", OPTION_ARG_OPTIONAL,
     "Show every key of the job file, as a table or, with FORM man, as the "
     "source of akin.conf(5)",
     0},
    {"kernel", OPT_KERNEL, "PATH", 0,
     "Kernel path to check: auto, avx512, avx2, portable", 0},
    {"transports", OPT_TRANSPORTS, NULL, 0,
     "Show what UCX finds on this machine, and what it may use", 0},
    {"topology", OPT_TOPOLOGY, "FILE", OPTION_ARG_OPTIONAL,
     "Show the NUMA nodes, GPUs and NICs of this machine, or of the one whose "
     "hwloc XML FILE is",
     0},
    {"xml", OPT_XML, NULL, 0,
     "Print this machine as hwloc XML, for cluster.topology", 0},
    {"json", OPT_JSON, NULL, 0, "Print JSON", 0},
    {0}};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    switch (key) {
    case 'm':
        o->model_dir = arg;
        break;
    case OPT_CONFIG:
        if (arg != NULL && strcmp(arg, "man") != 0)
            argp_error(state, "--config=%s: the only other form is man", arg);
        o->config = 1;
        o->is_page = arg != NULL;
        break;
    case OPT_KERNEL:
        o->kernel = arg;
        break;
    case OPT_TRANSPORTS:
        o->transports = 1;
        break;
    case OPT_TOPOLOGY:
        o->topology = 1;
        o->topology_path = arg;
        break;
    case OPT_XML:
        o->xml = 1;
        break;
    case OPT_JSON:
        o->json = 1;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static json_t *libraries(void)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    char pcre2[64] = "", libconfig[32], unistring[32], hwloc[32], xxhash[32];
    int length = 0;
    /* These may be called before MPI_Init. */
    (void)MPI_Get_library_version(mpi, &length);
    mpi[strcspn(mpi, ",\n")] = '\0';
    (void)pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    pcre2[strcspn(pcre2, " ")] = '\0';
    (void)snprintf(libconfig, sizeof(libconfig), "%d.%d.%d",
                   LIBCONFIG_VER_MAJOR, LIBCONFIG_VER_MINOR,
                   LIBCONFIG_VER_REVISION);
    (void)snprintf(unistring, sizeof(unistring), "%d.%d",
                   _libunistring_version >> 8, _libunistring_version & 0xff);
    unsigned api = hwloc_get_api_version();
    (void)snprintf(hwloc, sizeof(hwloc), "%u.%u.%u", api >> 16, api >> 8 & 0xff,
                   api & 0xff);
    unsigned xxh = XXH_versionNumber();
    (void)snprintf(xxhash, sizeof(xxhash), "%u.%u.%u", xxh / 10000,
                   xxh / 100 % 100, xxh % 100);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "mpi", mpi,
                     "ucx", ucp_get_version_string(), "hwloc", hwloc,
                     "libconfig", libconfig, "jansson", JANSSON_VERSION,
                     "pcre2", pcre2, "libunistring", unistring, "xxhash",
                     xxhash);
}

static json_t *machine(const akin_kernels_t *kernels)
{
    json_t *paths = json_array();
    for (akin_kernel_path_t p = AKIN_KERNEL_AVX512; p < AKIN_KERNEL_COUNT; p++)
        if (akin_kernels_of(p) != NULL)
            (void)json_array_append_new(paths,
                                        json_string(akin_kernel_path_name(p)));
    char cpu[128] = "unknown";
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) == 0) {
        if (hwloc_topology_load(topology) == 0) {
            hwloc_obj_t package =
                hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
            const char *model =
                package != NULL
                    ? hwloc_obj_get_info_by_name(package, "CPUModel")
                    : NULL;
            if (model != NULL)
                (void)snprintf(cpu, sizeof(cpu), "%s", model);
        }
        hwloc_topology_destroy(topology);
    }
    return json_pack("{s:s, s:i, s:o, s:s}", "cpu", cpu, "cores",
                     akin_thread_usable_cores(), "kernels", paths, "kernel",
                     kernels->name);
}

static akin_status_t model(const char *dir, json_t **json_p, akin_error_t *err)
{
    akin_model_t *m;
    akin_kv_layout_t layout;
    akin_status_t status = akin_model_open(dir, &m, err);
    if (status != AKIN_OK)
        return status;
    const akin_model_config_t *c = &m->config;
    const akin_kv_shape_t shape = {c->n_layers,  c->n_kv_heads, c->head_dim,
                                   c->n_experts, c->top_k,      16};
    status = akin_kv_layout_init(&shape, &layout, err);
    if (status == AKIN_OK)
        *json_p = json_pack(
            "{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, "
            "s:I, s:I, s:I, s:I}",
            "path", dir, "architecture", c->architecture, "layers",
            (int)c->n_layers, "hidden", (int)c->hidden_size, "heads",
            (int)c->n_heads, "kv_heads", (int)c->n_kv_heads, "head_dim",
            (int)c->head_dim, "experts", (int)c->n_experts, "top_k",
            (int)c->top_k, "expert_intermediate", (int)c->moe_intermediate_size,
            "vocab", (int)c->vocab_size, "max_positions", (int)c->max_positions,
            "weight_bytes", (json_int_t)m->weight_bytes, "expert_bytes",
            (json_int_t)akin_model_expert_bytes(m), "kv_bytes_per_token",
            (json_int_t)(layout.kv_bytes / shape.block_tokens),
            "sidecar_bytes_per_block", (json_int_t)layout.sidecar_bytes);
    akin_model_close(m);
    return status;
}

/* "name: value" lines, one level deep. */
static void print_object(const char *title, const json_t *object)
{
    (void)printf("%s\n", title);
    const char *key;
    json_t *value;
    /* jansson's iteration macro needs a pointer it could modify through. */
    for (void *it = json_object_iter((json_t *)(uintptr_t)object); it != NULL;
         it = json_object_iter_next((json_t *)(uintptr_t)object, it)) {
        key = json_object_iter_key(it);
        value = json_object_iter_value(it);
        (void)printf("  %-24s", key);
        if (json_is_string(value))
            (void)printf("%s\n", json_string_value(value));
        else if (json_is_integer(value))
            (void)printf("%lld\n", (long long)json_integer_value(value));
        else if (json_is_array(value)) {
            for (size_t i = 0; i < json_array_size(value); i++)
                (void)printf("%s%s", i > 0 ? " " : "",
                             json_string_value(json_array_get(value, i)));
            (void)printf("\n");
        }
    }
}

static int print_config(void)
{
    akin_config_t *config;
    akin_error_t err = {{0}};
    akin_status_t status =
        akin_config_create(akin_job_rows, akin_job_n_rows, &config);
    if (status == AKIN_OK)
        status = akin_config_print(config, stdout);
    akin_config_destroy(config);
    /* What could not be written is told when the process ends. */
    if (status != AKIN_OK && status != AKIN_ERR_IO)
        return akin_command_fail(status, &err);
    return status == AKIN_OK ? AKIN_EXIT_OK : AKIN_EXIT_FAILED;
}

int akin_command_info(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        NULL,
        "Show the version, its libraries, this machine and, if asked, a model "
        "or the keys of the job file.",
        NULL,
        NULL,
        NULL};
    options_t o = {.kernel = "auto"};
    akin_error_t err = {{0}};
    const akin_kernels_t *kernels;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return AKIN_EXIT_USAGE;
    akin_status_t status = akin_kernels_find(o.kernel, &kernels, &err);
    if (status != AKIN_OK)
        return akin_command_fail(AKIN_ERR_INVALID, &err);
    if (o.transports)
        return akini_info_transports(o.json);
    if (o.xml)
        return akini_info_xml();
    if (o.topology)
        return akini_info_topology(o.topology_path, o.json);
    if (o.config && o.is_page) {
        akini_info_conf_page_write(stdout);
        return AKIN_EXIT_OK;
    }
    if (o.config)
        return print_config();
    json_t *model_json = NULL;
    if (o.model_dir != NULL)
        status = model(o.model_dir, &model_json, &err);
    if (status != AKIN_OK)
        return akin_command_fail(status, &err);
    json_t *all = json_pack("{s:{s:s, s:s, s:s}, s:o, s:o, s:o*}", "akin",
                            "version", AKIN_VERSION, "build", AKIN_BUILD_TYPE,
                            "compiler", AKIN_COMPILER, "libraries", libraries(),
                            "machine", machine(kernels), "model", model_json);
    if (o.json || all == NULL)
        return akin_command_print_json(all);
    print_object("akin", json_object_get(all, "akin"));
    print_object("libraries", json_object_get(all, "libraries"));
    print_object("machine", json_object_get(all, "machine"));
    if (o.model_dir != NULL)
        print_object("model", json_object_get(all, "model"));
    json_decref(all);
    return AKIN_EXIT_OK;
}
