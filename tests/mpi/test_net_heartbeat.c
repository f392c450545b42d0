/* Heartbeats between ranks that stop, go on, fall silent and idle. Arguments:
 * [tcp] stopped|frozen|traffic|idle. */
#include "net_fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL_NS (100 * AKIN_NS_PER_MS)
#define TIMEOUT_NS (2 * AKIN_NS_PER_S)
#define MARGIN_NS AKIN_NS_PER_S
#define IDLE_INTERVAL_NS (250 * AKIN_NS_PER_MS)
#define IDLE_NS (5 * AKIN_NS_PER_S)
#define MAX_RANKS 64
#define N_LATE 5
#define VICTIM 2u

enum { TYPE_PID = 1, TYPE_PING, TYPE_PONG, TYPE_LAST, TYPE_LATE, TYPE_WORD };

typedef struct state {
    akin_net_t *net;
    uint32_t rank;
    uint32_t size;
    int is_tcp;
    pid_t pids[MAX_RANKS];
    uint32_t n_pids;
    uint32_t n_pings;
    uint32_t n_pongs;
    uint32_t n_words;
    uint32_t n_late;
    double cpu_s;               /* of the others, added up */
    int64_t last_ns[MAX_RANKS]; /* when the last message of a rank came */
    int64_t lost_ns[MAX_RANKS]; /* when it was lost; 0: it was not */
    akin_status_t loss[MAX_RANKS];
    uint32_t n_lost;       /* but for those who left in order */
    int64_t slept_late_ns; /* what the machine withheld: waits were so late */
} state_t;

static void on_message(void *arg, uint32_t from, uint16_t type,
                       const void *payload, size_t bytes)
{
    state_t *s = arg;
    s->last_ns[from] = akin_clock_now_ns();
    switch (type) {
    case TYPE_PID:
        CHECK_FATAL(bytes == sizeof(pid_t));
        memcpy(&s->pids[from], payload, bytes);
        s->n_pids++;
        break;
    case TYPE_PING:
        s->n_pings++;
        CHECK(akin_net_send(s->net, from, TYPE_PONG, NULL, 0) == AKIN_OK);
        break;
    case TYPE_PONG:
        s->n_pongs++;
        break;
    case TYPE_LATE:
        s->n_late++;
        break;
    case TYPE_WORD:
        if (bytes == sizeof(double)) {
            double cpu_s;
            memcpy(&cpu_s, payload, bytes);
            s->cpu_s += cpu_s;
        }
        s->n_words++;
        break;
    default:
        CHECK(type == TYPE_LAST);
    }
}

static void on_lost(void *arg, uint32_t rank, akin_status_t status)
{
    state_t *s = arg;
    CHECK(s->lost_ns[rank] == 0);
    s->lost_ns[rank] = akin_clock_now_ns();
    s->loss[rank] = status;
    s->n_lost += status != AKIN_ERR_CANCELED;
}

static void watch(state_t *s, uint32_t rank, int64_t timeout_ns)
{
    CHECK(akin_net_watch_peer(s->net, rank, INTERVAL_NS, timeout_ns) ==
          AKIN_OK);
}

static void say(state_t *s, uint32_t rank, uint16_t type)
{
    CHECK(akin_net_send(s->net, rank, type, NULL, 0) == AKIN_OK);
}

/* A bit of waiting; notes how much longer it was than asked for. */
static void wait_a_bit(state_t *s, int64_t ns)
{
    int64_t until_ns = akin_clock_now_ns() + ns;
    akin_status_t status = akin_net_wait(s->net, until_ns);
    CHECK_FATAL(status == AKIN_OK || status == AKIN_ERR_TIMEOUT);
    int64_t late_ns = akin_clock_now_ns() - until_ns;
    if (late_ns > 0)
        s->slept_late_ns += late_ns;
}

static void wait_for_ns(state_t *s, int64_t ns)
{
    int64_t until_ns = akin_clock_now_ns() + ns;
    while (akin_clock_now_ns() < until_ns)
        wait_a_bit(s, until_ns - akin_clock_now_ns());
}

static void wait_lost(state_t *s, uint32_t rank)
{
    int64_t limit_ns = akin_clock_now_ns() + FIXTURE_LIMIT_NS;
    while (s->lost_ns[rank] == 0 && akin_clock_now_ns() < limit_ns)
        wait_a_bit(s, INTERVAL_NS / 2);
    CHECK_FATAL(s->lost_ns[rank] != 0);
}

