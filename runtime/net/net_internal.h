/* What the files of the net share: the worker with its peers, items, reads. */
#ifndef AKIN_NET_NET_INTERNAL_H
#define AKIN_NET_NET_INTERNAL_H

#include "net/frame.h"
#include "net/net.h"

#include <ucp/api/ucp.h>

/* Active message ids, one per direction of traffic. */
#define AKINI_AM_MESSAGE 1
#define AKINI_AM_READ_REQUEST 2
#define AKINI_AM_READ_DATA 3

/* A sender lets at most this many messages pass one that is still under way,
 * so a receiver never has to hold more than these back. */
#define AKINI_WINDOW_MESSAGES 32768
/* Payload that may wait to leave for one peer, on top of one longest message.
 */
#define AKINI_UNSENT_BYTES (UINT64_C(64) << 20)
/* Reads of one peer that may be open, and read requests that an owner holds. */
#define AKINI_OPEN_READS 65536

#define AKINI_ITEM_CLASSES 5

/**
 * A message, read request or read answer with its header, on its way out or
 * in. Whoever lists it owns it; akini_item_put() ends it.
 */
typedef struct akini_item {
    struct akini_item *prev, *next; /* utlist links */
    struct akini_item **list;       /* the list it stands in; NULL: none */
    akin_net_t *net;
    uint32_t rank;  /* the peer it goes to or came from */
    int size_class; /* AKINI_ITEM_CLASSES: not pooled */
    int complete;   /* incoming: the payload is all there */
    akini_frame_t frame;
    unsigned char wire[AKINI_FRAME_BYTES]; /* UCX sends it from here */
    unsigned char payload[];
} akini_item_t;

/** Messages that came from one life of a rank, put into their order. */
typedef struct akini_stream {
    uint64_t incarnation;   /* 0: nobody has spoken yet */
    uint64_t next_sequence; /* of the message to deliver next */
    akini_item_t *held;     /* by sequence, ascending */
    size_t n_held;
} akini_stream_t;

/** What is expected of a peer, and what it is given, as a sign of life. */
typedef struct akini_watch {
    int64_t interval_ns; /* 0: the peer is not watched */
    int64_t timeout_ns;
    int64_t silent_ns;   /* own time without a sign, up to the last look */
    int64_t unbeaten_ns; /* since the peer was last due for a heartbeat */
    uint64_t sequence;   /* of the next message to it at that time */
    int has_begun;       /* it has given a sign since it is watched */
    int is_heard;        /* it has given one since the last look */
    uint32_t n_unsent;   /* heartbeats that UCX still holds */
} akini_watch_t;

typedef enum akini_peer_state {
    AKINI_PEER_NONE,   /* never added, or its loss was told */
    AKINI_PEER_UP,     /* usable */
    AKINI_PEER_CLOSING /* lost, UCX may still write for its reads */
} akini_peer_state_t;

typedef struct akini_peer {
    akin_net_t *net;
    uint32_t rank;
    akini_peer_state_t state;
    akin_status_t loss; /* CLOSING: why */
    int close_posted;   /* CLOSING: UCX was asked to close */
    int close_done;     /* CLOSING: and has closed */
    ucp_ep_h endpoint;
    ucp_rkey_h rkey; /* NULL: no slab */
    uint64_t incarnation;
    uint64_t retired; /* this life and those before it are over; 0: none */
    uint64_t slab_address;
    uint64_t slab_bytes;
    int one_sided;
    char path[96];
    char lane[AKIN_NET_LANE_BYTES]; /* transport/device */
    uint64_t next_sequence;         /* of the next message to it */
    akini_item_t *sends;            /* messages UCX still holds, oldest first */
    akini_item_t *others;  /* read requests and answers UCX still holds */
    uint64_t unsent_bytes; /* payload in `sends` */
    uint64_t n_reads;      /* reads of it not yet told as done */
    akini_stream_t stream;
    akini_watch_t watch;
} akini_peer_t;

typedef enum akini_read_state {
    AKINI_READ_FREE,    /* nobody's */
    AKINI_READ_WAITING, /* for the owner's answer; UCX knows no buffer */
    AKINI_READ_WRITING, /* UCX may write to `local` */
    AKINI_READ_DONE     /* status is final, the owner is not yet told */
} akini_read_state_t;

typedef struct akini_read {
    struct akini_read *prev, *next; /* utlist: finished or free */
    akin_net_t *net;
    uint32_t slot; /* its place in net->reads */
    uint32_t uses; /* how often the record was used */
    uint32_t rank;
    akini_read_state_t state;
    akin_status_t status;
    void *local;
    size_t bytes;
    akin_net_read_fn_t done;
    void *arg;
} akini_read_t;

/** When the peers that are watched are looked at, all in one go. */
typedef struct akini_pulse {
    uint32_t n_watched;
    int64_t interval_ns; /* the shortest one of all watches */
    int64_t looked_ns;   /* time of the last look */
    int64_t due_ns;      /* of the next one; INT64_MAX: none */
    int is_called;       /* a heartbeat has come since */
} akini_pulse_t;

