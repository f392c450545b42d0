/* The router's state: requests in flight, workers, and the run around them.
 */
#ifndef AKIN_ROLES_ROUTER_STATE_H
#define AKIN_ROLES_ROUTER_STATE_H

#include "engine/text_stream.h"
#include "roles/batch_format.h"
#include "roles/batch_input.h"
#include "roles/id_set.h"
#include "roles/message.h"
#include "roles/progress.h"
#include "roles/replacer.h"
#include "roles/router.h"
#include "roles/summary.h"
#include "routing/policy.h"
#include "routing/prefix_hash.h"

#include <uthash.h>

typedef enum akini_flight_state {
    AKINI_FLIGHT_QUEUED,   /* waits for a prefill worker */
    AKINI_FLIGHT_PREFILL,  /* is being prefilled */
    AKINI_FLIGHT_ROUTED,   /* prefilled; waits for a decode worker */
    AKINI_FLIGHT_TRANSFER, /* its blocks go to its decode worker */
    AKINI_FLIGHT_DECODE,   /* generates */
    AKINI_FLIGHT_STATES
} akini_flight_state_t;

/** A request inside the job. */
typedef struct akini_flight {
    uint64_t id;
    uint64_t sequence; /* of its output line */
    akin_request_t *request;
    akini_flight_state_t state;
    uint32_t prefill; /* ranks, by index, once chosen */
    uint32_t decode;
    uint32_t n_slots;             /* that a decode rank needs for it */
    akin_kv_descriptor_t *blocks; /* [n_blocks] at the prefill rank */
    size_t n_blocks;
    uint16_t *counts;  /* [n_layers][n_experts] */
    uint16_t *routes;  /* [n_prompt + max_tokens - 1][n_layers][top_k] from the
                        * first row on that came, if they are recorded */
    uint32_t n_routed; /* rows of them that came */
    uint32_t *tokens;  /* [max_tokens] generated */
    uint32_t n_tokens;
    akin_token_logprob_t *logprobs; /* [max_tokens] or NULL */
    akin_text_stream_t *stream;
    char *text;
    size_t text_bytes;
    uint32_t n_cached; /* prompt tokens found in the prefix cache */
    uint32_t n_restarts;
    int fresh; /* a block was refused: recompute without the cache */
    int64_t arrival_ns, first_ns, last_ns;
    int64_t deadline_ns; /* from the first time that a worker has it */
    int64_t keep_ns;     /* routed: when its lease is to be extended */
    int64_t retry_ns;    /* routed: not before */
    int64_t routed_ns;   /* when it began to wait for a decode worker */
    int64_t give_up_ns;  /* transfer: its decode worker is lost then */
    UT_hash_handle hh;
    struct akini_flight *prev, *next; /* list of its state */
} akini_flight_t;

/** A rank of a prefill or decode worker as the router sees it. Requests are
 * given to ranks; what a worker has as a whole is its steps and its loss. */
typedef struct akini_rank {
    uint32_t rank;
    uint32_t worker; /* of the summary: prefill workers first */
    int is_lost;     /* it, or another rank of its worker */
    int has_stats;   /* its last word came */
    uint32_t n_flights;
    uint32_t load;       /* prefill: tokens given to it and not done */
    uint32_t n_reserved; /* decode: slots promised to its requests */
} akini_rank_t;

/* Steps of which some ranks have reported; router_steps.c. */
typedef struct akini_steps akini_steps_t;

/* Where results go; router_sink.h. */
typedef struct akini_sink akini_sink_t;

struct akin_router {
    akin_router_params_t params;
    akin_net_t *net;
    /* The run. */
    akin_batch_input_t *input;
    akini_sink_t *sink;
    akin_id_set_t *seen, *done;
    akin_request_limits_t limits;
    akin_progress_t *progress;
    akin_progress_counts_t counts;
    akin_summary_t *summary;
    char model_name[256];
    int input_ended;
    int input_is_dry; /* a pipe has nothing now: watched until it has */
    uint64_t n_sequences;
    /* The requests. */
    akini_flight_t *by_id;
    akini_flight_t *lists[AKINI_FLIGHT_STATES];
    uint32_t n_in[AKINI_FLIGHT_STATES];
    uint64_t next_id;
    /* The workers. */
    akini_rank_t *prefill; /* [n_prefill] */
    akini_rank_t *decode;  /* [n_decode] */
    uint32_t n_prefill;    /* ranks */
    uint32_t n_decode;
    akini_steps_t *steps;
    akin_policy_t *policy;
    akin_prefix_router_t *prefix;
    akin_replacer_t *replacer; /* NULL: experts stay where they are */
    uint8_t *eligible;         /* prefill: of ranks; decode: of workers */
    uint32_t *loads;           /* [n_prefill] */
    akin_packer_t packer;
    /* The end. */
    int is_closing;  /* workers were told to stop */
    int64_t stop_ns; /* when a signal asked to stop; 0: none */
    akin_status_t failure;
    akin_error_t error;
};

/* router_front.c: batch lines to requests, results to the sink. */

