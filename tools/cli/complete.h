/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What could stand at the cursor: keywords, tables, columns (of the tables that the statement names, also by their
 * aliases), functions, databases, dot-commands with their arguments, names of files.
 */
#ifndef CLI_COMPLETE_H
#define CLI_COMPLETE_H

#include <stddef.h>

#include "shell.h"

/** Candidates for the word of `text` (all lines of the statement) that ends at byte `cursor`: NULL-terminated, to be
 * freed with g_strfreev(); `*ret_start`: the byte where the word begins. Names that need quotes have them. */
char **complete(Shell *shell, const char *text, size_t cursor, size_t *ret_start);

#endif
