/* Summary of transports as JSON: what KV travelled over. */
#include "roles/summary_state.h"

#include <jansson.h>

static json_t *probe_json(const akin_transports_probe_t *p)
{
    if (p->n_pairs == 0)
        return json_null();
    return json_pack("{s:I, s:f, s:f, s:f, s:I}", "pairs",
                     (json_int_t)p->n_pairs, "min_bytes_per_s", p->min,
                     "median_bytes_per_s", p->median, "max_bytes_per_s", p->max,
                     "slow", (json_int_t)p->n_slow);
}

json_t *akini_summary_transports_json(const akin_summary_t *summary)
{
    const akin_transports_t *all = &summary->transports;
    json_t *counts = json_object();
    int failed = counts == NULL;
    for (uint32_t i = 0; i < all->n_transports && !failed; i++) {
        const akin_transport_t *t = &all->transports[i];
        failed = json_object_set_new(
                     counts, t->name,
                     json_pack("{s:I, s:I}", "on_one_host",
                               (json_int_t)t->n_pairs[AKIN_PAIR_INSIDE],
                               "between_hosts",
                               (json_int_t)t->n_pairs[AKIN_PAIR_BETWEEN])) != 0;
    }
    if (failed) {
        json_decref(counts);
        return NULL;
    }
    json_t *probe = all->is_probed
                        ? json_pack("{s:o, s:o}", "on_one_host",
                                    probe_json(&all->probe[AKIN_PAIR_INSIDE]),
                                    "between_hosts",
                                    probe_json(&all->probe[AKIN_PAIR_BETWEEN]))
                        : json_null();
    return json_pack(
        "{s:i, s:o, s:{s:I, s:I}, s:o}", "hosts", (int)all->n_hosts, "pairs",
        counts, "fallbacks", "on_one_host",
        (json_int_t)all->n_fallbacks[AKIN_PAIR_INSIDE], "between_hosts",
        (json_int_t)all->n_fallbacks[AKIN_PAIR_BETWEEN], "probe", probe);
}
