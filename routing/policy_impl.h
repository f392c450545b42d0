/* Inside of the policies: what the dispatcher keeps and what a policy brings.
 */
#ifndef AKIN_ROUTING_POLICY_IMPL_H
#define AKIN_ROUTING_POLICY_IMPL_H

#include "routing/policy.h"

#include <stddef.h>
#include <uthash.h>

/** Streams of akin_rng_*: one per purpose, so that no two draws coincide. */
enum {
    AKINI_STREAM_RANDOM = 1,
    AKINI_STREAM_JSQ,
    AKINI_STREAM_P2C_FIRST,
    AKINI_STREAM_P2C_SECOND
};

/** One request in flight. Records are recycled, never shrunk. */
typedef struct akini_policy_record {
    uint64_t id;
    uint32_t worker;
    UT_hash_handle hh;
    struct akini_policy_record *next; /* on the worker, or in the free list */
    struct akini_policy_record *prev;
    float load[]; /* ops->record_floats(): what the policy notes of it */
} akini_policy_record_t;

/**
 * A policy. Functions that may be NULL say so; `self` is what create() made.
 */
typedef struct akini_policy_ops {
    const char *name;
    int needs_fit;
    /** May be NULL: no state of its own. The parameters are sound. */
    akin_status_t (*create)(const akin_policy_params_t *params, void **self_p);
    void (*destroy)(void *self);
    /** May be NULL: 0. */
    size_t (*record_floats)(const void *self);
    /** Counts nothing as in flight; AKIN_ROUTING_NO_WORKER if none may. */
    uint32_t (*choose)(const akin_policy_t *policy,
                       const akin_policy_request_t *request,
                       const uint8_t *eligible);
    /** May be NULL. The record is already among the worker's members. */
    void (*admit)(akin_policy_t *policy, akini_policy_record_t *record);
    /** May be NULL. The record is no longer among the worker's members. */
    void (*finish)(akin_policy_t *policy, akini_policy_record_t *record);
    /** May be NULL. */
    void (*observe)(void *self, const akin_policy_step_t *step);
    /** May be NULL. */
    void (*observe_counts)(void *self, const uint16_t *counts,
                           uint32_t n_tokens);
    /** May be NULL. */
    void (*placement_changed)(void *self, uint32_t worker);
    /** May be NULL: 0. */
    double (*expected_distinct)(const void *self, uint32_t worker);
    /** May be NULL: no band. */
    akin_policy_choice_t (*last_choice)(const akin_policy_t *policy);
    /** May be NULL: no refits. */
    akin_policy_refits_t (*refits)(const void *self);
} akini_policy_ops_t;

struct akin_policy {
    const akini_policy_ops_t *ops;
    void *self; /* the policy's own state, or NULL */
    akin_policy_params_t params;
    uint64_t n_decisions; /* counter of the draws */
    uint32_t last_worker; /* of the last decision, or AKIN_ROUTING_NO_WORKER */
    uint32_t *in_flight;  /* [n_workers] */
    akini_policy_record_t **members; /* [n_workers], list of each worker */
    akini_policy_record_t *records;  /* hash by id */
    akini_policy_record_t *free_list;
    size_t record_bytes;
};

extern const akini_policy_ops_t akini_policy_random;
extern const akini_policy_ops_t akini_policy_rr;
extern const akini_policy_ops_t akini_policy_jsq;
extern const akini_policy_ops_t akini_policy_p2c;
extern const akini_policy_ops_t akini_policy_domain;
extern const akini_policy_ops_t akini_policy_eldr_static;
extern const akini_policy_ops_t akini_policy_eldr;
extern const akini_policy_ops_t akini_policy_union;
extern const akini_policy_ops_t akini_policy_union_band;
extern const akini_policy_ops_t akini_policy_union_pull;

/**
 * The `rank`-th eligible worker, from 0.
 *
 * \return AKIN_ROUTING_NO_WORKER if there are not that many.
 */
uint32_t akini_policy_nth_eligible(const akin_policy_t *policy,
                                   const uint8_t *eligible, uint64_t rank);

/** Number of eligible workers. */
uint32_t akini_policy_count_eligible(const akin_policy_t *policy,
                                     const uint8_t *eligible);

#endif