/** Take requests from the input as long as there is room. */
void akini_router_read(akin_router_t *r, int64_t now_ns);
/** Give away the result of a request that has all its tokens, and forget it. */
void akini_router_answer(akin_router_t *r, akini_flight_t *f,
                         akin_finish_t finish);
/** Give away a request's failure, cancel it where it runs, forget it. */
void akini_router_fail(akin_router_t *r, akini_flight_t *f, int status_code,
                       const char *code, const char *message);

/* router_flight.c: the life of a request. */

akini_flight_t *akini_flight_create(akin_router_t *r, akin_request_t *request,
                                    int64_t now_ns);
akini_flight_t *akini_flight_find(akin_router_t *r, uint64_t id);
void akini_flight_move(akin_router_t *r, akini_flight_t *f,
                       akini_flight_state_t state);
/** Drop it from every list, count and worker; frees it. */
void akini_flight_forget(akin_router_t *r, akini_flight_t *f);
/** Tell the workers that hold it to forget it. */
void akini_flight_cancel(akin_router_t *r, akini_flight_t *f);
/** Begin again from the prompt; the same tokens will come. */
void akini_flight_restart(akin_router_t *r, akini_flight_t *f, const char *why);
/** One more token; answers the request if it was the last one. Says whether
 * the request goes on. */
int akini_flight_token(akin_router_t *r, akini_flight_t *f, uint32_t token,
                       const akin_token_logprob_t *logprob, int64_t now_ns);

/* router_routes.c: which experts the tokens chose, for runs that record it. */

/** ROUTES of a worker. \return that of unpacking it. */
akin_status_t akini_router_on_routes(akin_router_t *r, uint32_t from,
                                     const void *payload,
                                     size_t bytes) AKIN_MUST_CHECK;
/** Whether all rows of a prompt have come and give these counts. */
int akini_router_routes_agree(const akin_router_t *r, const akini_flight_t *f,
                              const uint16_t *counts);

/* router_dispatch.c: decisions. */

/** Give queued requests to prefill workers and routed ones to decode workers.
 */
void akini_router_dispatch(akin_router_t *r, int64_t now_ns);
/** Keep leases alive, end what is overdue; the time of the next such thing. */
int64_t akini_router_expire(akin_router_t *r, int64_t now_ns);
/** Send what is in r->packer; a worker that takes nothing any more is given
 * up. */
void akini_router_send(akin_router_t *r, uint32_t rank,
                       akin_message_type_t type);
/** Send a message that is only a request's id. */
void akini_router_send_id(akin_router_t *r, uint32_t rank,
                          akin_message_type_t type, uint64_t id);

/* router_ranks.c: ranks and the workers that they are of. */

/** \return AKIN_OK, AKIN_ERR_NOMEM */
akin_status_t akini_router_create_ranks(akin_router_t *r) AKIN_MUST_CHECK;
int akini_router_is_prefill(const akin_router_t *r, uint32_t rank);
int akini_router_is_decode(const akin_router_t *r, uint32_t rank);
/** A rank of the job that is not the router. */
akini_rank_t *akini_router_rank(const akin_router_t *r, uint32_t rank);
/** Worker, as the policy counts them, of the decode rank of that index. */
uint32_t akini_router_decode_worker(const akin_router_t *r, uint32_t decode);
/** Ranks of a kind that are left. */
uint32_t akini_router_alive(const akini_rank_t *ranks, uint32_t n);
/** A worker is lost as a whole. */
void akini_router_lose_worker(akin_router_t *r, uint32_t worker);

/* router_replace.c: experts placed anew. Nothing happens without a replacer. */

/** \return AKIN_OK, AKIN_ERR_NOMEM */
akin_status_t akini_router_create_replacer(akin_router_t *r) AKIN_MUST_CHECK;
/** Decode counts of a rank, of the right size. */
void akini_router_replace_counts(akin_router_t *r, uint32_t from,
                                 const akin_message_counts_t *m);
/** A step of a decode worker, as the policy counts them. */
void akini_router_replace_step(akin_router_t *r, uint32_t worker,
                               const akin_policy_step_t *step);
/** PLACED of a decode rank. \return that of unpacking it; AKIN_ERR_FORMAT: the
 * rank leads no worker. */
akin_status_t akini_router_on_placed(akin_router_t *r, uint32_t from,
                                     const void *payload,
                                     size_t bytes) AKIN_MUST_CHECK;
/** A worker, as the summary counts them, is lost. */
void akini_router_replace_lost(akin_router_t *r, uint32_t worker);

/* router_steps.c: what workers report of their steps. */

/** NULL: out of memory. */
akini_steps_t *akini_steps_create(uint32_t n_workers, uint32_t n_layers);
void akini_steps_destroy(akini_steps_t *steps);
/** A rank's report; once all of its worker have reported, the step counts.
 * \return AKIN_OK, AKIN_ERR_RANGE: it makes no sense. */
akin_status_t
akini_router_on_step(akin_router_t *r, uint32_t from,
                     const akin_message_step_t *m) AKIN_MUST_CHECK;

#endif
