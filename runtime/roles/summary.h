/* Summary: what a run did, as a table and as JSON with the names that
 * `vllm bench serve` uses. */
#ifndef AKIN_ROLES_SUMMARY_H
#define AKIN_ROLES_SUMMARY_H

#include "base/error.h"
#include "kv/block.h"
#include "roles/replacer.h"
#include "roles/transports.h"
#include "routing/policy.h"

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_summary akin_summary_t;

/** What a worker is; texts are copied. */
typedef struct akin_summary_worker {
    const char *name;      /* "decode 3" */
    const char *role;      /* "prefill", "decode" */
    const char *node;      /* host name, or NULL */
    const char *transport; /* how KV blocks come to it, or NULL */
    uint32_t rank;         /* of its leader */
} akin_summary_worker_t;

/** The run as a whole; texts are copied, NULL: left out. */
typedef struct akin_summary_params {
    const char *model;
    const char *policy;         /* of the decode decision: "union" */
    const char *policy_setting; /* as configured: "auto" */
    const char *engine;
    const char *modelled; /* model and machine that the engine stands for */
    double slowdown;      /* how much slower than they */
    const char *kernel;
    uint32_t ep;                          /* ranks of a decode worker */
    uint32_t prefill_ep;                  /* of a prefill worker */
    const akin_summary_worker_t *workers; /* [n_workers] */
    uint32_t n_workers;
    uint32_t n_layers;  /* of experts; 0: choices are not counted */
    uint32_t n_experts; /* of a layer */
    int64_t start_ns;   /* akin_clock_now_ns() when the run began */
    const akin_transports_t *transports; /* copied */
} akin_summary_params_t;

/** One finished request. */
typedef struct akin_summary_request {
    uint64_t n_prompt_tokens;
    uint64_t n_output_tokens;
    int64_t arrival_ns; /* when the router took it */
    int64_t first_ns;   /* its first token; 0: none */
    int64_t last_ns;    /* its last token */
} akin_summary_request_t;

/** One engine step of a worker, of all its ranks together. */
typedef struct akin_summary_step {
    int64_t ns;          /* of the slowest rank */
    uint32_t n_rows;     /* batch: tokens in the step */
    double n_distinct;   /* distinct experts, mean over the layers; < 0: none */
    double max_distinct; /* of the EP rank with the most, mean over the
                            layers; < 0: none */
} akin_summary_step_t;

/** KV transfers of a worker. */
typedef struct akin_summary_transfer {
    uint64_t n_blocks; /* moved */
    uint64_t n_bytes;
    uint64_t n_shared; /* blocks that it held already */
    int64_t ns;        /* from the first read to the last check; 0: unknown */
} akin_summary_transfer_t;

/** Reads of a worker. */
typedef struct akin_summary_reads {
    uint64_t n_one_sided;
    uint64_t n_rendezvous;
    uint64_t n_bytes;
} akin_summary_reads_t;

/**
 * \param[in]  params
 * \param[out] summary_p  owned by the caller; about 2 MiB, and a number for
 *                        every expert of every layer and decode worker.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_summary_create(const akin_summary_params_t *params,
                                  akin_summary_t **summary_p) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akin_summary_destroy(akin_summary_t *summary);

/* The adders allocate nothing. A worker index out of range counts for the run
 * and for no worker. */

/** A request was answered: TTFT, TPOT (of those with two tokens or more) and
 * latency follow from it. */
void akin_summary_add_request(akin_summary_t *summary,
                              const akin_summary_request_t *request);
/** A request ended with an error line. */
void akin_summary_add_failed(akin_summary_t *summary);
/** A token came this long after the one before it. */
void akin_summary_add_itl(akin_summary_t *summary, int64_t ns);
/** A worker made a step. */
void akin_summary_add_step(akin_summary_t *summary, uint32_t worker,
                           const akin_summary_step_t *step);
/** A decode worker was chosen. */
void akin_summary_add_routing(akin_summary_t *summary, uint32_t worker,
                              int64_t ns);
/** That choice: workers in the locality band, 0: the policy has none and
 * nothing is counted; and the cosine with the chosen one's centroid. */
