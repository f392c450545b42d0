/* Leftover: the kernel's table of segments tells whose they are. */
#include "net/leftover.h"

#include <stdio.h>
#include <sys/ipc.h>
#include <sys/shm.h>

/* Whether the segment may go; the kernel's word is newer than its table. */
static int is_leftover(int id, pid_t pid, time_t since)
{
    struct shmid_ds segment;
    return shmctl(id, IPC_STAT, &segment) == 0 && segment.shm_cpid == pid &&
           segment.shm_nattch == 0 && segment.shm_ctime >= since;
}

uint32_t akini_leftover_remove(pid_t pid, time_t since)
{
    FILE *table = fopen("/proc/sysvipc/shm", "re");
    char line[512];
    uint32_t n = 0;
    if (table == NULL)
        return 0;
    while (fgets(line, sizeof(line), table) != NULL) {
        long key, maker;
        int id;
        unsigned long attached;
        if (sscanf(line, "%ld %d %*s %*s %ld %*s %lu", &key, &id, &maker,
                   &attached) != 4 ||
            key != IPC_PRIVATE || maker != (long)pid || attached != 0)
            continue;
        n += is_leftover(id, pid, since) && shmctl(id, IPC_RMID, NULL) == 0;
    }
    (void)fclose(table);
    return n;
}
