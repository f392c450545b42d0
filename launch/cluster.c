/* Cluster: nodes by file, or as the ranks of a job find them. */
#include "launch/cluster.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static akin_status_t no_memory(akin_error_t *err)
{
    return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
}

static akin_status_t allocate(akin_cluster_t *c, uint32_t n_nodes,
                              uint32_t n_kinds, akin_error_t *err)
{
    c->n_nodes = n_nodes;
    c->nodes = calloc(n_nodes, sizeof(*c->nodes));
    c->kinds = calloc(n_kinds, sizeof(*c->kinds));
    if (c->nodes == NULL || c->kinds == NULL)
        return no_memory(err);
    c->n_kinds = n_kinds;
    return AKIN_OK;
}

/* Splits at commas, in place; returns how many parts, at most `max` + 1. */
static size_t split(char *text, const char **parts, size_t max)
{
    size_t n = 0;
    char *rest = NULL;
    for (char *part = strtok_r(text, ",", &rest); part != NULL;
         part = strtok_r(NULL, ",", &rest)) {
        if (n < max)
            parts[n] = part + strspn(part, " \t");
        if (++n > max)
            break;
    }
    return n;
}

/* A path of the job file is relative to its folder. */
static void locate(const akin_cluster_params_t *p, const char *name, char *path,
                   size_t bytes)
{
    char folder[PATH_MAX];
    const size_t length = strlen(p->job_path);
    const int is_of_file =
        p->n_files == 0 &&
        strncmp(p->job->topology_origin, p->job_path, length) == 0 &&
        p->job->topology_origin[length] == ':';
    (void)snprintf(folder, sizeof(folder), "%s", p->job_path);
    if (is_of_file && name[0] != '/')
        (void)snprintf(path, bytes, "%s/%s", dirname(folder), name);
    else
        (void)snprintf(path, bytes, "%s", name);
}

static akin_status_t read_files(akin_cluster_t *c,
                                const akin_cluster_params_t *p,
                                const char *const *files, size_t n_files,
                                akin_error_t *err)
{
    const uint32_t n_nodes = p->job->n_nodes;
    if (n_files > n_nodes)
        return akin_error_set(
            err, AKIN_ERR_CONFIG,
            "%s: there are more topologies than nodes, which "
            "are %u: raise cluster.nodes, or give --nodes",
            p->n_files > 0 ? "--topology" : p->job->topology_origin, n_nodes);
    const uint32_t n_kinds = n_files > 0 ? (uint32_t)n_files : 1;
    akin_status_t status = allocate(c, n_nodes, n_kinds, err);
    for (uint32_t k = 0; k < n_kinds && status == AKIN_OK; k++) {
        char path[PATH_MAX];
        if (n_files > 0)
            locate(p, files[k], path, sizeof(path));
        status = akin_node_read(n_files > 0 ? path : NULL, &c->kinds[k], err);
    }
    for (uint32_t n = 0; n < n_nodes && status == AKIN_OK; n++)
        c->nodes[n] = &c->kinds[n < n_kinds ? n : n_kinds - 1];
    return status;
}

akin_status_t akin_cluster_read(const akin_cluster_params_t *p,
                                akin_cluster_t *cluster_p, akin_error_t *err)
{
    const char *parts[AKIN_CLUSTER_FILES];
    const char *const *files = p->files;
    size_t n_files = p->n_files;
    *cluster_p = (akin_cluster_t){0};
    char *text = strdup(p->job->topology);
    if (text == NULL)
        return no_memory(err);
    if (n_files == 0) {
        n_files = split(text, parts, AKIN_CLUSTER_FILES);
        files = parts;
    }
    akin_status_t status = AKIN_OK;
    if (n_files > AKIN_CLUSTER_FILES)
        status =
            akin_error_set(err, AKIN_ERR_CONFIG, "%s: at most %d topologies",
                           p->job->topology_origin, AKIN_CLUSTER_FILES);
    if (status == AKIN_OK)
        status = read_files(cluster_p, p, files, n_files, err);
    free(text);
    if (status != AKIN_OK)
        akin_cluster_cleanup(cluster_p);
    return status;
}

