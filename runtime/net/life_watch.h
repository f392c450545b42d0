/* Life watch: whether a rank has given no sign for too long. Pure: it is told
 * the time. */
#ifndef AKIN_NET_LIFE_WATCH_H
#define AKIN_NET_LIFE_WATCH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Each phase has a limit of its own. */
typedef enum akini_life_phase {
    AKINI_LIFE_STARTS, /* has to serve by then */
    AKINI_LIFE_SERVES, /* has to beat in that time */
    AKINI_LIFE_ENDS    /* has to be gone by then */
} akini_life_phase_t;

/** One look at a rank. */
typedef struct akini_life_look {
    akini_life_phase_t phase;
    int64_t limit_ns; /* of the phase; 0: none */
    int has_beaten;   /* since the look before */
    int64_t now_ns;   /* not before that of the look before */
} akini_life_look_t;

typedef struct akini_life_watch {
    akini_life_phase_t phase;
    int64_t looked_ns;
    int64_t passed_ns; /* of the phase, or since the last beat */
} akini_life_watch_t;

/** A life begins. */
void akini_life_watch_begin(akini_life_watch_t *watch, int64_t now_ns);

/**
 * Look at the rank.
 *
 * Looks are due four times in a limit. Time between two looks counts as what
 * lies between two that are due, however long it was: a watcher that did not
 * run itself, as in a job that was stopped as a whole, blames nobody for it.
 *
 * \param[out] next_ns_p  ns until the next look is due; INT64_MAX: no limit.
 * \return non-zero: the limit is over.
 */
int akini_life_watch_look(akini_life_watch_t *watch,
                          const akini_life_look_t *look, int64_t *next_ns_p);

#ifdef __cplusplus
}
#endif

#endif
