/* Boot group: nonblocking collectives, so that a wait can have an end. */
#include "net/boot_group.h"

#include "base/clock.h"
#include "base/log.h"

#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

/* How long to look without a pause, and the pauses after that: MPI cannot wake
 * a sleeper. */
#define SPIN_NS (50 * AKIN_NS_PER_US)
#define FIRST_PAUSE_NS (20 * AKIN_NS_PER_US)
#define LAST_PAUSE_NS AKIN_NS_PER_MS

struct akin_boot_group {
    MPI_Comm comm;
    uint32_t rank;
    uint32_t size;
    int is_stuck; /* an operation did not end: MPI still uses the group */
};

static akin_status_t mpi_failed(akin_error_t *err, const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return akin_error_set(err, AKIN_ERR_MPI, "%s: %s", call, text);
}

akin_status_t akin_boot_group_create(akin_boot_t *boot, int colour,
                                     akin_boot_group_t **group_p,
                                     akin_error_t *err)
{
    *group_p = NULL;
    int level = MPI_THREAD_SINGLE, rank = 0, size = 0;
    akin_boot_group_t *group = calloc(1, sizeof(*group));
    akin_status_t status = AKIN_OK;
    (void)MPI_Query_thread(&level);
    if (group == NULL)
        status = akin_error_set(err, AKIN_ERR_NOMEM, "group: out of memory");
    else if (level < MPI_THREAD_SERIALIZED)
        status = akin_error_set(err, AKIN_ERR_UNSUPPORTED,
                                "this MPI lets only the main thread call it, "
                                "so it cannot carry a group's exchange; use "
                                "ep.exchange = \"ucx\"");
    status = akin_boot_agree(boot, status, err);
    if (status != AKIN_OK || group == NULL) {
        free(group);
        return status;
    }
    MPI_Comm comm = MPI_COMM_NULL;
    int code =
        MPI_Comm_split(MPI_COMM_WORLD, colour < 0 ? MPI_UNDEFINED : colour,
                       (int)akin_boot_rank(boot), &comm);
    if (code != MPI_SUCCESS) {
        free(group);
        return mpi_failed(err, "MPI_Comm_split", code);
    }
    if (comm == MPI_COMM_NULL) {
        free(group);
        return AKIN_OK;
    }
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    group->comm = comm;
    group->rank = (uint32_t)rank;
    group->size = (uint32_t)size;
    *group_p = group;
    return AKIN_OK;
}

void akin_boot_group_destroy(akin_boot_group_t *group)
{
    if (group == NULL)
        return;
    if (!group->is_stuck)
        MPI_Comm_free(&group->comm);
    free(group);
}

uint32_t akin_boot_group_rank(const akin_boot_group_t *group)
{
    return group->rank;
}

uint32_t akin_boot_group_size(const akin_boot_group_t *group)
{
    return group->size;
}

static akin_status_t log_failure(const char *call, int code)
{
    akin_error_t err = {{0}};
    akin_status_t status = mpi_failed(&err, call, code);
    AKIN_LOG(NET, ERROR, "%s", err.text);
    return status;
}

static akin_status_t await(akin_boot_group_t *group, MPI_Request *request,
                           int64_t deadline_ns)
{
    const int64_t begin_ns = akin_clock_now_ns();
    int64_t pause_ns = FIRST_PAUSE_NS;
    for (;;) {
        int is_done = 0;
        int code = MPI_Test(request, &is_done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) {
            group->is_stuck = 1;
            return log_failure("MPI_Test", code);
        }
        if (is_done)
            return AKIN_OK;
        int64_t now_ns = akin_clock_now_ns();
        if (now_ns >= deadline_ns) {
            group->is_stuck = 1;
            return AKIN_ERR_TIMEOUT;
        }
        if (now_ns - begin_ns < SPIN_NS) {
            (void)sched_yield();
            continue;
        }
        const struct timespec pause = {.tv_nsec = (long)pause_ns};
        (void)nanosleep(&pause, NULL);
        pause_ns = pause_ns * 2 < LAST_PAUSE_NS ? pause_ns * 2 : LAST_PAUSE_NS;
    }
}

akin_status_t akin_boot_group_swap_sizes(akin_boot_group_t *group,
                                         const uint64_t *out, uint64_t *in,
                                         int64_t deadline_ns)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Ialltoall(out, 1, MPI_UINT64_T, in, 1, MPI_UINT64_T,
                             group->comm, &request);
    if (code != MPI_SUCCESS)
        return log_failure("MPI_Ialltoall", code);
    return await(group, &request, deadline_ns);
}

akin_status_t akin_boot_group_swap(akin_boot_group_t *group,
                                   const akin_boot_pieces_t *out,
                                   const akin_boot_pieces_t *in,
                                   int64_t deadline_ns)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int code =
        MPI_Ialltoallv(out->data, out->sizes, out->offsets, MPI_BYTE, in->data,
                       in->sizes, in->offsets, MPI_BYTE, group->comm, &request);
    if (code != MPI_SUCCESS)
        return log_failure("MPI_Ialltoallv", code);
    return await(group, &request, deadline_ns);
}
