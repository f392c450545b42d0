/* Sim faults: workers that die and come back. */
#include "base/rng.h"
#include "routing/sim_state.h"

#include <math.h>
#include <stdlib.h>

enum { STREAM_FAULT = 107 };

/* Dies at a time that is given, whichever life it has. */
#define ANY_EPOCH UINT32_MAX

/* Times that a request begins again without a token, and deaths of every worker
 * in the mean while no request at all gains one, before the run is said never
 * to end. */
#define MAX_FRUITLESS 10000u

static bool is_decode(const akini_sim_t *s, uint32_t of)
{
    return of >= s->params->n_prefill;
}

static uint32_t *epoch_of(akini_sim_t *s, uint32_t of)
{
    return is_decode(s, of)
               ? &s->decode.workers[of - s->params->n_prefill].epoch
               : &s->prefill.workers[of].epoch;
}

static bool *is_dead(akini_sim_t *s, uint32_t of)
{
    return is_decode(s, of)
               ? &s->decode.workers[of - s->params->n_prefill].is_dead
               : &s->prefill.workers[of].is_dead;
}

/* Stops a worker, and empties it. */
static void empty(akini_sim_t *s, uint32_t of)
{
    if (is_decode(s, of))
        akini_sim_decode_die(&s->decode, of - s->params->n_prefill);
    else
        akini_sim_prefill_die(&s->prefill, of);
}

static void allow(akini_sim_t *s, uint32_t of, bool is_allowed)
{
    if (is_decode(s, of))
        akini_sim_decode_allow(&s->decode, of - s->params->n_prefill,
                               is_allowed);
    else
        akini_sim_prefill_allow(&s->prefill, of, is_allowed);
}

akin_status_t akini_sim_faults_check(const akin_sim_params_t *params,
                                     akin_error_t *err)
{
    const akin_sim_faults_t *f = &params->faults;
    if (!(f->mtbf_s >= 0.0 && isfinite(f->mtbf_s) && f->down_s >= 0.0 &&
          isfinite(f->down_s) && f->detect_s >= 0.0 && isfinite(f->detect_s)))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "simulation: a time of the faults is negative or "
                              "not finite");
    for (uint32_t i = 0; i < f->n_at; i++) {
        const uint32_t n =
            f->at[i].is_decode ? params->n_decode : params->n_prefill;
        if (f->at[i].worker >= n ||
            !(f->at[i].at_s >= 0.0 && isfinite(f->at[i].at_s)))
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "simulation: %s worker %u cannot die at "
                                  "%g s: there are %u, numbered from 0",
                                  f->at[i].is_decode ? "decode" : "prefill",
                                  f->at[i].worker, f->at[i].at_s, n);
    }
    return AKIN_OK;
}

/* Draw how long a worker lives. */
static akin_status_t put_chance(akini_sim_t *s, uint32_t of)
{
    const double mtbf_s = s->params->faults.mtbf_s;
    if (!(mtbf_s > 0.0))
        return AKIN_OK;
    const double u = akin_rng_uniform(s->params->seed, STREAM_FAULT,
                                      (uint64_t)of << 32 | s->n_chances[of]++);
    return akini_sim_heap_put(&s->heap, s->now_s - log1p(-u) * mtbf_s,
                              AKINI_SIM_DEATH, of, *epoch_of(s, of));
}

akin_status_t akini_sim_faults_begin(akini_sim_t *s)
{
    const akin_sim_params_t *params = s->params;
    const akin_sim_faults_t *f = &params->faults;
    akin_status_t status = AKIN_OK;
    for (uint32_t i = 0; i < f->n_at && status == AKIN_OK; i++)
        status = akini_sim_heap_put(
            &s->heap, f->at[i].at_s, AKINI_SIM_DEATH,
            (f->at[i].is_decode ? params->n_prefill : 0) + f->at[i].worker,
            ANY_EPOCH);
    for (uint32_t w = 0;
         w < params->n_prefill + params->n_decode && status == AKIN_OK; w++)
        status = put_chance(s, w);
    return status;
}

