/* Report scale: ticks of an axis, and how their numbers are written. */
#ifndef AKIN_LAUNCH_REPORT_SCALE_H
#define AKIN_LAUNCH_REPORT_SCALE_H

#include <stddef.h>

#define AKIN_REPORT_TICKS_MAX 12

/** A linear axis that starts and ends on a tick. */
typedef struct akin_report_scale {
    double low, high; /* the first and the last tick */
    double step;      /* 1, 2 or 5 times a power of ten */
    int n_ticks;      /* 2 .. AKIN_REPORT_TICKS_MAX */
} akin_report_scale_t;

/**
 * The axis that holds low .. high with about so many ticks. An axis of one
 * value, or of none (not finite), is given room around it.
 *
 * \param[in] low     least value shown.
 * \param[in] high    largest value shown.
 * \param[in] target  ticks wanted, 2 .. 10.
 */
akin_report_scale_t akin_report_scale(double low, double high, int target);

/** The i-th tick; exactly 0 where it lies at 0. */
double akin_report_scale_tick(const akin_report_scale_t *scale, int i);

/** Where a value lies between the ends: 0 .. 1; outside is cut off. */
double akin_report_scale_place(const akin_report_scale_t *scale, double value);

/** Write a tick with the digits that tell it from its neighbours: "0.25",
 * "12 k", "3.5 M". */
void akin_report_scale_text(const akin_report_scale_t *scale, int i, char *text,
                            size_t size);

#endif
