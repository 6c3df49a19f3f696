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

/* What the authorizer refused last, for the sentence of the error; empty where it refused nothing since access_forget(). */
typedef struct Access {
        bool ours; /* no client's SQL comes here: transactions may begin and end. Set before it is installed */
        char refused[256];
} Access;

/* Installs authorizer, limits and safe settings on a fresh connection. `access` must outlive it. An SQLite
 * result code. */
int access_install(sqlite3 *db, const Setup *setup, Access *access);

void access_forget(Access *access);

/* The limits of `setup` on a statement, while a client's is compiled; and SQLite's own at all other times. They bind
 * whatever is parsed, so a database whose schema passes a small limit (a long CREATE VIEW) could not be read at all.
 * Therefore the schema must have been read before; SQLITE_LIMIT_SQL_LENGTH is left out, and the client's SQL measured. */
void access_narrow(sqlite3 *db, const Setup *setup);
void access_widen(sqlite3 *db);

#endif
