/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The file of what was typed: a line for each entry, oldest first, in which \n stands for a newline and \\ for a
 * backslash. An entry is appended as soon as it is there, so several shells share one file and lose nothing of each
 * other. 0600.
 */
#ifndef CLI_HISTORY_FILE_H
#define CLI_HISTORY_FILE_H

#include <stddef.h>

/** The last `max` different entries, oldest first, NULL-terminated, to be freed with g_strfreev(). A file that has grown
 * to more than twice as many is written anew. No file: no entries. -errno of opening or reading; -EINVAL: it is no
 * regular file. */
int history_file_read(const char *path, size_t max, char ***ret);

/** Adds an entry; makes file and folder. -errno as above. */
int history_file_append(const char *path, const char *entry);

#endif
