/* Policy: dispatch, and the bookkeeping of the requests in flight. */
#define HASH_NONFATAL_OOM 1
#include "routing/policy.h"

#include "base/nearest.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void note_oom(bool *oom)
{
    *oom = true;
}

/* uthash drops an element that it finds no room for and says so here. */
#define uthash_nonfatal_oom(element) note_oom(&oom)

#include "routing/policy_impl.h"
#include "routing/policy_scan.h"

#include <utlist.h>

/* Bounds that keep every size below in range of its type. */
#define MAX_WORKERS 65536u
#define MAX_CELLS (1u << 24)

static const akini_policy_ops_t *const policies[] = {
    &akini_policy_random,     &akini_policy_rr,     &akini_policy_jsq,
    &akini_policy_p2c,        &akini_policy_domain, &akini_policy_eldr_static,
    &akini_policy_eldr,       &akini_policy_union,  &akini_policy_union_band,
    &akini_policy_union_pull,
};

enum { N_POLICIES = sizeof(policies) / sizeof(policies[0]) };

/* In the order of the table above; a test holds the two together. */
const char *const akin_policy_names[] = {
    "random", "rr",    "jsq",        "p2c",        "domain", "eldr-static",
    "eldr",   "union", "union-band", "union-pull", NULL};

static const akini_policy_ops_t *find_ops(const char *name, akin_error_t *err)
{
    for (int i = 0; i < N_POLICIES; i++)
        if (strcmp(policies[i]->name, name) == 0)
            return policies[i];
    const char *nearest =
        akin_nearest_name(name, akin_policy_names, N_POLICIES);
    if (nearest != NULL)
        (void)akin_error_set(err, AKIN_ERR_INVALID,
                             "no routing policy \"%s\"; did you mean \"%s\"?",
                             name, nearest);
    else
        (void)akin_error_set(err, AKIN_ERR_INVALID,
                             "no routing policy \"%s\"; choose one of random, "
                             "rr, jsq, p2c, domain, eldr-static, eldr, union, "
                             "union-band, union-pull",
                             name);
    return NULL;
}

static akin_status_t check_params(const akin_policy_params_t *params,
                                  akin_error_t *err)
{
    const struct {
        const char *name;
        uint32_t value;
        uint32_t max;
    } rows[] = {
        {"n_workers", params->n_workers, MAX_WORKERS},
        {"n_layers", params->n_layers, MAX_CELLS},
        {"n_experts", params->n_experts, MAX_CELLS},
        {"top_k", params->top_k, params->n_experts},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].value == 0 || rows[i].value > rows[i].max)
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "routing policy: %s is %u, must be 1 to %u",
                                  rows[i].name, rows[i].value, rows[i].max);
    if ((uint64_t)params->n_layers * params->n_experts > MAX_CELLS)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "routing policy: %u layers x %u experts are more "
                              "than %u cells",
                              params->n_layers, params->n_experts, MAX_CELLS);
    return AKIN_OK;
}

static akin_status_t check_fit(const akini_policy_ops_t *ops,
                               const akin_policy_params_t *params,
                               akin_error_t *err)
{
    if (ops->needs_fit && params->fit == NULL)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "routing policy %s needs a fit: make one with "
                              "akin calibrate and akin fit, and name it in "
                              "routing.fit",
                              ops->name);
    if (!(params->tau >= 0.0 && isfinite(params->tau)))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "routing policy %s: tau is %g, must be finite "
                              "and not negative",
                              ops->name, params->tau);
    if (!(params->pull >= 0.0 && isfinite(params->pull)))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "routing policy %s: pull is %g, must be finite "
                              "and not negative",
                              ops->name, params->pull);
    if (params->fit == NULL)
        return AKIN_OK;
    return akin_fit_match(params->fit, params->n_workers, params->n_layers,
                          params->n_experts, params->top_k, err);
}

akin_status_t akin_policy_create(const char *name,
                                 const akin_policy_params_t *params,
                                 akin_policy_t **policy_p, akin_error_t *err)
{
    *policy_p = NULL;
    const akini_policy_ops_t *ops = find_ops(name, err);
    if (ops == NULL)
        return AKIN_ERR_INVALID;
    akin_status_t status = check_params(params, err);
    if (status == AKIN_OK)
        status = check_fit(ops, params, err);
    if (status != AKIN_OK)
        return status;

    akin_policy_t *policy = calloc(1, sizeof(*policy));
    if (policy == NULL)
        goto err_nomem;
    policy->ops = ops;
    policy->params = *params;
    policy->last_worker = AKIN_ROUTING_NO_WORKER;
    policy->in_flight = calloc(params->n_workers, sizeof(*policy->in_flight));
    policy->members = calloc(params->n_workers, sizeof(*policy->members));
    if (policy->in_flight == NULL || policy->members == NULL)
        goto err_nomem;
    if (ops->create != NULL && ops->create(params, &policy->self) != AKIN_OK)
        goto err_nomem;
    size_t n_floats =
        ops->record_floats == NULL ? 0 : ops->record_floats(policy->self);
    policy->record_bytes =
        sizeof(akini_policy_record_t) + n_floats * sizeof(float);
    *policy_p = policy;
    return AKIN_OK;

err_nomem:
    akin_policy_destroy(policy);
    return akin_error_set(err, AKIN_ERR_NOMEM,
                          "routing policy %s: out of memory for %u workers x "
                          "%u layers x %u experts",
                          name, params->n_workers, params->n_layers,
                          params->n_experts);
}

