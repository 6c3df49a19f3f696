/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The collation that a column of a view compares by.
 *
 * SQLite tells it in one place: to a virtual table that such a column is compared with. So there is one, for that question.
 */
#ifndef EXPOSED_COLLATION_H
#define EXPOSED_COLLATION_H

typedef struct sqlite3 sqlite3;

/* Installs the virtual table that asks, before any question. An SQLite result code. */
int exposed_collation_setup(sqlite3 *db);

/* The collation of main.`view`.`column`; the caller frees it. An SQLite result code. */
int exposed_collation(sqlite3 *db, const char *view, const char *column, char **ret);

#endif
