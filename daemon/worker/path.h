/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Where Path= leads, and what it finds there.
 *
 * A symbolic link is followed only if nobody but root and the service's own user could point it elsewhere: one of them owns
 * the link and its directory, which others cannot write to (or is sticky). Whoever owns another link would publish any file
 * that the service can read. Where the service sees foreign users as nobody (a user namespace), their links are nobody's.
 */
#ifndef PATH_H
#define PATH_H

#include <stdbool.h>
#include <sys/stat.h>

#include "sql-error.h"

/* The file at `path`, reached component by component: its path without links, "." and "..", which the caller frees, and what
 * it is. False: FileMissing; CannotOpen, also for what is no regular file or no file on a disk. */
bool path_resolve(const char *path, char **ret_path, struct stat *ret_st, SqlError *error);

/* Why a file of ours cannot be reached, from errno. Always false. */
bool path_fail(int error_number, SqlError *error);

/* CannotOpen unless it is a regular file. */
bool path_check_kind(const struct stat *st, SqlError *error);

#endif
