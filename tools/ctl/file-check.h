/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks if the service could read the file of a database, or write to it, by the rules of the worker, as far as owners,
 * modes and the file's header tell. It does not use SQLite and does not lock the file. So it does not disturb programs that
 * have the file open, and it may close the file: this process holds no lock on it that would be dropped.
 */
#ifndef SQLIPC_TOOLS_CTL_FILE_CHECK_H
#define SQLIPC_TOOLS_CTL_FILE_CHECK_H

#include "tools/ctl/finding.h"
#include "tools/ctl/service-user.h"

typedef enum FileUse {
        FILE_READ,
        FILE_READ_IMMUTABLE, /* Immutable=yes */
        FILE_WRITE,          /* Mode=read-write */
} FileUse;

typedef enum FileContents {
        FILE_NO_DATABASE,      /* it is none, or this process cannot read it */
        FILE_DATABASE,
        FILE_DATABASE_AT_REST, /* in WAL mode, without a log or with an empty one alone: no program has it open */
} FileContents;

/** Adds the errors and warnings of `path` (absolute) to `findings`, under `subject`. */
FileContents file_check(const char *path, FileUse use, const ServiceUser *user, GPtrArray *findings, const char *subject);

#endif
