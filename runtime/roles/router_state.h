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
    uint16_t *counts;  /* [n_layers][n_experts] of those */
    uint16_t *routes;  /* [n_prompt + max_tokens - 1][n_layers][top_k] from the
                        * first row on that came, if they are recorded */
    uint32_t n_routed; /* rows of them that came */
    uint32_t *context; /* [n_prompt + max_tokens] prompt and generated tokens */
    uint32_t *tokens;  /* the generated ones, within it */
    uint32_t n_tokens;
    uint32_t n_start; /* of the context: what is prefilled; the prompt, and what
                       * was generated when its worker was lost */
    akin_token_logprob_t *logprobs; /* [max_tokens] or NULL */
    akin_text_stream_t *stream;
    char *text;
    size_t text_bytes;
    uint32_t n_cached; /* prompt tokens found in the prefix cache */
    uint32_t n_restarts;
    int fresh;       /* a block was refused: recompute without the cache */
    int64_t lost_ns; /* when its worker was lost, until its next token; 0 */
    int64_t arrival_ns, first_ns, last_ns;
    int64_t deadline_ns; /* from the first time that a worker has it */
    int64_t keep_ns;     /* routed: when its lease is to be extended */
    int64_t retry_ns;    /* routed: not before */
    int64_t routed_ns;   /* when it began to wait for a decode worker */
    int64_t give_up_ns;  /* transfer: its decode worker is lost then */
    UT_hash_handle hh;
    struct akini_flight *prev, *next; /* list of its state */
} akini_flight_t;

/** A rank's place in a prefill or decode worker. Requests are given to ranks;
 * what a worker has as a whole is its steps, its loss and its return. */
typedef struct akini_rank {
    uint32_t rank;   /* that has the place, or had it last */
    uint32_t worker; /* of the summary: prefill workers first */
    int is_lost;     /* nobody serves here */
    int is_drained;  /* the worker gets nothing new */
    uint32_t n_flights;
    uint32_t load;       /* prefill: tokens given to it and not done */
    uint32_t n_reserved; /* decode: slots promised to its requests */
} akini_rank_t;

/** A process of a rank of the job; router_groups.c. */
typedef struct akini_process {
    uint32_t life;
    uint64_t incarnation; /* of the connected one; 0: none */
    int has_stats;        /* its last word came */
    int is_doomed;        /* another of its group is lost: it ends */
    void *net;            /* identities, owned; NULL: none is known */
    size_t net_bytes;
    void *exchange;
    size_t exchange_bytes;
    uint32_t n_owed; /* PEERED that it owes */
    akin_message_leases_t leases;
} akini_process_t;

typedef enum akini_group_state {
    AKINI_GROUP_SERVING,  /* is a worker */
    AKINI_GROUP_WAITING,  /* is ready to become one */
    AKINI_GROUP_ASSUMING, /* becomes one */
    AKINI_GROUP_JOINING,  /* its ranks, started anew, come and load */
    AKINI_GROUP_LOST,     /* they may yet come */
    AKINI_GROUP_GONE      /* they will not */
} akini_group_state_t;

/** Consecutive ranks that live, serve and die together; router_groups.c. */
typedef struct akini_group {
    uint32_t first;
    uint32_t n_ranks;
    akini_group_state_t state;
    uint32_t worker;     /* SERVING, ASSUMING: that it is, of the summary;
                          * else that it was last; AKIN_ROUTING_NO_WORKER */
    uint64_t said;       /* bit i: rank first + i has joined, is ready, or has
                          * assumed, as the state asks */
    int is_complete;     /* JOINING: all have joined, and load */
    int64_t deadline_ns; /* JOINING, ASSUMING: given up if it takes longer;
                          * INT64_MAX: not all have come */
} akini_group_t;

/* Steps of which some ranks have reported; router_steps.c. */
typedef struct akini_steps akini_steps_t;

/* Where results go; router_sink.h. */
typedef struct akini_sink akini_sink_t;

/* The socket of akin ctl; router_ctl.c. */
typedef struct akin_ctl akin_ctl_t;

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
    akini_rank_t **places; /* [n_ranks] of the job: the place that a rank has;
                            * NULL: none */
    akini_process_t *processes; /* [n_ranks] */
    akini_group_t *groups;      /* [n_groups] */
    uint32_t n_groups;
    int64_t *lost_ns; /* [n_prefill + n_decode workers] since when nobody is
                       * that worker; 0: somebody is */
    akin_ctl_t *ctl;  /* NULL: none */
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
/** Its decode worker has one request more or less: note that in the summary. */
void akini_flight_tell_load(akin_router_t *r, const akini_flight_t *f,
                            int64_t now_ns);
