/* A peer that takes nothing any more keeps a rank neither from its deadlines
 * nor from its sleep. */
#include "net_fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* More than any transport keeps on its way. */
#define N_MESSAGES 20000u
#define MESSAGE_BYTES 1024u
#define WAIT_S 2

static uint32_t n_messages;
static pid_t deaf;

static void on_message(void *arg, uint32_t from, uint16_t type,
                       const void *payload, size_t bytes)
{
    (void)arg;
    (void)from;
    (void)type;
    if (bytes == sizeof(deaf))
        memcpy(&deaf, payload, sizeof(deaf));
    n_messages++;
}

static double cpu_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

static int is_stopped(pid_t pid)
{
    char path[64], state = '?';
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    CHECK_FATAL(file != NULL);
    CHECK(fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
    (void)fclose(file);
    return state == 'T';
}

/* It is stopped until the other one has seen what that is like. */
static void be_deaf(akin_net_t *net)
{
    const pid_t own = getpid();
    CHECK(akin_net_send(net, 0, 1, &own, sizeof(own)) == AKIN_OK);
    WAIT_FOR(net, !akin_net_has_unsent(net, 0));
    (void)raise(SIGSTOP);
    WAIT_FOR(net, n_messages == N_MESSAGES);
}

static void speak(akin_net_t *net)
{
    static const char message[MESSAGE_BYTES];
    const struct timespec moment = {.tv_nsec = 1000000};
    WAIT_FOR(net, deaf != 0);
    while (!is_stopped(deaf))
        nanosleep(&moment, NULL);
    for (uint32_t i = 0; i < N_MESSAGES; i++)
        CHECK_FATAL(akin_net_send(net, 1, 1, message, sizeof(message)) ==
                    AKIN_OK);
    /* What still fits somewhere leaves first. */
    while (akin_net_wait(net, akin_clock_now_ns() + AKIN_NS_PER_S / 4) ==
           AKIN_OK)
        continue;
    CHECK(akin_net_has_unsent(net, 1));
    const double before = cpu_seconds();
    const int64_t deadline_ns = akin_clock_now_ns() + WAIT_S * AKIN_NS_PER_S;
    const akin_status_t status = akin_net_wait(net, deadline_ns);
    CHECK(status == AKIN_ERR_TIMEOUT);
    CHECK(akin_clock_now_ns() >= deadline_ns);
    const double used = cpu_seconds() - before;
    printf("%.1f ms of CPU in %d s\n", used * 1e3, WAIT_S);
    CHECK(used < 0.5 * WAIT_S);
    CHECK(kill(deaf, SIGCONT) == 0);
    WAIT_FOR(net, !akin_net_has_unsent(net, 1));
}

int main(int argc, char **argv)
{
    akin_boot_t *boot = fixture_boot();
    const uint32_t rank = akin_boot_rank(boot);
    fixture_is_tcp(argc, argv);
    akin_net_t *net = fixture_connect(
        boot, (akin_net_events_t){.message = on_message}, 1 << 20);
    if (rank == 0)
        speak(net);
    else
        be_deaf(net);
    akin_net_destroy(net);
    return fixture_failures != 0;
}
