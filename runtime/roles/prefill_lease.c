/* Prefill leases: how long computed blocks are kept for their readers, and what
 * the router hears of that. */
#include "roles/prefill_state.h"

#include "base/clock.h"
#include "base/log.h"

#include <utlist.h>

/* The router hears of changes at most this often. */
#define TELL_NS AKIN_NS_PER_S

/* How long a rank that ends waits for a RELEASE that is under way. */
#define LAST_RELEASE_NS (250 * AKIN_NS_PER_MS)

void akini_prefill_pin(akin_worker_t *w, akini_prompt_t *prompt)
{
    prompt->pinned_ns = akin_clock_now_ns();
    prompt->lease_ns = prompt->pinned_ns + w->job->lease_ns;
    akini_prompt_move(w->state, prompt, AKINI_PROMPT_PINNED);
}

static void tell(akin_worker_t *w, int64_t now_ns)
{
    akini_prefill_t *p = w->state;
    const akini_prompt_t *oldest = p->lists[AKINI_PROMPT_PINNED];
    p->told_ns = now_ns;
    p->told = (akin_message_leases_t){
        .n_blocks = p->n_pinned_blocks,
        .n_requests = p->n_pinned,
        .oldest_ns = oldest != NULL ? now_ns - oldest->pinned_ns : 0,
        .n_expired = p->n_expired,
    };
    akin_message_pack_leases(&w->packer, &p->told);
    akin_worker_send(w, AKIN_ROUTER_RANK, AKIN_MESSAGE_LEASES);
}

/* Tells the router if there is news and it is time; when it will be. */
static int64_t tell_in_time(akin_worker_t *w, int64_t now_ns)
{
    akini_prefill_t *p = w->state;
    if (p->told.n_blocks == p->n_pinned_blocks &&
        p->told.n_requests == p->n_pinned && p->told.n_expired == p->n_expired)
        return INT64_MAX;
    if (p->told_ns != 0 && now_ns < p->told_ns + TELL_NS)
        return p->told_ns + TELL_NS;
    tell(w, now_ns);
    return INT64_MAX;
}

int64_t akini_prefill_expire(akin_worker_t *w, int64_t now_ns)
{
    akini_prefill_t *p = w->state;
    int64_t next_ns = INT64_MAX;
    akini_prompt_t *prompt, *next;
    DL_FOREACH_SAFE(p->lists[AKINI_PROMPT_PINNED], prompt, next)
    {
        if (prompt->lease_ns <= now_ns) {
            AKIN_LOG(ROLES, WARN, "request %llu: its lease has ended",
                     (unsigned long long)prompt->id);
            p->n_expired++;
            akini_prompt_forget(w, prompt);
        } else if (prompt->lease_ns < next_ns) {
            next_ns = prompt->lease_ns;
        }
    }
    int64_t tell_ns = tell_in_time(w, now_ns);
    return tell_ns < next_ns ? tell_ns : next_ns;
}

void akini_prefill_end_leases(akin_worker_t *w, akin_message_stats_t *m)
{
    akini_prefill_t *p = w->state;
    const int64_t until_ns = akin_clock_now_ns() + LAST_RELEASE_NS;
    while (p->n_pinned > 0 && akin_clock_now_ns() < until_ns)
        akin_worker_wait(w, until_ns);
    tell(w, akin_clock_now_ns());
    m->leases_expired = p->n_expired;
}
