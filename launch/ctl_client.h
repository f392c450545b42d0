/* Ctl client: asks the router of a running job. */
#ifndef AKIN_LAUNCH_CTL_CLIENT_H
#define AKIN_LAUNCH_CTL_CLIENT_H

#include "base/error.h"
#include "roles/ctl_socket.h"

struct json_t;

/**
 * The socket of the one job of this user that runs on this host.
 *
 * \param[out] path_p
 * \param[out] err  tells where to look, if there is none.
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND: there is none.
 * \return AKIN_ERR_EXISTS: there are several, which were listed on stderr.
 * \return those of akin_ctl_socket_list()
 */
akin_status_t akin_ctl_client_find(akin_ctl_path_t *path_p,
                                   akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Send a request and wait for its answer, at most ten seconds.
 *
 * \param[in]  request   borrowed.
 * \param[out] answer_p  an object with "ok" true, a new reference; NULL if
 *                       there is none.
 * \param[out] err       what the router says where it refuses.
 * \return AKIN_OK
 * \return AKIN_ERR_REFUSED: "ok" is false.
 * \return AKIN_ERR_TIMEOUT, AKIN_ERR_PEER, AKIN_ERR_FORMAT, AKIN_ERR_IO,
 *         AKIN_ERR_NOMEM, and those of akin_ctl_socket_connect()
 */
akin_status_t akin_ctl_client_ask(const char *path,
                                  const struct json_t *request,
                                  struct json_t **answer_p,
                                  akin_error_t *err) AKIN_MUST_CHECK;

#endif
