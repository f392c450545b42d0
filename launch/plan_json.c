/* Plan JSON: written for people to read, read as what anybody may have
 * written. */
#include "launch/plan_json.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* No machine has more hardware threads; hwloc would allocate for all below. */
#define MAX_CPU 65535
#define MAX_RANKS 1048576
#define MAX_NODES 65536

static json_t *json_of_rank(const akin_plan_rank_t *r)
{
    char *cores = NULL;
    if (hwloc_bitmap_list_asprintf(&cores, r->cores) < 0)
        return NULL;
    json_t *row = json_pack(
        "{s:I, s:s, s:I, s:I, s:o, s:o, s:s, s:I, s:I}", "rank",
        (json_int_t)r->rank, "role", akin_job_role_name(r->role), "worker",
        (json_int_t)r->worker, "node", (json_int_t)r->node, "gpu",
        r->gpu == AKIN_PLAN_NO_GPU ? json_null()
                                   : json_integer((json_int_t)r->gpu),
        "nic", r->nic[0] == '\0' ? json_null() : json_string(r->nic), "cores",
        cores, "threads", (json_int_t)r->n_cores, "numa", (json_int_t)r->numa);
    free(cores);
    return row;
}

static json_t *json_of_nodes(const akin_plan_t *plan)
{
    json_t *nodes = json_array();
    for (uint32_t n = 0; n < plan->n_nodes; n++)
        if (json_array_append_new(nodes, plan->hosts != NULL
                                             ? json_string(plan->hosts[n])
                                             : json_null()) != 0) {
            json_decref(nodes);
            return NULL;
        }
    return nodes;
}

json_t *akin_plan_json(const akin_plan_t *plan)
{
    json_t *ranks = json_array();
    for (uint32_t r = 0; r < plan->n_ranks; r++)
        if (json_array_append_new(ranks, json_of_rank(&plan->ranks[r])) != 0) {
            json_decref(ranks);
            return NULL;
        }
    return json_pack("{s:o, s:o}", "nodes", json_of_nodes(plan), "ranks",
                     ranks);
}

akin_status_t akin_plan_write(const akin_plan_t *plan, FILE *stream)
{
    const size_t flags = JSON_ENCODE_ANY;
    json_t *nodes = json_of_nodes(plan);
    akin_status_t status = nodes != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
    (void)fputs("{\"nodes\": ", stream);
    (void)json_dumpf(nodes, stream, flags);
    (void)fputs(", \"ranks\": [\n", stream);
    json_decref(nodes);
    for (uint32_t r = 0; r < plan->n_ranks && status == AKIN_OK; r++) {
        json_t *row = json_of_rank(&plan->ranks[r]);
        if (row == NULL)
            status = AKIN_ERR_NOMEM;
        (void)json_dumpf(row, stream, flags);
        (void)fputs(r + 1 < plan->n_ranks ? ",\n" : "]}", stream);
        json_decref(row);
    }
    return status;
}

/* Where in the plan a value is. */
typedef struct place {
    const char *origin;
    size_t row;
    akin_error_t *err;
} place_t;

static akin_status_t refuse(const place_t *at, const char *key,
                            const char *wanted)
{
    return akin_error_set(at->err, AKIN_ERR_CONFIG,
                          "%s: ranks[%zu].%s: %s is needed; akin plan --emit "
                          "json writes such a plan",
                          at->origin, at->row, key, wanted);
}

static akin_status_t get_number(const place_t *at, const json_t *row,
                                const char *key, uint32_t max, uint32_t *n_p)
{
    const json_t *value = json_object_get(row, key);
    const json_int_t n = json_integer_value(value);
    char wanted[64];
    if (json_is_integer(value) && n >= 0 && n <= (json_int_t)max) {
        *n_p = (uint32_t)n;
        return AKIN_OK;
    }
    (void)snprintf(wanted, sizeof(wanted), "a number from 0 to %u", max);
    return refuse(at, key, wanted);
}

static akin_status_t get_role(const place_t *at, const json_t *row,
                              akin_job_role_t *role_p)
{
    const char *name = json_string_value(json_object_get(row, "role"));
    for (int r = AKIN_JOB_ROUTER; name != NULL && r <= AKIN_JOB_SPARE; r++)
        if (strcmp(name, akin_job_role_name((akin_job_role_t)r)) == 0) {
            *role_p = (akin_job_role_t)r;
            return AKIN_OK;
        }
    return refuse(at, "role", "router, prefill, decode or spare");
}

/* What UCX_NET_DEVICES takes and a shell's quotes let pass. */
static akin_status_t get_nic(const place_t *at, const json_t *row,
                             char nic[static 48])
{
    const json_t *value = json_object_get(row, "nic");
    const char *name = json_string_value(value);
    if (json_is_null(value))
        return AKIN_OK;
    if (name == NULL || name[0] == '\0' || strlen(name) >= 48 ||
        name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                          "0123456789_-.:@")] != '\0')
        return refuse(at, "nic", "a device like \"mlx5_0:1\", or null");
    (void)snprintf(nic, 48, "%s", name);
    return AKIN_OK;
}

