/* Respawn policy: whether a rank that was lost is started anew, and when.
 * Pure: it is told the time. */
#ifndef AKIN_NET_RESPAWN_POLICY_H
#define AKIN_NET_RESPAWN_POLICY_H

#include "net/supervisor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The delay between lives in a row doubles up to this. */
#define AKINI_RESPAWN_DELAY_MAX_NS (INT64_C(8) * 1000 * 1000 * 1000)

/** When lives were started to serve; starts as zero. */
typedef struct akini_respawn_policy {
    int64_t *started_ns; /* [n_started], ascending; of the latest window */
    size_t n_started;
    size_t capacity;
} akini_respawn_policy_t;

/** What follows a death. */
typedef struct akini_respawn_step {
    int is_last;       /* the next life only tells of the death */
    int64_t delay_ns;  /* that the next life waits; 0 if is_last */
    uint32_t n_recent; /* lives that were started within the window before */
} akini_respawn_step_t;

/**
 * Decide what follows a death, and count the life that follows it.
 *
 * With n lives started in (now_ns - window_ns, now_ns] the next one is to serve
 * if n < max_lives, after a delay of 0 for n = 0, else of first_delay_ns *
 * 2^(n - 1), at most AKINI_RESPAWN_DELAY_MAX_NS. Where there is no memory to
 * count with, the next one is the last.
 *
 * \param[in] terms   max_lives, window_ns (0: all lives count) and
 *                    first_delay_ns; negative ones are as 0.
 * \param[in] now_ns  not before that of the call before, ns.
 */
akini_respawn_step_t
akini_respawn_policy_step(akini_respawn_policy_t *policy,
                          const akin_supervised_terms_t *terms, int64_t now_ns);

/** Frees what the policy owns, and makes it as at first. */
void akini_respawn_policy_cleanup(akini_respawn_policy_t *policy);

#ifdef __cplusplus
}
#endif

#endif
