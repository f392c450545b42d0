/* MPI exchange: sizes first, then the pieces laid end to end. */
#include "ep/exchange_mpi.h"

#include "ep/piece_buffer.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN_BYTES UINT64_C(64)
/* What came stays while the next swap runs; nobody can be ahead here. */
#define AGES 2u

typedef struct mpi_exchange {
    akin_ep_exchange_t base;
    akin_boot_group_t *group;
    uint64_t n_swaps;
    akin_status_t status;
    uint64_t *bytes_out, *bytes_in;   /* [n_ranks] */
    int *sizes_out, *offsets_out;     /* [n_ranks] MPI counts in int */
    int *sizes_in, *offsets_in;       /* [n_ranks] */
    akini_ep_piece_buffer_t out;      /* all pieces for others */
    akini_ep_piece_buffer_t in[AGES]; /* all pieces from others */
    struct mpi_exchange *next;        /* of those that are kept */
} mpi_exchange_t;

/* Lay pieces out with each at a boundary, and make room for them. */
static akin_status_t lay_out(uint32_t n, const uint64_t *bytes, int *sizes,
                             int *offsets, akini_ep_piece_buffer_t *buffer)
{
    uint64_t at = 0;
    for (uint32_t r = 0; r < n; r++) {
        if (bytes[r] > INT_MAX || at + bytes[r] + ALIGN_BYTES > INT_MAX)
            return AKIN_ERR_FORMAT;
        sizes[r] = (int)bytes[r];
        offsets[r] = (int)at;
        at += (bytes[r] + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    }
    /* MPI gets an address even where there is nothing. */
    return akini_ep_piece_buffer_reserve(buffer, (size_t)at + 1);
}

static akin_status_t swap_pieces(mpi_exchange_t *e, const akin_ep_piece_t *out,
                                 akin_ep_piece_t *in, int64_t deadline_ns)
{
    const uint32_t n = e->base.n_ranks, own = e->base.rank;
    akini_ep_piece_buffer_t *arrived = &e->in[e->n_swaps++ % AGES];
    for (uint32_t r = 0; r < n; r++)
        e->bytes_out[r] = r != own ? out[r].bytes : 0;
    akin_status_t status = akin_boot_group_swap_sizes(e->group, e->bytes_out,
                                                      e->bytes_in, deadline_ns);
    if (status == AKIN_OK)
        status =
            lay_out(n, e->bytes_out, e->sizes_out, e->offsets_out, &e->out);
    if (status == AKIN_OK)
        status = lay_out(n, e->bytes_in, e->sizes_in, e->offsets_in, arrived);
    if (status != AKIN_OK)
        return status;
    unsigned char *to = e->out.memory, *from = arrived->memory;
    for (uint32_t r = 0; r < n; r++)
        if (e->sizes_out[r] > 0)
            memcpy(to + e->offsets_out[r], out[r].data, out[r].bytes);
    const akin_boot_pieces_t going = {to, e->sizes_out, e->offsets_out};
    const akin_boot_pieces_t coming = {from, e->sizes_in, e->offsets_in};
    status = akin_boot_group_swap(e->group, &going, &coming, deadline_ns);
    for (uint32_t r = 0; status == AKIN_OK && r < n; r++)
        in[r] =
            (akin_ep_piece_t){from + e->offsets_in[r], (size_t)e->sizes_in[r]};
    return status;
}

static akin_status_t swap(akin_ep_exchange_t *exchange,
                          const akin_ep_piece_t *out, akin_ep_piece_t *in,
                          int64_t deadline_ns)
{
    mpi_exchange_t *e = (mpi_exchange_t *)exchange;
    /* A collective does not say who is missing. */
    exchange->culprit = exchange->n_ranks;
    if (e->status == AKIN_OK)
        e->status = swap_pieces(e, out, in, deadline_ns);
    return e->status;
}

/* Kept until the process ends. */
static mpi_exchange_t *abandoned;

static void destroy(akin_ep_exchange_t *exchange)
{
    mpi_exchange_t *e = (mpi_exchange_t *)exchange;
    /* An operation that did not end may still use the memory. */
    if (e->status == AKIN_ERR_TIMEOUT || e->status == AKIN_ERR_MPI) {
        e->next = abandoned;
        abandoned = e;
        return;
    }
    akini_ep_piece_buffer_cleanup(&e->out);
    for (uint32_t i = 0; i < AGES; i++)
        akini_ep_piece_buffer_cleanup(&e->in[i]);
    free(e->bytes_out);
    free(e->bytes_in);
    free(e->sizes_out);
    free(e->offsets_out);
    free(e->sizes_in);
    free(e->offsets_in);
    free(e);
}

akin_status_t akin_ep_exchange_mpi_create(akin_boot_group_t *group,
                                          akin_ep_exchange_t **exchange_p,
                                          akin_error_t *err)
{
    static const akin_ep_exchange_ops_t ops = {
        .name = "mpi", .swap = swap, .destroy = destroy};
    *exchange_p = NULL;
    const size_t n = akin_boot_group_size(group);
    mpi_exchange_t *e = calloc(1, sizeof(*e));
    if (e == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "exchange: out of memory");
    e->base = (akin_ep_exchange_t){.ops = &ops,
                                   .rank = akin_boot_group_rank(group),
                                   .n_ranks = (uint32_t)n};
    e->group = group;
    e->bytes_out = calloc(n, sizeof(*e->bytes_out));
    e->bytes_in = calloc(n, sizeof(*e->bytes_in));
    e->sizes_out = calloc(n, sizeof(*e->sizes_out));
    e->offsets_out = calloc(n, sizeof(*e->offsets_out));
    e->sizes_in = calloc(n, sizeof(*e->sizes_in));
    e->offsets_in = calloc(n, sizeof(*e->offsets_in));
    if (e->bytes_out == NULL || e->bytes_in == NULL || e->sizes_out == NULL ||
        e->offsets_out == NULL || e->sizes_in == NULL ||
        e->offsets_in == NULL) {
        destroy(&e->base);
        return akin_error_set(err, AKIN_ERR_NOMEM, "exchange: out of memory");
    }
    *exchange_p = &e->base;
    return AKIN_OK;
}
