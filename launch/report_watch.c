/* Report watch: reading what a file says of its workers over time. */
#include "launch/report_watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of bins, experts and layers: beyond, a page shows nothing. */
#define MOST 4096u
/* Each is compared with each; files have 64. */
#define MOST_WORKERS 256u
#define LARGEST 1e15

typedef struct reader {
    char *why;
    size_t size;
    akin_status_t status;
} reader_t;

static void refuse(reader_t *r, const char *key, const char *what)
{
    if (r->status != AKIN_OK)
        return;
    (void)snprintf(r->why, r->size, "%s is not %s", key, what);
    r->status = AKIN_ERR_FORMAT;
}

static int is_amount(const json_t *value)
{
    const double number = json_number_value(value);
    return json_is_number(value) && number >= 0.0 && number <= LARGEST;
}

static double amount_of(reader_t *r, const json_t *object, const char *key,
                        const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (is_amount(value))
        return json_number_value(value);
    refuse(r, key, "a number from 0 to 1e15");
    return 0.0;
}

static size_t length_of(reader_t *r, const json_t *list, const char *key,
                        size_t most)
{
    const size_t n = json_array_size(list);
    char what[48];
    (void)snprintf(what, sizeof(what), "a list of at most %zu", most);
    if (!json_is_array(list) || n > most)
        refuse(r, key, what);
    return r->status == AKIN_OK ? n : 0;
}

static double *room_for(reader_t *r, size_t n)
{
    double *values = calloc(n + 1, sizeof(*values));
    if (values == NULL && r->status == AKIN_OK)
        r->status = AKIN_ERR_NOMEM;
    return values;
}

static void read_row(reader_t *r, const json_t *list, const char *key,
                     double *values, size_t n)
{
    if (json_array_size(list) != n)
        refuse(r, key, "lists of one length");
    for (size_t i = 0; i < n && r->status == AKIN_OK; i++) {
        const json_t *value = json_array_get(list, i);
        if (!is_amount(value))
            refuse(r, key, "made of numbers from 0 to 1e15");
        values[i] = json_number_value(value);
    }
}

/* Lists of one length, n_p of them. */
static double *read_rows(reader_t *r, const json_t *rows, const char *key,
                         size_t *n_p, size_t *n_columns_p)
{
    *n_p = length_of(r, rows, key, MOST_WORKERS);
    *n_columns_p =
        *n_p > 0 ? length_of(r, json_array_get(rows, 0), key, MOST) : 0;
    double *values = room_for(r, *n_p * *n_columns_p);
    for (size_t i = 0; i < *n_p && r->status == AKIN_OK; i++)
        read_row(r, json_array_get(rows, i), key, values + i * *n_columns_p,
                 *n_columns_p);
    return values;
}

static void read_load(reader_t *r, const json_t *load,
                      akin_report_watch_t *watch)
{
    watch->bin_s = amount_of(r, load, "load.bin_s", "bin_s");
    watch->end_s = amount_of(r, load, "load.end_s", "end_s");
    watch->n_all = (size_t)amount_of(r, load, "load.n_workers", "n_workers");
    watch->loads = read_rows(r, json_object_get(load, "workers"),
                             "load.workers", &watch->n_workers, &watch->n_bins);
    if (watch->n_bins > 0 &&
        !(watch->end_s > watch->bin_s * (double)(watch->n_bins - 1) &&
          watch->end_s <= watch->bin_s * (double)watch->n_bins * (1.0 + 1e-6)))
        refuse(r, "load.end_s", "in the last bin of load.workers");
}

static void read_experts(reader_t *r, const json_t *experts,
                         akin_report_watch_t *watch)
{
    const json_t *difference = json_object_get(experts, "difference_bits");
    size_t n;
    watch->layer = (size_t)amount_of(r, experts, "experts.layer", "layer");
    watch->n_layers = length_of(r, difference, "experts.difference_bits", MOST);
    watch->difference = room_for(r, watch->n_layers);
    if (r->status == AKIN_OK)
        read_row(r, difference, "experts.difference_bits", watch->difference,
                 watch->n_layers);
    watch->choices = read_rows(r, json_object_get(experts, "choices"),
                               "experts.choices", &n, &watch->n_experts);
    if (n != watch->n_workers)
        refuse(r, "experts.choices", "as long as load.workers");
}