static void check_lost_in_time(state_t *s, uint32_t rank)
{
    int64_t took_ns = s->lost_ns[rank] - s->last_ns[rank];
    printf("rank %u: rank %u lost %.0f ms after its last message\n",
           (unsigned)s->rank, (unsigned)rank, (double)took_ns * 1e-6);
    CHECK(s->loss[rank] == AKIN_ERR_TIMEOUT);
    CHECK(took_ns >= TIMEOUT_NS);
    CHECK(took_ns <= TIMEOUT_NS + MARGIN_NS + s->slept_late_ns);
    CHECK(!akin_net_has_peer(s->net, rank));
    CHECK(akin_net_peer_incarnation(s->net, rank) == 0);
}

/* The victim stops, is lost, goes on and says late things. */
static void be_stopped(state_t *s)
{
    /* Both watch it by now: what comes from here on is a sign to them. */
    WAIT_FOR(s->net, s->n_words >= 2);
    say(s, 0, TYPE_PING);
    say(s, 1, TYPE_PING);
    WAIT_FOR(s->net, s->n_pongs == 2);
    say(s, 0, TYPE_LAST);
    say(s, 1, TYPE_LAST);
    WAIT_FOR(s->net, !akin_net_has_unsent(s->net, 0) &&
                         !akin_net_has_unsent(s->net, 1));
    int64_t first_ns =
        s->last_ns[0] < s->last_ns[1] ? s->last_ns[0] : s->last_ns[1];
    int64_t unheard_ns = akin_clock_now_ns() - first_ns;
    raise(SIGSTOP);
    int64_t begin_ns = akin_clock_now_ns();
    for (uint32_t r = 0; r < VICTIM; r++)
        for (int i = 0; i < N_LATE; i++) {
            /* Over tcp the end of the connection may be known at once. */
            akin_status_t status = akin_net_send(s->net, r, TYPE_LATE, NULL, 0);
            CHECK(status == AKIN_OK || (s->is_tcp && status == AKIN_ERR_PEER));
        }
    for (uint32_t r = 0; r < VICTIM; r++) {
        wait_lost(s, r);
        CHECK(s->loss[r] == AKIN_ERR_TIMEOUT ||
              (s->is_tcp && s->loss[r] == AKIN_ERR_PEER));
        /* The time in which it was stopped is one interval to it. */
        if (s->loss[r] == AKIN_ERR_TIMEOUT)
            CHECK(s->lost_ns[r] - begin_ns >=
                  TIMEOUT_NS - INTERVAL_NS - unheard_ns);
    }
}

static void stopped(state_t *s)
{
    for (uint32_t r = 0; r < s->size; r++)
        if (r != s->rank)
            watch(s, r, TIMEOUT_NS);
    if (s->rank == VICTIM) {
        be_stopped(s);
        return;
    }
    CHECK(akin_net_peer_incarnation(s->net, VICTIM) != 0);
    say(s, VICTIM, TYPE_WORD);
    wait_lost(s, VICTIM);
    check_lost_in_time(s, VICTIM);
    /* Both survivors are done with it before it goes on. */
    say(s, 1 - s->rank, TYPE_WORD);
    WAIT_FOR(s->net, s->n_words >= 1);
    if (s->rank == 0)
        CHECK(kill(s->pids[VICTIM], SIGCONT) == 0);
    akin_net_stats_t stats = {0};
    int64_t limit_ns = akin_clock_now_ns() + FIXTURE_LIMIT_NS;
    if (s->is_tcp)
        limit_ns = akin_clock_now_ns() + TIMEOUT_NS;
    while (stats.messages_late < N_LATE && akin_clock_now_ns() < limit_ns) {
        wait_a_bit(s, INTERVAL_NS);
        akin_net_stats(s->net, &stats);
    }
    /* What is left in a connection over tcp goes down with it. */
    CHECK(stats.messages_late == N_LATE ||
          (s->is_tcp && stats.messages_late < N_LATE));
    CHECK(s->n_late == 0);
    CHECK(s->n_lost == 1);
    say(s, 1 - s->rank, TYPE_WORD);
    WAIT_FOR(s->net, s->n_words >= 2);
}

/* Rank 2 stops the others for longer than they would wait for each other. Who
 * goes on while the other one is stopped is patient. */
typedef struct phase {
    int is_stopped[VICTIM];
    uint32_t first; /* who goes on first, and hears nothing for a while */
} phase_t;

