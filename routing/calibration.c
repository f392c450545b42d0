/* Calibration: requests with their prompt and decode counts, in memory. */
#include "routing/calibration.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Without these two uthash ends the process when memory runs out. */
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->is_lost = true)
#include <uthash.h>

/* A domain that was met. */
typedef struct domain {
    const char *name; /* borrowed from the trace */
    uint32_t index;
    bool is_lost; /* there was no memory to add it */
    UT_hash_handle hh;
} domain_t;

/* A calibration being made. */
typedef struct maker {
    const akin_trace_t *trace;
    const akin_trace_record_t *records;
    const akin_calibration_params_t *params;
    uint32_t n_in_trace;
    uint32_t n_wanted;
    akin_calibration_t *out;
    domain_t *domains; /* [n_wanted] */
    domain_t *by_name; /* hash over them */
    akin_error_t *err;
} maker_t;

static akin_status_t fail_nomem(const maker_t *maker)
{
    return akin_error_set(maker->err, AKIN_ERR_NOMEM,
                          "calibration: out of memory for %u requests",
                          maker->n_wanted);
}

static uint32_t wanted(const maker_t *maker, uint32_t i)
{
    return maker->params->records != NULL ? maker->params->records[i] : i;
}

/* A request beside itself would look like two that decode alike. */
static akin_status_t check_records(const maker_t *maker)
{
    if (maker->n_wanted == 0)
        return akin_error_set(maker->err, AKIN_ERR_INVALID,
                              "calibration: no records are named");
    if (maker->params->records == NULL)
        return AKIN_OK;
    bool *is_named = calloc(maker->n_in_trace, sizeof(*is_named));
    if (is_named == NULL)
        return fail_nomem(maker);
    akin_status_t status = AKIN_OK;
    for (uint32_t i = 0; status == AKIN_OK && i < maker->n_wanted; i++) {
        uint32_t record = wanted(maker, i);
        if (record >= maker->n_in_trace)
            status = akin_error_set(maker->err, AKIN_ERR_INVALID,
                                    "calibration: record %u is named, the "
                                    "trace has %u",
                                    record, maker->n_in_trace);
        else if (is_named[record])
            status =
                akin_error_set(maker->err, AKIN_ERR_INVALID,
                               "calibration: record %u is named twice", record);
        else
            is_named[record] = true;
    }
    free(is_named);
    return status;
}

static akin_status_t allocate(maker_t *maker)
{
    akin_calibration_t *c = maker->out;
    const akin_trace_shape_t *shape = akin_trace_shape(maker->trace);
    const char *model = akin_trace_model(maker->trace);
    size_t n = maker->n_wanted;
    size_t bytes =
        (size_t)shape->n_layers * shape->n_experts * sizeof(*c->prefill);
    c->n_layers = shape->n_layers;
    c->n_experts = shape->n_experts;
    c->top_k = shape->top_k;
    if (!maker->params->no_counts) {
        c->prefill = calloc(n, bytes);
        c->decode = calloc(n, bytes);
        if (c->prefill == NULL || c->decode == NULL)
            return fail_nomem(maker);
    }
    c->n_prompt = calloc(n, sizeof(*c->n_prompt));
    c->n_decode = calloc(n, sizeof(*c->n_decode));
    c->records = calloc(n, sizeof(*c->records));
    c->ids = calloc(n, sizeof(*c->ids));
    c->domain = calloc(n, sizeof(*c->domain));
    c->domains = calloc(n, sizeof(*c->domains));
    maker->domains = calloc(n, sizeof(*maker->domains));
    if (model[0] != '\0' && (c->model = strdup(model)) == NULL)
        return fail_nomem(maker);
    return c->n_prompt == NULL || c->n_decode == NULL || c->records == NULL ||
                   c->ids == NULL || c->domain == NULL || c->domains == NULL ||
                   maker->domains == NULL
               ? fail_nomem(maker)
               : AKIN_OK;
}

/* Index of a domain, a new one if it was not met before. */
static akin_status_t find_domain(maker_t *maker, const char *name,
                                 uint32_t *index_p)
{
    akin_calibration_t *c = maker->out;
    *index_p = AKIN_CALIBRATION_NO_DOMAIN;
    if (name[0] == '\0')
        return AKIN_OK;
    domain_t *domain;
    HASH_FIND_STR(maker->by_name, name, domain);
    if (domain == NULL) {
        domain = &maker->domains[c->n_domains];
        domain->name = name;
        domain->index = c->n_domains;
        c->domains[c->n_domains] = strdup(name);
        if (c->domains[c->n_domains] == NULL)
            return fail_nomem(maker);
        c->n_domains++;
        HASH_ADD_KEYPTR(hh, maker->by_name, domain->name, strlen(name), domain);
        if (domain->is_lost)
            return fail_nomem(maker);
    }
    *index_p = domain->index;
    return AKIN_OK;
}

