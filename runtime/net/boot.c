/* Boot: start-up, agreement and exchange over MPI, then its end. */
#include "net/boot.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "net/finalize.h"
#include "net/ucx_log.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct akin_boot {
    uint32_t rank;
    uint32_t size;
    uint32_t host_ranks;
    MPI_Comm role; /* MPI_COMM_NULL until akin_boot_role() */
};

/* A failure as it travels: the status with its message. */
typedef struct verdict {
    int32_t status;
    char text[sizeof(((akin_error_t *)0)->text)];
} verdict_t;

void akin_boot_set_environment(void)
{
    static const char *const values[][2] = {
        {"OMPI_MCA_pml", "ucx"},
        {"OMPI_MCA_pml_ucx_tls", "any"},
        {"OMPI_MCA_pml_ucx_devices", "any"},
        {"OMPI_MCA_osc", "^ucx"},
        {"OMPI_MCA_btl", "self"},
        {"OMPI_MCA_mpi_yield_when_idle", "1"},
        {"UCX_MM_ERROR_HANDLING", "y"},
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        setenv(values[i][0], values[i][1], 0);
}

/* A whole non-negative number from the environment. */
static int environment_u32(const char *name, uint32_t *value_p)
{
    const char *text = getenv(name);
    if (text == NULL || *text < '0' || *text > '9')
        return 0;
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || *end != '\0' || value > UINT32_MAX)
        return 0;
    *value_p = (uint32_t)value;
    return 1;
}

akin_status_t akin_boot_launch_rank(uint32_t *rank_p, uint32_t *size_p)
{
    /* SLURM_PROCID alone is no sign of a launcher: a batch script has it. */
    static const char *const names[][2] = {
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        {"PMIX_RANK", "SLURM_STEP_NUM_TASKS"},
        {"PMIX_RANK", "SLURM_NTASKS"},
        {"PMI_RANK", "PMI_SIZE"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        uint32_t rank, size;
        if (environment_u32(names[i][0], &rank) &&
            environment_u32(names[i][1], &size) && rank < size) {
            *rank_p = rank;
            *size_p = size;
            return AKIN_OK;
        }
    }
    return AKIN_ERR_NOT_FOUND;
}

int akin_boot_is_launched(void)
{
    uint32_t rank, size;
    return akin_boot_launch_rank(&rank, &size) == AKIN_OK;
}

static akin_status_t mpi_failed(akin_error_t *err, const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return akin_error_set(err, AKIN_ERR_MPI, "%s: %s", call, text);
}

static int count_host_ranks(int *n_p)
{
    MPI_Comm host;
    int code = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
                                   MPI_INFO_NULL, &host);
    if (code != MPI_SUCCESS)
        return code;
    code = MPI_Comm_size(host, n_p);
    (void)MPI_Comm_free(&host);
    return code;
}

