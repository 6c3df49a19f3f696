/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Completion candidates at the cursor: keywords, tables, columns (of the tables that the statement names, also by their
 * aliases), functions, databases, dot-commands with their arguments, file names.
 */
#ifndef SQLIPC_TOOLS_CLI_PROMPT_COMPLETE_H
#define SQLIPC_TOOLS_CLI_PROMPT_COMPLETE_H

#include <stddef.h>

#include "tools/cli/shell/shell.h"

/** Candidates for the word that ends at byte `cursor` of `text`, which holds all lines of the statement: NULL-terminated,
 * freed with g_strfreev(). `*ret_start`: the byte at which the word begins. Names that need quotes have them. */
char **complete(Shell *shell, const char *text, size_t cursor, size_t *ret_start);

#endif
