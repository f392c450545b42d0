/* Route generator: what it is made of, and its requests. */
#include "routing/route_generator_impl.h"

#include "base/rng.h"
#include "routing/route_streams.h"

#include <math.h>
#include <stdlib.h>

#define DEFAULT_TOKENS 128.0
#define MAX_SPREAD 3.0

/* Slots of an urn at least. */
#define MIN_SLOTS 32u

static akin_status_t check_workload(const akin_route_workload_t *w,
                                    akin_error_t *err)
{
    double sum = 0.0;
    if (w->n_domains == 0 || w->n_domains > AKIN_ROUTE_MAX_DOMAINS ||
        w->n_topics == 0 || w->n_topics > AKIN_ROUTE_MAX_TOPICS / w->n_domains)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "workload: %u domains of %u topics: 1 to %u "
                              "domains and %u topics in all are possible",
                              w->n_domains, w->n_topics, AKIN_ROUTE_MAX_DOMAINS,
                              AKIN_ROUTE_MAX_TOPICS);
    for (uint32_t d = 0; d < w->n_domains; d++) {
        if (!(w->domains[d].share >= 0.0 && w->domains[d].share <= 1.0))
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "workload: the share of domain %u is not "
                                  "from 0 to 1",
                                  d);
        sum += w->domains[d].share;
    }
    if (!(fabs(sum - 1.0) < 1e-6))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "workload: the shares of the domains add up to "
                              "%.4f, not to 1",
                              sum);
    const double deviations[] = {w->popular, w->domain, w->topic};
    for (size_t i = 0; i < 3; i++)
        if (!(deviations[i] >= 0.0 && deviations[i] <= 5.0))
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "workload: a deviation is not from 0 to 5");
    if (!(w->general >= 0.0 && w->general <= 0.5 && w->redrawn >= 0.0 &&
          w->redrawn <= 1.0 && w->near >= 0.0 && w->near <= 0.9))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "workload: general is from 0 to 0.5, redrawn "
                              "from 0 to 1, near from 0 to 0.9");
    return AKIN_OK;
}

static akin_status_t check_length(const char *name, double mean, double spread,
                                  akin_error_t *err)
{
    if (!(mean >= 1.0 && mean <= AKIN_ROUTE_MAX_TOKENS))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s tokens: a mean from 1 to %u is needed", name,
                              AKIN_ROUTE_MAX_TOKENS);
    if (!(spread >= 0.0 && spread <= MAX_SPREAD))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s spread: a number from 0 to 3 is needed",
                              name);
    return AKIN_OK;
}

static akin_status_t check(const akin_route_generator_params_t *p,
                           akin_error_t *err)
{
    if (p->n_layers == 0 || p->n_layers > AKIN_ROUTE_MAX_LAYERS ||
        p->n_experts == 0 || p->n_experts > AKIN_ROUTE_MAX_EXPERTS ||
        p->top_k == 0 || p->top_k > AKIN_ROUTE_MAX_TOP_K ||
        p->top_k > p->n_experts)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%u layers x %u experts, top-%u: 1 to %u layers, "
                              "1 to %u experts and a top-k of 1 to %u of them "
                              "are possible",
                              p->n_layers, p->n_experts, p->top_k,
                              AKIN_ROUTE_MAX_LAYERS, AKIN_ROUTE_MAX_EXPERTS,
                              AKIN_ROUTE_MAX_TOP_K);
    akin_status_t status =
        check_length("prompt", p->prompt_tokens, p->prompt_spread, err);
    if (status == AKIN_OK)
        status =
            check_length("output", p->output_tokens, p->output_spread, err);
    return status == AKIN_OK ? check_workload(p->workload, err) : status;
}

