/* Route statistics: batches drawn from a trace, prompt against decode. */
#include "routing/route_statistics.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct group {
    akin_route_domain_t domain;
    uint32_t first; /* member */
    uint32_t n;     /* members: requests with decode rows */
};

struct akin_route_statistics {
    const akin_trace_t *trace;
    const akin_trace_record_t *records;
    uint64_t seed;
    struct group *groups;         /* [n_groups] */
    akin_route_domain_t *domains; /* [n_groups] */
    uint32_t n_groups;
    uint32_t *members; /* [n_members] records, group by group */
    uint32_t n_members;
    uint32_t *hat;    /* [n_members] what a draw shuffles */
    uint16_t *routes; /* [n_layers][top_k] */
    uint32_t *seen;   /* [n_layers][n_experts] the last stamp of each */
    uint32_t stamp;
};

static int by_domain(const void *a, const void *b)
{
    const akin_trace_record_t *x = *(const akin_trace_record_t *const *)a;
    const akin_trace_record_t *y = *(const akin_trace_record_t *const *)b;
    int order = strcmp(x->domain, y->domain);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Most members first, so that the large groups are a prefix. */
static int by_size(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (x->n != y->n)
        return x->n < y->n ? 1 : -1;
    return strcmp(x->domain.name, y->domain.name);
}

static int by_records(const void *a, const void *b)
{
    const akin_route_domain_t *x = a, *y = b;
    if (x->n_records != y->n_records)
        return x->n_records < y->n_records ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Groups of the records in the order of their domains; `first` is a position
 * in that order until the members are laid out. */
static void make_groups(akin_route_statistics_t *s,
                        const akin_trace_record_t *const *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct group *group = &s->groups[s->n_groups];
        if (i > 0 && strcmp(order[i - 1]->domain, order[i]->domain) == 0)
            group--;
        else
            *group = (struct group){{order[i]->domain, 0}, i, 0};
        s->n_groups = (uint32_t)(group - s->groups) + 1;
        group->domain.n_records++;
        group->n += order[i]->n_tokens > order[i]->n_prompt;
    }
    qsort(s->groups, s->n_groups, sizeof(*s->groups), by_size);
    for (uint32_t g = 0; g < s->n_groups; g++) {
        struct group *group = &s->groups[g];
        const uint32_t from = group->first;
        group->first = s->n_members;
        for (uint32_t i = 0; i < group->domain.n_records; i++)
            if (order[from + i]->n_tokens > order[from + i]->n_prompt)
                s->members[s->n_members++] =
                    (uint32_t)(order[from + i] - s->records);
        s->domains[g] = group->domain;
    }
    qsort(s->domains, s->n_groups, sizeof(*s->domains), by_records);
}

akin_status_t
akin_route_statistics_create(const akin_trace_t *trace, uint64_t seed,
                             akin_route_statistics_t **statistics_p,
                             akin_error_t *err)
{
    const akin_trace_shape_t *shape = akin_trace_shape(trace);
    uint32_t n = 0;
    *statistics_p = NULL;
    akin_route_statistics_t *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    s->trace = trace;
    s->records = akin_trace_records(trace, &n);
    s->seed = seed;
    s->groups = calloc(n, sizeof(*s->groups));
    s->domains = calloc(n, sizeof(*s->domains));
    s->members = calloc(n, sizeof(*s->members));
    s->hat = calloc(n, sizeof(*s->hat));
    s->routes =
        calloc((size_t)shape->n_layers * shape->top_k, sizeof(*s->routes));
    s->seen =
        calloc((size_t)shape->n_layers * shape->n_experts, sizeof(*s->seen));
    const akin_trace_record_t **order = calloc(n, sizeof(*order));
    if (s->groups == NULL || s->domains == NULL || s->members == NULL ||
        s->hat == NULL || s->routes == NULL || s->seen == NULL ||
        order == NULL) {
        free(order);
        akin_route_statistics_destroy(s);
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    }
    for (uint32_t i = 0; i < n; i++)
        order[i] = &s->records[i];
    qsort(order, n, sizeof(*order), by_domain);
    make_groups(s, order, n);
    free(order);
    *statistics_p = s;
    return AKIN_OK;
}

void akin_route_statistics_destroy(akin_route_statistics_t *s)
{
    if (s == NULL)
        return;
    free(s->groups);
    free(s->domains);
    free(s->members);
    free(s->hat);
    free(s->routes);
    free(s->seen);
    free(s);
}

const akin_route_domain_t *
akin_route_domains(const akin_route_statistics_t *statistics, uint32_t *n_p)
{
    *n_p = statistics->n_groups;
    return statistics->domains;
}

/* Experts of one row that the batch did not have yet. */
static uint64_t add_row(akin_route_statistics_t *s, uint32_t record,
                        uint32_t row)
{
    const akin_trace_shape_t *shape = akin_trace_shape(s->trace);
    const uint16_t *route = s->routes;
    uint32_t *seen = s->seen;
    uint64_t fresh = 0;
    akin_trace_routes(s->trace, record, row, 1, s->routes);
    for (uint32_t l = 0; l < shape->n_layers; l++) {
        for (uint32_t j = 0; j < shape->top_k; j++) {
            uint32_t *cell = &seen[*route++];
            fresh += *cell != s->stamp;
            *cell = s->stamp;
        }
        seen += shape->n_experts;
    }
    return fresh;
}

/* Counts draws, so that each takes its own random number. */
struct draw {
    uint64_t seed;
    uint64_t stream;
    uint64_t next;
};

static uint32_t below(struct draw *draw, uint32_t bound)
{
    return (uint32_t)akin_rng_below(draw->seed, draw->stream, draw->next++,
                                    bound);
}

/* One batch from n members of the hat, without replacement. */
static uint64_t draw_batch(akin_route_statistics_t *s, struct draw *draw,
                           uint32_t *hat, uint32_t n, uint32_t batch)
{
    uint64_t distinct = 0;
    if (++s->stamp == 0) {
        const akin_trace_shape_t *shape = akin_trace_shape(s->trace);
        memset(s->seen, 0,
               (size_t)shape->n_layers * shape->n_experts * sizeof(*s->seen));
        s->stamp = 1;
    }
    for (uint32_t i = 0; i < batch; i++) {
        const uint32_t at = i + below(draw, n - i);
        const uint32_t record = hat[at];
        const akin_trace_record_t *r = &s->records[record];
        hat[at] = hat[i];
        hat[i] = record;
        distinct += add_row(
            s, record, r->n_prompt + below(draw, r->n_tokens - r->n_prompt));
    }
    return distinct;
}

double akin_route_distinct(akin_route_statistics_t *s, akin_route_mix_t mix,
                           uint32_t batch, uint32_t n_batches)
{
    struct draw draw = {s->seed, (uint64_t)mix << 32 | batch, 0};
    uint32_t n = s->n_members;
    if (mix != AKIN_ROUTE_ANY) {
        n = 0;
        for (uint32_t g = 0; g < s->n_groups && s->groups[g].n >= batch; g++)
            n = s->groups[g].first + s->groups[g].n;
    }
    if (batch == 0 || n < batch || n_batches == 0)
        return (double)NAN;
    memcpy(s->hat, s->members, n * sizeof(*s->hat));
    double sum = 0.0;
    for (uint32_t b = 0; b < n_batches; b++) {
        uint32_t first = 0, size = n;
        if (mix == AKIN_ROUTE_SAME_DOMAIN) {
            const uint32_t chosen = below(&draw, n);
            const struct group *group = s->groups;
            while (chosen >= group->first + group->n)
                group++;
            first = group->first;
            size = group->n;
        }
        sum += (double)draw_batch(s, &draw, s->hat + first, size, batch);
    }
    return sum / n_batches / akin_trace_shape(s->trace)->n_layers;
}

/* NaN where one side does not vary. */
static double pearson(const uint16_t *a, const uint16_t *b, size_t n)
{
    double mean_a = 0.0, mean_b = 0.0, aa = 0.0, bb = 0.0, ab = 0.0;
    for (size_t i = 0; i < n; i++) {
        mean_a += a[i];
        mean_b += b[i];
    }
    mean_a /= (double)n;
    mean_b /= (double)n;
    for (size_t i = 0; i < n; i++) {
        const double x = a[i] - mean_a, y = b[i] - mean_b;
        aa += x * x;
        bb += y * y;
        ab += x * y;
    }
    return aa > 0.0 && bb > 0.0 ? ab / sqrt(aa * bb) : (double)NAN;
}

/* Correlations of one layer. */
struct layer_sum {
    double sum;
    uint32_t n;
};

static void add_layers(const uint16_t *prompt, const uint16_t *decode,
                       const akin_trace_shape_t *shape,
                       struct layer_sum *layers)
{
    for (uint32_t l = 0; l < shape->n_layers; l++) {
        const size_t first = (size_t)l * shape->n_experts;
        const double r =
            pearson(prompt + first, decode + first, shape->n_experts);
        if (!isfinite(r))
            continue;
        layers[l].sum += r;
        layers[l].n++;
    }
}

static void finish_layers(const struct layer_sum *layers, uint32_t n_layers,
                          akin_route_correlation_t *correlation)
{
    for (uint32_t l = 0; l < n_layers; l++) {
        if (layers[l].n == 0)
            continue;
        const double mean = layers[l].sum / layers[l].n;
        correlation->layer_min = fmin(correlation->layer_min, mean);
        correlation->layer_max = fmax(correlation->layer_max, mean);
    }
}

akin_status_t akin_route_correlate(const akin_trace_t *trace,
                                   uint32_t stand_in_tokens,
                                   akin_route_correlation_t *correlation,
                                   akin_error_t *err)
{
    const akin_trace_shape_t *shape = akin_trace_shape(trace);
    const size_t cells = (size_t)shape->n_layers * shape->n_experts;
    uint32_t n;
    const akin_trace_record_t *records = akin_trace_records(trace, &n);
    uint16_t *counts = calloc(2 * cells, sizeof(*counts));
    struct layer_sum *layers = calloc(shape->n_layers, sizeof(*layers));
    if (counts == NULL || layers == NULL) {
        free(counts);
        free(layers);
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    }
    *correlation = (akin_route_correlation_t){.mean = (double)NAN,
                                              .layer_min = (double)NAN,
                                              .layer_max = (double)NAN};
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        const int is_known =
            records[i].n_prompt > 0 && !akin_trace_prompt_stands_in(trace);
        const uint32_t n_prompt =
            records[i].n_prompt > 0 ? records[i].n_prompt : stand_in_tokens;
        if (n_prompt == 0 || n_prompt >= records[i].n_tokens)
            continue;
        memset(counts, 0, 2 * cells * sizeof(*counts));
        akin_trace_count(trace, i, 0, n_prompt, counts);
        akin_trace_count(trace, i, n_prompt, records[i].n_tokens - n_prompt,
                         counts + cells);
        const double r = pearson(counts, counts + cells, cells);
        if (!isfinite(r))
            continue;
        add_layers(counts, counts + cells, shape, layers);
        sum += r;
        correlation->n_requests++;
        correlation->n_stand_in += !is_known;
    }
    finish_layers(layers, shape->n_layers, correlation);
    free(counts);
    free(layers);
    if (correlation->n_requests > 0)
        correlation->mean = sum / correlation->n_requests;
    return AKIN_OK;
}
