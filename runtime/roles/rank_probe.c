/* Rank probe: how fast KV comes from each prefill rank to each decode rank. */
#include "roles/rank_paths.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_BYTES ((size_t)4 << 20)
#define N_READS 4
/* A pair that is slow is not read from as often. */
#define PAIR_NS (100 * AKIN_NS_PER_MS)
#define READ_LIMIT_NS (10 * AKIN_NS_PER_S)
#define ROUND_LIMIT_NS (60 * AKIN_NS_PER_S)
/* Slow pairs that are named. */
#define N_NAMED 5
#define VERSION 1

typedef struct probe {
    akini_self_t *self;
    uint32_t first_prefill, n_prefill;
    uint32_t first_decode, n_decode;
    unsigned char *slab;
    size_t bytes; /* of one read */
    int is_done;  /* the read under way */
    akin_status_t status;
    double *rates; /* decode rank: [n_prefill] bytes per second */
} probe_t;

static void on_read(void *arg, akin_status_t status)
{
    probe_t *probe = arg;
    probe->is_done = 1;
    probe->status = status;
}

static akin_status_t read_once(probe_t *probe, uint32_t from, int64_t *ns_p)
{
    akini_self_t *self = probe->self;
    const int64_t start_ns = akin_clock_now_ns();
    probe->is_done = 0;
    akin_status_t status = akin_net_read(self->net, from, 0, probe->slab,
                                         probe->bytes, on_read, probe);
    while (status == AKIN_OK && !probe->is_done)
        if (!akin_net_poll(self->net))
            status = akin_net_wait(self->net, start_ns + READ_LIMIT_NS);
    if (status == AKIN_OK)
        status = probe->status;
    *ns_p = akin_clock_now_ns() - start_ns;
    if (*ns_p == 0)
        *ns_p = 1;
    if (status == AKIN_OK)
        return status;
    return akin_error_set(&self->err, status,
                          "launch.probe: reading %zu bytes of KV from rank %u "
                          "(host %s) over %s: %s",
                          probe->bytes, from, self->paths.hosts[from].name,
                          akin_net_peer_lane(self->net, from),
                          akin_status_string(status));
}

/* The best of some reads; the first one may set things up. */
static akin_status_t measure(probe_t *probe, uint32_t from)
{
    const int64_t until_ns = akin_clock_now_ns() + PAIR_NS;
    int64_t ns, best_ns = INT64_MAX;
    akin_status_t status = read_once(probe, from, &ns);
    for (int i = 0; i < N_READS && status == AKIN_OK; i++) {
        status = read_once(probe, from, &ns);
        if (ns < best_ns)
            best_ns = ns;
        if (akin_clock_now_ns() > until_ns)
            break;
    }
    probe->rates[from - probe->first_prefill] =
        (double)probe->bytes * 1e9 / (double)best_ns;
    return status;
}

static void poll_net(void *arg)
{
    (void)akin_net_poll(arg);
}

/* In each round a rank is in one pair at most. A rank that fails goes on to the
 * barriers, where the others wait for it. */
static akin_status_t run_rounds(probe_t *probe)
{
    akini_self_t *self = probe->self;
    const uint32_t n =
        probe->n_prefill > probe->n_decode ? probe->n_prefill : probe->n_decode;
    akin_status_t failed = AKIN_OK;
    akin_error_t why = {{0}};
    for (uint32_t round = 0; round < n; round++) {
        const uint32_t own = self->number - probe->first_decode;
        const uint32_t prefill = (own + round) % n;
        if (probe->rates != NULL && prefill < probe->n_prefill &&
            failed == AKIN_OK) {
            failed = measure(probe, probe->first_prefill + prefill);
            why = self->err;
        }
        akin_status_t status = akin_boot_barrier_poll(
            self->boot, poll_net, self->net, ROUND_LIMIT_NS, &self->err);
        if (status != AKIN_OK)
            return status;
    }
    self->err = why;
    return failed;
}

/* A decode rank reads into its own slab, which then is what it was. */
static akin_status_t run_in_slab(probe_t *probe)
{
    akini_self_t *self = probe->self;
    const size_t slab_bytes = self->view.n_slots * self->layout.stride_bytes;
    unsigned char *kept = NULL;
    akin_status_t status = AKIN_OK;
    probe->bytes = slab_bytes < READ_BYTES ? slab_bytes : READ_BYTES;
    if (self->place.role == AKIN_JOB_DECODE) {
        probe->slab = akin_net_slab(self->net);
        probe->rates = calloc(probe->n_prefill, sizeof(*probe->rates));
        kept = malloc(probe->bytes);
        if (kept == NULL || probe->rates == NULL)
            status =
                akin_error_set(&self->err, AKIN_ERR_NOMEM, "out of memory");
        else
            memcpy(kept, probe->slab, probe->bytes);
    }
    status = akin_boot_agree(self->boot, status, &self->err);
    if (status == AKIN_OK)
        status = akin_boot_barrier(self->boot, &self->err);
    if (status == AKIN_OK) {
        status = run_rounds(probe);
        if (kept != NULL && status == AKIN_OK)
            memcpy(probe->slab, kept, probe->bytes);
        status = akin_boot_agree(self->boot, status, &self->err);
    }
    free(kept);
    return status;
}