akin_status_t
akin_route_generator_create(const akin_route_generator_params_t *params,
                            akin_route_generator_t **generator_p,
                            akin_error_t *err)
{
    akin_route_generator_params_t p = *params;
    *generator_p = NULL;
    if (p.prompt_tokens == 0.0)
        p.prompt_tokens = DEFAULT_TOKENS;
    if (p.output_tokens == 0.0)
        p.output_tokens = DEFAULT_TOKENS;
    akin_status_t status = check(&p, err);
    if (status != AKIN_OK)
        return status;
    akin_route_generator_t *g = calloc(1, sizeof(*g));
    if (g == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    g->params = p;
    g->params.workload = NULL;
    g->workload = *p.workload;
    g->near = (uint32_t)(p.workload->near * 256.0 + 0.5);
    g->n_slots = MIN_SLOTS;
    while (g->n_slots < p.n_experts && g->n_slots < AKIN_ROUTE_MAX_SLOTS)
        g->n_slots *= 2;
    if (akini_route_tables_init(&g->tables, p.workload, p.n_layers, p.n_experts,
                                p.seed) != 0) {
        free(g);
        return akin_error_set(err, AKIN_ERR_NOMEM,
                              "out of memory for the tables of %u layers x %u "
                              "experts",
                              p.n_layers, p.n_experts);
    }
    *generator_p = g;
    return AKIN_OK;
}

void akin_route_generator_destroy(akin_route_generator_t *g)
{
    if (g == NULL)
        return;
    akini_route_tables_cleanup(&g->tables);
    free(g);
}

/* The index that a uniform number falls on. */
static uint32_t index_of(double u, const double *shares, uint32_t n)
{
    double sum = 0.0, below = 0.0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += shares[i];
    for (uint32_t i = 0; i < n; i++) {
        if (!(shares[i] > 0.0))
            continue;
        below += shares[i];
        last = i;
        if (u * sum < below)
            break;
    }
    return last;
}

/* A log-normal length of this mean. */
static uint32_t length_of(double mean, double spread, double normal)
{
    const double tokens =
        floor(mean * exp(spread * (normal - spread / 2.0)) + 0.5);
    return (uint32_t)fmin(fmax(tokens, 1.0), AKIN_ROUTE_MAX_TOKENS);
}

/* Random numbers of a request, in this order. */
enum { DRAW_DOMAIN, DRAW_TOPIC, DRAW_PROMPT, DRAW_OUTPUT, DRAW_GENERAL };

void akin_route_request_make(const akin_route_generator_t *g, uint64_t number,
                             const double *shares,
                             akin_route_request_t *request)
{
    const uint64_t seed = g->params.seed;
    const uint64_t stream =
        akini_route_stream(AKINI_ROUTE_STREAM_REQUEST, number);
    const akin_route_workload_t *w = &g->workload;
    double parts[AKIN_ROUTE_MAX_TOPICS];
    for (uint32_t d = 0; d < w->n_domains; d++)
        parts[d] = shares != NULL ? shares[d] : w->domains[d].share;
    const uint32_t domain = index_of(
        akin_rng_uniform(seed, stream, DRAW_DOMAIN), parts, w->n_domains);
    for (uint32_t t = 0; t < w->n_topics; t++)
        parts[t] = 1.0 / (t + 1);
    const uint32_t topic = index_of(akin_rng_uniform(seed, stream, DRAW_TOPIC),
                                    parts, w->n_topics);
    const double general =
        2.0 * w->general * akin_rng_uniform(seed, stream, DRAW_GENERAL);
    *request = (akin_route_request_t){
        .number = number,
        .domain = domain,
        .topic = domain * w->n_topics + topic,
        .n_prompt = length_of(g->params.prompt_tokens, g->params.prompt_spread,
                              akini_route_normal(seed, stream, DRAW_PROMPT)),
        .n_output = length_of(g->params.output_tokens, g->params.output_spread,
                              akini_route_normal(seed, stream, DRAW_OUTPUT)),
        .n_general = (uint32_t)(general * g->n_slots + 0.5),
    };
}
