/* Thread helpers over pthread and the affinity mask. */
#include "base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

/* The kernel refuses a mask smaller than its own; no kernel has more cores. */
#define CORES_MAX (1 << 20)

void akin_thread_set_name(const char *name)
{
    char cut[16];
    (void)snprintf(cut, sizeof(cut), "%s", name);
    (void)pthread_setname_np(pthread_self(), cut);
}

int akin_thread_usable_cores(void)
{
    for (size_t cores = CPU_SETSIZE; cores <= CORES_MAX; cores *= 2) {
        cpu_set_t *set = CPU_ALLOC(cores);
        if (set == NULL)
            break;
        size_t bytes = CPU_ALLOC_SIZE(cores);
        int usable = 0;
        if (sched_getaffinity(0, bytes, set) == 0)
            usable = CPU_COUNT_S(bytes, set);
        CPU_FREE(set);
        if (usable > 0)
            return usable;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}