/* The rates of all decode ranks, [n_decode * n_prefill]. */
static akin_status_t gather(probe_t *probe, double *rates)
{
    akini_self_t *self = probe->self;
    akin_packer_t packer = {0};
    unsigned char *blobs = NULL;
    size_t *offsets = NULL;
    akin_packer_u16(&packer, VERSION);
    for (uint32_t p = 0; probe->rates != NULL && p < probe->n_prefill; p++)
        akin_packer_f64(&packer, probe->rates[p]);
    akin_status_t status = akini_rank_swap(self, &packer, &blobs, &offsets);
    for (uint32_t d = 0; d < probe->n_decode && status == AKIN_OK; d++) {
        const size_t at = offsets[probe->first_decode + d];
        akin_unpacker_t u;
        akin_unpacker_init(&u, blobs + at,
                           offsets[probe->first_decode + d + 1] - at);
        if (akin_unpacker_u16(&u) != VERSION)
            status = AKIN_ERR_FORMAT;
        for (uint32_t p = 0; p < probe->n_prefill; p++)
            rates[(size_t)d * probe->n_prefill + p] = akin_unpacker_f64(&u);
        if (status == AKIN_OK)
            status = akin_unpacker_finish(&u);
    }
    free(blobs);
    free(offsets);
    return status;
}

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The figures of the pairs of one place; `some` has room for all of them. */
static void add_up(const probe_t *probe, const double *rates,
                   akin_pair_place_t place, double *some)
{
    akin_transports_probe_t *figures = &probe->self->transports.probe[place];
    size_t n = 0;
    for (uint32_t d = 0; d < probe->n_decode; d++)
        for (uint32_t p = 0; p < probe->n_prefill; p++) {
            const akini_pair_t pair = {probe->first_prefill + p,
                                       probe->first_decode + d};
            if (akini_paths_place(&probe->self->paths, &pair) == place)
                some[n++] = rates[(size_t)d * probe->n_prefill + p];
        }
    *figures = (akin_transports_probe_t){.n_pairs = n};
    if (n == 0)
        return;
    qsort(some, n, sizeof(*some), ascending);
    figures->min = some[0];
    figures->median = (some[(n - 1) / 2] + some[n / 2]) / 2;
    figures->max = some[n - 1];
    for (size_t i = 0; i < n; i++)
        figures->n_slow += some[i] < figures->median / 2;
}

static void name_slow(const probe_t *probe, const double *rates,
                      akin_pair_place_t place)
{
    const akini_paths_t *paths = &probe->self->paths;
    const akin_transports_probe_t *figures =
        &probe->self->transports.probe[place];
    uint32_t n = 0;
    for (uint32_t d = 0; d < probe->n_decode && n < N_NAMED; d++)
        for (uint32_t p = 0; p < probe->n_prefill && n < N_NAMED; p++) {
            const akini_pair_t pair = {probe->first_prefill + p,
                                       probe->first_decode + d};
            const double rate = rates[(size_t)d * probe->n_prefill + p];
            char text[320];
            if (akini_paths_place(paths, &pair) != place ||
                rate >= figures->median / 2)
                continue;
            n++;
            akini_paths_name_pair(paths, &pair, text, sizeof(text));
            (void)fprintf(stderr,
                          "akin: warning: KV between %s moves at %.2f GB/s, "
                          "less than half of the median\n",
                          text, rate / 1e9);
        }
    if (figures->n_slow > n)
        (void)fprintf(stderr, "akin: warning: %llu more pairs are as slow\n",
                      (unsigned long long)(figures->n_slow - n));
}

static void say(const probe_t *probe, const double *rates,
                akin_pair_place_t place)
{
    static const char *const names[] = {"on one host", "between hosts"};
    const akin_transports_probe_t *f = &probe->self->transports.probe[place];
    if (f->n_pairs == 0)
        return;
    (void)fprintf(stderr,
                  "akin: KV bandwidth %s: %.2f to %.2f GB/s, median %.2f, of "
                  "%llu pairs\n",
                  names[place], f->min / 1e9, f->max / 1e9, f->median / 1e9,
                  (unsigned long long)f->n_pairs);
    name_slow(probe, rates, place);
}

static akin_status_t tell(probe_t *probe)
{
    akini_self_t *self = probe->self;
    const size_t n = (size_t)probe->n_prefill * probe->n_decode;
    double *rates = calloc(2 * n, sizeof(*rates));
    akin_status_t status = akin_boot_agree(
        self->boot, rates == NULL ? AKIN_ERR_NOMEM : AKIN_OK, &self->err);
    if (status == AKIN_OK && rates != NULL)
        status = gather(probe, rates);
    status = akin_boot_agree(self->boot, status, &self->err);
    if (status == AKIN_OK && rates != NULL) {
        self->transports.is_probed = 1;
        for (int place = 0; place < AKIN_PAIR_PLACES; place++) {
            add_up(probe, rates, (akin_pair_place_t)place, rates + n);
            if (self->place.role == AKIN_JOB_ROUTER)
                say(probe, rates, (akin_pair_place_t)place);
        }
    }
    free(rates);
    return status;
}

akin_status_t akini_rank_probe(akini_self_t *self)
{
    probe_t probe = {.self = self};
    probe.n_prefill =
        akini_paths_ranks(&self->paths, AKIN_JOB_PREFILL, &probe.first_prefill);
    probe.n_decode =
        akini_paths_ranks(&self->paths, AKIN_JOB_DECODE, &probe.first_decode);
    akin_status_t status = run_in_slab(&probe);
    if (status == AKIN_OK)
        status = tell(&probe);
    free(probe.rates);
    return status;
}
