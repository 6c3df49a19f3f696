/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Rows between the server's JSON and the pages of a job: a queue of rows with SQLite's values. Pure except for
 * malloc().
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_TYPED_ROWS_H
#define SQLIPC_DAEMON_WORKER_RQLITE_TYPED_ROWS_H

#include "daemon/worker/rqlite/response.h"
#include "daemon/worker/rqlite/text-buffer.h"
#include "dbus-interfaces/wire/page-decoder.h"

typedef struct TypedRows {
        TextBuffer bytes;     /* rows, each the values in turn: type, size, bytes; TEXT with a NUL */
        size_t start, end;    /* of the row that was taken last; equal: none was */
} TypedRows;

/* Adds a value of a row that statement_text_add_select() made typed. False: it is not one, or there is no memory. */
bool typed_rows_add_typed(TypedRows *rows, const JsonValue *value);

/* Adds a value as the server's JSON has it. `is_real`: the column is declared as REAL, so that 1 is 1.0. */
bool typed_rows_add_plain(TypedRows *rows, const JsonValue *value, bool is_real);

/* Drops the row that was taken last, and takes the next, of `n` values. False: there is none. */
bool typed_rows_take(TypedRows *rows, unsigned n);

/* The values of the row that was taken, valid until a row is added or taken. */
void typed_rows_values(const TypedRows *rows, unsigned n, PageValue *ret_values);

/* Bytes of rows that wait to be taken. */
static inline size_t typed_rows_size(const TypedRows *rows) {
        return rows->bytes.size - rows->end;
}

void typed_rows_clear(TypedRows *rows);
void typed_rows_done(TypedRows *rows);

#endif
