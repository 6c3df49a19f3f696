/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A table of the costs of the sides of a comparison, see comparison.h. */
#include "tools/bench/report/comparison.h"

static void add_columns(ReportTable *table, const Side *sides, const size_t *references, size_t n_references) {
        report_table_column(table, "time", "ms");
        for (size_t i = 0; i < n_references; i++) {
                g_autofree char *name = g_strdup_printf("/ %s", sides[references[i]].name);

                report_table_column(table, name, "");
        }
        report_table_column(table, "client CPU", "ms");
        report_table_column(table, "server CPU", "ms");
        report_table_column(table, "client switches", "");
        report_table_column(table, "server switches", "");
        report_table_column(table, "client peak", "MiB");
        report_table_column(table, "server peak", "MiB");
}

static void add_scaled(ReportTable *table, unsigned column, const GArray *values, double factor) {
        g_autoptr(GArray) scaled = measure_scaled(values, factor);

        report_table_values(table, column, scaled);
}

ReportTable *comparison_table(Report *report, const char *id, const char *title, const Side *sides, const Findings *findings,
                              size_t n_sides, const size_t *references, size_t n_references) {
        ReportTable *table = report_table(report, id, title, "side");
        unsigned used = COMPARISON_RATIO + (unsigned) n_references;

        add_columns(table, sides, references, n_references);
        for (size_t i = 0; i < n_sides; i++) {
                const Findings *side = &findings[i];

                report_table_row(table, sides[i].name, false);
                add_scaled(table, COMPARISON_TIME, side->usec, 1e-3);
                for (size_t k = 0; k < n_references; k++) {
                        g_autoptr(GArray) ratios = measure_ratios(side->usec, findings[references[k]].usec);

                        report_table_values(table, COMPARISON_RATIO + (unsigned) k, ratios);
                }
                add_scaled(table, used, side->client_cpu_usec, 1e-3);
                report_table_values(table, used + 2, side->client_switches);
                report_table_value(table, used + 4, side->client_peak_kib / 1024);
                if (sides[i].server > 0) {
                        add_scaled(table, used + 1, side->server_cpu_usec, 1e-3);
                        report_table_values(table, used + 3, side->server_switches);
                        report_table_value(table, used + 5, side->server_peak_kib / 1024);
                }
        }
        return table;
}

unsigned comparison_cpu_columns(ReportTable *table, const char *unit, const char *reference) {
        g_autofree char *ratio = g_strdup_printf("CPU / %s", reference);
        unsigned first = report_table_column(table, "client CPU", unit);

        report_table_column(table, "server CPU", unit);
        report_table_column(table, "CPU of both", unit);
        report_table_column(table, ratio, "");
        return first;
}

void comparison_cpu_values(ReportTable *table, unsigned first, const GArray *client, const GArray *server,
                           const GArray *reference) {
        g_autoptr(GArray) both = server ? measure_sums(client, server) : measure_scaled(client, 1);
        g_autoptr(GArray) ratios = measure_ratios(both, reference);

        report_table_values(table, first, client);
        if (server)
                report_table_values(table, first + 1, server);
        report_table_values(table, first + 2, both);
        report_table_values(table, first + 3, ratios);
}
