/* Prefix hash: sends prompts that begin alike to the same prefill worker,
 * unless it is busier than the others. Pure decisions; keeps no load. */
#ifndef AKIN_ROUTING_PREFIX_HASH_H
#define AKIN_ROUTING_PREFIX_HASH_H

#include "base/error.h"
#include "routing/policy.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes at the start of a prompt that are hashed. */
#define AKIN_PREFIX_HASH_BYTES 1024

/** Points of a worker on the ring. */
#define AKIN_PREFIX_VIRTUAL_NODES 160

/**
 * Ring of consistent hashing (ALGORITHMS.md 4). Read-only after create: any
 * number of threads may decide.
 */
typedef struct akin_prefix_router akin_prefix_router_t;

/**
 * \param[in]  n_workers  1 to 65536.
 * \param[in]  names      [n_workers] lasting names that place the workers on
 *                        the ring, copied nowhere and not kept; NULL: the
 *                        decimal index. A worker keeps its prompts across
 *                        restarts and pool sizes as long as its name lasts.
 * \param[out] router_p   owned by the caller.
 * \param[out] err        says what is wrong.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: n_workers out of range, or a name longer than 255
 *         bytes.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_prefix_router_create(uint32_t n_workers,
                                        const char *const *names,
                                        akin_prefix_router_t **router_p,
                                        akin_error_t *err) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akin_prefix_router_destroy(akin_prefix_router_t *router);

/**
 * Choose a prefill worker: the first eligible one on the ring from the hash of
 * the prompt's first 1,024 bytes, if its load is at most 1.25 x (sum + 1) / P
 * over the P eligible workers; otherwise, and for an empty prompt, the least
 * loaded, lowest index.
 *
 * \param[in]  tokens    [n_tokens] ids, hashed as 32-bit little-endian.
 * \param[in]  n_tokens  may be 0.
 * \param[in]  loads     [n_workers] work at each, in one unit for all.
 * \param[in]  eligible  [n_workers], non-zero: may be chosen.
 * \param[out] worker_p  AKIN_ROUTING_NO_WORKER if none is eligible.
 */
void akin_prefix_router_decide(const akin_prefix_router_t *router,
                               const uint32_t *tokens, size_t n_tokens,
                               const uint32_t *loads, const uint8_t *eligible,
                               uint32_t *worker_p);

/**
 * The same for a prompt given as text.
 *
 * \param[in] text   [bytes] UTF-8; may be NULL when `bytes` is 0.
 * \param[in] bytes  may be 0.
 */
void akin_prefix_router_decide_text(const akin_prefix_router_t *router,
                                    const char *text, size_t bytes,
                                    const uint32_t *loads,
                                    const uint8_t *eligible,
                                    uint32_t *worker_p);

#ifdef __cplusplus
}
#endif

#endif