akin_status_t akin_boot_start(akin_boot_t **boot_p, akin_error_t *err)
{
    *boot_p = NULL;
    akin_boot_t *boot = calloc(1, sizeof(*boot));
    if (boot == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "boot: out of memory");
    boot->role = MPI_COMM_NULL;
    akin_boot_set_environment();
    akini_ucx_log_hush();
    int rank = 0, size = 0, host_ranks = 1, provided = 0;
    const char *call = "MPI_Init_thread";
    /* A group's exchange calls MPI from the engine thread. */
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    if (code == MPI_SUCCESS) {
        call = "MPI_Comm_set_errhandler";
        code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    if (code == MPI_SUCCESS) {
        call = "MPI_Comm_rank";
        code = MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    }
    if (code == MPI_SUCCESS) {
        call = "MPI_Comm_size";
        code = MPI_Comm_size(MPI_COMM_WORLD, &size);
    }
    if (code == MPI_SUCCESS) {
        call = "MPI_Comm_split_type";
        code = count_host_ranks(&host_ranks);
    }
    if (code != MPI_SUCCESS) {
        free(boot);
        return mpi_failed(err, call, code);
    }
    boot->rank = (uint32_t)rank;
    boot->size = (uint32_t)size;
    boot->host_ranks = (uint32_t)host_ranks;
    *boot_p = boot;
    return AKIN_OK;
}

uint32_t akin_boot_rank(const akin_boot_t *boot)
{
    return boot->rank;
}

uint32_t akin_boot_size(const akin_boot_t *boot)
{
    return boot->size;
}

uint32_t akin_boot_host_ranks(const akin_boot_t *boot)
{
    return boot->host_ranks;
}

/* One rank's verdict to all of them; a success changes no message. */
static akin_status_t verdict_share(uint32_t root, const akin_boot_t *boot,
                                   akin_status_t status, const char *prefix,
                                   akin_error_t *err)
{
    verdict_t verdict = {.status = status};
    if (boot->rank == root && err != NULL)
        memcpy(verdict.text, err->text, sizeof(verdict.text));
    int code = MPI_Bcast(&verdict, sizeof(verdict), MPI_BYTE, (int)root,
                         MPI_COMM_WORLD);
    if (code != MPI_SUCCESS)
        return mpi_failed(err, "MPI_Bcast", code);
    verdict.text[sizeof(verdict.text) - 1] = '\0';
    if (verdict.status == AKIN_OK)
        return AKIN_OK;
    akin_status_t shared = (akin_status_t)verdict.status;
    return akin_error_set(err, shared, "%s%s", prefix,
                          verdict.text[0] != '\0' ? verdict.text
                                                  : akin_status_string(shared));
}

akin_status_t akin_boot_agree(akin_boot_t *boot, akin_status_t status,
                              akin_error_t *err)
{
    uint32_t mine = status == AKIN_OK ? boot->size : boot->rank;
    uint32_t first = 0;
    int code =
        MPI_Allreduce(&mine, &first, 1, MPI_UINT32_T, MPI_MIN, MPI_COMM_WORLD);
    if (code != MPI_SUCCESS)
        return mpi_failed(err, "MPI_Allreduce", code);
    if (first == boot->size)
        return AKIN_OK;
    char prefix[32];
    snprintf(prefix, sizeof(prefix), "rank %u: ", (unsigned)first);
    return verdict_share(first, boot, status, prefix, err);
}

akin_status_t akin_boot_broadcast(akin_boot_t *boot, akin_status_t status,
                                  const char *text, char **text_p,
                                  akin_error_t *err)
{
    *text_p = NULL;
    uint64_t head[2] = {0, 0}; /* bytes, hash */
    if (boot->rank == 0 && status == AKIN_OK) {
        head[0] = strlen(text);
        head[1] = akin_hash64(text, head[0], 0);
        if (head[0] >= INT_MAX)
            status = akin_error_set(err, AKIN_ERR_RANGE,
                                    "broadcast: %zu bytes are too many",
                                    (size_t)head[0]);
    }
    status = verdict_share(0, boot, status, "", err);
    if (status != AKIN_OK)
        return status;
    int code = MPI_Bcast(head, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (code != MPI_SUCCESS)
        return mpi_failed(err, "MPI_Bcast", code);
    size_t bytes = (size_t)head[0];
    char *copy = malloc(bytes + 1);
    if (copy == NULL)
        status =
            akin_error_set(err, AKIN_ERR_NOMEM, "broadcast: %zu bytes", bytes);
    status = akin_boot_agree(boot, status, err);
    if (status != AKIN_OK || copy == NULL)
        goto err_free;
    if (boot->rank == 0)
        memcpy(copy, text, bytes);
    code = MPI_Bcast(copy, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (code != MPI_SUCCESS)
        status = mpi_failed(err, "MPI_Bcast", code);
    else if (akin_hash64(copy, bytes, 0) != head[1])
        status = akin_error_set(err, AKIN_ERR_FORMAT,
                                "broadcast: the text has another hash than on "
                                "rank 0");
    status = akin_boot_agree(boot, status, err);
    if (status != AKIN_OK)
        goto err_free;
    copy[bytes] = '\0';
    *text_p = copy;
    return AKIN_OK;
err_free:
    free(copy);
    return status;
}

akin_status_t akin_boot_min(akin_boot_t *boot, int64_t value, int64_t *min_p,
                            akin_error_t *err)
{
    (void)boot;
    int code =
        MPI_Allreduce(&value, min_p, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
    return code == MPI_SUCCESS ? AKIN_OK
                               : mpi_failed(err, "MPI_Allreduce", code);
}

akin_status_t akin_boot_role(akin_boot_t *boot, int role, uint32_t *index_p,
                             uint32_t *count_p, akin_error_t *err)
{
    assert(role >= 0);
    MPI_Comm comm = MPI_COMM_NULL;
    int code = MPI_Comm_split(MPI_COMM_WORLD, role, (int)boot->rank, &comm);
    if (code != MPI_SUCCESS)
        return mpi_failed(err, "MPI_Comm_split", code);
    int index = 0, count = 0;
    MPI_Comm_rank(comm, &index);
    MPI_Comm_size(comm, &count);
    if (boot->role != MPI_COMM_NULL)
        MPI_Comm_free(&boot->role);
    boot->role = comm;
    *index_p = (uint32_t)index;
    *count_p = (uint32_t)count;
    return AKIN_OK;
}

/* MPI_Allgatherv of blobs whose sizes are known; offsets are in `places`. */
static akin_status_t gather(const akin_boot_t *boot, const void *blob,
                            const size_t *offsets, unsigned char *blobs,
                            int *counts, int *places, akin_error_t *err)
{
    for (uint32_t r = 0; r < boot->size; r++) {
        counts[r] = (int)(offsets[r + 1] - offsets[r]);
        places[r] = (int)offsets[r];
    }
    int code = MPI_Allgatherv(blob, counts[boot->rank], MPI_BYTE, blobs, counts,
                              places, MPI_BYTE, MPI_COMM_WORLD);
    return code == MPI_SUCCESS ? AKIN_OK
                               : mpi_failed(err, "MPI_Allgatherv", code);
}

akin_status_t akin_boot_exchange(akin_boot_t *boot, const void *blob,
                                 size_t bytes, unsigned char **blobs_p,
                                 size_t **offsets_p, akin_error_t *err)
{
    *blobs_p = NULL;
    *offsets_p = NULL;
    akin_status_t status = AKIN_OK;
    unsigned char *blobs = NULL;
    uint64_t mine = bytes;
    uint64_t *sizes = calloc(boot->size, sizeof(*sizes));
    size_t *offsets = calloc((size_t)boot->size + 1, sizeof(*offsets));
    int *numbers = calloc((size_t)boot->size * 2, sizeof(*numbers));
    if (sizes == NULL || offsets == NULL || numbers == NULL)
        status = akin_error_set(err, AKIN_ERR_NOMEM, "exchange: out of memory");
    status = akin_boot_agree(boot, status, err);
    if (status != AKIN_OK || sizes == NULL || offsets == NULL ||
        numbers == NULL)
        goto err_free;
    int code = MPI_Allgather(&mine, 1, MPI_UINT64_T, sizes, 1, MPI_UINT64_T,
                             MPI_COMM_WORLD);
    if (code != MPI_SUCCESS) {
        status = mpi_failed(err, "MPI_Allgather", code);
        goto err_free;
    }
    for (uint32_t r = 0; r < boot->size && status == AKIN_OK; r++) {
        /* MPI counts in int; every rank sees the same sum. */
        if (sizes[r] > INT_MAX - offsets[r])
            status = akin_error_set(err, AKIN_ERR_RANGE,
                                    "exchange: the blobs exceed 2 GiB");
        else
            offsets[r + 1] = offsets[r] + sizes[r];
    }
    if (status != AKIN_OK)
        goto err_free;
    blobs = malloc(offsets[boot->size] + 1);
    if (blobs == NULL)
        status = akin_error_set(err, AKIN_ERR_NOMEM, "exchange: out of memory");
    status = akin_boot_agree(boot, status, err);
    if (status == AKIN_OK)
        status = gather(boot, blob, offsets, blobs, numbers,
                        numbers + boot->size, err);
    if (status != AKIN_OK)
        goto err_free;
    free(numbers);
    free(sizes);
    *blobs_p = blobs;
    *offsets_p = offsets;
    return AKIN_OK;
err_free:
    free(blobs);
    free(numbers);
    free(offsets);
    free(sizes);
    return status;
}

akin_status_t akin_boot_barrier(akin_boot_t *boot, akin_error_t *err)
{
    (void)boot;
    int code = MPI_Barrier(MPI_COMM_WORLD);
    return code == MPI_SUCCESS ? AKIN_OK : mpi_failed(err, "MPI_Barrier", code);
}

akin_status_t akin_boot_barrier_poll(akin_boot_t *boot, void (*poll)(void *arg),
                                     void *arg, int64_t limit_ns,
                                     akin_error_t *err)
{
    const int64_t until_ns = akin_clock_now_ns() + limit_ns;
    MPI_Request request;
    int is_there = 0;
    int code = MPI_Ibarrier(MPI_COMM_WORLD, &request);
    if (code != MPI_SUCCESS)
        return mpi_failed(err, "MPI_Ibarrier", code);
    for (;;) {
        code = MPI_Test(&request, &is_there, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            return mpi_failed(err, "MPI_Test", code);
        if (is_there)
            return AKIN_OK;
        if (akin_clock_now_ns() > until_ns)
            return akin_error_set(err, AKIN_ERR_TIMEOUT,
                                  "rank %u waited %.0f s for the others",
                                  (unsigned)boot->rank, (double)limit_ns / 1e9);
        poll(arg);
        /* There may be more ranks than cores. */
        (void)sched_yield();
    }
}

void akin_boot_finish(akin_boot_t *boot)
{
    if (boot == NULL)
        return;
    MPI_Barrier(MPI_COMM_WORLD);
    if (boot->role != MPI_COMM_NULL)
        MPI_Comm_free(&boot->role);
    int crash = akini_mpi_finalize();
    if (crash != 0)
        AKIN_LOG(NET, INFO, "MPI_Finalize crashed (signal %d), ignored", crash);
    free(boot);
}
