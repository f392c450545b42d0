/* Prefill doubt: blocks that turned out to be damaged where they are owned. */
#include "roles/prefill_state.h"

#include "base/log.h"

#include <stdlib.h>
#include <utlist.h>

/* The first of these cached blocks that fails a check; n: all are sound. */
static uint32_t find_damaged(const akin_worker_t *w, const uint32_t *tokens,
                             const uint32_t *slots, uint32_t n)
{
    const akin_kv_layout_t *layout = w->view->layout;
    const uint32_t block_tokens = layout->shape.block_tokens;
    akin_kv_descriptor_t expected = {.n_tokens = block_tokens,
                                     .chain_hash = AKIN_KV_ROOT_HASH};
    for (uint32_t b = 0; b < n; b++, tokens += block_tokens) {
        expected.generation = akin_kv_cache_generation(w->cache, slots[b]);
        expected.chain_hash =
            akin_kv_chain_hash(expected.chain_hash, tokens, block_tokens);
        akin_kv_refusal_t refusal = akin_kv_block_check(
            layout, akin_kv_slot(w->view, slots[b]), &expected);
        if (refusal == AKIN_KV_REFUSAL_NONE)
            continue;
        AKIN_LOG(ROLES, ERROR, "a cached block is damaged in memory: %s",
                 akin_kv_refusal_string(refusal));
        return b;
    }
    return n;
}

/* Every prompt that was computed from a block has it at the same place. Those
 * that were answered give their blocks up, so that their readers are refused:
 * of the block itself a reader may have a sound copy already, but not of what
 * came of the damage. */
static void end_users(akin_worker_t *w, uint32_t place, uint32_t slot)
{
    akini_prefill_t *p = w->state;
    akini_prompt_t *prompt, *next;
    HASH_ITER(hh, p->by_id, prompt, next)
    {
        if (prompt->state == AKINI_PROMPT_WAITING ||
            place >= prompt->n_blocks || prompt->slots[place] != slot)
            continue;
        if (prompt->state == AKINI_PROMPT_PINNED)
            akini_prompt_forget(w, prompt);
        else if (prompt->in_job > 0)
            prompt->is_doubted = 1;
        else
            akini_prompt_restart(w, prompt);
    }
}

void akini_prefill_doubt(akin_worker_t *w, const akin_message_prefill_t *m)
{
    const uint32_t n_tokens = (uint32_t)m->n_tokens;
    const uint32_t most = n_tokens / w->view->layout->shape.block_tokens;
    uint32_t *slots = calloc((size_t)most + 1, sizeof(*slots));
    if (slots == NULL) {
        /* What cannot be looked at is not trusted. */
        (void)akin_kv_cache_forget(w->cache, m->tokens, n_tokens);
        return;
    }
    const uint32_t n =
        akin_kv_cache_match(w->cache, m->tokens, n_tokens, most, slots);
    const uint32_t place = find_damaged(w, m->tokens, slots, n);
    const uint32_t slot = slots[place < n ? place : 0];
    for (uint32_t b = n; b-- > 0;)
        akin_kv_cache_unref(w->cache, slots[b]);
    if (place < n) {
        end_users(w, place, slot);
        const unsigned dropped =
            akin_kv_cache_forget(w->cache, m->tokens, n_tokens);
        AKIN_LOG(ROLES, WARN, "%u cached blocks are computed anew when needed",
                 dropped);
    }
    free(slots);
}