struct akin_net {
    uint32_t rank;
    uint32_t n_ranks;
    size_t max_message_bytes;
    akin_net_events_t events;
    uint64_t incarnation;
    ucp_context_h context;
    ucp_worker_h worker;
    int worker_fd; /* owned by the worker */
    int wake_fd;   /* eventfd */
    int watch_fd;  /* the caller's, or -1 */
    ucp_mem_h slab_memory;
    void *slab;
    size_t slab_bytes;
    akini_peer_t *peers; /* [n_ranks] */
    akini_pulse_t pulse;
    uint32_t n_closing;
    uint32_t n_flushing;    /* in destroy: flushes under way */
    int dispatching;        /* inside wait or poll already */
    int closing_down;       /* inside destroy: nothing is told any more */
    uint64_t n_visible;     /* events that the owner can see */
    akini_item_t *ready;    /* messages to deliver */
    akini_item_t *requests; /* read requests to answer */
    akini_item_t *adrift;   /* of lost peers, still held by UCX */
    size_t n_requests;
    akini_read_t **reads; /* [n_reads] every record there is */
    size_t n_reads;
    size_t reads_capacity;
    akini_read_t *finished; /* reads to tell as done */
    akini_read_t *spare_reads;
    akini_item_t *pool[AKINI_ITEM_CLASSES];
    size_t n_pooled[AKINI_ITEM_CLASSES];
    uint64_t n_dropped;
    akin_net_stats_t stats;
};

/** What akin_net_identity() packs. Pointers borrow from the blob. */
typedef struct akini_identity {
    uint32_t rank;
    uint64_t incarnation;
    uint64_t slab_address;
    uint64_t slab_bytes; /* 0: no slab and no key */
    const void *address;
    size_t address_bytes;
    const void *rkey;
    size_t rkey_bytes;
} akini_identity_t;

akin_status_t akini_identity_pack(const akini_identity_t *identity,
                                  void **blob_p,
                                  size_t *bytes_p) AKIN_MUST_CHECK;
akin_status_t akini_identity_unpack(const void *blob, size_t bytes,
                                    akini_identity_t *identity_p,
                                    akin_error_t *err) AKIN_MUST_CHECK;

/** An item with room for `bytes` of payload; NULL: no memory. */
akini_item_t *akini_item_get(akin_net_t *net, uint32_t rank, size_t bytes);
void akini_item_put(akini_item_t *item);
/** Move an item to the end of a list, out of the one it stands in. */
void akini_item_enlist(akini_item_t *item, akini_item_t **list);
void akini_item_unlist(akini_item_t *item);
void akini_item_pool_cleanup(akin_net_t *net);

/** How the slab behind an endpoint can be read; fills peer->path and lane. */
void akini_path_choose(akini_peer_t *peer);
/**
 * From the text that ucp_ep_print_info() writes, transport and device of the
 * lane that reads remote memory, or else of the one that carries bulk data.
 *
 * \param[out] lane  [size] "rc_mlx5/mlx5_0:1"; "unknown" if the text has none.
 * \return non-zero if that lane reads by itself.
 */
int akini_path_parse(const char *info, char *lane, size_t size);

/** The peer cannot be used any more; the owner is told from inside poll. */
void akini_peer_fail(akini_peer_t *peer, akin_status_t status);
/** Send a frame with its payload; takes the item, also on failure. */
akin_status_t akini_peer_post(akini_peer_t *peer, akini_item_t *item,
                              unsigned am_id, const void *payload, size_t bytes,
                              akini_item_t **list) AKIN_MUST_CHECK;
/** Close what is lost and tell the owner. Returns how much it did. */
int akini_peers_settle(akin_net_t *net);

/** Count and, the first times, log something that does not belong here. */
void akini_net_drop(akin_net_t *net, const char *reason, uint32_t from);
/** Count what a life that is over has sent, or what was meant for one. */
void akini_net_drop_late(akin_net_t *net, const akini_frame_t *frame);
/** The common checks of an incoming frame; logs what it refuses. */
akin_status_t akini_net_accept(akin_net_t *net, const void *header,
                               size_t header_bytes,
                               akini_frame_t *frame_p) AKIN_MUST_CHECK;

/* Active message handlers of the worker. */
ucs_status_t akini_message_arrived(void *arg, const void *header,
                                   size_t header_bytes, void *data,
                                   size_t bytes,
                                   const ucp_am_recv_param_t *param);
ucs_status_t akini_read_request_arrived(void *arg, const void *header,
                                        size_t header_bytes, void *data,
                                        size_t bytes,
                                        const ucp_am_recv_param_t *param);
ucs_status_t akini_read_data_arrived(void *arg, const void *header,
                                     size_t header_bytes, void *data,
                                     size_t bytes,
                                     const ucp_am_recv_param_t *param);

/** Forget what a life of the rank sent and expect another (0: any). */
void akini_stream_reset(akini_peer_t *peer, uint64_t incarnation);
/** Pass on what is in order now. */
void akini_stream_advance(akini_peer_t *peer);
/** Send a message of the net itself, which takes its place in the order. */
akin_status_t akini_message_signal(akini_peer_t *peer,
                                   uint16_t type) AKIN_MUST_CHECK;
int akini_messages_dispatch(akin_net_t *net);

/** No heartbeats to a peer that is lost, and none from it. */
void akini_watch_end(akini_peer_t *peer);
/**
 * Look at the peers that are watched, if it is time: one wake-up serves all of
 * them. A silent one fails, the others are sent what is due to them.
 */
void akini_heartbeats_run(akin_net_t *net, int64_t now_ns);

/** End the reads of a lost peer that UCX does not write for. */
void akini_reads_abandon(akini_peer_t *peer);
int akini_reads_answer(akin_net_t *net);
int akini_reads_dispatch(akin_net_t *net);
/** End all reads; only once UCX cannot write any more. */
void akini_reads_cancel(akin_net_t *net);

#endif
