/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Failures: a sentence each on stderr, and what the program ends with. */
#ifndef CTL_COMPLAIN_H
#define CTL_COMPLAIN_H

#include <glib.h>

enum { CTL_OK = 0, CTL_FAILED = 1, CTL_USAGE = 2 };

/** Says a sentence on stderr, so that no byte of it can act on the terminal. */
void complain(const char *format, ...) G_GNUC_PRINTF(1, 2);
/** The same, with where help is. Returns CTL_USAGE. */
int complain_usage(const char *format, ...) G_GNUC_PRINTF(1, 2);

#endif
