/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Verbs that measure nothing. argv[0] is the verb; they return the exit code. */
#ifndef SQLIPC_TOOLS_BENCH_VERB_H
#define SQLIPC_TOOLS_BENCH_VERB_H

int verb_ask(int argc, char **argv);
int verb_dataset(int argc, char **argv);
int verb_report(int argc, char **argv);

#endif
