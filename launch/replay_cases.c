/* Which policies replay compares, each with its settings. */
#include "launch/replay.h"

#include "base/nearest.h"
#include "routing/replay_placement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Policies that have a setting. */
static const struct {
    const char *policy;
    const char *setting;
} settings[] = {{"eldr-static", "tau"},
                {"eldr", "tau"},
                {"union-band", "tau"},
                {"union-pull", "pull"}};

#define N_SETTINGS (sizeof(settings) / sizeof(settings[0]))

const char *akin_replay_case_setting(const char *policy)
{
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (strcmp(settings[i].policy, policy) == 0)
            return settings[i].setting;
    return NULL;
}

static int has_pull(const char *policy)
{
    const char *setting = akin_replay_case_setting(policy);
    return setting != NULL && strcmp(setting, "pull") == 0;
}

void akin_replay_case_name(const akin_replay_case_t *which, char *text,
                           size_t bytes)
{
    if (akin_replay_case_setting(which->policy) == NULL)
        (void)snprintf(text, bytes, "%s", which->policy);
    else
        (void)snprintf(text, bytes, "%s:%g", which->policy,
                       has_pull(which->policy) ? which->pull : which->tau);
    size_t length = strlen(text);
    if (which->placement != NULL)
        (void)snprintf(text + length, bytes - length, " %s", which->placement);
}

static akin_status_t add_case(akin_replay_job_t *job, const char *policy,
                              double setting, akin_error_t *err)
{
    const akin_replay_case_t added = {
        .policy = policy,
        .tau = has_pull(policy) ? AKIN_POLICY_TAU : setting,
        .pull = has_pull(policy) ? setting : AKIN_POLICY_PULL,
    };
    for (uint32_t c = 0; c < job->n_cases; c++) {
        const akin_replay_case_t *other = &job->cases[c];
        char name[64];
        if (strcmp(other->policy, policy) != 0 || other->tau != added.tau ||
            other->pull != added.pull)
            continue;
        akin_replay_case_name(other, name, sizeof(name));
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s is to be replayed twice: name it once", name);
    }
    if (job->n_cases == AKIN_REPLAY_MAX_CASES)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "more than %d policies and settings: replay "
                              "fewer at a time",
                              AKIN_REPLAY_MAX_CASES);
    job->cases[job->n_cases++] = added;
    return AKIN_OK;
}

/* One case for each setting of the options, or of the fit. */
static akin_status_t add_policy(akin_replay_job_t *job, const char *policy,
                                akin_error_t *err)
{
    const akin_replay_options_t *o = &job->options;
    const int pulls = has_pull(policy);
    const double *given = pulls ? o->pulls : o->taus;
    const uint32_t n = pulls ? o->n_pulls : o->n_taus;
    const double of_fit = pulls ? job->fit.pull : job->fit.tau;
    double usual = pulls ? AKIN_POLICY_PULL : AKIN_POLICY_TAU;
    if (o->fit_path != NULL && isfinite(of_fit))
        usual = of_fit;
    if (n == 0 || akin_replay_case_setting(policy) == NULL)
        return add_case(job, policy, usual, err);
    akin_status_t status = AKIN_OK;
    for (uint32_t i = 0; i < n && status == AKIN_OK; i++)
        status = add_case(job, policy, given[i], err);
    return status;
}

/* Does the trace, and the fit if one is given, know domains? */
static int has_domains(const akin_replay_job_t *job)
{
    if (job->options.fit_path != NULL && job->fit.n_domains == 0)
        return 0;
    for (uint32_t i = 0; i < job->set->n_requests; i++)
        if (job->set->requests[i].domain[0] != '\0')
            return 1;
    return 0;
}

static akin_status_t add_all(akin_replay_job_t *job, akin_error_t *err)
{
    const int domains = has_domains(job);
    akin_status_t status = AKIN_OK;
    for (const char *const *name = akin_policy_names;
         *name != NULL && status == AKIN_OK; name++)
        if (domains || strcmp(*name, "domain") != 0)
            status = add_policy(job, *name, err);
    return status;
}

