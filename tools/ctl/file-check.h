/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether the service could read the file of a database, by the rules of the worker: as far as owners, modes and the
 * file's header tell. SQLite is not asked, and the file is not locked: a program that has it open is not disturbed, because
 * this one holds no lock of its own that closing the file would drop.
 */
#ifndef CTL_FILE_CHECK_H
#define CTL_FILE_CHECK_H

#include "finding.h"
#include "service-user.h"

/** Adds what is wrong or odd with `path` (absolute) to `findings`, under `subject`. */
void file_check(const char *path, bool immutable, const ServiceUser *user, GPtrArray *findings, const char *subject);

#endif
