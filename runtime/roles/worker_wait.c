/* Worker wait: keeps what the router says until the rank can act on it. */
#include "roles/worker_wait.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* The blobs of a message point into its data, which the net takes back. */
static void *copy(const void *payload, size_t bytes)
{
    void *data = malloc(bytes > 0 ? bytes : 1);
    if (data != NULL && bytes > 0)
        memcpy(data, payload, bytes);
    return data;
}

static akin_status_t on_group(akini_worker_wait_t *wait, const void *payload,
                              size_t bytes)
{
    if (wait->group_data != NULL)
        return AKIN_ERR_EXISTS;
    wait->group_data = copy(payload, bytes);
    return wait->group_data != NULL ? akin_message_unpack_group(
                                          wait->group_data, bytes, &wait->group)
                                    : AKIN_ERR_NOMEM;
}

/* At once: what the router says next may be that one of them is lost, or has a
 * successor. One that cannot be reached is lost, as the router will find. */
static akin_status_t connect_peers(akini_worker_wait_t *wait)
{
    for (size_t i = 0; i < wait->assume.n_peers; i++)
        if (akini_worker_peers_add(wait->worker, &wait->assume.peers[i]) ==
            AKIN_ERR_NOMEM)
            return AKIN_ERR_NOMEM;
    return AKIN_OK;
}

static akin_status_t on_assume(akini_worker_wait_t *wait, const void *payload,
                               size_t bytes)
{
    if (wait->assume_data != NULL)
        return AKIN_ERR_EXISTS;
    wait->assume_data = copy(payload, bytes);
    if (wait->assume_data == NULL)
        return AKIN_ERR_NOMEM;
    akin_status_t status =
        akin_message_unpack_assume(wait->assume_data, bytes, &wait->assume);
    return status == AKIN_OK ? connect_peers(wait) : status;
}

static void on_message(void *arg, uint16_t type, const void *payload,
                       size_t bytes)
{
    akini_worker_wait_t *wait = arg;
    akin_status_t status = AKIN_OK;
    if (type == AKIN_MESSAGE_STOP)
        wait->is_stopped = 1;
    else if (type == AKIN_MESSAGE_GROUP)
        status = on_group(wait, payload, bytes);
    else if (type == AKIN_MESSAGE_ASSUME)
        status = on_assume(wait, payload, bytes);
    else
        akin_worker_refuse(AKIN_ROUTER_RANK, type, AKIN_ERR_UNSUPPORTED);
    if (status != AKIN_OK)
        akin_worker_fail(wait->worker, status, "%s of the router: %s",
                         akin_message_name(type), akin_status_string(status));
}

static const akin_worker_waiter_t waiter = {.message = on_message};

void akini_worker_wait_begin(akini_worker_wait_t *wait, akin_worker_t *worker)
{
    *wait = (akini_worker_wait_t){.worker = worker};
    worker->waiter = &waiter;
    worker->waiter_arg = wait;
}

void akini_worker_wait_end(akini_worker_wait_t *wait)
{
    akin_message_group_cleanup(&wait->group);
    akin_message_assume_cleanup(&wait->assume);
    free(wait->group_data);
    free(wait->assume_data);
    wait->group_data = NULL;
    wait->assume_data = NULL;
}

void akini_worker_wait_say(akini_worker_wait_t *wait, akin_message_type_t type,
                           akin_status_t status)
{
    akin_worker_t *worker = wait->worker;
    const akin_message_rank_t m = {.rank = worker->rank, .status = status};
    akin_message_pack_rank(&worker->packer, &m);
    akin_worker_send(worker, AKIN_ROUTER_RANK, type);
}
