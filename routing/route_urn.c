/* Route urn: what a request chooses from, and the choices of its tokens. */
#include "routing/route_generator_impl.h"

#include "base/rng.h"
#include "routing/route_streams.h"

#include <math.h>
#include <string.h>

enum {
    /* Tokens that share a handful of slots to choose from. */
    NEAR_TOKENS = 4,
    /* Choices that one block of random bits makes, and blocks until a token
     * takes what the urn holds in its order. */
    BLOCK_CHOICES = 8,
    MAX_BLOCKS = 16
};

uint32_t akin_route_slots(const akin_route_generator_t *g)
{
    return g->n_slots;
}

/* Does the prompt draw this slot anew? An odd factor scatters the slots, whose
 * number is a power of two. */
static int is_redrawn(const akin_route_generator_t *g, uint32_t slot)
{
    return (slot * 29 + 13) % g->n_slots < g->workload.redrawn * g->n_slots;
}

static uint16_t slot_expert(const akin_route_generator_t *g,
                            const akin_route_request_t *r, uint32_t layer,
                            uint32_t slot, uint32_t bits)
{
    const uint32_t topic = slot < r->n_general ? g->tables.n_topics : r->topic;
    return akini_route_tables_draw(&g->tables, topic, layer, bits);
}

/* The four slots from 4 x quarter on. */
static void draw_quarter(const akin_route_generator_t *g,
                         const akin_route_request_t *r, uint32_t layer,
                         uint32_t quarter, int is_prefill, uint32_t bits[4])
{
    const uint64_t counter[2] = {
        (uint64_t)layer << 32 | (uint64_t)is_prefill << 16 | quarter,
        akini_route_stream(AKINI_ROUTE_STREAM_URN, r->number)};
    akin_rng_philox(g->params.seed, counter, bits);
}

/* The urn of one layer. */
static void fill_layer(const akin_route_generator_t *g,
                       const akin_route_request_t *r, akin_route_phase_t phase,
                       uint32_t layer, uint16_t *urn)
{
    const int is_prefill = phase == AKIN_ROUTE_PREFILL;
    for (uint32_t q = 0; q < g->n_slots / 4; q++) {
        uint32_t bits[2][4];
        draw_quarter(g, r, layer, q, 0, bits[0]);
        if (is_prefill)
            draw_quarter(g, r, layer, q, 1, bits[1]);
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t slot = 4 * q + i;
            const int own = is_prefill && is_redrawn(g, slot);
            urn[slot] = slot_expert(g, r, layer, slot, bits[own][i]);
        }
    }
}

/* The same of one slot alone. */
static uint16_t fill_slot(const akin_route_generator_t *g,
                          const akin_route_request_t *r,
                          akin_route_phase_t phase, uint32_t layer,
                          uint32_t slot)
{
    uint32_t bits[4];
    draw_quarter(g, r, layer, slot / 4,
                 phase == AKIN_ROUTE_PREFILL && is_redrawn(g, slot), bits);
    return slot_expert(g, r, layer, slot, bits[slot % 4]);
}

void akin_route_urn_fill(const akin_route_generator_t *g,
                         const akin_route_request_t *r,
                         akin_route_phase_t phase, uint16_t *urn)
{
    for (uint32_t l = 0; l < g->params.n_layers; l++)
        fill_layer(g, r, phase, l, urn + (size_t)l * g->n_slots);
}

/*
 * Sets c so that the sum of 1 - exp(-c m) over the experts of a layer is
 * top_k, by Newton's method from below, where it converges since the sum is
 * concave. Experts of one m are taken together: there are few different m.
 *
 * n_of: [most + 1] how many experts hold m slots.
 */
static double scale_of(const uint32_t *n_of, uint32_t most, double top_k)
{
    double c = 0.0;
    for (int i = 0; i < 50; i++) {
        double sum = -top_k, slope = 0.0;
        for (uint32_t m = 1; m <= most; m++) {
            if (n_of[m] == 0)
                continue;
            const double idle = n_of[m] * exp(-c * m);
            sum += n_of[m] - idle;
            slope += m * idle;
        }
        if (!(sum < -1e-9 * top_k))
            break;
        c -= sum / slope;
    }
    return c;
}

