/* fit: how its outcome is told. */
#include "launch/fit_print.h"

#include "ep/placement_load.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

static const char *const variant_names[] = {
    [AKIN_FIT_COUNT] = "count",
    [AKIN_FIT_COUNT_IDF] = "count_idf",
};

/* Below it, signatures say little about how requests decode. */
#define LOW_RHO 0.6

enum { SHOWN_BYTES = 32 };

static void print_setting(const char *policy, const char *name,
                          const double *values,
                          const akin_fit_auto_gain_t *gains, uint32_t n,
                          uint32_t best)
{
    for (uint32_t i = 0; i < n; i++)
        (void)printf(
            "  %s %-12s %s %4.2f  mean %+5.1f ±%.1f %%  P99 %+5.1f "
            "±%.1f %%\n",
            i == best ? "*" : " ", policy, name, values[i],
            100.0 * gains[i].mean.mean, 100.0 * gains[i].mean.half_width,
            100.0 * gains[i].p99.mean, 100.0 * gains[i].p99.half_width);
}

/* A number, or - where there is none. */
static const char *shown(char text[SHOWN_BYTES], int digits, double value)
{
    if (isfinite(value))
        (void)snprintf(text, SHOWN_BYTES, "%.*g", digits, value);
    return isfinite(value) ? text : "-";
}

static void print_variant(const akin_fit_auto_report_t *report, int variant,
                          uint32_t n_layers)
{
    const akin_fit_auto_outcome_t *o = &report->variants[variant];
    char rho[SHOWN_BYTES];
    if (!o->was_tried) {
        if (o->refusal.text[0] != '\0')
            (void)printf("  %-10s not possible: %s\n", variant_names[variant],
                         o->refusal.text);
        return;
    }
    (void)printf("%s %-10s rho %s, %u of %u layers\n",
                 variant == (int)report->chosen ? "*" : " ",
                 variant_names[variant], shown(rho, 3, o->rho), o->n_masked,
                 n_layers);
    if (!report->was_replayed)
        return;
    print_setting("eldr-static", "tau", akin_fit_auto_taus, o->band,
                  AKIN_FIT_AUTO_TAUS, o->best_tau);
    print_setting("union-pull", "pull", akin_fit_auto_pulls, o->pull,
                  AKIN_FIT_AUTO_PULLS, o->best_pull);
}

static void print_clusters(const akin_fit_outcome_t *o)
{
    const akin_fit_report_t *r = &o->report->fit;
    (void)printf("clusters      ");
    for (uint32_t k = 0; k < o->fit->n_clusters; k++)
        (void)printf("%s%u", k == 0 ? "" : " ", r->sizes[k]);
    (void)printf(" requests; %u rounds, %s", r->n_rounds,
                 r->has_converged ? "at rest" : "not yet at rest");
    if (isfinite(r->purity))
        (void)printf("; purity %.2f over %u domains", r->purity,
                     o->fit->n_domains);
    (void)printf("\n");
}

void akin_fit_print(const akin_fit_outcome_t *o)
{
    const akin_fit_auto_report_t *r = o->report;
    (void)printf("%s: %u requests, %u layers x %u experts, top-%u",
                 o->trace_path, o->set->n_requests, o->set->shape.n_layers,
                 o->set->shape.n_experts, o->set->shape.top_k);
    if (o->set->n_short > 0)
        (void)printf("; %u left out as too short", o->set->n_short);
    (void)printf("\nprefill-decode correlation of the experts' rates %.3f\n",
                 o->correlation->mean);
    if (o->stands_in)
        (void)printf("The first rows of decode play the prompt, which flatters "
                     "this and rho.\n");
    if (r->was_replayed)
        (void)printf("\nheld-out gain: change of the time per token "
                     "against jsq, %u splits into halves, %u workers x %u in "
                     "flight; *: least sum of mean and P99\n",
                     r->n_seeds, o->fit->n_clusters, r->in_flight);
    else
        (void)printf("\n%s: the variant of greater rho is taken, tau and pull "
                     "stay open.\n",
                     o->fit->n_clusters == 1
                         ? "One worker takes whatever comes"
                         : "Too few requests to hold some out for replays");
    for (int v = 0; v < AKIN_FIT_AUTO_VARIANTS; v++)
        print_variant(r, v, o->set->shape.n_layers);
    print_clusters(o);
    (void)printf("%s: %s", o->fit_path, variant_names[o->fit->variant]);
    if (r->was_replayed)
        (void)printf(", tau %.2f, pull %.2f", o->fit->tau, o->fit->pull);
    (void)printf("; %.1f s, of which %.1f s the layer mask of the last fit\n",
                 r->seconds, r->fit.mask_seconds);
    if (o->fit->rho < LOW_RHO)
        (void)fprintf(
            stderr,
            "akin: warning: rho is %.2f, under %.1f: these signatures "
            "say little about how requests decode; policy union, "
            "which needs no fit, may serve better\n",
            o->fit->rho, LOW_RHO);
}

