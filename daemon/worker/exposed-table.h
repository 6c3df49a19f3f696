/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The virtual table that stands for an exposed object: SQLite's module, and its searches of the file.
 *
 * Rows without a rowid (of views, of tables WITHOUT ROWID) are numbered as they come. SQLite asks for rowids of its own
 * accord in two plans, each of which must know a row again that it has met by another way: terms joined by OR, and RIGHT
 * or FULL JOIN. For a statement that holds one of these words such an object is read whole and by the same SQL each time,
 * so that a number stays with its row; for any other there are no numbers.
 */
#ifndef EXPOSED_TABLE_H
#define EXPOSED_TABLE_H

#include <stdint.h>

#include "exposed-plan.h"

#define EXPOSED_MODULE "exposed"

/* All that the tables of one connection share; outlives them. */
typedef struct ExposedTables {
        sqlite3 *file;               /* borrowed; what is searched */
        ExposedObject *objects;      /* owned */
        uint32_t n_objects;
        bool utf8;                   /* the encoding of the file, and of the connection that the tables are on */
        PlanHints hints;             /* of the statement that is compiled or run; see above */
        struct ExposedSearch *kept;  /* owned; compiled and reset, for the next cursor */
} ExposedTables;

/* Makes the module known to `db`. `tables` must outlive it. An SQLite result code. */
int exposed_tables_register(ExposedTables *tables, sqlite3 *db);

/* Creates the table of `o`, which is one of tables->objects. An SQLite result code. */
int exposed_tables_create(sqlite3 *db, const ExposedObject *o);

/* Frees what is owned; their connection is closed. */
void exposed_tables_done(ExposedTables *tables);

#endif
