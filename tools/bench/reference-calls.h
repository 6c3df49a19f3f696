/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What each system call costs that the ways of reference-ways.h are made of, and what they do without one. */
#ifndef BENCH_REFERENCE_CALLS_H
#define BENCH_REFERENCE_CALLS_H

#include "report.h"

/** Makes each call `n` times, `n_rounds` times, alone in this process, into a table. Says on stderr what fails. */
int reference_calls(const char *folder, unsigned n, int n_rounds, Report *report);

#endif