akin_status_t akin_report_watch_read(const json_t *json,
                                     akin_report_watch_t *watch, char *why,
                                     size_t size)
{
    reader_t r = {.why = why, .size = size, .status = AKIN_OK};
    const json_t *load = json_object_get(json, "load");
    const json_t *experts = json_object_get(json, "experts");
    *watch = (akin_report_watch_t){0};
    if (load == NULL || json_is_null(load))
        return AKIN_OK;
    read_load(&r, load, watch);
    if (r.status == AKIN_OK && experts != NULL && !json_is_null(experts))
        read_experts(&r, experts, watch);
    if (r.status != AKIN_OK)
        akin_report_watch_cleanup(watch);
    return r.status;
}

void akin_report_watch_cleanup(akin_report_watch_t *watch)
{
    free(watch->loads);
    free(watch->choices);
    free(watch->difference);
    *watch = (akin_report_watch_t){0};
}

double akin_report_watch_spread(const akin_report_watch_t *watch)
{
    double sum = 0.0;
    size_t n = 0;
    for (size_t b = 0; b < watch->n_bins; b++) {
        double most = 0.0, all = 0.0;
        for (size_t w = 0; w < watch->n_workers; w++) {
            const double load = watch->loads[w * watch->n_bins + b];
            most = fmax(most, load);
            all += load;
        }
        if (!(all > 0.0))
            continue;
        sum += most / all * (double)watch->n_workers;
        n++;
    }
    return n > 0 ? sum / (double)n : (double)NAN;
}

void akin_report_watch_shares(const akin_report_watch_t *watch, double *shares)
{
    const size_t n = watch->n_experts;
    for (size_t w = 0; w < watch->n_workers; w++) {
        const double *choices = watch->choices + w * n;
        double total = 0.0;
        for (size_t e = 0; e < n; e++)
            total += choices[e];
        for (size_t e = 0; e < n; e++)
            shares[w * n + e] =
                total > 0.0 ? choices[e] / total * (double)n : 0.0;
    }
}

static double cosine(const double *a, const double *b, size_t n)
{
    double ab = 0.0, aa = 0.0, bb = 0.0;
    for (size_t i = 0; i < n; i++) {
        ab += a[i] * b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
    }
    return aa > 0.0 && bb > 0.0 ? ab / sqrt(aa * bb) : 0.0;
}

void akin_report_watch_rows(const double *shares, size_t n_workers,
                            size_t n_experts, size_t *rows)
{
    for (size_t w = 0; w < n_workers; w++)
        rows[w] = w;
    for (size_t i = 1; i < n_workers; i++) {
        const double *last = shares + rows[i - 1] * n_experts;
        double most = -1.0;
        size_t best = i;
        for (size_t k = i; k < n_workers; k++) {
            const double alike =
                cosine(last, shares + rows[k] * n_experts, n_experts);
            if (alike > most) {
                most = alike;
                best = k;
            }
        }
        /* The others keep their order. */
        const size_t row = rows[best];
        memmove(rows + i + 1, rows + i, (best - i) * sizeof(*rows));
        rows[i] = row;
    }
}

typedef struct placed {
    size_t expert;
    size_t row; /* of the worker that uses it most */
    double share;
} placed_t;

static int compare(const void *a, const void *b)
{
    const placed_t *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (x->share < y->share || x->share > y->share)
        return x->share > y->share ? -1 : 1;
    return x->expert < y->expert ? -1 : x->expert > y->expert;
}

akin_status_t akin_report_watch_order(const double *shares, const size_t *rows,
                                      size_t n_workers, size_t n_experts,
                                      size_t *order)
{
    placed_t *all = calloc(n_experts + 1, sizeof(*all));
    if (all == NULL)
        return AKIN_ERR_NOMEM;
    for (size_t e = 0; e < n_experts; e++) {
        all[e] = (placed_t){.expert = e};
        for (size_t row = 0; row < n_workers; row++)
            if (shares[rows[row] * n_experts + e] > all[e].share) {
                all[e].row = row;
                all[e].share = shares[rows[row] * n_experts + e];
            }
    }
    qsort(all, n_experts, sizeof(*all), compare);
    for (size_t e = 0; e < n_experts; e++)
        order[e] = all[e].expert;
    free(all);
    return AKIN_OK;
}
