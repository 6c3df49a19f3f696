/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Failures: prints a message for each on stderr; and the exit codes of the program. */
#ifndef SQLIPC_TOOLS_CTL_COMPLAIN_H
#define SQLIPC_TOOLS_CTL_COMPLAIN_H

#include <glib.h>

enum { CTL_OK = 0, CTL_FAILED = 1, CTL_USAGE = 2 };

/** Prints a message on stderr, escaped so that no byte of it can control the terminal. */
void complain(const char *format, ...) G_GNUC_PRINTF(1, 2);
/** The same, with a hint at --help. Returns CTL_USAGE. */
int complain_usage(const char *format, ...) G_GNUC_PRINTF(1, 2);

#endif
