/* Sampler: penalties, filters and one keyed draw. */
#include "engine/sampler.h"

#include "base/hash.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Philox stream of the sampling draw; other uses of a seed take others. */
#define SAMPLER_STREAM UINT64_C(0x73616d706c65)

/* Candidates that top-p sorts at first. */
#define FIRST_CANDIDATES 256u

struct akin_sampler {
    uint32_t vocab;
    const akin_kernels_t *kernels;
    float *logits;            /* [vocab] after the penalty */
    float *weights;           /* [vocab] relative to the best token's 1 */
    akin_candidate_t *sorted; /* [vocab] best first, as far as needed */
};

akin_status_t akin_sampling_check(const akin_sampling_t *s, akin_error_t *err)
{
    if (!(s->temperature >= 0.0f && isfinite(s->temperature)))
        return akin_error_set(err, AKIN_ERR_RANGE,
                              "temperature is %g: it must be 0 or more",
                              (double)s->temperature);
    if (!(s->top_p >= 0.0f && s->top_p <= 1.0f))
        return akin_error_set(err, AKIN_ERR_RANGE,
                              "top_p is %g: it must be above 0 and at most 1",
                              (double)s->top_p);
    if (!(s->min_p >= 0.0f && s->min_p < 1.0f))
        return akin_error_set(err, AKIN_ERR_RANGE,
                              "min_p is %g: it must be 0 or more and below 1",
                              (double)s->min_p);
    if (!(s->repetition_penalty >= 0.0f && isfinite(s->repetition_penalty)))
        return akin_error_set(err, AKIN_ERR_RANGE,
                              "repetition_penalty is %g: it must be above 0",
                              (double)s->repetition_penalty);
    return AKIN_OK;
}

uint64_t akin_sampling_seed_from_id(const char *custom_id)
{
    return akin_hash64(custom_id, strlen(custom_id), SAMPLER_STREAM);
}

akin_status_t akin_sampler_create(const akin_kernels_t *kernels, uint32_t vocab,
                                  akin_sampler_t **sampler_p)
{
    *sampler_p = NULL;
    akin_sampler_t *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return AKIN_ERR_NOMEM;
    s->vocab = vocab;
    s->kernels = kernels;
    s->logits = calloc(vocab, sizeof(*s->logits));
    s->sorted = calloc(vocab, sizeof(*s->sorted));
    s->weights = calloc(vocab, sizeof(*s->weights));
    if (s->logits == NULL || s->sorted == NULL || s->weights == NULL) {
        akin_sampler_destroy(s);
        return AKIN_ERR_NOMEM;
    }
    *sampler_p = s;
    return AKIN_OK;
}

void akin_sampler_destroy(akin_sampler_t *sampler)
{
    if (sampler == NULL)
        return;
    free(sampler->logits);
    free(sampler->sorted);
    free(sampler->weights);
    free(sampler);
}

/* Better logit first, then the lower id: a strict order of all tokens. */
static int is_better(akin_candidate_t a, akin_candidate_t b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* A heap of the best n so far with the worst on top. */
static void sift_down(akin_candidate_t *heap, uint32_t n, uint32_t at)
{
    for (;;) {
        uint32_t worst = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < n && is_better(heap[worst], heap[child]))
                worst = child;
        if (worst == at)
            return;
        akin_candidate_t t = heap[at];
        heap[at] = heap[worst];
        heap[worst] = t;
        at = worst;
    }
}

void akin_sampler_top(const float *logits, uint32_t vocab, uint32_t n,
                      akin_candidate_t *top)
{
    n = n < vocab ? n : vocab;
    if (n == 0)
        return;
    for (uint32_t i = 0; i < n; i++)
        top[i] = (akin_candidate_t){i, logits[i]};
    for (uint32_t i = n / 2; i-- > 0;)
        sift_down(top, n, i);
    for (uint32_t i = n; i < vocab; i++) {
        akin_candidate_t c = {i, logits[i]};
        if (is_better(c, top[0])) {
            top[0] = c;
            sift_down(top, n, 0);
        }
    }
    /* Taking the worst to the end, again and again, leaves the best first. */
    for (uint32_t left = n; left > 1; left--) {
        akin_candidate_t t = top[0];
        top[0] = top[left - 1];
        top[left - 1] = t;
        sift_down(top, left - 1, 0);
    }
}

