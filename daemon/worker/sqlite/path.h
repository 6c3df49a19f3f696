/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Finds the file that Path= leads to.
 *
 * A symbolic link is followed only if no user but root and the service's own could change it: one of these two owns the link
 * and its directory, and the directory is either closed to writers of other users or sticky. The owner of any other link
 * could publish every file that the service can read. If the service sees foreign users as "nobody" (in a user namespace),
 * it does not trust their links either.
 *
 * The result is a directory descriptor and a name without slashes, not a path: a path that was checked can lead elsewhere a
 * moment later, if a user who owns a directory on the way exchanges it. The walk opens each component relative to the one
 * before and never lets the kernel follow a link, so it needs no openat2() and works on every kernel.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_PATH_H
#define SQLIPC_DAEMON_WORKER_SQLITE_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "daemon/worker/core/sql-error.h"

typedef struct FoundFile {
        int folder_fd;           /* owned; O_PATH; -1: none */
        char name[NAME_MAX + 1]; /* in that directory */
        struct stat st;
} FoundFile;

#define FOUND_FILE_INIT ((FoundFile) { .folder_fd = -1 })

/* Finds the regular file at `path`; the caller frees it with found_file_done(). On failure *ret is unchanged, and the error
 * is FileMissing or CannotOpen. The latter is also for a file that is not regular, or that the kernel generates (/proc and
 * the like). */
bool path_resolve(const char *path, FoundFile *ret, SqlError *error);

void found_file_done(FoundFile *file);

/* Sets the error that says why a database's file cannot be reached, by errno. Always returns false. */
bool path_fail(int error_number, SqlError *error);

/* CannotOpen unless `st` is a regular file. */
bool path_check_kind(const struct stat *st, SqlError *error);

#endif
