/* Route tables: weights of the experts and the columns made of them. */
#include "routing/route_tables.h"

#include "base/rng.h"
#include "routing/route_streams.h"

#include <math.h>
#include <stdlib.h>

#define TWO_PI 6.283185307179586
/* What an exponent below 0 is stretched by: real gates hardly ever choose some
 * of their experts. */
#define DEPTH 2.0
/* The part that layers add to or take from the deviations at most. */
#define LAYER_SPREAD 0.2

double akini_route_normal(uint64_t seed, uint64_t stream, uint64_t index)
{
    const uint64_t counter[2] = {index, stream};
    uint32_t word[4];
    akin_rng_philox(seed, counter, word);
    /* (0, 1], since 0 has no logarithm. */
    const double u =
        ((double)((uint64_t)word[1] << 21 | word[0] >> 11) + 1.0) * 0x1p-53;
    const double v =
        (double)((uint64_t)word[3] << 21 | word[2] >> 11) * 0x1p-53;
    return sqrt(-2.0 * log(u)) * cos(TWO_PI * v);
}

/* Scratch for one layer. */
typedef struct scratch {
    double *weights;  /* [n] */
    double *popular;  /* [n] exponents of the shared part */
    double *domain;   /* [n] and of a domain, the shared part included */
    uint32_t *stacks; /* [n] columns below 1 from the left, others from the
                         right */
} scratch_t;

/* Walker's columns by Vose's method: a column that is not full gets the rest
 * from one that is over. */
static void make_columns(const scratch_t *s, uint32_t n,
                         akini_route_column_t *columns)
{
    double sum = 0.0;
    uint32_t small = 0, large = n;
    for (uint32_t e = 0; e < n; e++)
        sum += s->weights[e];
    for (uint32_t e = 0; e < n; e++) {
        s->weights[e] *= n / sum;
        columns[e] = (akini_route_column_t){UINT16_MAX, (uint16_t)e};
        if (s->weights[e] < 1.0)
            s->stacks[small++] = e;
        else
            s->stacks[--large] = e;
    }
    while (small > 0 && large < n) {
        const uint32_t under = s->stacks[--small];
        const uint32_t over = s->stacks[large];
        columns[under].threshold = (uint16_t)(s->weights[under] * 65536.0);
        columns[under].alias = (uint16_t)over;
        s->weights[over] -= 1.0 - s->weights[under];
        if (s->weights[over] < 1.0) {
            large++;
            s->stacks[small++] = over;
        }
    }
}

static akini_route_column_t *table_of(const akini_route_tables_t *t,
                                      uint32_t topic, uint32_t layer)
{
    return t->columns + ((size_t)topic * t->n_layers + layer) * t->n_experts;
}

/* dst = base + deviation x normal numbers of a stream. */
static void add_part(double *dst, const double *base, double deviation,
                     uint64_t seed, uint64_t stream, uint64_t first, uint32_t n)
{
    for (uint32_t e = 0; e < n; e++)
        dst[e] = (base != NULL ? base[e] : 0.0) +
                 deviation * akini_route_normal(seed, stream, first + e);
}

static void make_table(const akini_route_tables_t *t, const scratch_t *s,
                       const double *exponents, uint32_t topic, uint32_t layer)
{
    for (uint32_t e = 0; e < t->n_experts; e++)
        s->weights[e] =
            exp(exponents[e] < 0.0 ? DEPTH * exponents[e] : exponents[e]);
    make_columns(s, t->n_experts, table_of(t, topic, layer));
}

static void make_layer(const akini_route_tables_t *t, const scratch_t *s,
                       const akin_route_workload_t *w, uint64_t seed,
                       uint32_t layer)
{
    const uint32_t n = t->n_experts;
    const uint64_t first = (uint64_t)layer * n;
    const uint64_t uniform = akini_route_stream(AKINI_ROUTE_STREAM_LAYER, 0);
    const double gain =
        1.0 + LAYER_SPREAD * (2.0 * akin_rng_uniform(seed, uniform, layer) - 1);
    add_part(s->popular, NULL, gain * w->popular, seed,
             akini_route_stream(AKINI_ROUTE_STREAM_POPULAR, 0), first, n);
    make_table(t, s, s->popular, t->n_topics, layer);
    for (uint32_t topic = 0; topic < t->n_topics; topic++) {
        if (topic % w->n_topics == 0)
            add_part(s->domain, s->popular, gain * w->domain, seed,
                     akini_route_stream(AKINI_ROUTE_STREAM_DOMAIN,
                                        topic / w->n_topics),
                     first, n);
        add_part(s->weights, s->domain, gain * w->topic, seed,
                 akini_route_stream(AKINI_ROUTE_STREAM_TOPIC, topic), first, n);
        make_table(t, s, s->weights, topic, layer);
    }
}

int akini_route_tables_init(akini_route_tables_t *t,
                            const akin_route_workload_t *workload,
                            uint32_t n_layers, uint32_t n_experts,
                            uint64_t seed)
{
    *t = (akini_route_tables_t){
        .n_topics = workload->n_domains * workload->n_topics,
        .n_layers = n_layers,
        .n_experts = n_experts,
    };
    t->columns = calloc((size_t)(t->n_topics + 1) * n_layers * n_experts,
                        sizeof(*t->columns));
    double *doubles = calloc((size_t)3 * n_experts, sizeof(*doubles));
    uint32_t *stacks = calloc(n_experts, sizeof(*stacks));
    if (t->columns != NULL && doubles != NULL && stacks != NULL) {
        const scratch_t s = {doubles, doubles + n_experts,
                             doubles + (size_t)2 * n_experts, stacks};
        for (uint32_t l = 0; l < n_layers; l++)
            make_layer(t, &s, workload, seed, l);
    } else {
        akini_route_tables_cleanup(t);
    }
    free(doubles);
    free(stacks);
    return t->columns != NULL ? 0 : -1;
}

void akini_route_tables_cleanup(akini_route_tables_t *t)
{
    free(t->columns);
    t->columns = NULL;
}
