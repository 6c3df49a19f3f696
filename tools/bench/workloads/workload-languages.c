/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * languages: programs in Python that use the service, beside programs that use the file: rows as tuples, one row by its key,
 * many rows to write; tables of Arrow, frames of polars and pandas. Each side is a process that runs languages.py.
 *
 * To measure something more, add a class for each of its two sides to languages.py, and a row to the table of tasks below.
 */
#include <errno.h>

#include "tools/bench/core/bench-service.h"
#include "tools/bench/report/comparison.h"
#include "tools/bench/report/service-facts.h"
#include "tools/bench/workloads/language-side.h"
#include "tools/bench/workloads/workload.h"

/* One thing that is measured. */
typedef struct Task {
        const char *id, *title;
        const char *ours, *rival; /* sides of languages.py */
        const char *ours_name, *rival_name;
} Task;

static const Task tasks[] = {
        { "python-fetchall", "Python: fetchall() of study", "sqlipc-fetchall", "sqlite3-fetchall", "sqlipc", "sqlite3" },
        { "python-point", "Python: rows by their key, one query each", "sqlipc-point", "sqlite3-point", "sqlipc",
          "sqlite3" },
        { "python-executemany", "Python: executemany() into an empty table", "sqlipc-executemany", "sqlite3-executemany",
          "sqlipc", "sqlite3" },
        { "arrow-table", "Arrow: a table of study through ADBC", "adbc-arrow", "adbc-sqlite-arrow", "sqlipc",
          "adbc_driver_sqlite" },
        { "polars-frame", "polars: a frame of study through ADBC", "adbc-polars", "adbc-sqlite-polars", "sqlipc",
          "adbc_driver_sqlite" },
        { "pandas-frame", "pandas: a frame of study, read_sql()", "adbc-pandas", "sqlite3-pandas", "sqlipc, ADBC",
          "sqlite3" },
};

enum { OURS, RIVAL, _SIDES };

static void report_task(const Task *task, const Side *sides, const Findings *findings, Report *report) {
        static const size_t reference = RIVAL;
        g_autoptr(GArray) ratios = measure_ratios(findings[OURS].usec, findings[RIVAL].usec);

        report_verdict(report, task->title, task->rival_name, ratios);
        comparison_table(report, task->id, task->title, sides, findings, _SIDES, &reference, 1);
}

static int measure_task(const Task *task, const BenchOptions *options, pid_t server, LanguageSide *children,
                        Report *report) {
        const Side sides[_SIDES] = {
                [OURS] = { task->ours_name, language_side_run, language_side_check, &children[OURS], server,
                           children[OURS].pid },
                [RIVAL] = { task->rival_name, language_side_run, language_side_check, &children[RIVAL], 0,
                            children[RIVAL].pid },
        };
        Findings findings[_SIDES];
        int r = measure_sides(sides, _SIDES, bench_rounds(options), task->id, findings);

        if (r < 0)
                return r;
        report_task(task, sides, findings, report);
        for (size_t i = 0; i < _SIDES; i++)
                findings_done(&findings[i]);
        return 0;
}

/* A task whose packages are not installed is left out, and the report says so. */
static int run_task(const Task *task, const BenchOptions *options, pid_t server, Report *report) {
        LanguageSide children[_SIDES] = {};
        g_autofree char *missing = NULL;
        int r = language_side_start(options, task->ours, &children[OURS], &missing);

        if (r == 0)
                r = language_side_start(options, task->rival, &children[RIVAL], &missing);
        if (r == 0)
                r = measure_task(task, options, server, children, report);
        else if (r > 0)
                report_note(report, "Left out: %s (%s)", task->title, missing);
        for (size_t i = 0; i < _SIDES; i++)
                language_side_stop(&children[i]);
        return r;
}

/* Which of the tasks --tasks names. -EINVAL: one that does not exist. */
static int choose_tasks(const BenchOptions *options, bool chosen[static G_N_ELEMENTS(tasks)]) {
        g_auto(GStrv) names = options->tasks ? g_strsplit(options->tasks, ",", -1) : NULL;
        size_t n = 0;

        for (size_t i = 0; i < G_N_ELEMENTS(tasks); i++) {
                chosen[i] = !names || g_strv_contains((const char *const *) names, tasks[i].id);
                n += chosen[i];
        }
        if (!names || n == g_strv_length(names))
                return 0;
        fprintf(stderr, "sqlipc-bench: --tasks has an unknown task, or one twice: %s\n", options->tasks);
        return -EINVAL;
}

static int measure(const BenchOptions *options, Report *report) {
        bool chosen[G_N_ELEMENTS(tasks)];
        Service service = {};
        int r = choose_tasks(options, chosen);

        if (r >= 0)
                r = bench_service_open(options, &service);
        if (r < 0)
                return r;
        service_facts_add(report, &service, options);
        report_fact(report, "method", "one run of each side first, then %d rounds of both, every other one in reverse order",
                    bench_rounds(options));
        for (size_t i = 0; r >= 0 && i < G_N_ELEMENTS(tasks); i++)
                if (chosen[i])
                        r = run_task(&tasks[i], options, service.pid, report);
        report_note(report, "The sides of a task must return the same values. Processor time of a client is that of the "
                            "whole Python process.");
        bench_service_close(&service);
        return r < 0 ? r : 0;
}

const Workload workload_languages = {
        .verb = "languages",
        .help = "Python with the service, beside Python with the file",
        .summary = "Python programs, with the module sqlipc and with sqlite3 on the file: fetchall() of the dataset study,\n"
                   "rows of point by their key, executemany() into write_study. And study as a table of pyarrow, and as a\n"
                   "frame of polars and of pandas: through ADBC, beside adbc_driver_sqlite, or for pandas beside sqlite3.\n"
                   "A task whose packages are not installed is left out. SQLIPC_BENCH_PYTHON names the interpreter,\n"
                   "SQLIPC_BENCH_ADBC the driver, if it is not the installed one.",
        .measure = measure,
        .bus = true,
        .folder = true,
        .in_report = true,
};