/* A number, or null where there is none. */
static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *settings_json(const char *name, const double *values,
                             const akin_fit_auto_gain_t *gains, uint32_t n)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < n; i++)
        (void)json_array_append_new(
            array, json_pack("{s:f, s:o, s:o, s:o, s:o}", name, values[i],
                             "mean_change", real(gains[i].mean.mean),
                             "mean_half_width", real(gains[i].mean.half_width),
                             "p99_change", real(gains[i].p99.mean),
                             "p99_half_width", real(gains[i].p99.half_width)));
    return array;
}

static json_t *variant_json(const akin_fit_auto_report_t *report, int variant)
{
    const akin_fit_auto_outcome_t *o = &report->variants[variant];
    json_t *json = json_pack(
        "{s:s, s:o, s:I}", "variant", variant_names[variant], "rho",
        real(o->was_tried ? o->rho : NAN), "layers", (json_int_t)o->n_masked);
    if (!o->was_tried) {
        (void)json_object_set_new(json, "refusal",
                                  json_string(o->refusal.text));
        return json;
    }
    if (report->was_replayed) {
        (void)json_object_set_new(json, "eldr_static",
                                  settings_json("tau", akin_fit_auto_taus,
                                                o->band, AKIN_FIT_AUTO_TAUS));
        (void)json_object_set_new(json, "union_pull",
                                  settings_json("pull", akin_fit_auto_pulls,
                                                o->pull, AKIN_FIT_AUTO_PULLS));
    }
    return json;
}

json_t *akin_fit_json(const akin_fit_outcome_t *o)
{
    const akin_fit_auto_report_t *r = o->report;
    json_t *variants = json_array();
    for (int v = 0; v < AKIN_FIT_AUTO_VARIANTS; v++)
        if (r->variants[v].was_tried || r->variants[v].refusal.text[0] != '\0')
            (void)json_array_append_new(variants, variant_json(r, v));
    json_t *sizes = json_array();
    for (uint32_t k = 0; k < o->fit->n_clusters; k++)
        (void)json_array_append_new(sizes,
                                    json_integer((json_int_t)r->fit.sizes[k]));
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:o, s:b, s:b, s:I, s:s, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:f}",
        "trace", o->trace_path, "fit", o->fit_path, "requests",
        (json_int_t)o->set->n_requests, "left_out", (json_int_t)o->set->n_short,
        "prefill_decode_correlation", real(o->correlation->mean),
        "prompt_stands_in", o->stands_in, "was_replayed", r->was_replayed,
        "in_flight", (json_int_t)r->in_flight, "variant",
        variant_names[o->fit->variant], "rho", real(o->fit->rho), "tau",
        real(o->fit->tau), "pull", real(o->fit->pull), "purity",
        real(r->fit.purity), "cluster_sizes", sizes, "variants", variants,
        "seconds", r->seconds);
}

/* Expected experts per layer of the busiest rank of worker k, under a
 * placement of that kind; NaN: there is none. */
static double other_load(const akin_fit_t *fit, uint32_t k,
                         akin_placement_kind_t kind, double batch)
{
    const size_t cells = (size_t)fit->n_layers * fit->n_experts;
    const akin_placement_params_t params = {
        .kind = kind,
        .n_layers = fit->n_layers,
        .n_experts = fit->n_experts,
        .n_ranks = fit->placements[k].n_ranks,
        .n_replicas = fit->placements[k].n_replicas,
        .rates = fit->pbar + k * cells,
        .batch = batch,
    };
    akin_placement_t placement;
    akin_error_t err;
    if (akin_placement_make(&params, &placement, &err) != AKIN_OK)
        return NAN;
    double load =
        akin_placement_predict(&placement, fit->pbar + k * cells, batch);
    akin_placement_cleanup(&placement);
    return load / fit->n_layers;
}

static double own_load(const akin_fit_t *fit, uint32_t k, double batch)
{
    const size_t cells = (size_t)fit->n_layers * fit->n_experts;
    return akin_placement_predict(&fit->placements[k], fit->pbar + k * cells,
                                  batch) /
           fit->n_layers;
}

