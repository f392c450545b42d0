/* Ctl socket: where the control sockets of a user's jobs lie, and making and
 * reaching them. */
#ifndef AKIN_ROLES_CTL_SOCKET_H
#define AKIN_ROLES_CTL_SOCKET_H

#include "base/error.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Room for the path of a socket, the NUL included: the size of sun_path. */
#define AKIN_CTL_PATH_BYTES 108

typedef struct akin_ctl_path {
    char text[AKIN_CTL_PATH_BYTES];
} akin_ctl_path_t;

/**
 * The path that "auto" stands for in this process: JOB-PID.sock in
 * $XDG_RUNTIME_DIR/akin, or, where there is no such folder of the user's own,
 * in /tmp/akin-UID. JOB is SLURM_JOB_ID, or "job". The folder is created; one
 * that is a link, another user's, or open to others is refused. Sockets in it
 * at which nobody has listened for a minute or more are removed.
 *
 * \param[out] path_p
 * \param[out] err  names the folder.
 * \return AKIN_OK
 * \return AKIN_ERR_REFUSED: the folder cannot be trusted.
 * \return AKIN_ERR_RANGE: the path is too long for a socket.
 * \return AKIN_ERR_IO, AKIN_ERR_NOT_FOUND, AKIN_ERR_FULL
 */
akin_status_t akin_ctl_socket_auto(akin_ctl_path_t *path_p,
                                   akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Listen at a path, for the own user alone (mode 0600). A socket that a dead
 * process left there is replaced; nothing else is.
 *
 * \param[out] fd_p  does not block, closed on exec; owned by the caller, who
 *                   removes the path as well.
 * \return AKIN_OK
 * \return AKIN_ERR_EXISTS: somebody listens there, or it is no socket.
 * \return AKIN_ERR_RANGE: the path is too long for a socket.
 * \return AKIN_ERR_INVALID: the path is empty.
 * \return AKIN_ERR_IO, AKIN_ERR_NOT_FOUND, AKIN_ERR_FULL
 */
akin_status_t akin_ctl_socket_listen(const char *path, int *fd_p,
                                     akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Connect to a path without waiting.
 *
 * \param[out] fd_p  does not block, closed on exec; owned by the caller.
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND: no such path.
 * \return AKIN_ERR_PEER: nobody listens there.
 * \return AKIN_ERR_BUSY: more wait there than it takes: try again.
 * \return AKIN_ERR_RANGE, AKIN_ERR_INVALID, AKIN_ERR_IO
 */
akin_status_t akin_ctl_socket_connect(const char *path, int *fd_p,
                                      akin_error_t *err) AKIN_MUST_CHECK;

/**
 * The sockets in the folders of akin_ctl_socket_auto() at which somebody
 * listens, sorted by name.
 *
 * \param[out] paths_p  [*n_p] malloc'ed, owned by the caller; NULL if none.
 * \param[out] n_p
 * \param[out] err      names a folder that exists and cannot be trusted.
 * \return AKIN_OK, also where there are none.
 * \return AKIN_ERR_REFUSED, AKIN_ERR_IO, AKIN_ERR_NOMEM
 */
akin_status_t akin_ctl_socket_list(akin_ctl_path_t **paths_p, size_t *n_p,
                                   akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