static void free_list(akini_policy_record_t *head)
{
    while (head != NULL) {
        akini_policy_record_t *next = head->next;
        free(head);
        head = next;
    }
}

void akin_policy_destroy(akin_policy_t *policy)
{
    if (policy == NULL)
        return;
    /* Every record is in one list; the hash itself holds only its table. */
    HASH_CLEAR(hh, policy->records);
    free_list(policy->free_list);
    for (uint32_t w = 0;
         policy->members != NULL && w < policy->params.n_workers; w++)
        free_list(policy->members[w]);
    if (policy->ops->destroy != NULL)
        policy->ops->destroy(policy->self);
    free(policy->members);
    free(policy->in_flight);
    free(policy);
}

static akini_policy_record_t *take_record(akin_policy_t *policy)
{
    akini_policy_record_t *record = policy->free_list;
    if (record != NULL)
        LL_DELETE(policy->free_list, record);
    else
        record = malloc(policy->record_bytes);
    return record;
}

akin_status_t akin_policy_decide(akin_policy_t *policy,
                                 const akin_policy_request_t *request,
                                 const uint8_t *eligible, uint32_t *worker_p)
{
    *worker_p = AKIN_ROUTING_NO_WORKER;
    akini_policy_record_t *record = NULL;
    HASH_FIND(hh, policy->records, &request->id, sizeof(request->id), record);
    if (record != NULL)
        return AKIN_ERR_EXISTS;
    record = take_record(policy);
    if (record == NULL)
        return AKIN_ERR_NOMEM;

    uint32_t worker = policy->ops->choose(policy, request, eligible);
    if (worker == AKIN_ROUTING_NO_WORKER) {
        LL_PREPEND(policy->free_list, record);
        return AKIN_OK;
    }
    bool oom = false;
    record->id = request->id;
    record->worker = worker;
    HASH_ADD(hh, policy->records, id, sizeof(record->id), record);
    if (oom) {
        LL_PREPEND(policy->free_list, record);
        return AKIN_ERR_NOMEM;
    }
    policy->in_flight[worker]++;
    policy->last_worker = worker;
    policy->n_decisions++;
    DL_PREPEND(policy->members[worker], record);
    if (policy->ops->admit != NULL)
        policy->ops->admit(policy, record);
    *worker_p = worker;
    return AKIN_OK;
}

void akin_policy_finish(akin_policy_t *policy, uint64_t id)
{
    akini_policy_record_t *record = NULL;
    HASH_FIND(hh, policy->records, &id, sizeof(id), record);
    if (record == NULL)
        return;
    HASH_DEL(policy->records, record);
    DL_DELETE(policy->members[record->worker], record);
    policy->in_flight[record->worker]--;
    if (policy->ops->finish != NULL)
        policy->ops->finish(policy, record);
    LL_PREPEND(policy->free_list, record);
}

void akin_policy_observe(akin_policy_t *policy, uint32_t worker,
                         const akin_policy_step_t *step)
{
    if (worker < policy->params.n_workers && policy->ops->observe != NULL)
        policy->ops->observe(policy->self, step);
}

void akin_policy_observe_counts(akin_policy_t *policy, const uint16_t *counts,
                                uint32_t n_tokens)
{
    if (policy->ops->observe_counts != NULL)
        policy->ops->observe_counts(policy->self, counts, n_tokens);
}

void akin_policy_placement_changed(akin_policy_t *policy, uint32_t worker)
{
    if (worker < policy->params.n_workers &&
        policy->ops->placement_changed != NULL)
        policy->ops->placement_changed(policy->self, worker);
}

uint32_t akin_policy_in_flight(const akin_policy_t *policy, uint32_t worker)
{
    return worker < policy->params.n_workers ? policy->in_flight[worker] : 0;
}

double akin_policy_expected_distinct(const akin_policy_t *policy,
                                     uint32_t worker)
{
    if (worker >= policy->params.n_workers ||
        policy->ops->expected_distinct == NULL)
        return 0.0;
    return policy->ops->expected_distinct(policy->self, worker);
}

akin_policy_choice_t akin_policy_last_choice(const akin_policy_t *policy)
{
    if (policy->ops->last_choice == NULL)
        return (akin_policy_choice_t){0};
    return policy->ops->last_choice(policy);
}

akin_policy_refits_t akin_policy_refits(const akin_policy_t *policy)
{
    if (policy->ops->refits == NULL)
        return (akin_policy_refits_t){0};
    return policy->ops->refits(policy->self);
}

int akin_policy_needs_fit(const char *name)
{
    for (int i = 0; i < N_POLICIES; i++)
        if (strcmp(policies[i]->name, name) == 0)
            return policies[i]->needs_fit;
    return 0;
}

uint32_t akini_policy_count_eligible(const akin_policy_t *policy,
                                     const uint8_t *eligible)
{
    return akini_scan_count(eligible, policy->params.n_workers);
}

uint32_t akini_policy_nth_eligible(const akin_policy_t *policy,
                                   const uint8_t *eligible, uint64_t rank)
{
    const uint32_t n = policy->params.n_workers;
    const uint32_t w = akini_scan_nth(eligible, n, rank);
    return w < n ? w : AKIN_ROUTING_NO_WORKER;
}
