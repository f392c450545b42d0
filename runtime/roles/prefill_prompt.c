/* Prompt: one request of a prefill rank, from its PREFILL to its RELEASE. */
#include "roles/prefill_state.h"

#include "base/clock.h"

#include <stdlib.h>
#include <utlist.h>

akin_status_t akini_prompt_create(akin_worker_t *w,
                                  const akin_message_prefill_t *m,
                                  uint32_t n_blocks)
{
    akini_prefill_t *p = w->state;
    akini_prompt_t *prompt = calloc(1, sizeof(*prompt));
    uint32_t *slots = calloc(n_blocks, sizeof(*slots));
    if (prompt == NULL || slots == NULL) {
        free(prompt);
        free(slots);
        return AKIN_ERR_NOMEM;
    }
    prompt->id = m->id;
    prompt->request = *m;
    prompt->slots = slots;
    prompt->n_blocks = n_blocks;
    prompt->arrival_ns = akin_clock_now_ns();
    HASH_ADD(hh, p->by_id, id, sizeof(prompt->id), prompt);
    DL_APPEND(p->lists[AKINI_PROMPT_WAITING], prompt);
    return AKIN_OK;
}

akini_prompt_t *akini_prompt_find(const akini_prefill_t *p, uint64_t id)
{
    akini_prompt_t *prompt;
    HASH_FIND(hh, p->by_id, &id, sizeof(id), prompt);
    return prompt;
}

static void leave_list(akini_prefill_t *p, akini_prompt_t *prompt)
{
    DL_DELETE(p->lists[prompt->state], prompt);
    if (prompt->state != AKINI_PROMPT_PINNED)
        return;
    p->n_pinned--;
    p->n_pinned_blocks -= prompt->n_blocks;
}

void akini_prompt_move(akini_prefill_t *p, akini_prompt_t *prompt,
                       akini_prompt_state_t state)
{
    leave_list(p, prompt);
    prompt->state = state;
    DL_APPEND(p->lists[state], prompt);
    if (state != AKINI_PROMPT_PINNED)
        return;
    p->n_pinned++;
    p->n_pinned_blocks += prompt->n_blocks;
}

/* From the end, so that the cache evicts a chain from its end. */
static void give_back(akin_worker_t *w, const akini_prompt_t *prompt)
{
    if (prompt->state == AKINI_PROMPT_WAITING)
        return;
    for (uint32_t b = prompt->n_blocks; b-- > 0;)
        akin_kv_cache_unref(w->cache, prompt->slots[b]);
}

void akini_prompt_restart(akin_worker_t *w, akini_prompt_t *prompt)
{
    akini_prefill_t *p = w->state;
    give_back(w, prompt);
    leave_list(p, prompt);
    prompt->state = AKINI_PROMPT_WAITING;
    prompt->is_doubted = 0;
    DL_PREPEND(p->lists[AKINI_PROMPT_WAITING], prompt);
}

void akini_prompt_forget(akin_worker_t *w, akini_prompt_t *prompt)
{
    akini_prefill_t *p = w->state;
    give_back(w, prompt);
    leave_list(p, prompt);
    HASH_DEL(p->by_id, prompt);
    free(prompt->request.tokens);
    free(prompt->slots);
    free(prompt);
}