static const phase_t phases[] = {
    {{0, 1}, 1}, {{1, 0}, 0}, {{1, 1}, 0}, {{1, 1}, 1}};
#define N_PHASES (sizeof(phases) / sizeof(phases[0]))

static void freeze(state_t *s, const phase_t *phase)
{
    const int64_t stop_ns = TIMEOUT_NS + TIMEOUT_NS / 2;
    const struct timespec stop = {.tv_sec = stop_ns / AKIN_NS_PER_S,
                                  .tv_nsec = stop_ns % AKIN_NS_PER_S};
    const struct timespec gap = {.tv_nsec = 3 * INTERVAL_NS};
    const uint32_t second = 1 - phase->first;
    for (uint32_t r = 0; r < VICTIM; r++)
        if (phase->is_stopped[r])
            CHECK(kill(s->pids[r], SIGSTOP) == 0);
    nanosleep(&stop, NULL);
    CHECK(kill(s->pids[phase->first], SIGCONT) == 0);
    nanosleep(&gap, NULL);
    if (phase->is_stopped[second])
        CHECK(kill(s->pids[second], SIGCONT) == 0);
    /* Whoever would blame somebody gets the time for it. */
    wait_for_ns(s, TIMEOUT_NS / 2);
}

static void frozen(state_t *s)
{
    const uint32_t other = 1 - s->rank;
    for (uint32_t i = 0; i < N_PHASES; i++) {
        if (s->rank == VICTIM) {
            WAIT_FOR(s->net, s->n_words >= 2 * (i + 1));
            wait_for_ns(s, 3 * INTERVAL_NS);
            freeze(s, &phases[i]);
            say(s, 0, TYPE_WORD);
            say(s, 1, TYPE_WORD);
            continue;
        }
        watch(s, other,
              phases[i].is_stopped[s->rank] ? TIMEOUT_NS : FIXTURE_LIMIT_NS);
        say(s, other, TYPE_PING);
        WAIT_FOR(s->net, s->n_pongs == i + 1);
        say(s, VICTIM, TYPE_WORD);
        WAIT_FOR(s->net, s->n_words >= i + 1);
        CHECK(s->n_lost == 0);
    }
    if (s->rank != VICTIM) {
        say(s, other, TYPE_PING);
        /* Nobody leaves before the other one has its answer. */
        WAIT_FOR(s->net,
                 s->n_pongs == N_PHASES + 1 && s->n_pings == N_PHASES + 1);
    }
}

/* Rank 0 watches two ranks: of rank 1 it gets messages and no heartbeats, until
 * those end; of rank 2 nothing at first, then heartbeats and no messages. */
static void traffic(state_t *s)
{
    const int64_t begin_ns = akin_clock_now_ns();
    if (s->rank == 2) {
        wait_for_ns(s, TIMEOUT_NS + TIMEOUT_NS / 2);
        watch(s, 0, TIMEOUT_NS);
        WAIT_FOR(s->net, s->n_words >= 1);
        say(s, 1, TYPE_WORD);
        CHECK(s->n_lost == 0);
        return;
    }
    if (s->rank == 1) {
        while (akin_clock_now_ns() - begin_ns < 5 * TIMEOUT_NS / 2) {
            say(s, 0, TYPE_LAST);
            wait_for_ns(s, INTERVAL_NS);
        }
        WAIT_FOR(s->net, s->n_words >= 1);
        return;
    }
    watch(s, 1, TIMEOUT_NS);
    watch(s, 2, TIMEOUT_NS);
    wait_lost(s, 1);
    check_lost_in_time(s, 1);
    CHECK(s->last_ns[1] - begin_ns > 2 * TIMEOUT_NS);
    CHECK(s->n_lost == 1);
    CHECK(akin_net_has_peer(s->net, 2));
    akin_net_stats_t stats;
    akin_net_stats(s->net, &stats);
    CHECK(stats.heartbeats_received > 0);
    say(s, 2, TYPE_WORD);
    WAIT_FOR(s->net, s->lost_ns[2] != 0);
    CHECK(s->loss[2] == AKIN_ERR_CANCELED);
}

static double cpu_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

/* Nothing but heartbeats for a while: one wait does not notice them. Returns
 * the processor time that it took. */
