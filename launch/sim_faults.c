/* Sim faults: when the workers of a simulation die. */
#include "launch/sim.h"

#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static double seconds_of(const akin_sim_job_t *job, const char *key)
{
    return (double)akin_config_ns(job->config, key) / (double)AKIN_NS_PER_S;
}

static const char *skip(const char *at)
{
    while (isspace((unsigned char)*at) || *at == ',')
        at++;
    return at;
}

/* "decode:3:60" at the start of a text; gives what follows, or NULL. */
static const char *take_fault(const char *at, akin_sim_fault_t *fault)
{
    char *end;
    if (strncmp(at, "decode:", 7) == 0)
        fault->is_decode = true;
    else if (strncmp(at, "prefill:", 8) != 0)
        return NULL;
    at = strchr(at, ':') + 1;
    errno = 0;
    const unsigned long worker = strtoul(at, &end, 10);
    if (errno != 0 || end == at || *end != ':' || worker > UINT32_MAX ||
        !isdigit((unsigned char)*at))
        return NULL;
    fault->worker = (uint32_t)worker;
    at = end + 1;
    fault->at_s = strtod(at, &end);
    if (end == at || !(fault->at_s >= 0.0 && fault->at_s <= 1e15) ||
        (*end != ',' && *end != '\0' && !isspace((unsigned char)*end)))
        return NULL;
    return end;
}

static akin_status_t refuse(const akin_sim_job_t *job, const char *what,
                            akin_error_t *err)
{
    const akin_sim_params_t *p = &job->params;
    return akin_error_set(err, AKIN_ERR_INVALID,
                          "faults.at: \"%s\": wanted is a role, a number below "
                          "the workers of it (%u prefill, %u decode) and "
                          "seconds, as \"decode:0:60\"",
                          what, p->n_prefill, p->n_decode);
}

akin_status_t akin_sim_job_take_faults(akin_sim_job_t *job, akin_error_t *err)
{
    akin_sim_params_t *p = &job->params;
    const char *text = akin_config_string(job->config, "faults.at");
    p->faults.mtbf_s = seconds_of(job, "faults.mtbf");
    p->faults.down_s = seconds_of(job, "faults.down");
    p->faults.detect_s = seconds_of(job, "faults.detect");
    /* Each has five letters or more. */
    job->faults = calloc(strlen(text) / 5 + 1, sizeof(*job->faults));
    if (job->faults == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    for (const char *at = skip(text); *at != '\0'; at = skip(at)) {
        akin_sim_fault_t *fault = &job->faults[p->faults.n_at++];
        const char *next = take_fault(at, fault);
        if (next == NULL ||
            fault->worker >= (fault->is_decode ? p->n_decode : p->n_prefill))
            return refuse(job, at, err);
        at = next;
    }
    p->faults.at = job->faults;
    return AKIN_OK;
}
