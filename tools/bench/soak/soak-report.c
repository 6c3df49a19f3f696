/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The results of a soak, see soak.h: how often each operation was done, what the service held, and the verdict. */
#include <math.h>

#include "tools/bench/core/line-fit.h"
#include "tools/bench/soak/soak.h"

enum {
        WARM_UP_SHARE = 4,   /* one quarter of the rounds, which the slopes do not include */
        CHART_POINTS = 500,
};

void soak_add_up(const Soak *soak, SoakFindings *findings) {
        for (unsigned i = 0; i < soak->n_processes; i++) {
                const SoakProcess *process = &soak->state->processes[i];

                findings->too_slow += process->too_slow;
                for (unsigned k = 0; k < SOAK_KINDS; k++) {
                        soak_tally_add(&findings->tallies[k], &process->tallies[k]);
                        findings->given_up[k] += process->given_up[k];
                }
        }
}

uint64_t soak_count_answers(const Soak *soak) {
        uint64_t n = 0;

        for (unsigned i = 0; i < soak->n_processes; i++)
                for (unsigned k = 0; k < SOAK_KINDS; k++)
                        n += soak->state->processes[i].tallies[k].answered;
        return n;
}

/* ---- Slopes ------------------------------------------------------------------------------------------------------- */

static double get_minutes(const SoakSample *sample) {
        return sample->minutes;
}

static double get_thousands(const SoakSample *sample) {
        return sample->operations / 1000;
}

static double get_supervisor(const SoakSample *sample) {
        return sample->supervisor_kib;
}

/* Returns the memory of one worker, because the number of workers varies. */
static double get_worker(const SoakSample *sample) {
        return sample->n_workers > 0 ? sample->workers_kib / sample->n_workers : NAN;
}

static double get_descriptors(const SoakSample *sample) {
        return sample->n_descriptors;
}

/* Fits a line to `y` over `x`, after the warm-up. */
static LineFit fit(const GArray *samples, double (*x)(const SoakSample *), double (*y)(const SoakSample *)) {
        g_autofree double *xs = g_new(double, samples->len), *ys = g_new(double, samples->len);
        size_t n = 0;

        for (guint i = samples->len / WARM_UP_SHARE; i < samples->len; i++) {
                const SoakSample *sample = &g_array_index(samples, SoakSample, i);

                xs[n] = x(sample);
                ys[n] = y(sample);
                n += !isnan(ys[n]);
        }
        return n > 2 ? line_fit(xs, ys, n) : (LineFit) { .slope = NAN, .slope_error = NAN };
}

static void report_slopes(const SoakFindings *findings, Report *report) {
        const struct {
                const char *name, *unit;
                const GArray *samples;
                double (*x)(const SoakSample *), (*y)(const SoakSample *);
        } slopes[] = {
                { "supervisor at rest, growth", "KiB/min", findings->at_rest, get_minutes, get_supervisor },
                { "supervisor at rest, growth by work", "KiB/1000 answers", findings->at_rest, get_thousands,
                  get_supervisor },
                { "a worker at rest, growth", "KiB/min", findings->at_rest, get_minutes, get_worker },
                { "supervisor under load, growth", "KiB/min", findings->under_load, get_minutes, get_supervisor },
                { "a worker under load, growth", "KiB/min", findings->under_load, get_minutes, get_worker },
                { "descriptors under load, growth", "1/min", findings->under_load, get_minutes, get_descriptors },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(slopes); i++) {
                g_autofree char *error = g_strdup_printf("%s, standard error", slopes[i].name);
                LineFit line = fit(slopes[i].samples, slopes[i].x, slopes[i].y);

                report_single(report, slopes[i].name, slopes[i].unit, line.slope);
                report_single(report, error, slopes[i].unit, line.slope_error);
        }
}

/* ---- Tables and the chart ----------------------------------------------------------------------------------------- */

static void report_operations(const SoakFindings *findings, Report *report) {
        ReportTable *table = report_table(report, "operations", "What was asked", "operation");
        unsigned answered = report_table_column(table, "answered", ""), failed = report_table_column(table, "failed", ""),
                 given_up = report_table_column(table, "given up", ""), rows = report_table_column(table, "rows", ""),
                 megabytes = report_table_column(table, "MB", ""), p50 = report_table_column(table, "p50", "ms"),
                 p99 = report_table_column(table, "p99", "ms"), most = report_table_column(table, "most", "ms");

        for (unsigned i = 0; i < SOAK_KINDS; i++) {
                const SoakTally *tally = &findings->tallies[i];

                report_table_row(table, soak_operations[i].name, false);
                report_table_value(table, answered, (double) tally->answered);
                report_table_value(table, failed, (double) tally->failed);
                report_table_value(table, given_up, (double) (tally->given_up + findings->given_up[i]));
                report_table_value(table, rows, (double) tally->spent.rows);
                report_table_value(table, megabytes, (double) tally->spent.bytes / 1e6);
                report_table_value(table, p50, soak_tally_quantile(tally, 0.5) / 1e3);
                report_table_value(table, p99, soak_tally_quantile(tally, 0.99) / 1e3);
                report_table_value(table, most, tally->answered > 0 ? tally->max_usec / 1e3 : NAN);
        }
}

static void report_sample(const char *name, const SoakSample *sample, ReportTable *table) {
        const double cells[] = {
                sample->operations, sample->supervisor_kib, sample->n_workers, sample->workers_kib,
                sample->n_descriptors, (double) sample->n_statements, (double) sample->n_runs, (double) sample->n_parked,
                (double) sample->n_channels,
        };

        report_table_row(table, name, false);
        for (unsigned i = 0; i < G_N_ELEMENTS(cells); i++)
                report_table_value(table, i, cells[i]);
}

