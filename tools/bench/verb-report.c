/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * report: runs all workloads one after the other and writes one page, DIRECTORY/index.html, with report.json and the charts
 * in the same folder. A workload that fails is shown as failed; the results of the others are kept.
 */
#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>

#include "tools/bench/core/measure.h"
#include "tools/bench/report/report-forms.h"
#include "tools/bench/verb.h"
#include "tools/bench/workload-options.h"
#include "tools/bench/workloads.h"

/* Measures one workload and draws its charts. Adds the report even if one of the two fails and it returns an error. */
static int add_report(const Workload *workload, const BenchOptions *common, const char *folder, GPtrArray *reports) {
        __attribute__((cleanup(bench_options_done))) BenchOptions options = {};
        Report *report = workloads_report(workload, common);
        int r, k;

        if (!common->quiet)
                fprintf(stderr, "sqlipc-bench: %s\n", workload->verb);
        workload_options_for(common, workload, &options);
        g_ptr_array_add(reports, report);
        r = workload->measure(&options, report);
        if (r < 0)
                report_failed(report, g_strerror(-r));
        k = report_plot(report, folder);
        return r < 0 ? r : k;
}

static int write_file(const char *folder, const char *name, const GString *text) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_autoptr(GError) error = NULL;

        if (g_file_set_contents_full(path, text->str, (gssize) text->len, G_FILE_SET_CONTENTS_CONSISTENT, 0644, &error))
                return 0;
        fprintf(stderr, "sqlipc-bench: %s\n", error->message);
        return -EIO;
}

static int write_json(const GPtrArray *reports, const char *folder) {
        g_autoptr(GString) json = g_string_new("{\"reports\": [");

        for (guint i = 0; i < reports->len; i++) {
                g_string_append(json, i > 0 ? ",\n" : "\n");
                report_to_json(reports->pdata[i], json);
        }
        g_string_append(json, "\n]}\n");
        return write_file(folder, "report.json", json);
}

static int write_page(const GPtrArray *reports, const char *folder) {
        g_autoptr(GString) html = g_string_new(NULL);
        int r = report_to_html(reports, folder, html);
        int k = write_file(folder, "index.html", html);

        return r < 0 ? r : k;
}

static void free_report(gpointer report) {
        report_free(report);
}

static int make_report(const BenchOptions *options, const char *folder) {
        g_autoptr(GPtrArray) reports = g_ptr_array_new_with_free_func(free_report);
        bool failed = false;

        if (report_plot_available() < 0)
                return BENCH_FAILED;
        if (g_mkdir_with_parents(folder, 0777) < 0) { /* fail before measuring for minutes */
                fprintf(stderr, "sqlipc-bench: cannot make %s: %s\n", folder, g_strerror(errno));
                return BENCH_FAILED;
        }
        for (const Workload *const *workload = workloads; *workload && measure_interrupted() >= 0; workload++)
                if ((*workload)->in_report && add_report(*workload, options, folder, reports) < 0)
                        failed = true;
        if (write_json(reports, folder) < 0)
                failed = true;
        if (write_page(reports, folder) < 0)
                failed = true;
        return failed ? BENCH_FAILED : BENCH_OK;
}

int verb_report(int argc, char **argv) {
        __attribute__((cleanup(bench_options_done))) BenchOptions options = {};
        g_autofree char *folder = NULL;

        if (workload_options_parse_report(&options, argc, argv, &folder) < 0)
                return BENCH_USAGE;
        if (options.quiet)
                measure_be_quiet();
        return make_report(&options, folder);
}
