/* Cost: seconds of a decode step as a line in its distinct experts and its
 * batch, fitted while the job runs. */
#ifndef AKIN_ROUTING_COST_H
#define AKIN_ROUTING_COST_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** seconds = t0 + a * distinct + b * batch; none is ever negative. */
typedef struct akin_cost_line {
    double t0_s; /* of an empty step */
    double a_s;  /* per distinct expert */
    double b_s;  /* per request of the batch */
} akin_cost_line_t;

/**
 * Online fit (ALGORITHMS.md 5): least squares with a forgetting factor and
 * coefficients >= 0. A plain value that owns nothing; read `line` and `fitted`
 * alone.
 */
typedef struct akin_cost {
    akin_cost_line_t line; /* the defaults until `fitted` */
    bool fitted;
    double cells;      /* distinct experts of a step at most */
    double forgetting; /* weight of a report against the next one */
    uint32_t n_reports;
    uint32_t n_refused; /* in a row */
    /* Discounted sums of x x^T, x y and y y with x = (1, distinct / cells,
     * batch / 64). */
    double xx[3][3];
    double xy[3];
    double yy;
} akin_cost_t;

/**
 * Start with the defaults: 2 ms, 14 ms for all experts, 0.1 ms per request.
 * Only their ratios matter to a decision.
 *
 * \param[out] cost
 * \param[in]  cells       layers x experts, at least 1.
 * \param[in]  forgetting  in (0, 1]; 0 stands for 0.999, which remembers a
 *                         thousand reports.
 */
void akin_cost_init(akin_cost_t *cost, uint32_t cells, double forgetting);

/**
 * Feed one step. The line moves only while the reports kept tell its parts
 * apart: after 32 of them, when batch and distinct experts have varied by a
 * hundredth of their size and not in lockstep, and when the standard error of
 * each slope is worth less than a quarter of the mean step. Until then, and
 * whenever traffic turns uniform, the line stays as it is.
 *
 * \param[in] batch     requests in the step, >= 1.
 * \param[in] distinct  distinct experts over all layers, 0 to cells.
 * \param[in] seconds   duration, above 0.
 * \return false if the report was ignored: out of range, not finite, or over
 *         20 times the mean. 64 of these last in a row are the new truth: the
 *         fit forgets the old reports.
 */
bool akin_cost_observe(akin_cost_t *cost, uint32_t batch, double distinct,
                       double seconds);

/** Seconds that a step takes by the line. */
double akin_cost_seconds(const akin_cost_line_t *line, double distinct,
                         double batch);

#ifdef __cplusplus
}
#endif

#endif
