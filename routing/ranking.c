/* Ranking: Spearman's rank correlation by radix sort. */
#include "routing/ranking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIGIT_BITS = 11,
    N_BUCKETS = 1 << DIGIT_BITS,
    N_DIGITS = (64 + DIGIT_BITS - 1) / DIGIT_BITS
};

typedef struct ranked {
    uint64_t key;
    uint32_t index;
} ranked_t;

struct akin_ranking {
    uint32_t n;
    ranked_t *items;
    ranked_t *scratch;
    uint32_t counts[N_DIGITS][N_BUCKETS]; /* of each value of each digit */
};

akin_status_t akin_ranking_create(uint32_t n, akin_ranking_t **ranking_p)
{
    *ranking_p = NULL;
    akin_ranking_t *ranking = calloc(1, sizeof(*ranking));
    if (ranking == NULL)
        return AKIN_ERR_NOMEM;
    ranking->n = n;
    ranking->items = calloc(n, sizeof(*ranking->items));
    ranking->scratch = calloc(n, sizeof(*ranking->scratch));
    if (ranking->items == NULL || ranking->scratch == NULL) {
        akin_ranking_destroy(ranking);
        return AKIN_ERR_NOMEM;
    }
    *ranking_p = ranking;
    return AKIN_OK;
}

void akin_ranking_destroy(akin_ranking_t *ranking)
{
    if (ranking == NULL)
        return;
    free(ranking->scratch);
    free(ranking->items);
    free(ranking);
}

/* An integer that orders like the double; -0 and 0 are the same. */
static uint64_t sortable_key(double value)
{
    const uint64_t sign = UINT64_C(1) << 63;
    double unsigned_zero = value + 0.0;
    uint64_t bits;
    memcpy(&bits, &unsigned_zero, sizeof(bits));
    return (bits & sign) != 0 ? ~bits : bits | sign;
}

static uint32_t digit_of(uint64_t key, unsigned digit)
{
    return (uint32_t)(key >> digit * DIGIT_BITS) & (N_BUCKETS - 1);
}

/* Fill the items and count all their digits in one pass. */
static void take_values(akin_ranking_t *ranking, const double *values)
{
    memset(ranking->counts, 0, sizeof(ranking->counts));
    for (uint32_t i = 0; i < ranking->n; i++) {
        uint64_t key = sortable_key(values[i]);
        ranking->items[i] = (ranked_t){key, i};
        for (unsigned digit = 0; digit < N_DIGITS; digit++)
            ranking->counts[digit][digit_of(key, digit)]++;
    }
}

/* Sort the items by key, lowest digit first; each pass keeps equal digits in
 * their order, and one over a digit that all share is left out. */
static void sort_items(akin_ranking_t *ranking)
{
    for (unsigned digit = 0; digit < N_DIGITS; digit++) {
        uint32_t *place = ranking->counts[digit];
        if (place[digit_of(ranking->items[0].key, digit)] == ranking->n)
            continue;
        uint32_t next = 0;
        for (uint32_t b = 0; b < N_BUCKETS; b++) {
            uint32_t count = place[b];
            place[b] = next;
            next += count;
        }
        for (uint32_t i = 0; i < ranking->n; i++) {
            ranked_t item = ranking->items[i];
            ranking->scratch[place[digit_of(item.key, digit)]++] = item;
        }
        ranked_t *sorted = ranking->scratch;
        ranking->scratch = ranking->items;
        ranking->items = sorted;
    }
}

void akin_ranking_centred(akin_ranking_t *ranking, const double *values,
                          double *ranks)
{
    uint32_t n = ranking->n;
    take_values(ranking, values);
    sort_items(ranking);
    double mean = ((double)n - 1.0) / 2.0;
    for (uint32_t i = 0; i < n;) {
        uint32_t end = i + 1;
        while (end < n && ranking->items[end].key == ranking->items[i].key)
            end++;
        double rank = ((double)i + (double)end - 1.0) / 2.0 - mean;
        for (; i < end; i++)
            ranks[ranking->items[i].index] = rank;
    }
}

double akin_ranking_correlate(const double *a, const double *b, uint32_t n)
{
    double ab = 0.0, aa = 0.0, bb = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        ab += a[i] * b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
    }
    return aa > 0.0 && bb > 0.0 ? ab / sqrt(aa * bb) : 0.0;
}