/* Returns the maximum of each number; the maxima may come from different samples. */
static SoakSample most_of(const GArray *samples) {
        SoakSample most = {};

        for (guint i = 0; i < samples->len; i++) {
                const SoakSample *sample = &g_array_index(samples, SoakSample, i);

                most.operations = MAX(most.operations, sample->operations);
                most.supervisor_kib = MAX(most.supervisor_kib, sample->supervisor_kib);
                most.workers_kib = MAX(most.workers_kib, sample->workers_kib);
                most.n_workers = MAX(most.n_workers, sample->n_workers);
                most.n_descriptors = isnan(sample->n_descriptors) ? NAN : MAX(most.n_descriptors, sample->n_descriptors);
                most.n_statements = MAX(most.n_statements, sample->n_statements);
                most.n_runs = MAX(most.n_runs, sample->n_runs);
                most.n_parked = MAX(most.n_parked, sample->n_parked);
                most.n_channels = MAX(most.n_channels, sample->n_channels);
        }
        return most;
}

static void report_held(const SoakFindings *findings, Report *report) {
        static const struct { const char *name, *unit; } columns[] = {
                { "answers so far", "" }, { "supervisor", "KiB" }, { "workers", "" }, { "their memory", "KiB" },
                { "descriptors", "" }, { "statements", "" }, { "runs", "" }, { "parked", "" }, { "channels", "" },
        };
        ReportTable *table = report_table(report, "held", "What the service holds", "when");
        SoakSample most = most_of(findings->under_load);

        for (size_t i = 0; i < G_N_ELEMENTS(columns); i++)
                (void) report_table_column(table, columns[i].name, columns[i].unit);
        report_sample("before", &findings->before, table);
        report_sample("under load, at most", &most, table);
        for (guint i = 0; i < findings->at_rest->len; i++) {
                g_autofree char *name = g_strdup_printf("at rest %u", i + 1);

                report_sample(name, &g_array_index(findings->at_rest, SoakSample, i), table);
        }
        report_sample("behind it", &findings->after, table);
}

static void report_memory(const SoakFindings *findings, Report *report) {
        ReportChart *chart = report_chart(report, "memory", "Private memory under load", "minutes", "MiB", REPORT_LINEAR);
        unsigned supervisor = report_chart_series(chart, "supervisor", false),
                 workers = report_chart_series(chart, "workers", false);
        guint step = findings->under_load->len / CHART_POINTS + 1;

        for (guint i = 0; i < findings->under_load->len; i += step) {
                const SoakSample *sample = &g_array_index(findings->under_load, SoakSample, i);

                report_chart_value(chart, supervisor, sample->minutes, sample->supervisor_kib / 1024);
                report_chart_value(chart, workers, sample->minutes, sample->workers_kib / 1024);
        }
}

/* ---- The verdict -------------------------------------------------------------------------------------------------- */

/* Sums over all kinds, or over those that expect errors. */
typedef struct Sums {
        uint64_t answered, provoked, failed, given_up, open;
        Spent spent;
} Sums;

static Sums add_kinds(const SoakFindings *findings) {
        Sums sums = {};

        for (unsigned i = 0; i < SOAK_KINDS; i++) {
                const SoakTally *tally = &findings->tallies[i];

                sums.answered += tally->answered;
                sums.provoked += i >= SOAK_FIRST_ERROR ? tally->answered : 0;
                sums.failed += tally->failed;
                sums.given_up += tally->given_up + findings->given_up[i];
                sums.open += soak_tally_open(tally) - findings->given_up[i];
                sums.spent.rows += tally->spent.rows;
                sums.spent.bytes += tally->spent.bytes;
        }
        return sums;
}

/* Descriptors may have become fewer: those of what a service does first. */
static bool is_as_before(const SoakSample *before, const SoakSample *after) {
        return after->n_statements == 0 && after->n_runs == 0 && after->n_channels == 0 &&
               after->n_processes <= before->n_processes && !(after->n_descriptors > before->n_descriptors);
}

bool soak_report(const SoakFindings *findings, Report *report) {
        Sums sums = add_kinds(findings);
        bool settled = is_as_before(&findings->before, &findings->after);
        bool well = sums.answered > 0 && sums.failed == 0 && sums.open == 0 && findings->n_exited == 0 &&
                    !findings->broken_off && settled;

        report_single(report, "answers", "", (double) sums.answered);
        report_single(report, "answers a second", "1/s", (double) sums.answered / findings->minutes / 60);
        report_single(report, "errors that were provoked", "", (double) sums.provoked);
        report_single(report, "errors that were not, and wrong answers", "", (double) sums.failed);
        report_single(report, "never answered", "", (double) sums.open);
        report_single(report, "given up by the client", "", (double) sums.given_up);
        report_single(report, "of these, readers that were too slow", "", (double) findings->too_slow);
        report_single(report, "processes of clients that were killed", "", (double) findings->n_killed);
        report_single(report, "rows, each value compared", "", (double) sums.spent.rows);
        report_single(report, "values", "MB", (double) sums.spent.bytes / 1e6);
        report_slopes(findings, report);
        report_operations(findings, report);
        report_held(findings, report);
        report_memory(findings, report);
        report_fact(report, "verdict", "%s%s%s", well ? "all answered, all right, nothing left" : "failed",
                    findings->broken_off ? ", broken off" : "",
                    settled ? "" : ", the service holds what it did not before");
        report_note(report, "p50 and p99 are right to 10 %%. Growth is the slope of a line by least squares, the first "
                    "quarter left out. An error that was provoked counts as answered.");
        return well;
}
