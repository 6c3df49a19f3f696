/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds damage of a database by SQLite's own checks, for the verbs backup and integrity. */
#ifndef SQLIPC_TOOLS_CTL_FIND_DAMAGE_H
#define SQLIPC_TOOLS_CTL_FIND_DAMAGE_H

#include <glib.h>
#include <sqlite3.h>

/** Adds a sentence for each problem that `pragma` (integrity_check or quick_check) finds. Returns an SQLite result code;
 * damage is SQLITE_OK, also if it keeps SQLite from reading on. */
int find_damage(sqlite3 *db, const char *pragma, GPtrArray *problems);

/** The same for rows of which the foreign key refers to no row. */
int find_orphans(sqlite3 *db, GPtrArray *problems);

#endif
