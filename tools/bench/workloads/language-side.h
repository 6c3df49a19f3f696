/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A side of a comparison that another program runs: tools/bench/languages.py, in a process of its own, which does one run
 * for each line "run" that it reads. The file describes the protocol.
 */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_LANGUAGE_SIDE_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_LANGUAGE_SIDE_H

#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "tools/bench/core/bench-options.h"

typedef struct LanguageSide {
        pid_t pid; /* 0: not started */
        FILE *to, *from;
} LanguageSide;

/** Starts the side `name` of languages.py, and waits until it is ready. Returns 0 if it is; 1 if it lacks something, such as
 * a package, which `*ret_missing` then names (the caller frees it); a negative errno on error, which is reported on stderr.
 * The caller must call language_side_stop() in any case. */
int language_side_start(const BenchOptions *options, const char *name, LanguageSide *ret, char **ret_missing);
/** Does one run. On error, reports on stderr and returns a negative errno. `side`: a LanguageSide, as in Side. */
int language_side_run(void *side);
/** Returns the hash of the last run's result, and frees the result; 0 on error. */
uint64_t language_side_check(void *side);
/** Ends the process. */
void language_side_stop(LanguageSide *side);

#endif
