/* Summary: the load of decode workers over time, and the experts that their
 * tokens chose. */
#include "roles/summary_state.h"

#include <jansson.h>

akin_status_t akini_summary_load_create(akin_summary_t *summary,
                                        uint32_t n_layers, uint32_t n_experts)
{
    uint32_t n_decode = 0;
    for (uint32_t i = 0; i < summary->n_workers; i++)
        if (summary->workers[i].is_decode)
            summary->workers[i].decode = n_decode++;
    return akin_load_watch_create(n_decode, n_layers, n_experts,
                                  &summary->watch);
}

void akin_summary_set_load(akin_summary_t *summary, uint32_t worker,
                           uint32_t n_requests, int64_t now_ns)
{
    if (worker >= summary->n_workers || !summary->workers[worker].is_decode)
        return;
    akin_load_watch_set(summary->watch, summary->workers[worker].decode,
                        (double)(now_ns - summary->start_ns) / 1e9, n_requests);
}

void akin_summary_add_choices(akin_summary_t *summary, uint32_t worker,
                              const uint16_t *counts)
{
    if (worker < summary->n_workers && summary->workers[worker].is_decode)
        akin_load_watch_add(summary->watch, summary->workers[worker].decode,
                            counts);
}

json_t *akini_summary_load_json(const akin_summary_t *summary)
{
    akin_load_watch_end(summary->watch, akini_summary_duration_s(summary));
    return akin_load_watch_json(summary->watch);
}
