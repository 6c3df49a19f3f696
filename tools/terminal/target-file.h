/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes a file completely or not at all: under a temporary name beside it, and renamed when complete. The folder is opened
 * once, so no other user can have the two names refer to different folders.
 *
 *      target_file_begin ──> write to `temporary` ──> target_file_keep, or target_file_drop
 */
#ifndef SQLIPC_TOOLS_TERMINAL_TARGET_FILE_H
#define SQLIPC_TOOLS_TERMINAL_TARGET_FILE_H

#include <stdbool.h>

typedef struct TargetFile {
        char *path, *temporary; /* owned; both NULL before and after */
        int folder;             /* the folder of both, owned; -1: none */
        int fd;                 /* of `temporary`, owned; -1: none */
        bool replace;
} TargetFile;

/** Creates the temporary file, empty, with the permissions of a new file. Returns -EEXIST if a file exists and `replace` is
 * false; -EINVAL if `path` is something else, like a directory or a device; else the error of creating it. */
int target_file_begin(TargetFile *target, const char *path, bool replace);

/** The same, for a file that only its owner may read, and that may be in another user's folder: a link is -EINVAL. */
int target_file_begin_private(TargetFile *target, const char *path, bool replace);

/** Syncs, closes and renames it. Returns the error; the temporary file is then removed. -EEXIST: the file was created
 * meanwhile. */
int target_file_keep(TargetFile *target);

/** Removes the temporary file, if there is one. */
void target_file_drop(TargetFile *target);

#endif
