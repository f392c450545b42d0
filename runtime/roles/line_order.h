/* Line order: lines that came too early wait for those before them. */
#ifndef AKIN_ROLES_LINE_ORDER_H
#define AKIN_ROLES_LINE_ORDER_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akini_held_line {
    char *line; /* NULL: not there yet */
    size_t bytes;
} akini_held_line_t;

/** A window of sequence numbers [next, next + size). */
typedef struct akini_line_order {
    akini_held_line_t *ring; /* [size], by sequence modulo size; owned */
    uint32_t size;
    uint64_t next; /* sequence that leaves next */
    uint64_t n_held;
    size_t held_bytes;
} akini_line_order_t;

/**
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akini_line_order_init(akini_line_order_t *order,
                                    uint32_t size) AKIN_MUST_CHECK;

/** Free what is held. */
void akini_line_order_cleanup(akini_line_order_t *order);

/**
 * Keep a copy of a line.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: outside of the window, or there already.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akini_line_order_hold(akini_line_order_t *order,
                                    uint64_t sequence, const char *line,
                                    size_t bytes) AKIN_MUST_CHECK;

/** The line that leaves next, borrowed; NULL if it is not there. */
const char *akini_line_order_first(const akini_line_order_t *order,
                                   size_t *bytes_p);

/** Free the line that akini_line_order_first() gave and go on to the next. */
void akini_line_order_advance(akini_line_order_t *order);

#ifdef __cplusplus
}
#endif

#endif
