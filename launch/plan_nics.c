/* Plan NICs: which NIC of a node a rank gets, once it has a GPU and cores. */
#include "launch/plan_seats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A port for management, beside NICs that are this much faster. */
enum { MUCH_FASTER = 4 };

int akini_plan_nic_suits(const akin_node_t *node, uint32_t nic)
{
    const akin_node_nic_t *own = &node->nics[nic];
    if (own->state == AKIN_LINK_DOWN)
        return 0;
    for (uint32_t i = 0; i < node->n_nics; i++) {
        const akin_node_nic_t *other = &node->nics[i];
        if (other->state == AKIN_LINK_DOWN || (own->is_rdma && !other->is_rdma))
            continue;
        if (other->is_rdma && !own->is_rdma)
            return 0;
        if (own->link_gbs > 0 && other->link_gbs > own->link_gbs * MUCH_FASTER)
            return 0;
    }
    return 1;
}

static uint32_t closeness(const akin_node_t *node, const akin_plan_rank_t *rank,
                          uint32_t nic)
{
    if (rank->gpu != AKIN_PLAN_NO_GPU)
        return node->closeness[(size_t)rank->gpu * node->n_nics + nic];
    return node->nics[nic].numa == rank->numa ? AKIN_CLOSE_NUMA
                                              : AKIN_CLOSE_SYSTEM;
}

/* The closest one; of those the least used, of those the first. */
static void choose(const akin_node_t *node, const uint8_t *suits,
                   uint32_t *uses, akin_plan_rank_t *rank)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < node->n_nics; i++) {
        if (!suits[i])
            continue;
        if (best == UINT32_MAX) {
            best = i;
            continue;
        }
        const uint32_t near = closeness(node, rank, i);
        const uint32_t near_best = closeness(node, rank, best);
        if (near != near_best ? near > near_best : uses[i] < uses[best])
            best = i;
    }
    if (best == UINT32_MAX)
        return;
    const akin_node_nic_t *nic = &node->nics[best];
    (void)snprintf(rank->nic, sizeof(rank->nic), "%s", nic->device);
    rank->is_rdma = nic->is_rdma;
    uses[best]++;
}

static akin_status_t all_down(const akini_plan_seats_t *s, akin_error_t *err)
{
    char names[160] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < s->node->n_nics && n < sizeof(names) - 1; i++) {
        const size_t room = sizeof(names) - n;
        const int length = snprintf(names + n, room, "%s%s", i > 0 ? ", " : "",
                                    s->node->nics[i].name);
        n += length < 0 ? room : (size_t)length;
    }
    return akin_error_set(err, AKIN_ERR_CONFIG,
                          "%s: all its NICs are down: %s; bring one up, or "
                          "take this node out of the job",
                          s->place, names);
}

akin_status_t akini_plan_seat_nics(akini_plan_seats_t *seats, akin_error_t *err)
{
    const akin_node_t *node = seats->node;
    uint8_t *suits = calloc((size_t)node->n_nics + 1, sizeof(*suits));
    uint32_t *uses = calloc((size_t)node->n_nics + 1, sizeof(*uses));
    uint32_t n_suit = 0;
    akin_status_t status =
        suits != NULL && uses != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
    for (uint32_t i = 0; i < node->n_nics && status == AKIN_OK; i++) {
        suits[i] = (uint8_t)akini_plan_nic_suits(node, i);
        n_suit += suits[i];
    }
    /* On a lone node ranks reach each other through memory. */
    if (status == AKIN_OK && n_suit == 0 && node->n_nics > 0 &&
        !seats->is_alone)
        status = all_down(seats, err);
    if (status == AKIN_OK) {
        for (uint32_t i = 0; i < seats->n_ranks; i++)
            choose(node, suits, uses, &seats->plan->ranks[seats->ranks[i]]);
        if (seats->has_router)
            choose(node, suits, uses, &seats->plan->ranks[0]);
    }
    free(suits);
    free(uses);
    return status;
}
