/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The history file: a line for each entry, oldest first, with newlines written as \n and backslashes as \\. Each entry is
 * appended at once, so that several shells share one file and no entry is lost. Mode 0600.
 */
#ifndef SQLIPC_TOOLS_CLI_PROMPT_HISTORY_FILE_H
#define SQLIPC_TOOLS_CLI_PROMPT_HISTORY_FILE_H

#include <stddef.h>

/** The last `max` different entries, oldest first, NULL-terminated, freed with g_strfreev(). A file with more than twice as
 * many lines is rewritten. A missing file has no entries. Returns -errno of opening or reading; -EINVAL: it is not a regular
 * file. */
int history_file_read(const char *path, size_t max, char ***ret);

/** Appends an entry; creates the file and its folder if needed. Errors as above. */
int history_file_append(const char *path, const char *entry);

#endif
