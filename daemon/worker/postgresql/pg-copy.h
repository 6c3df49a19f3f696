/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Turns an INSERT into the COPY that does the same, and values into the text that COPY reads. Pure.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_COPY_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_COPY_H

#include "daemon/worker/postgresql/pg-text.h"
#include "daemon/worker/postgresql/pg-value.h"
#include "dbus-interfaces/wire/page-decoder.h"

/* The parts of INSERT INTO table(columns) VALUES($1, $2, ...), borrowed from its text. */
typedef struct PgCopy {
        const char *table, *columns; /* the latter with their parentheses */
        size_t table_size, columns_size;
} PgCopy;

/* False: the statement is another one. */
bool pg_copy_find(const PgText *text, PgCopy *ret);

/* Bytes for COPY. */
typedef struct PgCopyData {
        char *bytes;          /* owned */
        size_t size, capacity;
} PgCopyData;

/* Adds a value that bind() would accept for a parameter of this kind, and a tab, or a new line after the last one. False: no
 * memory. */
bool pg_copy_add(PgCopyData *data, PgKind kind, const PageValue *value, bool is_last);

/* The row, from 1, of a COPY that failed, by the server's context: "COPY album, line 3, column id". 0: not known. */
uint64_t pg_copy_line(const char *context);

#endif