static akin_status_t find_policy(const char *name, const char **policy_p,
                                 akin_error_t *err)
{
    size_t n = 0;
    for (; akin_policy_names[n] != NULL; n++)
        if (strcmp(akin_policy_names[n], name) == 0) {
            *policy_p = akin_policy_names[n];
            return AKIN_OK;
        }
    const char *nearest = akin_nearest_name(name, akin_policy_names, n);
    if (nearest != NULL)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "--policy: unknown policy \"%.80s\", did you "
                              "mean \"%s\"?",
                              name, nearest);
    char all[256] = "all";
    for (size_t i = 0, length = 3; i < n && length < sizeof(all); i++)
        length += (size_t)snprintf(all + length, sizeof(all) - length, ", %s",
                                   akin_policy_names[i]);
    return akin_error_set(err, AKIN_ERR_INVALID,
                          "--policy: unknown policy \"%.80s\"; there are %s",
                          name, all);
}

/* `name` is "P" or "P:SETTING". */
static akin_status_t add_named(akin_replay_job_t *job, char *name,
                               akin_error_t *err)
{
    char *setting = strchr(name, ':');
    if (setting != NULL)
        *setting++ = '\0';
    if (strcmp(name, "all") == 0 && setting == NULL)
        return add_all(job, err);
    const char *policy;
    akin_status_t status = find_policy(name, &policy, err);
    if (status != AKIN_OK)
        return status;
    if (strcmp(policy, "domain") == 0 && !has_domains(job))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "--policy domain: the %s does not know the "
                              "requests' domains",
                              job->options.fit_path != NULL ? "trace or the fit"
                                                            : "trace");
    if (setting == NULL)
        return add_policy(job, policy, err);
    if (akin_replay_case_setting(policy) == NULL)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "--policy %s:%.40s: %s has no setting", policy,
                              setting, policy);
    char *end;
    double value = strtod(setting, &end);
    if (end == setting || *end != '\0' || !isfinite(value) || value < 0.0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "--policy %s:%.40s: the %s must be a number of "
                              "0 or more",
                              policy, setting,
                              akin_replay_case_setting(policy));
    return add_case(job, policy, value, err);
}

static akin_status_t find_placement(const char *name, const char **placement_p,
                                    akin_error_t *err)
{
    size_t n = 0;
    for (; akin_replay_placement_names[n] != NULL; n++)
        if (strcmp(akin_replay_placement_names[n], name) == 0) {
            *placement_p = akin_replay_placement_names[n];
            return AKIN_OK;
        }
    const char *nearest =
        akin_nearest_name(name, akin_replay_placement_names, n);
    if (nearest == NULL)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "--placement: unknown placement \"%.80s\"; there "
                              "are linear, round-robin, eplb, "
                              "activation-shared, activation",
                              name);
    return akin_error_set(err, AKIN_ERR_INVALID,
                          "--placement: unknown placement \"%.80s\", did you "
                          "mean \"%s\"?",
                          name, nearest);
}

/* Every policy with every placement, the policies of one placement together.
 */
static akin_status_t cross_placements(akin_replay_job_t *job, akin_error_t *err)
{
    const uint32_t n = job->n_cases;
    char *names = strdup(
        job->options.placements != NULL ? job->options.placements : "linear");
    char *rest = names;
    akin_status_t status = names != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
    job->n_cases = 0;
    akin_replay_case_t policies[AKIN_REPLAY_MAX_CASES];
    memcpy(policies, job->cases, n * sizeof(*policies));
    while (rest != NULL && status == AKIN_OK) {
        const char *placement = NULL;
        status = find_placement(strsep(&rest, ","), &placement, err);
        if (status == AKIN_OK && job->n_cases + n > AKIN_REPLAY_MAX_CASES)
            status = akin_error_set(err, AKIN_ERR_INVALID,
                                    "more than %d policies, settings and "
                                    "placements: replay fewer at a time",
                                    AKIN_REPLAY_MAX_CASES);
        for (uint32_t c = 0; c < n && status == AKIN_OK; c++) {
            job->cases[job->n_cases] = policies[c];
            job->cases[job->n_cases++].placement = placement;
        }
    }
    free(names);
    return status;
}

akin_status_t akin_replay_job_set_cases(akin_replay_job_t *job,
                                        akin_error_t *err)
{
    char *names = strdup(job->options.policies);
    char *rest = names;
    akin_status_t status = AKIN_OK;
    if (names == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    job->n_cases = 0;
    while (rest != NULL && status == AKIN_OK)
        status = add_named(job, strsep(&rest, ","), err);
    free(names);
    if (status == AKIN_OK && job->options.n_ranks > 1)
        status = cross_placements(job, err);
    return status;
}
