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
        char refused[256];
} Access;

/* Installs authorizer, the limits of `setup` and safe settings on a fresh connection. `access` must outlive it. An SQLite
 * result code. */
int access_install(sqlite3 *db, const Setup *setup, Access *access);

void access_forget(Access *access);

#endif