static double idle_once(state_t *s, uint32_t n_watched)
{
    akin_net_stats_t before, after;
    akin_net_stats(s->net, &before);
    double cpu_s = cpu_seconds();
    int64_t begin_ns = akin_clock_now_ns();
    akin_status_t status = akin_net_wait(s->net, begin_ns + IDLE_NS);
    int64_t took_ns = akin_clock_now_ns() - begin_ns;
    cpu_s = cpu_seconds() - cpu_s;
    akin_net_stats(s->net, &after);
    /* Rank 0 may be the first to end it. */
    CHECK(status == AKIN_ERR_TIMEOUT || (s->rank != 0 && s->n_words == 2));
    double due = (double)took_ns / (double)IDLE_INTERVAL_NS * n_watched;
    double n_sent = (double)(after.heartbeats_sent - before.heartbeats_sent);
    double n_received =
        (double)(after.heartbeats_received - before.heartbeats_received);
    double n_sleeps = (double)(after.sleeps - before.sleeps);
    printf("rank %u: %.1f ms of CPU in %.1f idle seconds, heartbeats: %.0f "
           "sent, %.0f received, %.0f due; %.0f sleeps\n",
           (unsigned)s->rank, cpu_s * 1e3, (double)took_ns * 1e-9, n_sent,
           n_received, due, n_sleeps);
    CHECK(n_sent <= 1.3 * due + 2 * n_watched);
    CHECK(n_sent >= 0.5 * due - n_watched);
    CHECK(n_received >= 0.5 * due - n_watched);
    /* One wake-up for the own ones, and at most three for each that comes: for
     * itself, for its signal if that is behind, and, where others have the
     * cores, for what it finds done already. */
    CHECK(n_sleeps <= n_sent / n_watched + 3 * n_received + 4);
    return cpu_s;
}

/* Heartbeats between rank 0 and all others, as in a job. */
static void idle(state_t *s)
{
    const uint32_t n_others = s->size - 1;
    for (uint32_t r = s->rank == 0; r < (s->rank == 0 ? s->size : 1); r++)
        CHECK(akin_net_watch_peer(s->net, r, IDLE_INTERVAL_NS, TIMEOUT_NS) ==
              AKIN_OK);
    if (s->rank != 0) {
        say(s, 0, TYPE_WORD);
        WAIT_FOR(s->net, s->n_words >= 1);
        wait_for_ns(s, 2 * IDLE_INTERVAL_NS);
        double cpu_s = idle_once(s, 1);
        WAIT_FOR(s->net, s->n_words >= 2);
        CHECK(akin_net_send(s->net, 0, TYPE_WORD, &cpu_s, sizeof(cpu_s)) ==
              AKIN_OK);
        WAIT_FOR(s->net, !akin_net_has_peer(s->net, 0));
        return;
    }
    WAIT_FOR(s->net, s->n_words >= n_others);
    for (uint32_t r = 1; r < s->size; r++)
        say(s, r, TYPE_WORD);
    wait_for_ns(s, 2 * IDLE_INTERVAL_NS);
    s->cpu_s = idle_once(s, n_others);
    for (uint32_t r = 1; r < s->size; r++)
        say(s, r, TYPE_WORD);
    WAIT_FOR(s->net, s->n_words >= 2 * n_others);
    double share = s->cpu_s / ((double)IDLE_NS * 1e-9);
    printf("%u idle ranks: %.2f %% of a core\n", (unsigned)s->size,
           100 * share);
    CHECK(s->n_lost == 0);
}

int main(int argc, char **argv)
{
    akin_boot_t *boot = fixture_boot();
    state_t s = {
        .rank = akin_boot_rank(boot),
        .size = akin_boot_size(boot),
        .is_tcp = fixture_is_tcp(argc, argv),
    };
    CHECK_FATAL(s.size > VICTIM && s.size <= MAX_RANKS);
    s.net = fixture_connect(boot,
                            (akin_net_events_t){.message = on_message,
                                                .peer_lost = on_lost,
                                                .arg = &s},
                            1 << 20);
    const pid_t pid = getpid();
    for (uint32_t r = 0; r < s.size; r++)
        if (r != s.rank)
            CHECK(akin_net_send(s.net, r, TYPE_PID, &pid, sizeof(pid)) ==
                  AKIN_OK);
    WAIT_FOR(s.net, s.n_pids == s.size - 1);
    const char *what = argv[argc - 1];
    if (strcmp(what, "stopped") == 0)
        stopped(&s);
    else if (strcmp(what, "frozen") == 0)
        frozen(&s);
    else if (strcmp(what, "traffic") == 0)
        traffic(&s);
    else
        idle(&s);
    akin_net_destroy(s.net);
    return fixture_failures != 0;
}