static akin_status_t check_conservation(const maker_t *maker,
                                        const akin_trace_record_t *record,
                                        const uint16_t *counts,
                                        uint32_t n_tokens)
{
    const akin_calibration_t *c = maker->out;
    uint64_t expected = (uint64_t)n_tokens * c->top_k;
    for (uint32_t l = 0; l < c->n_layers; l++) {
        uint64_t sum = 0;
        for (uint32_t e = 0; e < c->n_experts; e++)
            sum += counts[(size_t)l * c->n_experts + e];
        if (sum != expected)
            return akin_error_set(
                maker->err, AKIN_ERR_RANGE,
                "calibration: record \"%.120s\": the counts of layer %u add "
                "up to %llu, must be %u tokens x %u; a count ends at 65,535: "
                "leave records that long out",
                record->id, l, (unsigned long long)sum, n_tokens, c->top_k);
    }
    return AKIN_OK;
}

/* Counts of request i: of a prompt that has n_prompt rows, and of what follows
 * it. */
static akin_status_t count(const maker_t *maker, uint32_t index, uint32_t i,
                           uint32_t n_prompt)
{
    const akin_calibration_t *c = maker->out;
    const akin_trace_record_t *record = &maker->records[index];
    const size_t cells = (size_t)c->n_layers * c->n_experts;
    uint16_t *prefill = c->prefill + i * cells;
    uint16_t *decode = c->decode + i * cells;
    akin_trace_count(maker->trace, index, 0, c->n_prompt[i], prefill);
    akin_trace_count(maker->trace, index, n_prompt, c->n_decode[i], decode);
    akin_status_t status =
        check_conservation(maker, record, prefill, c->n_prompt[i]);
    if (status == AKIN_OK)
        status = check_conservation(maker, record, decode, c->n_decode[i]);
    return status;
}

static uint32_t at_most(uint32_t n, uint32_t most)
{
    return most > 0 && n > most ? most : n;
}

static akin_status_t add_record(maker_t *maker, uint32_t index)
{
    akin_calibration_t *c = maker->out;
    const akin_trace_record_t *record = &maker->records[index];
    uint32_t n_prompt =
        record->n_prompt != 0 ? record->n_prompt : maker->params->prompt_tokens;
    if (n_prompt == 0)
        return akin_error_set(maker->err, AKIN_ERR_INVALID,
                              "calibration: the trace does not say which rows "
                              "of record \"%.120s\" are its prompt's; say how "
                              "many stand in for it with --prompt-tokens",
                              record->id);
    if (record->n_tokens < maker->params->min_tokens ||
        record->n_tokens <= n_prompt) {
        c->n_short++;
        return AKIN_OK;
    }
    uint32_t i = c->n_requests;
    c->n_prompt[i] = at_most(n_prompt, maker->params->max_tokens);
    c->n_decode[i] =
        at_most(record->n_tokens - n_prompt, maker->params->max_tokens);
    akin_status_t status = AKIN_OK;
    if (!maker->params->no_counts)
        status = count(maker, index, i, n_prompt);
    if (status == AKIN_OK)
        status = find_domain(maker, record->domain, &c->domain[i]);
    if (status != AKIN_OK)
        return status;
    c->records[i] = index;
    c->ids[i] = strdup(record->id);
    if (c->ids[i] == NULL)
        return fail_nomem(maker);
    c->n_requests++;
    return AKIN_OK;
}

static akin_status_t make(maker_t *maker)
{
    akin_status_t status = check_records(maker);
    if (status == AKIN_OK)
        status = allocate(maker);
    for (uint32_t i = 0; status == AKIN_OK && i < maker->n_wanted; i++)
        status = add_record(maker, wanted(maker, i));
    if (status == AKIN_OK && maker->out->n_requests == 0)
        status = akin_error_set(maker->err, AKIN_ERR_INVALID,
                                "calibration: no record has enough rows: all "
                                "%u have fewer than %u, or none after the "
                                "prompt",
                                maker->n_wanted, maker->params->min_tokens);
    return status;
}

akin_status_t akin_calibration_create(const akin_trace_t *trace,
                                      const akin_calibration_params_t *params,
                                      akin_calibration_t **calibration_p,
                                      akin_error_t *err)
{
    *calibration_p = NULL;
    maker_t maker = {.trace = trace, .params = params, .err = err};
    maker.records = akin_trace_records(trace, &maker.n_in_trace);
    maker.n_wanted =
        params->records != NULL ? params->n_records : maker.n_in_trace;
    maker.out = calloc(1, sizeof(*maker.out));
    if (maker.out == NULL)
        return fail_nomem(&maker);
    akin_status_t status = make(&maker);
    HASH_CLEAR(hh, maker.by_name);
    free(maker.domains);
    if (status != AKIN_OK) {
        akin_calibration_destroy(maker.out);
        return status;
    }
    *calibration_p = maker.out;
    return AKIN_OK;
}

void akin_calibration_destroy(akin_calibration_t *calibration)
{
    if (calibration == NULL)
        return;
    for (uint32_t i = 0;
         calibration->ids != NULL && i < calibration->n_requests; i++)
        free(calibration->ids[i]);
    for (uint32_t i = 0; i < calibration->n_domains; i++)
        free(calibration->domains[i]);
    free(calibration->domains);
    free(calibration->domain);
    free(calibration->ids);
    free(calibration->records);
    free(calibration->n_decode);
    free(calibration->n_prompt);
    free(calibration->decode);
    free(calibration->prefill);
    free(calibration->model);
    free(calibration);
}
