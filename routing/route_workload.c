/* Route workload: the two that the published measurements know. */
#include "routing/route_workload.h"

#include <stddef.h>
#include <string.h>

/*
 * The shares of "task" are the 3,600, 2,779, 2,744 and 2,545 prompts of the
 * published workload. Of "language" the publication says that English and
 * Chinese are about 75 %; how the rest divides is an assumption.
 *
 * The other numbers are such that traces of 128 experts, top-8, have what was
 * measured on real models: 39, 57, 74 and 89 distinct experts in mixed batches
 * of 8, 16, 32 and 64 (Qwen3-30B-A3B on MGSM in eight languages); batches of
 * one domain touch 17-21 % fewer (tasks, a point less at the ends of 8 to 64)
 * and 3-10 % fewer (languages); rates of prompt and decode correlate by
 * 0.70-0.92; and tokens side by side share some 1.4 times as many experts as
 * tokens far apart (GPT-OSS-20B). That languages have the stronger topics is
 * because clusters were measured to do better than the label of the language.
 */
static const akin_route_workload_t workloads[] = {
    {.name = "task",
     .domains = {{"legal", 0.3085},
                 {"code", 0.2382},
                 {"math", 0.2352},
                 {"medical", 0.2181}},
     .n_domains = 4,
     .n_topics = 4,
     .popular = 1.15,
     .domain = 1.65,
     .topic = 0.9,
     .general = 0.1,
     .redrawn = 0.7,
     .near = 0.6},
    {.name = "language",
     .domains = {{"english", 0.52},
                 {"chinese", 0.23},
                 {"russian", 0.08},
                 {"french", 0.04},
                 {"spanish", 0.035},
                 {"german", 0.03},
                 {"portuguese", 0.02},
                 {"japanese", 0.018},
                 {"italian", 0.015},
                 {"korean", 0.012}},
     .n_domains = 10,
     .n_topics = 4,
     .popular = 1.3,
     .domain = 0.7,
     .topic = 1.0,
     .general = 0.1,
     .redrawn = 0.7,
     .near = 0.6},
};

#define N_WORKLOADS (sizeof(workloads) / sizeof(workloads[0]))

const akin_route_workload_t *akin_route_workload_find(const char *name)
{
    for (size_t i = 0; i < N_WORKLOADS; i++)
        if (strcmp(workloads[i].name, name) == 0)
            return &workloads[i];
    return NULL;
}

const char *akin_route_workload_name(uint32_t index)
{
    return index < N_WORKLOADS ? workloads[index].name : NULL;
}
