/* Boot: a crash inside MPI_Finalize does not end the rank. */
#include "net_fixture.h"

#include <mpi.h>
#include <pthread.h>
#include <signal.h>

static int on_other_thread;

static void *crash(void *arg)
{
    (void)arg;
    raise(SIGSEGV);
    return NULL;
}

/* Stands in front of the library's, after which it crashes: on its own thread,
 * or on another one that it then waits for. */
int MPI_Finalize(void)
{
    PMPI_Finalize();
    if (!on_other_thread)
        crash(NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, crash, NULL) == 0)
        pthread_join(thread, NULL);
    fprintf(stderr, "the crash did not happen\n");
    exit(3);
}

static void on_segv(int number)
{
    (void)number;
}

int main(int argc, char **argv)
{
    on_other_thread = argc > 1 && strcmp(argv[1], "thread") == 0;
    akin_boot_t *boot = fixture_boot();
    signal(SIGSEGV, on_segv);
    akin_boot_finish(boot);
    /* The handler from before is back, and the rank can go on working. */
    struct sigaction action;
    CHECK(sigaction(SIGSEGV, NULL, &action) == 0);
    CHECK(action.sa_handler == on_segv);
    sigset_t blocked;
    CHECK(sigprocmask(SIG_SETMASK, NULL, &blocked) == 0);
    CHECK(!sigismember(&blocked, SIGSEGV) && !sigismember(&blocked, SIGTERM));
    for (size_t i = 1; i < 1000; i++)
        free(malloc(i * 100));
    return fixture_failures != 0;
}
