/* Load watch: its figures as JSON. */
#include "routing/load_watch.h"

#include <jansson.h>
#include <math.h>

/* Figures of charts: more digits would only be bytes. */
static json_t *rounded(double value, double steps)
{
    return json_real(round(value * steps) / steps);
}

static json_t *loads_of(const akin_load_watch_t *watch, uint32_t worker)
{
    const uint32_t n_bins = akin_load_watch_sizes(watch).n_bins;
    json_t *list = json_array();
    for (uint32_t b = 0; b < n_bins; b++)
        if (json_array_append_new(
                list, rounded(akin_load_watch_load(watch, worker, b), 100.0)) !=
            0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *choices_of(const akin_load_watch_t *watch, uint32_t worker,
                          uint32_t layer)
{
    const uint32_t n_experts = akin_load_watch_sizes(watch).n_experts;
    json_t *list = json_array();
    for (uint32_t e = 0; e < n_experts; e++)
        if (json_array_append_new(
                list, json_integer((json_int_t)akin_load_watch_choices(
                          watch, worker, layer, e))) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *load_json(const akin_load_watch_t *watch)
{
    const akin_load_watch_sizes_t sizes = akin_load_watch_sizes(watch);
    json_t *workers = json_array();
    for (uint32_t w = 0; w < sizes.n_watched; w++)
        if (json_array_append_new(workers, loads_of(watch, w)) != 0) {
            json_decref(workers);
            return NULL;
        }
    return json_pack("{s:f, s:f, s:I, s:o}", "bin_s", sizes.bin_s, "end_s",
                     sizes.end_s, "n_workers", (json_int_t)sizes.n_workers,
                     "workers", workers);
}

static json_t *experts_json(const akin_load_watch_t *watch)
{
    const akin_load_watch_sizes_t sizes = akin_load_watch_sizes(watch);
    double most = -1.0;
    uint32_t layer = 0;
    json_t *differences = json_array();
    json_t *choices = json_array();
    int failed = differences == NULL || choices == NULL;
    for (uint32_t l = 0; l < sizes.n_layers && !failed; l++) {
        const double difference = akin_load_watch_difference(watch, l);
        failed =
            json_array_append_new(differences, rounded(difference, 1e4)) != 0;
        if (difference > most) {
            most = difference;
            layer = l;
        }
    }
    for (uint32_t w = 0; w < sizes.n_watched && !failed; w++)
        failed =
            json_array_append_new(choices, choices_of(watch, w, layer)) != 0;
    if (!failed)
        return json_pack("{s:o, s:I, s:o}", "difference_bits", differences,
                         "layer", (json_int_t)layer, "choices", choices);
    json_decref(differences);
    json_decref(choices);
    return NULL;
}

static json_t *batches_json(const akin_load_watch_t *watch)
{
    const uint32_t n_layers = akin_load_watch_sizes(watch).n_layers;
    json_t *list = json_array();
    for (uint32_t i = 1; i <= AKIN_LOAD_WATCH_BATCHES + 1 && n_layers > 0;
         i++) {
        const akin_load_watch_batch_t of = akin_load_watch_batch(watch, i);
        if (of.n_steps == 0)
            continue;
        const double steps = (double)of.n_steps;
        if (json_array_append_new(
                list,
                json_pack("{s:o, s:I, s:o}", "batch",
                          rounded((double)of.n_requests / steps, 100.0),
                          "steps", (json_int_t)of.n_steps, "distinct_experts",
                          rounded((double)of.distinct / steps / n_layers,
                                  1000.0))) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

json_t *akin_load_watch_json(const akin_load_watch_t *watch)
{
    json_t *batches = batches_json(watch);
    json_t *json = json_pack("{s:o, s:o}", "load", load_json(watch), "experts",
                             akin_load_watch_sizes(watch).n_layers > 0
                                 ? experts_json(watch)
                                 : json_null());
    int failed = batches == NULL || json == NULL;
    if (!failed && json_array_size(batches) > 0)
        failed =
            json_object_set(json, "distinct_experts_by_batch", batches) != 0;
    json_decref(batches);
    if (!failed)
        return json;
    json_decref(json);
    return NULL;
}