akin_status_t akini_sim_die(akini_sim_t *s, uint32_t of, uint32_t epoch)
{
    const akin_sim_faults_t *f = &s->params->faults;
    if (*is_dead(s, of) || (epoch != ANY_EPOCH && epoch != *epoch_of(s, of)))
        return AKIN_OK;
    s->n_deaths++;
    empty(s, of);
    if (is_decode(s, of) && s->params->watch != NULL)
        akin_load_watch_set(s->params->watch, of - s->params->n_prefill,
                            s->now_s, 0);
    akin_status_t status = akini_sim_heap_put(&s->heap, s->now_s + f->detect_s,
                                              AKINI_SIM_LOSS, of, 0);
    if (status == AKIN_OK && f->down_s > 0.0)
        status = akini_sim_heap_put(&s->heap,
                                    s->now_s + fmax(f->down_s, f->detect_s),
                                    AKINI_SIM_RETURN, of, 0);
    return status;
}

/* Was a request at that worker? */
static bool is_hit(const akini_sim_t *s, const akini_sim_request_t *request,
                   uint32_t of)
{
    if (!request->is_inside || request->state == AKINI_SIM_QUEUED)
        return false;
    return is_decode(s, of)
               ? request->state >= AKINI_SIM_TRANSFER &&
                     request->decode == of - s->params->n_prefill
               : request->state <= AKINI_SIM_TRANSFER && request->prefill == of;
}

typedef struct victim {
    uint64_t index;
    uint32_t slot;
} victim_t;

static int latest_first(const void *a_p, const void *b_p)
{
    const victim_t *a = a_p, *b = b_p;
    return (a->index < b->index) - (a->index > b->index);
}

static akin_status_t restart_all(akini_sim_t *s, uint32_t of, akin_error_t *err)
{
    bool is_hopeless = false;
    uint32_t n = 0;
    victim_t *victims = calloc(s->requests.n_slots + 1, sizeof(*victims));
    if (victims == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t i = 0; i < s->requests.n_slots; i++)
        if (is_hit(s, &s->requests.slots[i], of))
            victims[n++] = (victim_t){s->requests.slots[i].index, i};
    qsort(victims, n, sizeof(*victims), latest_first);
    /* Those in a queue leave it before they get into another. */
    for (uint32_t i = 0; i < n; i++) {
        akini_sim_request_t *request = &s->requests.slots[victims[i].slot];
        request->is_lost = request->state == AKINI_SIM_ROUTED;
    }
    akini_sim_queue_drop_lost(&s->backlog, &s->requests);
    for (uint32_t i = 0; i < n; i++) {
        akini_sim_restart(s, victims[i].slot);
        is_hopeless |=
            s->requests.slots[victims[i].slot].n_fruitless > MAX_FRUITLESS;
    }
    free(victims);
    return is_hopeless
               ? akin_error_set(err, AKIN_ERR_INVALID,
                                "after %.1f s a request has begun again %u "
                                "times without a token: let workers live "
                                "longer (faults.mtbf)",
                                s->now_s, MAX_FRUITLESS)
               : AKIN_OK;
}

/* Workers that die sooner than requests come keep the run busy for good. */
static akin_status_t check_deaths(const akini_sim_t *s, akin_error_t *err)
{
    const uint64_t n_deaths = s->n_deaths - s->n_deaths_before;
    const uint64_t n_workers =
        (uint64_t)s->params->n_prefill + s->params->n_decode;
    if (n_deaths <= MAX_FRUITLESS * n_workers)
        return AKIN_OK;
    return akin_error_set(err, AKIN_ERR_INVALID,
                          "after %.1f s workers have died %llu times since any "
                          "request gained a token: let them live longer "
                          "(faults.mtbf)",
                          s->now_s, (unsigned long long)n_deaths);
}

akin_status_t akini_sim_lose(akini_sim_t *s, uint32_t of, akin_error_t *err)
{
    const akin_sim_params_t *params = s->params;
    const uint32_t n = is_decode(s, of) ? params->n_decode : params->n_prefill;
    if (!(params->faults.down_s > 0.0) && ++s->n_gone[is_decode(s, of)] == n)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "all %s workers are dead after %.1f s: let them "
                              "die later, or come back (faults.mtbf, "
                              "faults.down)",
                              is_decode(s, of) ? "decode" : "prefill",
                              s->now_s);
    allow(s, of, false);
    akin_status_t status = check_deaths(s, err);
    if (status == AKIN_OK)
        status = restart_all(s, of, err);
    /* What was sent there meanwhile is among these. */
    empty(s, of);
    return status == AKIN_OK ? akini_sim_dispatch(s) : status;
}

akin_status_t akini_sim_return(akini_sim_t *s, uint32_t of)
{
    *is_dead(s, of) = false;
    allow(s, of, true);
    const akin_status_t status = put_chance(s, of);
    return status == AKIN_OK ? akini_sim_dispatch(s) : status;
}
