/* Sim state: what the parts of a simulation share. */
#ifndef AKIN_ROUTING_SIM_STATE_H
#define AKIN_ROUTING_SIM_STATE_H

#include "routing/sim_decode.h"
#include "routing/sim_heap.h"
#include "routing/sim_mix.h"
#include "routing/sim_prefill.h"
#include "routing/sim_statistics.h"

typedef struct akini_sim {
    const akin_sim_params_t *params;
    akin_policy_t *policy;
    akini_sim_heap_t heap;
    akini_sim_mix_t mix;
    akini_sim_requests_t requests;
    akini_sim_prefill_t prefill;
    akini_sim_decode_t decode;
    akini_sim_statistics_t statistics;
    akini_sim_queue_t queued;  /* wait in the router */
    akini_sim_queue_t backlog; /* prefilled, but no worker has room */
    uint32_t n_ahead;          /* at prefill workers and in the backlog */
    uint16_t *counts;          /* [cells] scratch */
    double now_s;
    double window_begin_s;
    double window_s;
    uint64_t n_expected; /* arrivals that have come or are put */
    uint64_t n_arrived;
    uint64_t n_ended;
    uint64_t n_measured_ended;
    uint64_t n_events;
    uint64_t n_decisions;
    int64_t decision_ns;
    uint64_t n_deaths;
    uint64_t n_deaths_before; /* the last token of any request */
    uint32_t n_gone[2];       /* dead for good, of prefill and of decode */
    uint32_t *n_chances;      /* [n_prefill + n_decode] lives drawn */
    uint64_t n_rerun;
    uint64_t n_reprefilled; /* tokens */
    uint64_t n_cached;      /* tokens of measured prompts */
    uint64_t n_prompted;
} akini_sim_t;

/* ---- sim_arrivals.c ---- */

akin_status_t akini_sim_arrivals_begin(akini_sim_t *s) AKIN_MUST_CHECK;

/** The next request is there. */
akin_status_t akini_sim_arrive(akini_sim_t *s,
                               akin_error_t *err) AKIN_MUST_CHECK;

/** A request has all of its tokens. */
akin_status_t akini_sim_end(akini_sim_t *s, uint32_t slot) AKIN_MUST_CHECK;

bool akini_sim_is_measured(const akini_sim_t *s, uint64_t index);

/** Is it in the window? */
bool akini_sim_is_counting(const akini_sim_t *s);

/** Have all requests ended that the run waits for? */
bool akini_sim_is_over(const akini_sim_t *s);

/* ---- sim_router.c ---- */

/** Send on whatever can be. */
akin_status_t akini_sim_dispatch(akini_sim_t *s) AKIN_MUST_CHECK;

/** The step of a prefill worker is over. */
akin_status_t akini_sim_end_prefill(akini_sim_t *s, uint32_t w) AKIN_MUST_CHECK;

/** A request begins again, before all that wait in the router. */
void akini_sim_restart(akini_sim_t *s, uint32_t slot);

/* ---- sim_steps.c ---- */

/** The KV of a request is at its decode worker. */
akin_status_t akini_sim_join(akini_sim_t *s, uint32_t slot) AKIN_MUST_CHECK;

akin_status_t akini_sim_end_step(akini_sim_t *s, uint32_t w) AKIN_MUST_CHECK;

/* ---- sim_faults.c ---- */

akin_status_t akini_sim_faults_check(const akin_sim_params_t *params,
                                     akin_error_t *err) AKIN_MUST_CHECK;

/** Put the deaths that are to come. */
akin_status_t akini_sim_faults_begin(akini_sim_t *s) AKIN_MUST_CHECK;

/** What happens to a worker, those of prefill first. */
akin_status_t akini_sim_die(akini_sim_t *s, uint32_t of,
                            uint32_t epoch) AKIN_MUST_CHECK;
akin_status_t akini_sim_lose(akini_sim_t *s, uint32_t of,
                             akin_error_t *err) AKIN_MUST_CHECK;
akin_status_t akini_sim_return(akini_sim_t *s, uint32_t of) AKIN_MUST_CHECK;

#endif
