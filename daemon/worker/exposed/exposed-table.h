/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The virtual table in place of an exposed object: SQLite's module, and its searches of the file.
 *
 * Rows without a rowid (of views and of tables WITHOUT ROWID) are numbered in the order in which they are read. SQLite asks
 * for rowids that the statement does not name in two kinds of plan, because it must recognize a row that it meets again by
 * another way: terms joined by OR, and RIGHT or FULL JOIN. If a statement has one of these words, such an object is read
 * whole and by the same SQL each time, so that each row keeps its number. In any other statement these rows have no numbers.
 */
#ifndef SQLIPC_DAEMON_WORKER_EXPOSED_EXPOSED_TABLE_H
#define SQLIPC_DAEMON_WORKER_EXPOSED_EXPOSED_TABLE_H

#include <stdint.h>

#include "daemon/worker/exposed/exposed-plan.h"

#define EXPOSED_MODULE "exposed"

/* State that all tables of one connection share. Outlives them. */
typedef struct ExposedTables {
        sqlite3 *file;               /* borrowed; the connection that is searched */
        ExposedObject *objects;      /* owned */
        uint32_t n_objects;
        bool utf8;                   /* the encoding of the file, and of the connection with the virtual tables, is UTF-8 */
        PlanHints hints;             /* of the statement that is compiled or run now; see above */
        struct ExposedSearch *kept;  /* owned; compiled searches, reset, for the next cursor */
} ExposedTables;

/* Registers the module with `db`. `tables` must outlive it. Returns an SQLite result code. */
int exposed_tables_register(ExposedTables *tables, sqlite3 *db);

/* Creates the table for `o`, which is one of tables->objects. Returns an SQLite result code. */
int exposed_tables_create(sqlite3 *db, const ExposedObject *o);

/* Frees what is owned. The connection with the virtual tables must be closed. */
void exposed_tables_done(ExposedTables *tables);

#endif