static void layer_rates(const akin_route_generator_t *g, const uint16_t *urn,
                        float *rates)
{
    const uint32_t n = g->params.n_experts;
    const double top_k = g->params.top_k;
    uint16_t held[AKIN_ROUTE_MAX_EXPERTS];
    uint32_t n_of[AKIN_ROUTE_MAX_SLOTS + 1] = {0};
    float rate_of[AKIN_ROUTE_MAX_SLOTS + 1];
    uint32_t most = 0;
    memset(held, 0, n * sizeof(*held));
    for (uint32_t i = 0; i < g->n_slots; i++)
        held[urn[i]]++;
    for (uint32_t e = 0; e < n; e++) {
        n_of[held[e]]++;
        most = held[e] > most ? held[e] : most;
    }
    const uint32_t distinct = n - n_of[0];
    if (distinct > g->params.top_k) {
        const double c = scale_of(n_of, most, top_k);
        for (uint32_t m = 0; m <= most; m++)
            rate_of[m] = (float)(1.0 - exp(-c * m));
    } else {
        /* A token takes all that the urn holds, and others by their numbers. */
        const double rest = n_of[0] > 0 ? (top_k - distinct) / n_of[0] : 0.0;
        for (uint32_t m = 0; m <= most; m++)
            rate_of[m] = m > 0 ? 1.0f : (float)rest;
    }
    for (uint32_t e = 0; e < n; e++)
        rates[e] = rate_of[held[e]];
}

void akin_route_rates(const akin_route_generator_t *g,
                      const akin_route_request_t *r, akin_route_phase_t phase,
                      float *rates)
{
    uint16_t urn[AKIN_ROUTE_MAX_SLOTS] = {0};
    for (uint32_t l = 0; l < g->params.n_layers; l++) {
        fill_layer(g, r, phase, l, urn);
        layer_rates(g, urn, rates + (size_t)l * g->params.n_experts);
    }
}

/* A token's choices in a layer, as they are made. */
typedef struct choice {
    const akin_route_generator_t *g;
    const akin_route_request_t *r;
    const uint16_t *urn; /* of the layer, or NULL */
    akin_route_phase_t phase;
    uint32_t layer;
    uint32_t n;
    uint16_t *experts;
    uint64_t seen[AKIN_ROUTE_MAX_EXPERTS / 64]; /* bits, as far as in use */
} choice_t;

/* Without a branch on whether the expert is new, which nothing predicts: it is
 * written in any case, and counts if it is. There must be room. */
static inline void add_expert(choice_t *c, uint16_t expert)
{
    uint64_t *word = &c->seen[expert / 64];
    const uint64_t bit = UINT64_C(1) << expert % 64;
    c->experts[c->n] = expert;
    c->n += (*word & bit) == 0;
    *word |= bit;
}

static inline void add_slot(choice_t *c, uint32_t slot)
{
    add_expert(c, c->urn != NULL
                      ? c->urn[slot]
                      : fill_slot(c->g, c->r, c->phase, c->layer, slot));
}

/* Sixteen bits per choice: the lower byte is a slot or an index of the
 * handful's eight, the upper one says which. */
static void add_block(choice_t *c, const uint32_t bits[4], uint64_t handful)
{
    const uint32_t mask = c->g->n_slots - 1;
    const uint32_t near = c->g->near;
    const uint32_t top_k = c->g->params.top_k;
    for (uint32_t i = 0; i < BLOCK_CHOICES && c->n < top_k; i++) {
        const uint32_t word = bits[i / 2] >> 16 * (i % 2) & 0xFFFF;
        const uint32_t own = word & 0xFF;
        const uint32_t shared = (uint32_t)(handful >> 8 * (word % 8)) & 0xFF;
        add_slot(c, (word >> 8 < near ? shared : own) & mask);
    }
}

void akin_route_draw(const akin_route_generator_t *g,
                     const akin_route_request_t *r, const uint16_t *urn,
                     uint32_t token, uint32_t layer, uint16_t *experts)
{
    const uint32_t top_k = g->params.top_k;
    const uint32_t n_experts = g->params.n_experts;
    choice_t c;
    c.g = g;
    c.r = r;
    c.urn = urn != NULL ? urn + (size_t)layer * g->n_slots : NULL;
    c.phase = token < r->n_prompt ? AKIN_ROUTE_PREFILL : AKIN_ROUTE_DECODE;
    c.layer = layer;
    c.n = 0;
    c.experts = experts;
    memset(c.seen, 0, (n_experts + 63) / 64 * sizeof(c.seen[0]));
    uint64_t at[2] = {((uint64_t)token * g->params.n_layers + layer) *
                          MAX_BLOCKS,
                      akini_route_stream(AKINI_ROUTE_STREAM_CHOICE, r->number)};
    const uint64_t handful = akin_rng_u64(
        g->params.seed, akini_route_stream(AKINI_ROUTE_STREAM_NEAR, r->number),
        (uint64_t)layer << 32 | token / NEAR_TOKENS);
    uint32_t bits[4] = {0};
    for (uint32_t b = 0; b < MAX_BLOCKS && c.n < top_k; b++, at[0]++) {
        akin_rng_philox(g->params.seed, at, bits);
        add_block(&c, bits, handful);
    }
    /* An urn of too few experts, or of one that outweighs the others. */
    for (uint32_t i = 0; i < g->n_slots && c.n < top_k; i++)
        add_slot(&c, (bits[0] + i) % g->n_slots);
    for (uint32_t i = 0; c.n < top_k; i++)
        add_expert(&c, (uint16_t)((bits[1] % n_experts + i) % n_experts));
}