double akin_sampler_log_sum_exp(const float *logits, uint32_t vocab)
{
    double max = (double)logits[0], sum = 0.0;
    for (uint32_t i = 1; i < vocab; i++)
        max = (double)logits[i] > max ? (double)logits[i] : max;
    for (uint32_t i = 0; i < vocab; i++)
        sum += exp((double)logits[i] - max);
    return max + log(sum);
}

static void penalise(akin_sampler_t *s, float penalty, const float *logits,
                     const uint32_t *history, size_t n_history)
{
    /* Always from the untouched row, so that a repeated token counts once. */
    for (size_t i = 0; i < n_history; i++) {
        uint32_t id = history[i];
        if (id < s->vocab)
            s->logits[id] =
                logits[id] > 0.0f ? logits[id] / penalty : logits[id] * penalty;
    }
}

/* exp((logit - best) / temperature) of every token and their sum. */
static double weigh(akin_sampler_t *s, const akin_sampling_t *p)
{
    float best = s->logits[0];
    for (uint32_t i = 1; i < s->vocab; i++)
        best = s->logits[i] > best ? s->logits[i] : best;
    for (uint32_t i = 0; i < s->vocab; i++)
        s->weights[i] = (s->logits[i] - best) / p->temperature;
    s->kernels->exp(s->weights, s->vocab);
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    for (uint32_t i = 0; i < s->vocab; i++)
        sums[i % 4] += (double)s->weights[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* The candidates that top-k and top-p leave, best first. Top-p alone needs
 * only the first few of them in order, so more are sorted only on demand. */
static uint32_t take_best(akin_sampler_t *s, const akin_sampling_t *p,
                          double total)
{
    const int top_p_on = p->top_p > 0.0f && p->top_p < 1.0f;
    const int top_k_on = p->top_k > 0 && p->top_k < s->vocab;
    uint32_t n = top_k_on ? p->top_k : FIRST_CANDIDATES;
    for (;; n *= 4) {
        n = n < s->vocab ? n : s->vocab;
        akin_sampler_top(s->logits, s->vocab, n, s->sorted);
        double kept = 0.0;
        if (top_k_on) {
            total = 0.0;
            for (uint32_t i = 0; i < n; i++)
                total += (double)s->weights[s->sorted[i].id];
        }
        for (uint32_t i = 0; top_p_on && i < n; i++) {
            kept += (double)s->weights[s->sorted[i].id];
            if (kept >= (double)p->top_p * total)
                return i + 1;
        }
        if (top_k_on || n == s->vocab)
            return n;
    }
}

/* Walk the candidates until the draw is used up; those that min-p leaves out
 * weigh nothing. `sorted` NULL: all tokens by id. */
static uint32_t draw(const akin_sampler_t *s, const akin_sampling_t *p,
                     const akin_candidate_t *sorted, uint32_t n,
                     uint64_t position)
{
    double total = 0.0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < n; i++) {
        float w = s->weights[sorted != NULL ? sorted[i].id : i];
        total += w >= p->min_p ? (double)w : 0.0;
    }
    double left = akin_rng_uniform(p->seed, SAMPLER_STREAM, position) * total;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = sorted != NULL ? sorted[i].id : i;
        float w = s->weights[id];
        if (!(w >= p->min_p) || w == 0.0f)
            continue;
        last = id;
        left -= (double)w;
        if (left < 0.0)
            break;
    }
    return last;
}

uint32_t akin_sampler_pick(akin_sampler_t *s, const akin_sampling_t *p,
                           const float *logits, const uint32_t *history,
                           size_t n_history, uint64_t position)
{
    akin_candidate_t best = {0};
    if (p->repetition_penalty > 0.0f && p->repetition_penalty != 1.0f) {
        memcpy(s->logits, logits, s->vocab * sizeof(*logits));
        penalise(s, p->repetition_penalty, logits, history, n_history);
        logits = s->logits;
    }
    if (p->temperature == 0.0f) {
        akin_sampler_top(logits, s->vocab, 1, &best);
        return best.id;
    }
    if (logits != s->logits)
        memcpy(s->logits, logits, s->vocab * sizeof(*logits));
    double total = weigh(s, p);
    if ((p->top_k > 0 && p->top_k < s->vocab) ||
        (p->top_p > 0.0f && p->top_p < 1.0f)) {
        uint32_t n = take_best(s, p, total);
        return draw(s, p, s->sorted, n, position);
    }
    return draw(s, p, NULL, s->vocab, position);
}
