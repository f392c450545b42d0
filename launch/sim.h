/* Sim: what the files of the command share. */
#ifndef AKIN_LAUNCH_SIM_H
#define AKIN_LAUNCH_SIM_H

#include "base/config.h"
#include "routing/sim.h"

#include <stdbool.h>
#include <stddef.h>

/* Policies and seeds of a study at most. */
#define AKIN_SIM_MAX_CASES 16u
#define AKIN_SIM_MAX_SEEDS 1000u

/* Runs at the same time at most. */
#define AKIN_SIM_MAX_THREADS 256u

/** The keys of a simulation file. */
extern const akin_config_row_t akin_sim_rows[];
extern const size_t akin_sim_n_rows;

/** Several policies, each with several seeds. Strings are the config's. */
typedef struct akin_sim_job {
    const char *path;
    const akin_config_t *config;
    akin_model_shape_t shape;
    akin_machine_t machine;
    akin_route_workload_t workload;    /* of a trace its name alone */
    akin_route_generator_t *generator; /* NULL: the requests are a trace's */
    akin_route_pool_t *pool;
    char *names; /* of the policies */
    const char *policies[AKIN_SIM_MAX_CASES];
    uint32_t n_cases;
    uint32_t n_seeds;
    uint32_t n_replicas;
    double shares[AKIN_ROUTE_MAX_DOMAINS]; /* those of workload.kind where
                                              none are set */
    double later_shares[AKIN_ROUTE_MAX_DOMAINS];
    const char *placement;    /* of workers of several ranks */
    akin_sim_params_t params; /* policy, seed and watch are each run's */
    akin_sim_fault_t *faults; /* those of given times */
    akin_fit_t fit;
    akin_placement_t *placements;
    akin_sim_result_t *results;  /* [n_cases][n_seeds] */
    double *run_s;               /* [n_cases][n_seeds] of the processor */
    bool is_watched;             /* are the next ones made? */
    akin_load_watch_t **watches; /* [n_cases] of the first seed's runs */
    double routes_s;             /* that the pool took */
    double seconds;              /* of all runs */
} akin_sim_job_t;

/** Values of the config; policies are checked.
 * \return AKIN_OK, AKIN_ERR_INVALID, AKIN_ERR_NOMEM */
akin_status_t akin_sim_job_init(akin_sim_job_t *job,
                                const akin_config_t *config,
                                akin_error_t *err) AKIN_MUST_CHECK;

void akin_sim_job_cleanup(akin_sim_job_t *job);

/** Is there a policy or a placement that needs a fit? */
bool akin_sim_job_needs_fit(const akin_sim_job_t *job);

/** And is it to be made, not read? */
bool akin_sim_job_learns(const akin_sim_job_t *job);

/** Set params.faults of the config.
 * \return AKIN_OK, AKIN_ERR_INVALID, AKIN_ERR_NOMEM */
akin_status_t akin_sim_job_take_faults(akin_sim_job_t *job,
                                       akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Make the requests, and the fit and the placements if any are needed, of
 * other requests.
 *
 * \param[in] stop  is asked now and then; non-zero: stop.
 * \return AKIN_OK, AKIN_ERR_CANCELED, others as those of their makers.
 */
akin_status_t akin_sim_job_prepare(akin_sim_job_t *job, uint32_t n_threads,
                                   int (*stop)(void),
                                   akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Run all cases and seeds.
 *
 * \param[in] n_threads  runs at the same time; the results are the same.
 * \param[in] stop       as above.
 * \return AKIN_OK, AKIN_ERR_CANCELED, as akin_sim_run().
 */
akin_status_t akin_sim_job_run(akin_sim_job_t *job, uint32_t n_threads,
                               int (*stop)(void),
                               akin_error_t *err) AKIN_MUST_CHECK;

/** Time that this thread had of the processor, so that what others do meanwhile
 * does not count. */
int64_t akin_sim_processor_ns(void);

/** How requests come, for people: "60 requests/s".
 * \param[out] text  [size] */
void akin_sim_arrivals_text(const akin_sim_job_t *job, char *text, size_t size);

/** A figure of a result, by its name in JSON. */
typedef struct akin_sim_figure {
    const char *name;
    const char *title; /* of a column; NULL: in JSON alone */
    size_t offset;     /* of a double in the result */
    double scale;      /* 1000 for ms */
    int digits;
    bool has_change; /* a column with the change against the first policy */
    bool if_any;     /* a column unless all are 0 */
} akin_sim_figure_t;

extern const akin_sim_figure_t akin_sim_figures[];
extern const size_t akin_sim_n_figures;

/** Mean and interval of a figure over the seeds.
 * \param[out] values  [n_seeds] the figure of every seed. */
double akin_sim_figure_mean(const akin_sim_job_t *job, uint32_t which,
                            const akin_sim_figure_t *figure, double *values,
                            double *half_width_p);

/** Mean and interval of its change in percent against the first policy, seed
 * by seed. */
double akin_sim_figure_change(const akin_sim_job_t *job, uint32_t which,
                              const akin_sim_figure_t *figure, double *values,
                              double *half_width_p);

/** A third of the measured requests: p50 and p99 of the time per token in ms,
 * experts, means over the seeds. */
void akin_sim_phase_means(const akin_sim_job_t *job, uint32_t which,
                          uint32_t phase, double means[3]);

/** Can all texts of the job be written as JSON, which is UTF-8?
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: err names the one that cannot. */
akin_status_t akin_sim_check_json(const akin_sim_job_t *job,
                                  akin_error_t *err) AKIN_MUST_CHECK;

/** Both give an exit code. */
int akin_sim_print_table(const akin_sim_job_t *job);
int akin_sim_print_json(const akin_sim_job_t *job);

#endif