/** Drop it from every list, count and worker; frees it. */
void akini_flight_forget(akin_router_t *r, akini_flight_t *f);
/** Tell the workers that hold it to forget it. */
void akini_flight_cancel(akin_router_t *r, akini_flight_t *f);
/** Begin again, from the prompt and what was generated; the same tokens will
 * come. */
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
/** Whether the rank is, at present, of such a worker. */
int akini_router_is_prefill(const akin_router_t *r, uint32_t rank);
int akini_router_is_decode(const akin_router_t *r, uint32_t rank);
/** The place of a rank of the job; NULL: it has none at present. */
akini_rank_t *akini_router_rank(const akin_router_t *r, uint32_t rank);
/** Places of a worker, as the summary counts them: n_p of them. */
akini_rank_t *akini_router_places(const akin_router_t *r, uint32_t worker,
                                  uint32_t *n_p);
/** Name of a worker of the summary: "decode 3". */
void akini_router_worker_name(const akin_router_t *r, uint32_t worker,
                              char name[32]);
/** Worker, as the policy counts them, of the decode rank of that index. */
uint32_t akini_router_decode_worker(const akin_router_t *r, uint32_t decode);
/** Ranks of a kind that serve, drained or not. */
uint32_t akini_router_alive(const akini_rank_t *ranks, uint32_t n);
/** A worker is lost as a whole: its requests begin again. */
void akini_router_lose_worker(akin_router_t *r, uint32_t worker);

/* router_groups.c: processes that come and go, and the workers they become. */

/** \return AKIN_OK, AKIN_ERR_NOMEM */
akin_status_t akini_router_create_groups(akin_router_t *r) AKIN_MUST_CHECK;
void akini_router_destroy_groups(akin_router_t *r);
/** The run begins: all groups of the job but the spare ones serve. */
akin_status_t akini_router_start_groups(akin_router_t *r) AKIN_MUST_CHECK;
/** A connected rank is lost, and with it its group. */
void akini_router_lose_rank(akin_router_t *r, uint32_t rank,
                            akin_status_t status);
/** JOIN, READY, ASSUMED or PEERED. Says whether it was one of them. */
int akini_router_on_group_message(akin_router_t *r, uint32_t from,
                                  uint16_t type, const void *payload,
                                  size_t bytes);
/** Whether a connected process has yet to say its last word (`is_end`: to
 * end). */
int akini_router_is_awaited(const akin_router_t *r, int is_end);

/* router_patience.c: groups and roles that are waited for. */

/** Give up what takes too long; the time of the next such thing. */
int64_t akini_router_expire_groups(akin_router_t *r, int64_t now_ns);

/* router_members.c: how a group becomes a worker. */

/** Have waiting groups become the workers that are lost. */
void akini_router_fill_places(akin_router_t *r);
/** ASSUMED of a rank of the group, or one PEERED less is owed. */
void akini_router_settle_group(akin_router_t *r, akini_group_t *g);
/** Give up the ranks that have not connected to a group of another role. */
void akini_router_drop_debtors(akin_router_t *r, const akini_group_t *g);

/* router_ctl.c: what akin ctl asks for. */

void akini_router_ctl_open(akin_router_t *r);
/** Serve what has come; never waits. Says how much there was. */
int akini_router_ctl_turn(akin_router_t *r);
void akini_router_ctl_close(akin_router_t *r);

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
/** A worker, as the summary counts them, is lost; or is there again, and steps
 * under the placement of akin_router_params_t. */
void akini_router_replace_lost(akin_router_t *r, uint32_t worker);
void akini_router_replace_back(akin_router_t *r, uint32_t worker);

/* router_steps.c: what workers report of their steps. */

/** NULL: out of memory. */
akini_steps_t *akini_steps_create(uint32_t n_workers, uint32_t n_layers);
void akini_steps_destroy(akini_steps_t *steps);
/** A worker, as the summary counts them, is lost, and its open steps. */
void akini_steps_forget(akini_steps_t *steps, uint32_t worker);
/** A rank's report; once all of its worker have reported, the step counts.
 * \return AKIN_OK, AKIN_ERR_RANGE: it makes no sense. */
akin_status_t
akini_router_on_step(akin_router_t *r, uint32_t from,
                     const akin_message_step_t *m) AKIN_MUST_CHECK;

#endif
