/* Leftover: segments of a killed process that nobody else could remove go, and
 * no other. */
#include "net/leftover.h"

#include "runner.h"

#include <signal.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_IDS 3

/* What a process had made when it was killed: without a key; without one, and
 * this process is attached; with a key. */
typedef struct made {
    pid_t pid;
    int ids[N_IDS];
    void *attached;
} made_t;

static int exists(int id)
{
    struct shmid_ds segment;
    return shmctl(id, IPC_STAT, &segment) == 0;
}

static made_t make(void)
{
    int ends[2];
    made_t made;
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    made.pid = fork();
    CU_ASSERT_FATAL(made.pid >= 0);
    if (made.pid == 0) {
        const key_t key = (key_t)(0x416b0000 + (getpid() & 0xffff));
        const int ids[N_IDS] = {shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600),
                                shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600),
                                shmget(key, 4096, IPC_CREAT | 0600)};
        ssize_t n = write(ends[1], ids, sizeof(ids));
        (void)n;
        pause();
        _exit(0);
    }
    CU_ASSERT_EQUAL_FATAL(read(ends[0], made.ids, sizeof(made.ids)),
                          (ssize_t)sizeof(made.ids));
    close(ends[0]);
    close(ends[1]);
    made.attached = shmat(made.ids[1], NULL, 0);
    for (int i = 0; i < N_IDS; i++)
        CU_ASSERT_FATAL(made.ids[i] >= 0);
    kill(made.pid, SIGKILL);
    CU_ASSERT_EQUAL(waitpid(made.pid, NULL, 0), made.pid);
    return made;
}

static void clean(const made_t *made)
{
    shmdt(made->attached);
    for (int i = 0; i < N_IDS; i++)
        shmctl(made->ids[i], IPC_RMID, NULL);
}

static void test_remove(void)
{
    time_t since = time(NULL);
    made_t made = make();
    CU_ASSERT_EQUAL(akini_leftover_remove(made.pid + 1, since), 0);
    CU_ASSERT(exists(made.ids[0]));
    CU_ASSERT_EQUAL(akini_leftover_remove(made.pid, since), 1);
    CU_ASSERT(!exists(made.ids[0]));
    CU_ASSERT(exists(made.ids[1]));
    CU_ASSERT(exists(made.ids[2]));
    CU_ASSERT_EQUAL(akini_leftover_remove(made.pid, since), 0);
    clean(&made);
}

/* Of an earlier process of the same number. */
static void test_older(void)
{
    made_t made = make();
    CU_ASSERT_EQUAL(akini_leftover_remove(made.pid, time(NULL) + 60), 0);
    CU_ASSERT(exists(made.ids[0]));
    clean(&made);
}

static const runner_test_t tests[] = {
    {"what nobody can find goes", test_remove},
    {"older segments stay", test_older},
};
RUNNER_MAIN("leftover", tests)
