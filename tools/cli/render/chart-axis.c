/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Axes of charts (chart-axis.h). Pure. */
#include "tools/cli/render/chart-axis.h"

#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR, LABEL_GAP = 2 };

double chart_round_up(double step) {
        static const double factors[] = { 1, 2, 5 };
        double power = pow(10, floor(log10(step)));

        for (size_t i = 0; i < G_N_ELEMENTS(factors); i++)
                if (factors[i] * power >= step * (1 - 1e-9)) /* 0.1 and the like are not exact in binary */
                        return factors[i] * power;
        return 10 * power;
}

/* ---- Times -------------------------------------------------------------------------------------------------------- */

/* Parses the fraction of a second and the Z, both of which are optional. */
static bool parse_end(const char *text, double *ret_fraction) {
        char *end = (char *) text;

        *ret_fraction = *text == '.' ? g_ascii_strtod(text, &end) : 0;
        return *end == '\0' || g_str_equal(end, "Z");
}

bool chart_parse_time(const char *text, double *ret) {
        int year, month, day = 1, hour = 0, minute = 0, second = 0, n = 0, more = 0;
        g_autoptr(GDateTime) time = NULL;
        double fraction = 0;

        if (sscanf(text, "%4d-%2d%n", &year, &month, &n) < 2 || n != 7)
                return false;
        text += n;
        if (*text == '-') {
                if (sscanf(text, "-%2d%n", &day, &n) < 1 || n != 3)
                        return false;
                text += n;
        }
        if (*text == ' ' || *text == 'T') {
                if (sscanf(text + 1, "%2d:%2d%n", &hour, &minute, &n) < 2 || n != 5)
                        return false;
                text += 1 + n;
                if (*text == ':') {
                        if (sscanf(text, ":%2d%n", &second, &more) < 1 || more != 3)
                                return false;
                        text += more;
                }
        }
        if (!parse_end(text, &fraction))
                return false;
        time = g_date_time_new_utc(year, month, day, hour, minute, second);
        if (!time)
                return false;
        *ret = (double) g_date_time_to_unix(time) + fraction;
        return true;
}

/* Steps between labels. Steps of months are counted in months, because these have no fixed length. */
typedef struct TimeStep {
        unsigned seconds, months; /* one of them is 0 */
        const char *format;
        size_t width;             /* of a label */
} TimeStep;

static const TimeStep time_steps[] = {
#define SECONDS(n) { n, 0, "%H:%M:%S", 8 }
        SECONDS(1), SECONDS(2), SECONDS(5), SECONDS(10), SECONDS(15), SECONDS(30),
#define MINUTES(n) { n * MINUTE, 0, "%m-%d %H:%M", 11 }
        MINUTES(1), MINUTES(2), MINUTES(5), MINUTES(10), MINUTES(15), MINUTES(30),
        MINUTES(60), MINUTES(120), MINUTES(180), MINUTES(360), MINUTES(720),
#define DAYS(n) { n * DAY, 0, "%Y-%m-%d", 10 }
        DAYS(1), DAYS(2), DAYS(7), DAYS(14),
#define MONTHS(n) { 0, n, "%Y-%m", 7 }
        MONTHS(1), MONTHS(2), MONTHS(3), MONTHS(6),
#define YEARS(n) { 0, n * 12, "%Y", 4 }
        YEARS(1), YEARS(2), YEARS(5), YEARS(10), YEARS(20), YEARS(50), YEARS(100), YEARS(200), YEARS(500), YEARS(1000),
        YEARS(2000), YEARS(5000),
};

/* Returns the first time on the step's grid that is not before `first`. NULL: it is past the end of the calendar. */
static GDateTime *first_time(const TimeStep *step, double first) {
        gint64 seconds = (gint64) ceil(first);
        g_autoptr(GDateTime) time = NULL;
        int months;

        if (step->seconds > 0)
                return g_date_time_new_from_unix_utc((seconds + (seconds > 0 ? step->seconds - 1 : 0)) / step->seconds *
                                                     step->seconds);
        time = g_date_time_new_from_unix_utc(seconds);
        if (!time)
                return NULL;
        months = g_date_time_get_year(time) * 12 + g_date_time_get_month(time) - 1;
        months -= months % (int) step->months;
        for (months = MAX(months, (int) step->months); ; months += (int) step->months) {
                g_autoptr(GDateTime) month = g_date_time_new_utc(months / 12, months % 12 + 1, 1, 0, 0, 0);

                if (!month || (double) g_date_time_to_unix(month) >= first)
                        return g_steal_pointer(&month);
        }
}

/* Makes up to `max` ticks. If there are more, returns max + 1, and `ret` is incomplete. */
static size_t make_time_ticks(const TimeStep *step, double first, double last, size_t max, ChartTick *ret) {
        g_autoptr(GDateTime) time = first_time(step, first);
        size_t n = 0;

        for (; time && (double) g_date_time_to_unix(time) <= last; n++) {
                g_autofree char *label = g_date_time_format(time, step->format);
                GDateTime *next;

                if (n == max)
                        return max + 1;
                ret[n].at = (double) g_date_time_to_unix(time);
                g_strlcpy(ret[n].label, label, CHART_TICK_SIZE);
                next = step->seconds > 0 ? g_date_time_add_seconds(time, step->seconds)
                                         : g_date_time_add_months(time, (int) step->months);
                g_date_time_unref(time);
                time = next;
        }
        return n;
}

size_t chart_time_ticks(double first, double last, size_t width, ChartTick ret[static CHART_TICKS_MAX]) {
        for (size_t i = 0; i < G_N_ELEMENTS(time_steps); i++) {
                const TimeStep *step = &time_steps[i];
                size_t max = MIN(width / (step->width + LABEL_GAP), (size_t) CHART_TICKS_MAX);
                double length = step->seconds > 0 ? step->seconds : step->months * 30.0 * DAY;
                size_t n;

                if ((last - first) / length > (double) max + 1)
                        continue;
                n = make_time_ticks(step, first, last, max, ret);
                if (n <= max)
                        return n;
        }
        return 0;
}

/* ---- Numbers ------------------------------------------------------------------------------------------------------ */

size_t chart_number_ticks(double first, double last, size_t n, ChartTick ret[static CHART_TICKS_MAX]) {
        double step = first < last ? chart_round_up(last / (double) n - first / (double) n) : first == 0 ? 1 : fabs(first);
        double from = ceil(first / step - 1e-9);
        size_t i = 0;

        if (!isfinite(step) || !isfinite(from) || step <= 0)
                return 0;
        for (; i < CHART_TICKS_MAX && (from + (double) i) * step <= last + step * 1e-9; i++) {
                double at = (from + (double) i) * step;

                ret[i].at = at;
                g_snprintf(ret[i].label, CHART_TICK_SIZE, "%.10g", at == 0 ? 0 : at); /* no -0 */
        }
        return i;
}
