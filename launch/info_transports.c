/* Info on transports: what UCX finds on this machine, and what the environment
 * leaves of it. */
#include "launch/info_transports.h"

#include "launch/command.h"
#include "net/boot.h"
#include "net/ucx_log.h"
#include "roles/host_record.h"
#include "roles/rank.h"

#include <jansson.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

/* The variables of UCX that decide what it may use. */
static const char *const variables[] = {
    "UCX_TLS",          "UCX_NET_DEVICES",  "UCX_SHM_DEVICES",
    "UCX_ACC_DEVICES",  "UCX_SELF_DEVICES", "UCX_MM_ERROR_HANDLING",
    "UCX_IB_GID_INDEX",
};

/* What UCX would use in this environment: a row "... -- tcp/eth0" for each, in
 * the text that UCX writes about a context; malloc'ed, or NULL. */
static char *read_context(void)
{
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features = UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP,
    };
    ucp_config_t *config;
    ucp_context_h context;
    char *text = NULL;
    size_t bytes;
    if (ucp_config_read(NULL, NULL, &config) != UCS_OK)
        return NULL;
    const ucs_status_t s = ucp_init(&params, config, &context);
    ucp_config_release(config);
    if (s != UCS_OK)
        return NULL;
    FILE *stream = open_memstream(&text, &bytes);
    if (stream != NULL) {
        ucp_context_print_info(context, stream);
        (void)fclose(stream);
    }
    ucp_cleanup(context);
    return text;
}

static int is_used(const char *context, const char *transport,
                   const char *device)
{
    char row[128];
    (void)snprintf(row, sizeof(row), " %s/%s\n", transport, device);
    return context != NULL && strstr(context, row) != NULL;
}

static const char *kind_of(const uct_tl_resource_desc_t *r)
{
    switch (r->dev_type) {
    case UCT_DEVICE_TYPE_SHM:
        return "shared memory";
    case UCT_DEVICE_TYPE_ACC:
        return "GPU";
    case UCT_DEVICE_TYPE_SELF:
        return "own process";
    case UCT_DEVICE_TYPE_NET:
    case UCT_DEVICE_TYPE_LAST:
    default:
        /* Of those of the network, it alone needs the kernel. */
        return strcmp(r->tl_name, "tcp") == 0 ? "network" : "RDMA";
    }
}

/* "up", "down"; "" where that means nothing. */
static void read_state(const uct_tl_resource_desc_t *r,
                       const akini_host_t *host, char *state, size_t size)
{
    char path[96];
    state[0] = '\0';
    if (r->dev_type != UCT_DEVICE_TYPE_NET)
        return;
    for (uint32_t i = 0; i < host->n_ports; i++) {
        const akini_host_port_t *port = &host->ports[i];
        char name[48];
        (void)snprintf(name, sizeof(name), "%s:%u", port->device, port->number);
        if (strcmp(name, r->dev_name) == 0) {
            (void)snprintf(state, size, "%s", port->is_active ? "up" : "down");
            return;
        }
    }
    (void)snprintf(path, sizeof(path), "/sys/class/net/%.32s/operstate",
                   r->dev_name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    if (fgets(state, (int)size, file) == NULL)
        state[0] = '\0';
    (void)fclose(file);
    state[strcspn(state, "\n")] = '\0';
    /* The loopback device has no link that could be up. */
    if (strcmp(state, "unknown") == 0)
        (void)snprintf(state, size, "up");
}

/* What is found goes here. */
typedef struct survey {
    const char *context;
    const akini_host_t *host;
    json_t *transports;
} survey_t;

static void add_resource(const survey_t *survey,
                         const uct_tl_resource_desc_t *r)
{
    char state[16];
    read_state(r, survey->host, state, sizeof(state));
    (void)json_array_append_new(
        survey->transports,
        json_pack("{s:s, s:s, s:s, s:s, s:b}", "transport", r->tl_name,
                  "device", r->dev_name, "kind", kind_of(r), "state", state,
                  "used", is_used(survey->context, r->tl_name, r->dev_name)));
}

static void add_domain(const survey_t *survey, uct_component_h component,
                       const char *name)
{
    uct_md_config_t *config;
    uct_md_h domain;
    uct_tl_resource_desc_t *resources;
    unsigned n;
    if (uct_md_config_read(component, NULL, NULL, &config) != UCS_OK)
        return;
    ucs_status_t s = uct_md_open(component, name, config, &domain);
    uct_config_release(config);
    /* A device that cannot be opened is one that UCX does not use. */
    if (s != UCS_OK)
        return;
    if (uct_md_query_tl_resources(domain, &resources, &n) == UCS_OK) {
        for (unsigned i = 0; i < n; i++)
            add_resource(survey, &resources[i]);
        uct_release_tl_resource_list(resources);
    }
    uct_md_close(domain);
}

static void add_component(const survey_t *survey, uct_component_h component)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT};
    if (uct_component_query(component, &attr) != UCS_OK ||
        attr.md_resource_count == 0)
        return;
    attr.md_resources =
        calloc(attr.md_resource_count, sizeof(*attr.md_resources));
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    if (attr.md_resources != NULL &&
        uct_component_query(component, &attr) == UCS_OK)
        for (unsigned i = 0; i < attr.md_resource_count; i++)
            add_domain(survey, component, attr.md_resources[i].md_name);
    free(attr.md_resources);
}

