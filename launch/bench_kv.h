/* bench kv: reads of KV blocks beside reads by bare UCX. */
#ifndef AKIN_LAUNCH_BENCH_KV_H
#define AKIN_LAUNCH_BENCH_KV_H

#include "launch/bench.h"

#include <stdio.h>

/** Zero is the default. */
typedef struct akin_bench_kv_params {
    uint32_t rounds; /* per case, at most AKIN_BENCH_MAX_ROUNDS; 0: 50 */
    int json;        /* print an array of objects, else a table */
} akin_bench_kv_params_t;

/**
 * Measure on two ranks of a job: rank 0 reads runs of 1, 4, 16 and 64 blocks of
 * Qwen3-30B-A3B's shape from rank 1 and prints. For each length:
 * - "read": the net's reads, beside bare UCX reading as many bytes at once (a
 *   get, or where that is emulated one rendezvous); ratio = bare / ours, 1 is
 *   the limit.
 * - "transfer": the whole path with checksums and all checks, beside the same
 *   bare read.
 * - "sidecar": the net's reads with sidecars beside those without; ratio =
 *   with / without, 1 would be free.
 * Ours and the references take turns; seconds and ratios are medians.
 *
 * Call it before MPI and UCX are started, on every rank of the job.
 *
 * \param[in]  out  where rank 0 prints.
 * \param[out] err
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: not two ranks; the text says how to start them.
 * \return the status of the call that failed.
 */
akin_status_t akin_bench_kv(const akin_bench_kv_params_t *params, FILE *out,
                            akin_error_t *err) AKIN_MUST_CHECK;

#endif