static akin_status_t get_cores(const place_t *at, const json_t *row,
                               hwloc_bitmap_t *cores_p)
{
    const char *list = json_string_value(json_object_get(row, "cores"));
    const char *wanted = "a list of hardware threads like \"0-3,8\"";
    if (list == NULL || list[strspn(list, "0123456789,-")] != '\0')
        return refuse(at, "cores", wanted);
    for (const char *p = list; *p != '\0';) {
        char *end = NULL;
        const unsigned long n = strtoul(p, &end, 10);
        if (end == p || n > MAX_CPU)
            return refuse(at, "cores", wanted);
        p = end + (*end != '\0');
    }
    *cores_p = hwloc_bitmap_alloc();
    if (*cores_p == NULL)
        return akin_error_set(at->err, AKIN_ERR_NOMEM, "out of memory");
    if (hwloc_bitmap_list_sscanf(*cores_p, list) != 0 ||
        hwloc_bitmap_iszero(*cores_p) || hwloc_bitmap_last(*cores_p) < 0)
        return refuse(at, "cores", wanted);
    return AKIN_OK;
}

static akin_status_t read_rank(const place_t *at, const json_t *row,
                               const akin_plan_t *plan, akin_plan_rank_t *r)
{
    uint32_t rank = 0;
    akin_status_t status = get_number(at, row, "rank", MAX_RANKS, &rank);
    if (status == AKIN_OK && rank != at->row)
        status = refuse(at, "rank", "the number of the row");
    r->rank = rank;
    if (status == AKIN_OK)
        status = get_role(at, row, &r->role);
    if (status == AKIN_OK)
        status = get_number(at, row, "worker", MAX_RANKS, &r->worker);
    if (status == AKIN_OK)
        status = get_number(at, row, "node", plan->n_nodes - 1, &r->node);
    r->gpu = AKIN_PLAN_NO_GPU;
    if (status == AKIN_OK && !json_is_null(json_object_get(row, "gpu")))
        status = get_number(at, row, "gpu", 1023, &r->gpu);
    if (status == AKIN_OK)
        status = get_nic(at, row, r->nic);
    if (status == AKIN_OK)
        status = get_cores(at, row, &r->cores);
    if (status == AKIN_OK)
        status = get_number(at, row, "threads", MAX_CPU, &r->n_cores);
    if (status == AKIN_OK && r->n_cores == 0)
        status = refuse(at, "threads", "at least 1");
    if (status == AKIN_OK)
        status = get_number(at, row, "numa", MAX_CPU, &r->numa);
    return status;
}

static akin_status_t read_nodes(const char *origin, const json_t *nodes,
                                akin_plan_t *plan, akin_error_t *err)
{
    const size_t n = json_array_size(nodes);
    if (n == 0 || n > MAX_NODES)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "%s: nodes: a list of host names or nulls is "
                              "needed; akin plan --emit json writes such a "
                              "plan",
                              origin);
    plan->n_nodes = (uint32_t)n;
    if (!json_is_string(json_array_get(nodes, 0)))
        return AKIN_OK;
    plan->hosts = calloc(n, sizeof(*plan->hosts));
    for (size_t i = 0; plan->hosts != NULL && i < n; i++) {
        const char *name = json_string_value(json_array_get(nodes, i));
        if (name == NULL || name[0] == '\0' || strlen(name) > 255 ||
            strpbrk(name, " \t\n'\"\\,=") != NULL)
            return akin_error_set(err, AKIN_ERR_CONFIG,
                                  "%s: nodes[%zu]: a host name is needed, as "
                                  "the other nodes have one",
                                  origin, i);
        plan->hosts[i] = strdup(name);
        if (plan->hosts[i] == NULL)
            break;
    }
    if (plan->hosts == NULL || plan->hosts[n - 1] == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    return AKIN_OK;
}

static akin_status_t read_plan(const char *origin, const json_t *root,
                               akin_plan_t *plan, akin_error_t *err)
{
    const json_t *rows = json_object_get(root, "ranks");
    const size_t n = json_array_size(rows);
    akin_status_t status =
        read_nodes(origin, json_object_get(root, "nodes"), plan, err);
    if (status != AKIN_OK)
        return status;
    if (n == 0 || n > MAX_RANKS)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "%s: ranks: a list of ranks is needed; akin plan "
                              "--emit json writes such a plan",
                              origin);
    plan->ranks = calloc(n, sizeof(*plan->ranks));
    if (plan->ranks == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    plan->n_ranks = (uint32_t)n;
    for (size_t i = 0; i < n && status == AKIN_OK; i++) {
        const place_t at = {origin, i, err};
        status = read_rank(&at, json_array_get(rows, i), plan, &plan->ranks[i]);
    }
    return status;
}

akin_status_t akin_plan_read(const char *text, const char *origin,
                             akin_plan_t *plan_p, akin_error_t *err)
{
    json_error_t where;
    json_t *root;
    *plan_p = (akin_plan_t){0};
    if (text[strspn(text, " \n\t")] == '{') {
        root = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    } else {
        FILE *file = fopen(text, "re");
        if (file == NULL)
            return akin_error_set(
                err, errno == ENOENT ? AKIN_ERR_NOT_FOUND : AKIN_ERR_IO,
                "%s: %s: %s", origin, text, strerror(errno));
        origin = text;
        root = json_loadf(file, JSON_REJECT_DUPLICATES, &where);
        (void)fclose(file);
    }
    if (root == NULL)
        return akin_error_set(err, AKIN_ERR_CONFIG, "%s: line %d: %s", origin,
                              where.line, where.text);
    akin_status_t status = read_plan(origin, root, plan_p, err);
    json_decref(root);
    if (status != AKIN_OK)
        akin_plan_cleanup(plan_p);
    return status;
}
