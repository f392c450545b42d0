/* The router's patience: groups that take too long, and roles that have no
 * worker left. */
#include "roles/router_state.h"

#include "base/log.h"

/* Whether groups of that size may yet become a worker. */
static int has_hope(const akin_router_t *r, uint32_t n_ranks, int64_t now_ns,
                    int64_t since_ns)
{
    for (uint32_t i = 0; i < r->n_groups; i++) {
        const akini_group_t *g = &r->groups[i];
        if (g->n_ranks != n_ranks || g->state == AKINI_GROUP_GONE ||
            g->state == AKINI_GROUP_SERVING)
            continue;
        const int may_never_come =
            g->state == AKINI_GROUP_LOST ||
            (g->state == AKINI_GROUP_JOINING && !g->is_complete);
        if (!may_never_come ||
            now_ns - since_ns < r->params.job->recovery_timeout_ns)
            return 1;
    }
    return 0;
}

/* Without any worker of a role the job waits for one, or ends. */
static int64_t expire_role(akin_router_t *r, const char *role, uint32_t first,
                           uint32_t n, int64_t now_ns)
{
    int64_t since_ns = 0, due_ns;
    for (uint32_t w = first; w < first + n; w++) {
        if (r->lost_ns[w] == 0)
            return INT64_MAX;
        since_ns = r->lost_ns[w] > since_ns ? r->lost_ns[w] : since_ns;
    }
    uint32_t n_ranks;
    (void)akini_router_places(r, first, &n_ranks);
    due_ns = since_ns + r->params.job->recovery_timeout_ns;
    if (has_hope(r, n_ranks, now_ns, since_ns))
        return due_ns > now_ns ? due_ns : INT64_MAX;
    if (r->failure == AKIN_OK)
        r->failure = akin_error_set(&r->error, AKIN_ERR_PEER,
                                    "no %s worker is left; what was finished "
                                    "is in the output: start again with "
                                    "--resume",
                                    role);
    return now_ns;
}

/* The time of a group is up: ranks that have not said what was asked of them
 * are given up, or else those that have not connected to it. */
static void give_up_late(akin_router_t *r, akini_group_t *g)
{
    const uint64_t all = UINT64_MAX >> (64 - g->n_ranks);
    for (uint32_t i = 0; i < g->n_ranks; i++)
        if ((g->said >> i & 1) == 0) {
            AKIN_LOG(ROLES, ERROR, "rank %u is not ready in time",
                     g->first + i);
            akin_net_drop_peer(r->net, g->first + i);
        }
    if (g->said == all)
        akini_router_drop_debtors(r, g);
}

int64_t akini_router_expire_groups(akin_router_t *r, int64_t now_ns)
{
    const akin_job_t *job = r->params.job;
    int64_t next_ns = INT64_MAX;
    for (uint32_t i = 0; i < r->n_groups; i++) {
        akini_group_t *g = &r->groups[i];
        if (g->state != AKINI_GROUP_JOINING && g->state != AKINI_GROUP_ASSUMING)
            continue;
        if (g->deadline_ns <= now_ns) {
            give_up_late(r, g);
            g->deadline_ns = now_ns + job->start_timeout_ns;
        }
        next_ns = g->deadline_ns < next_ns ? g->deadline_ns : next_ns;
    }
    akini_router_fill_places(r);
    int64_t due = expire_role(r, "prefill", 0, job->n_prefill, now_ns);
    next_ns = due < next_ns ? due : next_ns;
    due = expire_role(r, "decode", job->n_prefill, job->n_decode, now_ns);
    return due < next_ns ? due : next_ns;
}
