/* MPI_Finalize under a guard against the crashes that it has of its own. */
#include "net/finalize.h"

#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

/*
 * Open MPI 4.1 with PMIx 4.2 now and then runs a late event of a plug-in that
 * it has unloaded, mostly on its progress thread. Going on after that is sound
 * because of what is true at this moment:
 * - MPI has done its work, and nobody calls it again; whatever it leaves
 *   locked or half freed is its own, the net has a UCX context of its own.
 * - The rank has no thread of ours yet that could hold a lock.
 * - A crash on the thread in MPI_Finalize is a call into unmapped code or a
 *   stale pointer in MPI's data; leaving by siglongjmp drops only MPI frames.
 * - A crash on another thread parks that thread for good. MPI_Finalize may
 *   still end by itself; only when it has not after a grace time, which means
 *   that it waits for the parked thread and so is in no allocator, it is left
 *   by siglongjmp too.
 */
#define GRACE_MS 500

static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGFPE};
#define N_CRASH_SIGNALS (sizeof(crash_signals) / sizeof(crash_signals[0]))

static sigjmp_buf leave;
static pthread_t guarded_thread;
static volatile sig_atomic_t guarding;

static void crashed(int signal_number)
{
    if (pthread_equal(pthread_self(), guarded_thread)) {
        if (guarding) {
            guarding = 0;
            siglongjmp(leave, signal_number);
        }
        return;
    }
    const struct timespec grace = {.tv_nsec = GRACE_MS * 1000000L};
    nanosleep(&grace, NULL);
    if (guarding)
        pthread_kill(guarded_thread, signal_number);
    for (;;)
        pause();
}

int akini_mpi_finalize(void)
{
    struct sigaction old[N_CRASH_SIGNALS];
    struct sigaction action = {.sa_handler = crashed};
    /* Everything else is for other threads while a crashed one is parked. */
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < N_CRASH_SIGNALS; i++)
        sigdelset(&action.sa_mask, crash_signals[i]);
    guarded_thread = pthread_self();
    int crash = sigsetjmp(leave, 1);
    if (crash == 0) {
        for (size_t i = 0; i < N_CRASH_SIGNALS; i++)
            sigaction(crash_signals[i], &action, &old[i]);
        guarding = 1;
        MPI_Finalize();
        guarding = 0;
    }
    for (size_t i = 0; i < N_CRASH_SIGNALS; i++)
        sigaction(crash_signals[i], &old[i], NULL);
    return crash;
}
