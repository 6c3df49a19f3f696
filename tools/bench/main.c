/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sqlipc-bench: makes the data and measures, always beside SQLite in process, which is the yardstick.
 * One file a workload; this one is the table of verbs.
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "workload.h"

static const struct {
        const char *verb;
        int (*run)(int argc, char **argv);
        const char *help;
} workloads[] = {
        { "dataset", workload_dataset, "make the table of the 2010 study" },
        { "exposed", workload_exposed, "what Expose= costs: the same file whole and exposed" },
        { "fetch", workload_fetch, "fetch a whole result, beside the same loop in process" },
        { "first-row", workload_first_row, "time from the call to the first row" },
};

static void print_help(FILE *stream) {
        fprintf(stream, "Usage: sqlipc-bench VERB [OPTION...]\n\nVerbs:\n");
        for (size_t i = 0; i < G_N_ELEMENTS(workloads); i++)
                fprintf(stream, "  %-10s %s\n", workloads[i].verb, workloads[i].help);
        fprintf(stream, "\n'sqlipc-bench VERB --help' tells a verb's options. --help, --version.\n"
                        "Exit status: 0 measured, 1 failed or the two sides disagree, 2 wrong usage.\n");
}

int main(int argc, char **argv) {
        const char *verb = argc > 1 ? argv[1] : NULL;

        for (size_t i = 0; verb && i < G_N_ELEMENTS(workloads); i++)
                if (g_str_equal(workloads[i].verb, verb))
                        return workloads[i].run(argc - 1, argv + 1);

        if (g_strcmp0(verb, "--help") == 0 || g_strcmp0(verb, "-h") == 0) {
                print_help(stdout);
                return BENCH_OK;
        }
        if (g_strcmp0(verb, "--version") == 0) {
                puts("sqlipc-bench " SQLIPC_VERSION);
                return BENCH_OK;
        }
        if (verb)
                fprintf(stderr, "sqlipc-bench: there is no verb '%s'.\nTry 'sqlipc-bench --help'.\n", verb);
        else
                print_help(stderr);
        return BENCH_USAGE;
}
