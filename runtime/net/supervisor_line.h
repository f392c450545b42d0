/* Supervisor lines: what a supervisor tells the user, a line for each event. */
#ifndef AKIN_NET_SUPERVISOR_LINE_H
#define AKIN_NET_SUPERVISOR_LINE_H

#include "net/life_watch.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a rank was lost. */
typedef enum akini_lost {
    AKINI_LOST_ROUTER,    /* the job ends with it, as others say */
    AKINI_LOST_EARLY,     /* before it served */
    AKINI_LOST_WITH_MPI,  /* while MPI ties the ranks to each other */
    AKINI_LOST_FOLLOWED,  /* by another life */
    AKINI_LOST_FOR_GOOD,  /* by one that only tells of it */
    AKINI_LOST_LAST,      /* the one that only tells of it */
    AKINI_LOST_AT_END,    /* when it had begun to end */
    AKINI_LOST_WHEN_OVER, /* when the job had been told to end */
} akini_lost_t;

typedef struct akini_supervisor_line {
    int rank;
    const char *role;
    int wait_status;          /* lost: waitpid()'s */
    int64_t delay_ns;         /* lost, followed: until the next life */
    uint32_t n_recent;        /* lost for good: lives within the window */
    int64_t window_ns;        /* lost for good; 0: of all times */
    akini_life_phase_t phase; /* killed: whose limit was over */
    int is_last;              /* killed: it only was to tell of the loss */
    int64_t limit_ns;         /* killed, away */
} akini_supervisor_line_t;

/** The rank was lost. */
void akini_supervisor_line_lost(const akini_supervisor_line_t *line,
                                akini_lost_t how);

/** The supervisor has killed the rank. */
void akini_supervisor_line_killed(const akini_supervisor_line_t *line);

/** The rank does not reach the router; whether it tries again. */
void akini_supervisor_line_away(const akini_supervisor_line_t *line,
                                int goes_on);

#ifdef __cplusplus
}
#endif

#endif
