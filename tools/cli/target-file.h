/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file that is there whole or not at all: written under a name beside it, and renamed when complete.
 *
 *      target_file_begin ──> write to `temporary` ──> target_file_keep, or target_file_drop
 */
#ifndef CLI_TARGET_FILE_H
#define CLI_TARGET_FILE_H

#include <stdbool.h>

typedef struct TargetFile {
        char *path, *temporary; /* owned; both NULL before and after */
        int fd;                 /* of `temporary`, owned; -1: none */
        bool replace;
} TargetFile;

/** Makes the temporary file, empty, with the rights that a new file gets. Without `replace`, -EEXIST where there is a file;
 * -EINVAL where there is something else, as a directory or a device; else what making it gave. */
int target_file_begin(TargetFile *target, const char *path, bool replace);

/** Syncs, closes and renames it. What failed; then the temporary file is gone. -EEXIST: the file was made in between. */
int target_file_keep(TargetFile *target);

/** Removes the temporary file, if there is one. */
void target_file_drop(TargetFile *target);

#endif
