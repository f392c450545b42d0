/* Pacer: when the ranks of a worker make their next step together. */
#include "roles/pacer.h"

void akin_pacer_init(akin_pacer_t *pacer, uint32_t n_ranks)
{
    *pacer = (akin_pacer_t){.n_ranks = n_ranks};
}

static uint64_t bit(uint32_t rank)
{
    return UINT64_C(1) << rank;
}

void akin_pacer_ready(akin_pacer_t *pacer, uint32_t rank)
{
    if (rank < pacer->n_ranks)
        pacer->ready |= bit(rank);
}

akin_status_t akin_pacer_done(akin_pacer_t *pacer, uint32_t rank,
                              uint64_t number, int has_work)
{
    if (rank >= pacer->n_ranks || number != pacer->number ||
        (pacer->running & bit(rank)) == 0)
        return AKIN_ERR_FORMAT;
    pacer->running &= ~bit(rank);
    /* What it said before was about rows that this step may have taken. */
    pacer->ready &= ~bit(rank);
    if (has_work)
        pacer->ready |= bit(rank);
    return AKIN_OK;
}

uint64_t akin_pacer_next(akin_pacer_t *pacer)
{
    if (pacer->running != 0 || pacer->ready == 0)
        return 0;
    pacer->ready = 0;
    pacer->running = ~UINT64_C(0) >> (AKIN_PACER_MAX_RANKS - pacer->n_ranks);
    return ++pacer->number;
}
