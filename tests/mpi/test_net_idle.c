/* An idle rank sleeps: next to no CPU time; a wake-up from elsewhere works. */
#include "net_fixture.h"

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

#define IDLE_S 5

static uint32_t n_greeted;

static void on_message(void *arg, uint32_t from, uint16_t type,
                       const void *payload, size_t bytes)
{
    (void)arg;
    (void)from;
    (void)type;
    (void)payload;
    (void)bytes;
    n_greeted++;
}

static double cpu_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

static void *waker(void *arg)
{
    const struct timespec pause = {.tv_nsec = 50 * 1000000L};
    nanosleep(&pause, NULL);
    akin_net_wake(arg);
    return NULL;
}

int main(int argc, char **argv)
{
    akin_boot_t *boot = fixture_boot();
    uint32_t rank = akin_boot_rank(boot), size = akin_boot_size(boot);
    fixture_is_tcp(argc, argv);
    akin_net_t *net = fixture_connect(
        boot, (akin_net_events_t){.message = on_message}, 1 << 20);
    for (uint32_t r = 0; r < size; r++)
        if (r != rank)
            CHECK(akin_net_send(net, r, 1, "x", 1) == AKIN_OK);
    WAIT_FOR(net, n_greeted == size - 1);
    double before = cpu_seconds();
    int64_t end_ns = akin_clock_now_ns() + IDLE_S * AKIN_NS_PER_S;
    while (akin_clock_now_ns() < end_ns) {
        akin_status_t status = akin_net_wait(net, end_ns);
        CHECK_FATAL(status == AKIN_OK || status == AKIN_ERR_TIMEOUT);
    }
    double used = cpu_seconds() - before;
    akin_net_stats_t stats;
    akin_net_stats(net, &stats);
    printf("rank %u: %.1f ms of CPU in %d idle seconds, %llu sleeps\n",
           (unsigned)rank, used * 1e3, IDLE_S,
           (unsigned long long)stats.sleeps);
    CHECK(used < 0.01 * IDLE_S);
    pthread_t thread;
    CHECK_FATAL(pthread_create(&thread, NULL, waker, net) == 0);
    akin_status_t status =
        akin_net_wait(net, akin_clock_now_ns() + FIXTURE_LIMIT_NS);
    CHECK(status == AKIN_OK);
    pthread_join(thread, NULL);
    akin_net_destroy(net);
    return fixture_failures != 0;
}