static void print_placements(const akin_fit_t *fit, double batch)
{
    if (fit->placements == NULL)
        return;
    (void)printf("placement     %u ranks per worker, %u replica slots per "
                 "layer\n",
                 fit->placements[0].n_ranks, fit->placements[0].n_replicas);
    if (fit->pbar == NULL)
        return;
    (void)printf("expected experts per layer of the busiest rank, %g requests "
                 "per step\n  worker   fit  linear  eplb\n",
                 batch);
    for (uint32_t k = 0; k < fit->n_clusters; k++)
        (void)printf("  %6u %5.2f   %5.2f %5.2f\n", k, own_load(fit, k, batch),
                     other_load(fit, k, AKIN_PLACEMENT_LINEAR, batch),
                     other_load(fit, k, AKIN_PLACEMENT_EPLB, batch));
}

static json_t *placements_json(const akin_fit_t *fit, double batch)
{
    if (fit->placements == NULL)
        return json_null();
    json_t *workers = json_array();
    for (uint32_t k = 0; k < fit->n_clusters && fit->pbar != NULL; k++)
        (void)json_array_append_new(
            workers,
            json_pack("{s:f, s:o, s:o}", "busiest_rank_experts",
                      own_load(fit, k, batch), "linear",
                      real(other_load(fit, k, AKIN_PLACEMENT_LINEAR, batch)),
                      "eplb",
                      real(other_load(fit, k, AKIN_PLACEMENT_EPLB, batch))));
    return json_pack("{s:I, s:I, s:f, s:o}", "ranks",
                     (json_int_t)fit->placements[0].n_ranks, "replicas",
                     (json_int_t)fit->placements[0].n_replicas, "batch", batch,
                     "workers", workers);
}

void akin_fit_show_print(const char *path, const akin_fit_t *fit, double batch)
{
    char text[SHOWN_BYTES];
    (void)printf("%s: %s, %u workers, %u of %u layers x %u experts", path,
                 variant_names[fit->variant], fit->n_clusters, fit->n_masked,
                 fit->n_layers, fit->n_experts);
    if (fit->top_k != 0)
        (void)printf(", top-%u", fit->top_k);
    (void)printf("\nmodel         %s\n", fit->model != NULL ? fit->model : "-");
    (void)printf("requests      %u\nseed          %llu\n", fit->n_requests,
                 (unsigned long long)fit->seed);
    (void)printf("rho           %s\n", shown(text, 3, fit->rho));
    (void)printf("tau           %s\n", shown(text, 3, fit->tau));
    (void)printf("pull          %s\n", shown(text, 3, fit->pull));
    (void)printf("decode rates  %s\n",
                 fit->pbar != NULL ? "of every cluster" : "none");
    (void)printf("layers       ");
    for (uint32_t i = 0; i < fit->n_masked; i++)
        (void)printf(" %u", fit->layers[i]);
    (void)printf("\n");
    print_placements(fit, batch);
    for (uint32_t i = 0; i < fit->n_domains; i++)
        (void)printf("domain        %s: %u requests\n", fit->domains[i].name,
                     fit->domains[i].n_requests);
}

json_t *akin_fit_show_json(const akin_fit_t *fit, double batch)
{
    json_t *layers = json_array();
    for (uint32_t i = 0; i < fit->n_masked; i++)
        (void)json_array_append_new(layers,
                                    json_integer((json_int_t)fit->layers[i]));
    json_t *domains = json_object();
    for (uint32_t i = 0; i < fit->n_domains; i++)
        (void)json_object_set_new(
            domains, fit->domains[i].name,
            json_integer((json_int_t)fit->domains[i].n_requests));
    return json_pack(
        "{s:s?, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:b, s:o, "
        "s:o, s:o}",
        "model", fit->model, "variant", variant_names[fit->variant], "workers",
        (json_int_t)fit->n_clusters, "layers", (json_int_t)fit->n_layers,
        "experts", (json_int_t)fit->n_experts, "top_k", (json_int_t)fit->top_k,
        "requests", (json_int_t)fit->n_requests, "seed", (json_int_t)fit->seed,
        "rho", real(fit->rho), "tau", real(fit->tau), "pull", real(fit->pull),
        "has_decode_rates", fit->pbar != NULL, "layer_mask", layers, "domains",
        domains, "placement", placements_json(fit, batch));
}
