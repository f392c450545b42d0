/* Report scale: ticks of an axis, and how their numbers are written. */
#include "launch/report_scale.h"

#include <math.h>
#include <stdio.h>

/* Beyond these the axis itself would overflow or have no room for steps. */
#define LARGEST 1e15
#define SMALLEST 1e-12

/* The least of 1, 2, 5 times a power of ten that is not below a value. */
static double round_up(double value)
{
    static const double factors[] = {1.0, 2.0, 5.0};
    const double power = pow(10.0, floor(log10(value)));
    for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++)
        if (factors[i] * power >= value * (1.0 - 1e-9))
            return factors[i] * power;
    return 10.0 * power;
}

static double bound(double value)
{
    if (!isfinite(value))
        return 0.0;
    return fmin(fmax(value, -LARGEST), LARGEST);
}

akin_report_scale_t akin_report_scale(double low, double high, int target)
{
    low = bound(low);
    high = bound(high);
    if (low > high) {
        const double swap = low;
        low = high;
        high = swap;
    }
    const double size = fmax(fabs(low), fabs(high));
    if (high - low <= fmax(size * 1e-9, SMALLEST)) {
        const double room = size > SMALLEST ? size * 0.5 : 1.0;
        low = low < 0.0 || low > 0.0 ? low - room : low;
        high += room;
    }
    const int n = target < 2 ? 2 : target > 10 ? 10 : target;
    akin_report_scale_t scale = {0.0, 0.0, round_up((high - low) / n), 0};
    do {
        const double first = floor(low / scale.step + 1e-9);
        const double last = ceil(high / scale.step - 1e-9);
        scale.low = first * scale.step;
        scale.high = last * scale.step;
        scale.n_ticks = (int)(last - first) + 1;
        if (scale.n_ticks > AKIN_REPORT_TICKS_MAX)
            scale.step = round_up(scale.step * 1.5);
    } while (scale.n_ticks > AKIN_REPORT_TICKS_MAX);
    return scale;
}

double akin_report_scale_tick(const akin_report_scale_t *scale, int i)
{
    const double value = scale->low + (double)i * scale->step;
    return fabs(value) < scale->step * 1e-6 ? 0.0 : value;
}

double akin_report_scale_place(const akin_report_scale_t *scale, double value)
{
    const double place = (value - scale->low) / (scale->high - scale->low);
    return isfinite(place) ? fmin(fmax(place, 0.0), 1.0) : 0.0;
}

void akin_report_scale_text(const akin_report_scale_t *scale, int i, char *text,
                            size_t size)
{
    static const struct {
        double of;
        const char *sign;
    } units[] = {{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e4, " k"}};
    const double largest = fmax(fabs(scale->low), fabs(scale->high));
    double unit = 1.0;
    const char *sign = "";
    for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++)
        if (largest >= units[u].of) {
            unit = units[u].of > 1e4 ? units[u].of : 1e3;
            sign = units[u].sign;
            break;
        }
    const double digits = -floor(log10(scale->step / unit) + 1e-9);
    const double value = akin_report_scale_tick(scale, i);
    (void)snprintf(text, size, "%.*f%s",
                   digits > 0.0 ? (int)fmin(digits, 15.0) : 0, value / unit,
                   fabs(value) > 0.0 ? sign : "");
}
