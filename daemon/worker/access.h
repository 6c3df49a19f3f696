/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. What SQL may do: SQLite's authorizer for reading, and limits. It keeps statements from doing anything but
 * read; it is no fence between tables (see I11 in docs/ARCHITECTURE.md).
 */
#ifndef ACCESS_H
#define ACCESS_H

#include <stdbool.h>

#include "protocol.h"

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

/* What the authorizer refused last, for the sentence of the error; empty where it refused nothing since access_forget(). */
typedef struct Access {
        bool asked;              /* for anything since access_forget() */
        bool reads_journal_mode; /* that was "PRAGMA journal_mode" without a value, and nothing else */
        bool ours; /* no client's SQL comes here: transactions may begin and end. Set before it is installed */
        char refused[256];
} Access;

/* Installs authorizer, limits and safe settings on a fresh connection. `access` must outlive it. An SQLite
 * result code. */
int access_install(sqlite3 *db, const Setup *setup, Access *access);

/* To be called before a statement of a client's is compiled. */
void access_forget(Access *access);

/* Whether the statement, the only one that was compiled since access_forget(), writes nothing. SQLite counts every
 * "PRAGMA journal_mode" as writing, though without a value it only reads. */
bool access_only_reads(const Access *access, sqlite3_stmt *stmt);

/* The limits of `setup` on a statement, while a client's is compiled; and SQLite's own at all other times. They bind
 * whatever is parsed, so a database whose schema passes a small limit (a long CREATE VIEW) could not be read at all.
 * Therefore the schema must have been read before; SQLITE_LIMIT_SQL_LENGTH is left out, and the client's SQL measured. */
void access_narrow(sqlite3 *db, const Setup *setup);
void access_widen(sqlite3 *db);

#endif
