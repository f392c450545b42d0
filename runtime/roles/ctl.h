/* Ctl: answers commands that come over a UNIX socket, between two other things
 * that its owner does: it never waits and has no thread. */
#ifndef AKIN_ROLES_CTL_H
#define AKIN_ROLES_CTL_H

#include "base/error.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AKIN_CTL_MAX_CLIENTS 16       /* at a time; others are told so */
#define AKIN_CTL_LINE_BYTES 4096      /* longest request, newline included */
#define AKIN_CTL_ANSWER_BYTES 4194304 /* longest answer, newline included */
#define AKIN_CTL_CLIENT_S 5           /* for a request, and for its answer */

struct json_t;
typedef struct akin_ctl akin_ctl_t;

/**
 * Carry out a request: an object whose "command" is a text.
 *
 * \param[in] command  that text.
 * \param[in] request  borrowed.
 * \return the answer, a new reference: an object with "ok", and where that is
 *         false, "error" (akin_ctl_refuse()); NULL: out of memory.
 */
typedef struct json_t *(*akin_ctl_answer_fn_t)(void *arg, const char *command,
                                               struct json_t *request);

/**
 * Listen. A request is one line with a JSON object, an answer as well; a client
 * may send several requests, one after the other. What cannot be read is
 * answered {"ok": false, "error": TEXT}.
 *
 * \param[in]  path   of the socket; "auto": akin_ctl_socket_auto().
 * \param[out] ctl_p  owned by the caller.
 * \param[out] err    names the path.
 * \return AKIN_OK, or the status of akin_ctl_socket_auto() or
 *         akin_ctl_socket_listen(); AKIN_ERR_NOMEM
 */
akin_status_t akin_ctl_open(const char *path, akin_ctl_answer_fn_t answer,
                            void *arg, akin_ctl_t **ctl_p,
                            akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Take new clients, read what is there, answer what is complete, write what is
 * taken, and give up clients that take too long. The work of one call is
 * bounded. Calls that follow each other within milliseconds do nothing, so that
 * it costs nothing in a busy loop.
 *
 * \return requests that were answered.
 */
unsigned akin_ctl_turn(akin_ctl_t *ctl);

/** Path of the socket, absolute or as it was given. */
const char *akin_ctl_path(const akin_ctl_t *ctl);

/** Close, and remove the socket if it is still this one; NULL is allowed. */
void akin_ctl_close(akin_ctl_t *ctl);

/**
 * {"ok": false, "error": TEXT}.
 *
 * \param[in] format  printf format of the text, which is cut at 511 bytes.
 * \return a new reference; NULL: out of memory.
 */
struct json_t *akin_ctl_refuse(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif

#endif
