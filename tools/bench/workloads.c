/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of workloads (workloads.h). */
#include "tools/bench/workloads.h"

#include <errno.h>
#include <stdio.h>

#include "tools/bench/core/measure.h"
#include "tools/bench/report/report-forms.h"
#include "tools/bench/workload-options.h"

const Workload *const workloads[] = {
        &workload_bulk,
        &workload_exposed,
        &workload_fetch,
        &workload_first_row,
        &workload_languages,
        &workload_load,
        &workload_many,
        &workload_marshal,
#if HAVE_GLIB_LIBRARY
        &workload_model,
#endif
        &workload_readers,
        &workload_reference,
        &workload_relay,
        &workload_roundtrip,
        &workload_small,
        &workload_soak,
        &workload_transports,
        &workload_waiting,
        &workload_watch,
        &workload_wide,
        &workload_write,
        NULL,
};

Report *workloads_report(const Workload *workload, const BenchOptions *options) {
        static const char *const sizes[] = {
                [BENCH_TINY] = "tiny: shows that everything works, its figures say nothing",
                [BENCH_NORMAL] = "normal: less data than in the published comparisons, a minute or less each",
                [BENCH_FULL] = "full: as much data as in the published comparisons",
        };
        Report *report = report_new(workload->verb, workload->help);

        report_run_fact(report, "size of the run", "%s", sizes[options->size]);
        return report;
}

static int write_form(const BenchOptions *options, const Report *report) {
        g_autoptr(GString) text = g_string_new(NULL);

        if (options->json) {
                report_to_json(report, text);
                g_string_append_c(text, '\n');
        } else if (options->csv)
                report_to_csv(report, text);
        else
                report_to_text(report, text);
        if (fwrite(text->str, 1, text->len, stdout) == text->len && fflush(stdout) == 0)
                return 0;
        fprintf(stderr, "sqlipc-bench: cannot write: %s\n", g_strerror(errno));
        return -EIO;
}

int workloads_main(const Workload *workload, int argc, char **argv) {
        __attribute__((cleanup(bench_options_done))) BenchOptions options = {};
        __attribute__((cleanup(report_freep))) Report *report = NULL;
        int r, k = 0;

        if (workload_options_parse(&options, workload, argc, argv) < 0)
                return BENCH_USAGE;
        if (options.plot_folder && report_plot_available() < 0)
                return BENCH_FAILED;
        if (options.quiet)
                measure_be_quiet();
        report = workloads_report(workload, &options);
        r = workload->measure(&options, report);
        if (r >= 0)
                k = write_form(&options, report);
        if (r >= 0 && k >= 0 && options.plot_folder)
                k = report_plot(report, options.plot_folder);
        return r < 0 || r == BENCH_FAILED || k < 0 ? BENCH_FAILED : BENCH_OK;
}
