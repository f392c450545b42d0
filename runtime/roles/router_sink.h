/* Sink: where the results of a run go: the lines of a batch, or a trace. */
#ifndef AKIN_ROLES_ROUTER_SINK_H
#define AKIN_ROLES_ROUTER_SINK_H

#include "roles/router_state.h"

typedef struct akini_sink_ops {
    /* Make a request that was read what this run makes of it. Says whether the
     * sink holds its result already. */
    int (*admit)(akini_sink_t *sink, akin_request_t *request);
    /* How many more requests may be begun; 0: wait. */
    uint32_t (*room)(akini_sink_t *sink, uint64_t n_begun);
    /* Take the result of a request that has all its tokens. AKIN_ERR_REFUSED:
     * the request fails as `refused` says; anything else ends the run. */
    akin_status_t (*answer)(akini_sink_t *sink, const akini_flight_t *f,
                            akin_finish_t finish, akin_request_error_t *refused,
                            akin_error_t *err);
    /* Take the failure of a request. */
    akin_status_t (*fail)(akini_sink_t *sink, uint64_t sequence,
                          const akin_request_error_t *error, akin_error_t *err);
    /* Called now and then. */
    akin_status_t (*tick)(akini_sink_t *sink, int64_t now_ns,
                          akin_error_t *err);
    /* Nothing more comes; `is_complete`: every request has its result. */
    akin_status_t (*end)(akini_sink_t *sink, int is_complete,
                         akin_error_t *err);
    /* Tell people how it went; after end(). */
    akin_status_t (*report)(akini_sink_t *sink, akin_error_t *err);
    void (*destroy)(akini_sink_t *sink); /* end() may not have been called */
} akini_sink_ops_t;

/** First member of every sink. */
struct akini_sink {
    const akini_sink_ops_t *ops;
    akin_router_t *router; /* borrowed */
};

/**
 * The sink of a batch run: an output file, and the summary at the end. Ids
 * that the file answers already go into router->done, their number into
 * router->counts.
 *
 * \return as akin_batch_output_open()
 */
akin_status_t akini_batch_sink_create(akin_router_t *router,
                                      akini_sink_t **sink_p,
                                      akin_error_t *err) AKIN_MUST_CHECK;

/**
 * The sink of a calibration: a trace of the experts that every request's
 * tokens chose. Requests become greedy ones of the calibration's length.
 *
 * \return as akin_trace_writer_create()
 */
akin_status_t akini_trace_sink_create(akin_router_t *router,
                                      akini_sink_t **sink_p,
                                      akin_error_t *err) AKIN_MUST_CHECK;

#endif