/* Blob r of the exchange: the name, a zero, the XML. */
static akin_status_t read_blob(akin_cluster_t *c, uint32_t node,
                               const unsigned char *blob, size_t bytes,
                               akin_error_t *err)
{
    const char *text = (const char *)blob;
    const size_t name_bytes = strnlen(text, bytes);
    if (name_bytes == bytes)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "node %u has sent no topology", node);
    c->hosts[node] = strdup(text);
    if (c->hosts[node] == NULL)
        return no_memory(err);
    for (uint32_t n = 0; n < node; n++)
        if (strcmp(c->hosts[n], c->hosts[node]) == 0)
            return akin_error_set(err, AKIN_ERR_CONFIG,
                                  "two ranks are on %s: start one on each "
                                  "node, as mpirun -N 1 does",
                                  c->hosts[node]);
    c->nodes[node] = &c->kinds[node];
    return akin_node_read_text(text + name_bytes + 1, bytes - name_bytes - 1,
                               c->hosts[node], &c->kinds[node], err);
}

/* Name and topology of this machine, malloc'ed. */
static akin_status_t make_blob(char **blob_p, size_t *bytes_p,
                               akin_error_t *err)
{
    char name[256] = "";
    char *xml;
    size_t xml_bytes;
    *blob_p = NULL;
    *bytes_p = 0;
    (void)gethostname(name, sizeof(name) - 1);
    akin_status_t status = akin_node_export(&xml, &xml_bytes, err);
    if (status != AKIN_OK)
        return status;
    const size_t name_bytes = strlen(name) + 1;
    *blob_p = malloc(name_bytes + xml_bytes);
    if (*blob_p != NULL) {
        memcpy(*blob_p, name, name_bytes);
        memcpy(*blob_p + name_bytes, xml, xml_bytes);
        *bytes_p = name_bytes + xml_bytes;
    }
    free(xml);
    return *blob_p != NULL ? AKIN_OK : no_memory(err);
}

akin_status_t akin_cluster_collect(akin_boot_t *boot, akin_cluster_t *cluster_p,
                                   akin_error_t *err)
{
    const uint32_t n = akin_boot_size(boot);
    char *blob;
    size_t bytes;
    unsigned char *blobs = NULL;
    size_t *offsets = NULL;
    *cluster_p = (akin_cluster_t){0};
    akin_status_t status = make_blob(&blob, &bytes, err);
    status = akin_boot_agree(boot, status, err);
    if (status == AKIN_OK)
        status = akin_boot_exchange(boot, blob, bytes, &blobs, &offsets, err);
    if (status == AKIN_OK)
        status = allocate(cluster_p, n, n, err);
    if (status == AKIN_OK &&
        (cluster_p->hosts = calloc(n, sizeof(*cluster_p->hosts))) == NULL)
        status = no_memory(err);
    for (uint32_t r = 0; r < n && status == AKIN_OK; r++)
        status = read_blob(cluster_p, r, blobs + offsets[r],
                           offsets[r + 1] - offsets[r], err);
    free(blob);
    free(blobs);
    free(offsets);
    if (status != AKIN_OK)
        akin_cluster_cleanup(cluster_p);
    return status;
}

void akin_cluster_cleanup(akin_cluster_t *cluster)
{
    for (uint32_t k = 0; k < cluster->n_kinds; k++)
        akin_node_cleanup(&cluster->kinds[k]);
    for (uint32_t n = 0; cluster->hosts != NULL && n < cluster->n_nodes; n++)
        free(cluster->hosts[n]);
    free(cluster->nodes);
    free(cluster->kinds);
    free(cluster->hosts);
    *cluster = (akin_cluster_t){0};
}
