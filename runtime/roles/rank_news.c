/* Rank news: what rank 0 says when all ranks are ready. */
#include "roles/rank_news.h"

#include "base/clock.h"
#include "roles/modelled.h"
#include "roles/rank_ep.h"

#include <stdio.h>
#include <stdlib.h>

/* Seconds since the launcher began, or else since this process did. */
static double start_seconds(int64_t own_ns)
{
    const char *text = getenv("AKIN_START_NS");
    const int64_t now = akin_clock_now_ns();
    int64_t start = text != NULL ? strtoll(text, NULL, 10) : own_ns;
    /* A launcher on another host has another clock. */
    if (start <= 0 || start > own_ns)
        start = own_ns;
    return (double)(now - start) / (double)AKIN_NS_PER_S;
}

static void say_workers(char *text, size_t bytes, uint32_t n, uint32_t ep)
{
    if (ep == 1)
        (void)snprintf(text, bytes, "%u", n);
    else
        (void)snprintf(text, bytes, "%u x %u", n, ep);
}

void akini_rank_announce(const akini_rank_news_t *news)
{
    const akin_job_t *job = news->job;
    char prefill[32], decode[32], spare[32] = "";
    say_workers(prefill, sizeof(prefill), job->n_prefill, job->prefill_ep);
    say_workers(decode, sizeof(decode), job->n_decode, job->ep);
    if (job->n_spare > 0)
        say_workers(spare, sizeof(spare), job->n_spare, job->ep);
    (void)fprintf(
        stderr,
        "akin: 1 router, %s prefill%s%s%s and %s decode ranks, kernel "
        "%s on all, %u KV blocks of %u tokens each, routing %s, "
        "ready in %.1f s\n",
        prefill, job->n_spare > 0 ? ", " : "", spare,
        job->n_spare > 0 ? " spare" : "", decode, news->kernel, news->n_slots,
        job->block_tokens, job->decode_policy, start_seconds(news->start_ns));
    if (akin_job_is_modelled(job))
        (void)fprintf(
            stderr,
            "akin: no model is computed: steps take %g times what "
            "they would for %s on %s, KV has one %u-th of the bytes\n",
            job->modelled_slowdown, job->modelled_model, job->modelled_machine,
            job->modelled_kv_scale);
    if (job->ep == 1 && job->prefill_ep == 1)
        return;
    (void)fprintf(stderr,
                  "akin: experts placed by %s, %u replicas in a layer, "
                  "exchange %s\n",
                  news->placement, job->n_replicas, job->exchange);
    if (akin_job_keeps_mpi(job))
        (void)fprintf(stderr, "akin: MPI stays up for the exchange: the death "
                              "of a rank ends the job\n");
}
