/* Cost: seconds of a decode step as a line in its distinct experts and its
 * batch, fitted while the job runs. */
#include "routing/cost.h"

#include <math.h>
#include <string.h>

enum {
    N_COEFFICIENTS = 3,
    MIN_REPORTS = 32,
    /* The mean is trusted to tell an outlier after this many reports. */
    MIN_MEAN_REPORTS = 16,
    MAX_REFUSED = 64
};

/* A batch of this size counts as 1, which keeps the sums well scaled. */
#define BATCH_SCALE 64.0
#define DEFAULT_FORGETTING 0.999
#define DEFAULT_T0_S 2e-3
#define DEFAULT_ALL_EXPERTS_S 14e-3
#define DEFAULT_BATCH_S 0.1e-3
#define OUTLIER_RATIO 20.0
/* No decode step lasts an hour: such a report comes from a broken clock. */
#define MAX_SECONDS 3600.0
/* Least standard deviation of an input, in its own mean. */
#define MIN_VARIATION 0.01
/* Least part of an input's variance that the other one does not explain. */
#define MIN_INDEPENDENCE 1e-3
/* Largest standard error of a slope's share, in mean steps. */
#define MAX_UNCERTAINTY 0.25

void akin_cost_init(akin_cost_t *cost, uint32_t cells, double forgetting)
{
    memset(cost, 0, sizeof(*cost));
    cost->cells = (double)cells;
    cost->forgetting = forgetting > 0.0 ? forgetting : DEFAULT_FORGETTING;
    cost->line.t0_s = DEFAULT_T0_S;
    cost->line.a_s = DEFAULT_ALL_EXPERTS_S / cost->cells;
    cost->line.b_s = DEFAULT_BATCH_S;
}

static void forget(akin_cost_t *cost)
{
    memset(cost->xx, 0, sizeof(cost->xx));
    memset(cost->xy, 0, sizeof(cost->xy));
    cost->yy = 0.0;
    cost->n_reports = 0;
    cost->n_refused = 0;
}

/*
 * Solve the normal equations over the coefficients in `set` (bit i:
 * coefficient i) by elimination; the others are 0. The matrix is positive
 * semidefinite, so no pivoting is needed and a vanishing pivot means that it
 * is singular.
 *
 * \return false if it is singular or a coefficient comes out negative.
 */
static bool solve_subset(const akin_cost_t *cost, unsigned set,
                         double theta[N_COEFFICIENTS])
{
    int index[N_COEFFICIENTS];
    int n = 0;
    for (int i = 0; i < N_COEFFICIENTS; i++) {
        theta[i] = 0.0;
        if ((set >> i & 1u) != 0)
            index[n++] = i;
    }
    double m[N_COEFFICIENTS][N_COEFFICIENTS + 1];
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            m[i][j] = cost->xx[index[i]][index[j]];
        m[i][n] = cost->xy[index[i]];
    }
    for (int i = 0; i < n; i++) {
        if (!(m[i][i] > 1e-12 * cost->xx[index[i]][index[i]]))
            return false;
        for (int row = i + 1; row < n; row++) {
            double factor = m[row][i] / m[i][i];
            for (int j = i; j <= n; j++)
                m[row][j] -= factor * m[i][j];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        double value = m[i][n];
        for (int j = i + 1; j < n; j++)
            value -= m[i][j] * theta[index[j]];
        theta[index[i]] = value / m[i][i];
    }
    for (int i = 0; i < N_COEFFICIENTS; i++)
        if (!(theta[i] >= 0.0))
            return false;
    return true;
}

/* Sum of squared residuals of a solution of some subset: for it,
 * theta . (xx theta) = theta . xy. */
static double residual(const akin_cost_t *cost,
                       const double theta[N_COEFFICIENTS])
{
    double explained = 0.0;
    for (int i = 0; i < N_COEFFICIENTS; i++)
        explained += theta[i] * cost->xy[i];
    return fmax(cost->yy - explained, 0.0);
}

/* Least squares under theta >= 0: the problem is convex, so its solution is
 * the best of the subsets' solutions that are feasible. */
static bool solve(const akin_cost_t *cost, double best[N_COEFFICIENTS],
                  double *residual_p)
{
    bool found = false;
    for (unsigned set = 1; set < 1u << N_COEFFICIENTS; set++) {
        double theta[N_COEFFICIENTS];
        if (!solve_subset(cost, set, theta))
            continue;
        double left = residual(cost, theta);
        if (!found || left < *residual_p) {
            memcpy(best, theta, sizeof(theta));
            *residual_p = left;
            found = true;
        }
    }
    return found;
}

/* Do the reports tell the three coefficients apart? */
static bool is_varied(const akin_cost_t *cost, double squares)
{
    double weight = cost->xx[0][0];
    double mean_y = cost->xy[0] / weight;
    double mean[3], variance[3];
    for (int i = 1; i < N_COEFFICIENTS; i++) {
        mean[i] = cost->xx[0][i] / weight;
        variance[i] = cost->xx[i][i] / weight - mean[i] * mean[i];
        double least = MIN_VARIATION * mean[i];
        if (!(variance[i] > least * least))
            return false;
    }
    double covariance = cost->xx[1][2] / weight - mean[1] * mean[2];
    double independence =
        1.0 - covariance * covariance / (variance[1] * variance[2]);
    if (!(independence > MIN_INDEPENDENCE))
        return false;
    for (int i = 1; i < N_COEFFICIENTS; i++) {
        double error =
            sqrt(squares / weight / (weight * variance[i] * independence));
        if (!(error * mean[i] < MAX_UNCERTAINTY * mean_y))
            return false;
    }
    return true;
}

bool akin_cost_observe(akin_cost_t *cost, uint32_t batch, double distinct,
                       double seconds)
{
    if (batch == 0 || !(distinct >= 0.0 && distinct <= cost->cells) ||
        !(seconds > 0.0 && seconds <= MAX_SECONDS))
        return false;
    if (cost->n_reports >= MIN_MEAN_REPORTS &&
        seconds > OUTLIER_RATIO * cost->xy[0] / cost->xx[0][0]) {
        if (++cost->n_refused < MAX_REFUSED)
            return false;
        forget(cost);
    }
    cost->n_refused = 0;

    const double x[N_COEFFICIENTS] = {1.0, distinct / cost->cells,
                                      (double)batch / BATCH_SCALE};
    for (int i = 0; i < N_COEFFICIENTS; i++) {
        for (int j = 0; j < N_COEFFICIENTS; j++)
            cost->xx[i][j] = cost->forgetting * cost->xx[i][j] + x[i] * x[j];
        cost->xy[i] = cost->forgetting * cost->xy[i] + x[i] * seconds;
    }
    cost->yy = cost->forgetting * cost->yy + seconds * seconds;
    if (cost->n_reports < UINT32_MAX)
        cost->n_reports++;

    double theta[N_COEFFICIENTS] = {0.0};
    double squares = 0.0;
    if (cost->n_reports < MIN_REPORTS || !solve(cost, theta, &squares) ||
        !is_varied(cost, squares))
        return true;
    cost->line.t0_s = theta[0];
    cost->line.a_s = theta[1] / cost->cells;
    cost->line.b_s = theta[2] / BATCH_SCALE;
    cost->fitted = true;
    return true;
}

double akin_cost_seconds(const akin_cost_line_t *line, double distinct,
                         double batch)
{
    return line->t0_s + line->a_s * distinct + line->b_s * batch;
}
