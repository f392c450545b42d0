/* Leftover: the kernel's table of segments tells whose they are. */
#include "net/leftover.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/shm.h>

/* Whether the segment may go; the kernel's word is newer than its table. */
static int is_leftover(int id, pid_t pid, time_t since)
{
    struct shmid_ds segment;
    return shmctl(id, IPC_STAT, &segment) == 0 && segment.shm_cpid == pid &&
           segment.shm_nattch == 0 && segment.shm_ctime >= since;
}

/* A line of the table: key, shmid, perms, size, cpid, lpid, nattch, ... */
enum {
    COLUMN_KEY,
    COLUMN_ID,
    COLUMN_MAKER = 4,
    COLUMN_ATTACHED = 6,
    N_COLUMNS
};

/* Whether the line, without its heading, has those columns. */
static int parse_columns(const char *line, long columns[N_COLUMNS])
{
    for (int c = 0; c < N_COLUMNS; c++) {
        char *end;
        columns[c] = strtol(line, &end, 10);
        if (end == line)
            return 0;
        line = end;
    }
    return 1;
}

uint32_t akini_leftover_remove(pid_t pid, time_t since)
{
    FILE *table = fopen("/proc/sysvipc/shm", "re");
    char line[512];
    uint32_t n = 0;
    if (table == NULL)
        return 0;
    while (fgets(line, sizeof(line), table) != NULL) {
        long columns[N_COLUMNS];
        if (!parse_columns(line, columns) ||
            columns[COLUMN_KEY] != IPC_PRIVATE ||
            columns[COLUMN_MAKER] != (long)pid || columns[COLUMN_ATTACHED] != 0)
            continue;
        const int id = (int)columns[COLUMN_ID];
        n += is_leftover(id, pid, since) && shmctl(id, IPC_RMID, NULL) == 0;
    }
    (void)fclose(table);
    return n;
}
