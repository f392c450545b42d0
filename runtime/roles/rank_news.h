/* Rank news: what rank 0 says when all ranks are ready. */
#ifndef AKIN_ROLES_RANK_NEWS_H
#define AKIN_ROLES_RANK_NEWS_H

#include "roles/job.h"

/** What all ranks have agreed on; borrowed. */
typedef struct akini_rank_news {
    const akin_job_t *job;
    const char *placement; /* akin_job_placement_name() */
    const char *kernel;
    uint32_t n_slots; /* of a worker rank */
    int64_t start_ns; /* of this process */
} akini_rank_news_t;

/** Say it on stderr, before the work begins. */
void akini_rank_announce(const akini_rank_news_t *news);

#endif
