/* Respawn policy: counts the lives of a window. */
#include "net/respawn_policy.h"

#include <stdlib.h>
#include <string.h>

/* Forget the lives that the window has left behind. */
static void slide(akini_respawn_policy_t *policy, int64_t window_ns,
                  int64_t now_ns)
{
    size_t n_old = 0;
    while (window_ns > 0 && n_old < policy->n_started &&
           now_ns - policy->started_ns[n_old] >= window_ns)
        n_old++;
    if (n_old == 0)
        return;
    policy->n_started -= n_old;
    memmove(policy->started_ns, policy->started_ns + n_old,
            policy->n_started * sizeof(*policy->started_ns));
}

static int append(akini_respawn_policy_t *policy, int64_t now_ns)
{
    if (policy->n_started == policy->capacity) {
        size_t capacity = policy->capacity == 0 ? 8 : 2 * policy->capacity;
        int64_t *grown = realloc(policy->started_ns, capacity * sizeof(*grown));
        if (grown == NULL)
            return 0;
        policy->started_ns = grown;
        policy->capacity = capacity;
    }
    policy->started_ns[policy->n_started++] = now_ns;
    return 1;
}

static int64_t delay(int64_t first_ns, size_t n_recent)
{
    if (n_recent == 0 || first_ns <= 0)
        return 0;
    int64_t delay_ns = first_ns;
    for (size_t i = 1; i < n_recent && delay_ns < AKINI_RESPAWN_DELAY_MAX_NS;
         i++)
        delay_ns *= 2;
    return delay_ns < AKINI_RESPAWN_DELAY_MAX_NS ? delay_ns
                                                 : AKINI_RESPAWN_DELAY_MAX_NS;
}

akini_respawn_step_t
akini_respawn_policy_step(akini_respawn_policy_t *policy,
                          const akin_supervised_terms_t *terms, int64_t now_ns)
{
    slide(policy, terms->window_ns, now_ns);
    size_t n = policy->n_started;
    akini_respawn_step_t step = {
        .is_last = 1,
        .n_recent = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX,
    };
    if (terms->max_lives <= 0 || n >= (size_t)terms->max_lives ||
        !append(policy, now_ns))
        return step;
    step.is_last = 0;
    step.delay_ns = delay(terms->first_delay_ns, n);
    return step;
}

void akini_respawn_policy_cleanup(akini_respawn_policy_t *policy)
{
    free(policy->started_ns);
    *policy = (akini_respawn_policy_t){0};
}