void akin_summary_add_choice(akin_summary_t *summary, uint32_t n_band,
                             double similarity);
/** A decode step: distinct experts of the EP rank with the most, mean over the
 * layers, as the policy expected and as they were. */
void akin_summary_add_prediction(akin_summary_t *summary, double expected,
                                 double observed);
/** Refits of the whole run; a policy that makes none shows none. */
void akin_summary_set_refits(akin_summary_t *summary,
                             const akin_policy_refits_t *refits);
/** What ep.replace did in the whole run; without it nothing is shown. */
void akin_summary_set_replaced(akin_summary_t *summary,
                               const akin_replacer_stats_t *replaced);
/** A prompt was looked up in a prefix cache. */
void akin_summary_add_prefix(akin_summary_t *summary, uint32_t worker,
                             uint64_t n_query_tokens, uint64_t n_hit_tokens);
/** Blocks were brought to a worker. */
void akin_summary_add_transfer(akin_summary_t *summary, uint32_t worker,
                               const akin_summary_transfer_t *transfer);
/** What a worker's network counted in the whole run: the reads of KV blocks by
 * the path they took, and their bytes. */
void akin_summary_add_reads(akin_summary_t *summary, uint32_t worker,
                            const akin_summary_reads_t *reads);
/** Blocks were refused. */
void akin_summary_add_refused(akin_summary_t *summary, uint32_t worker,
                              akin_kv_refusal_t reason, uint64_t n_blocks);
/** A worker was lost; its n_requests requests start again elsewhere. */
void akin_summary_add_lost(akin_summary_t *summary, uint32_t worker,
                           uint64_t n_requests);

/** A request begins again, for whatever reason. */
void akin_summary_add_retry(akin_summary_t *summary);
/** A lost worker is served again, so long after its loss. */
void akin_summary_add_recovered(akin_summary_t *summary, uint32_t worker,
                                int64_t ns);
/** A request whose worker was lost has its next token, so long after the
 * loss. */
void akin_summary_add_resumed(akin_summary_t *summary, int64_t ns);

/** Gauges of all prefill ranks together: blocks that are pinned now, and since
 * when the oldest of them is; leases that ended so far. */
typedef struct akin_summary_leases {
    uint64_t n_blocks;
    int64_t oldest_ns;
    uint64_t n_expired;
} akin_summary_leases_t;

/** The last state; the longest `oldest_ns` and the most blocks of the run are
 * kept. */
void akin_summary_set_leases(akin_summary_t *summary,
                             const akin_summary_leases_t *leases);
/** Messages of or for processes that are dead, dropped by a rank. */
void akin_summary_add_late(akin_summary_t *summary, uint64_t n_messages);

/** A decode worker has so many requests from now on: their KV is on its way to
 * it, or they decode. */
void akin_summary_set_load(akin_summary_t *summary, uint32_t worker,
                           uint32_t n_requests, int64_t now_ns);
/** Tokens of a decode worker chose experts.
 * \param[in] counts  [n_layers][n_experts] */
void akin_summary_add_choices(akin_summary_t *summary, uint32_t worker,
                              const uint16_t *counts);

/** The run ended: fixes its duration. Until then it ends "now" (last call of
 * an adder that carries a time). */
void akin_summary_end(akin_summary_t *summary, int64_t now_ns);

struct json_t;

/**
 * The summary as a JSON object. Times are milliseconds; `routing_us` is
 * microseconds; rates are per second.
 *
 * \return a new reference, owned by the caller; NULL: out of memory.
 */
struct json_t *akin_summary_json(akin_summary_t *summary);

/**
 * Write the JSON to a file: to a temporary one beside it, which is synced and
 * renamed. "-": standard output.
 *
 * \param[out] err  names the path.
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND, AKIN_ERR_FULL, AKIN_ERR_IO, AKIN_ERR_NOMEM
 */
akin_status_t akin_summary_write_json(akin_summary_t *summary, const char *path,
                                      akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Print tables for people.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM, AKIN_ERR_IO
 */
akin_status_t akin_summary_print(akin_summary_t *summary,
                                 FILE *file) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
