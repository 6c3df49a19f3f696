/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sqlipc-bench: creates datasets and measures the service. Every workload also measures the yardstick, SQLite in process,
 * and rivals. Each workload has its own file; this file finds the verb.
 */
#include <glib.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "tools/bench/verb.h"
#include "tools/bench/workloads.h"

static const struct {
        const char *verb;
        int (*run)(int argc, char **argv);
        const char *help;
} others[] = {
        { "ask", verb_ask, "run one statement again and again, for strace and perf" },
        { "dataset", verb_dataset, "make the databases that are measured" },
        { "report", verb_report, "measure everything, and write one page about it" },
};

static void print_help(FILE *stream) {
        fprintf(stream, "Usage: sqlipc-bench VERB [OPTION...]\n\nVerbs:\n");
        for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
                fprintf(stream, "  %-10s  %s\n", others[i].verb, others[i].help);
        fprintf(stream, "\nWhat is measured:\n");
        for (const Workload *const *workload = workloads; *workload; workload++)
                fprintf(stream, "  %-10s  %s\n", (*workload)->verb, (*workload)->help);
        fprintf(stream, "\n'sqlipc-bench VERB --help' tells a verb's options. --help, --version.\n"
                        "Exit status: 0 measured, 1 failed or the sides disagree, 2 wrong usage.\n");
}

int main(int argc, char **argv) {
        const char *verb = argc > 1 ? argv[1] : NULL;

        (void) signal(SIGPIPE, SIG_IGN); /* a rival that died must be reported as an error */
        for (size_t i = 0; verb && i < G_N_ELEMENTS(others); i++)
                if (g_str_equal(others[i].verb, verb))
                        return others[i].run(argc - 1, argv + 1);
        for (const Workload *const *workload = workloads; verb && *workload; workload++)
                if (g_str_equal((*workload)->verb, verb))
                        return workloads_main(*workload, argc - 1, argv + 1);

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