static json_t *ports_json(const akini_host_t *host)
{
    json_t *ports = json_array();
    for (uint32_t i = 0; i < host->n_ports; i++)
        (void)json_array_append_new(
            ports, json_pack("{s:s, s:i, s:b}", "device", host->ports[i].device,
                             "port", (int)host->ports[i].number, "active",
                             host->ports[i].is_active));
    return ports;
}

static json_t *variables_json(void)
{
    json_t *set = json_object();
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *value = getenv(variables[i]);
        if (value != NULL)
            (void)json_object_set_new(set, variables[i], json_string(value));
    }
    return set;
}

/* {"transports", "rdma_ports", "environment"}; takes the last one. NULL: out of
 * memory. */
static json_t *look(const akini_host_t *host, json_t *environment)
{
    uct_component_h *components;
    unsigned n;
    char *context = read_context();
    const survey_t survey = {context, host, json_array()};
    if (uct_query_components(&components, &n) == UCS_OK) {
        for (unsigned i = 0; i < n; i++)
            add_component(&survey, components[i]);
        uct_release_component_list(components);
    }
    const int is_usable = context != NULL;
    free(context);
    return json_pack("{s:s, s:s, s:b, s:o, s:o, s:o}", "host", host->name,
                     "ucx", ucp_get_version_string(), "usable", is_usable,
                     "transports", survey.transports, "rdma_ports",
                     ports_json(host), "environment", environment);
}

static int fill(struct libscols_table *table, const json_t *transports)
{
    static const char *const keys[] = {"transport", "device", "kind", "state"};
    int failed = 0;
    for (size_t k = 0; k < 4; k++)
        failed |= scols_table_new_column(table, keys[k], 0, 0) == NULL;
    failed |= scols_table_new_column(table, "used", 0, 0) == NULL;
    for (size_t i = 0; i < json_array_size(transports) && !failed; i++) {
        const json_t *t = json_array_get(transports, i);
        struct libscols_line *line = scols_table_new_line(table, NULL);
        if (line == NULL)
            return 1;
        for (size_t k = 0; k < 4; k++) {
            const char *text = json_string_value(json_object_get(t, keys[k]));
            failed |=
                scols_line_set_data(line, k, text[0] != '\0' ? text : "-") != 0;
        }
        failed |= scols_line_set_data(line, 4,
                                      json_is_true(json_object_get(t, "used"))
                                          ? "yes"
                                          : "no") != 0;
    }
    return failed;
}

static void print_ports(const akini_host_t *host)
{
    if (host->n_ports == 0)
        (void)printf("\nno RDMA device: KV between hosts will go over tcp\n");
    else
        (void)printf("\nRDMA ports:");
    for (uint32_t i = 0; i < host->n_ports; i++)
        (void)printf(" %s:%u %s%s", host->ports[i].device,
                     host->ports[i].number,
                     host->ports[i].is_active ? "up" : "down",
                     i + 1 < host->n_ports ? "," : "\n");
}

static int print_table(const json_t *all, const akini_host_t *host)
{
    struct libscols_table *table = scols_new_table();
    akin_error_t err = {{0}};
    const char *name;
    json_t *value;
    if (table == NULL || fill(table, json_object_get(all, "transports")) ||
        scols_print_table(table) != 0) {
        scols_unref_table(table);
        return akin_command_fail(AKIN_ERR_NOMEM, &err);
    }
    scols_unref_table(table);
    print_ports(host);
    if (!json_is_true(json_object_get(all, "usable")))
        (void)printf("UCX cannot start: it may use nothing of this\n");
    json_object_foreach(json_object_get(all, "environment"), name, value)(void)
        printf("%s=%s limits them\n", name, json_string_value(value));
    return AKIN_EXIT_OK;
}

int akini_info_transports(int as_json)
{
    akini_host_t host;
    json_t *environment = variables_json();
    /* As ranks run: what the user has not set is theirs. */
    akini_ucx_log_hush();
    akin_boot_set_environment();
    akini_host_read(AKINI_HOST_INFINIBAND, AKIN_RANK_NO_NODE, NULL, &host);
    json_t *all = look(&host, environment);
    if (as_json || all == NULL)
        return akin_command_print_json(all);
    const int code = print_table(all, &host);
    json_decref(all);
    return code;
}
