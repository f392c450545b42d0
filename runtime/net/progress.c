/* Progress: makes it, tells the events, sleeps and wakes. */
#include "net/net_internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Progress calls of one poll; the rest waits until the events are told. */
#define PROGRESS_CALLS 64
/* While UCX closes an endpoint, or waits for room at a peer, it needs progress
 * without saying so. */
#define BLIND_SLEEP_NS AKIN_NS_PER_MS
/* How often in a row UCX may refuse to be slept on before it is done anyway. */
#define BUSY_CALLS 16

static int progress(akin_net_t *net)
{
    int n = 0;
    while (n < PROGRESS_CALLS && ucp_worker_progress(net->worker) != 0)
        n++;
    return n;
}

int akin_net_poll(akin_net_t *net)
{
    if (net->dispatching)
        return 0;
    net->dispatching = 1;
    int n = progress(net);
    n += akini_messages_dispatch(net);
    n += akini_reads_answer(net);
    n += akini_reads_dispatch(net);
    if (net->pulse.n_watched > 0 && !net->closing_down)
        akini_heartbeats_run(net, akin_clock_now_ns());
    n += akini_peers_settle(net);
    net->dispatching = 0;
    return n;
}

/* Sleep until UCX, a wake-up or the time asks; not for long while UCX would not
 * ask. Returns non-zero if awakened by akin_net_wake() or the descriptor that
 * is watched, negative on failure. */
static int sleep_until(akin_net_t *net, int64_t deadline_ns, int is_blind)
{
    if (net->pulse.n_watched > 0 && deadline_ns > net->pulse.due_ns)
        deadline_ns = net->pulse.due_ns;
    int64_t left = INT64_MAX;
    if (deadline_ns != INT64_MAX) {
        left = deadline_ns - akin_clock_now_ns();
        if (left < 0)
            left = 0;
    }
    if ((net->n_closing > 0 || is_blind) && left > BLIND_SLEEP_NS)
        left = BLIND_SLEEP_NS;
    const struct timespec timeout = {.tv_sec = (time_t)(left / AKIN_NS_PER_S),
                                     .tv_nsec = (long)(left % AKIN_NS_PER_S)};
    struct pollfd fds[3] = {{.fd = net->worker_fd, .events = POLLIN},
                            {.fd = net->wake_fd, .events = POLLIN},
                            {.fd = net->watch_fd, .events = POLLIN}};
    net->stats.sleeps++;
    int n = ppoll(fds, 3, left != INT64_MAX ? &timeout : NULL, NULL);
    if (n < 0)
        return errno == EINTR ? 0 : -1;
    if (fds[1].revents == 0)
        return fds[2].revents != 0;
    uint64_t count;
    return read(net->wake_fd, &count, sizeof(count)) == sizeof(count);
}

akin_status_t akin_net_wait(akin_net_t *net, int64_t deadline_ns)
{
    const uint64_t seen = net->n_visible;
    int awakened = 0, has_slept = 0, n_busy = 0;
    for (;;) {
        int some = akin_net_poll(net);
        /* Heartbeats and what UCX does for itself are nobody's business. */
        if (awakened > 0 || net->n_visible != seen)
            return AKIN_OK;
        if ((some != 0 || has_slept) && deadline_ns != INT64_MAX &&
            akin_clock_now_ns() >= deadline_ns)
            return AKIN_ERR_TIMEOUT;
        if (some != 0) {
            n_busy = 0;
            continue;
        }
        /* Armed only when nothing has come since the poll, so that no event
         * slips in between. */
        ucs_status_t s = ucp_worker_arm(net->worker);
        if (s == UCS_ERR_BUSY && n_busy < BUSY_CALLS) {
            n_busy++;
            continue;
        }
        if (s != UCS_OK && s != UCS_ERR_BUSY) {
            AKIN_LOG(NET, ERROR, "ucp_worker_arm: %s", ucs_status_string(s));
            return AKIN_ERR_UCX;
        }
        awakened = sleep_until(net, deadline_ns, s == UCS_ERR_BUSY);
        if (awakened < 0) {
            AKIN_LOG(NET, ERROR, "ppoll: %s", strerror(errno));
            return AKIN_ERR_IO;
        }
        has_slept = 1;
    }
}

void akin_net_watch(akin_net_t *net, int fd)
{
    net->watch_fd = fd;
}

void akin_net_wake(akin_net_t *net)
{
    /* A full counter means that a wake-up is pending already. */
    const uint64_t one = 1;
    int saved = errno;
    ssize_t written = write(net->wake_fd, &one, sizeof(one));
    (void)written;
    errno = saved;
}
