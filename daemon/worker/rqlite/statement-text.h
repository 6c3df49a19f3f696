/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The text by which a statement goes to the server. Neither direction of the server's JSON keeps all values:
 * 1.0 comes back as 1, a BLOB of a column without a type as a string, a text of a DATE column in another notation; text
 * such as x'41' goes in as a BLOB. So:
 *
 * 1. A SELECT is put into another one, which makes a string or a number of each value that says its type:
 *
 *      NULL      null                 TEXT      "t" and the text
 *      INTEGER   "i" and its digits   BLOB      "b" and hexadecimal digits
 *      REAL      a number, which the server writes so that it reads back exactly; "f+", "f-": infinity
 *
 *    Each value is computed once, because SQLite does not flatten a subquery with LIMIT into a query with LIMIT, but runs it
 *    as a coroutine. Rows keep their order. A column of a subquery has an affinity, that of the first SELECT of a compound
 *    one, which would make REAL of other SELECTs' integers. So a SELECT of BLOBs without rows comes before a compound one.
 *    The expressions of RETURNING become such strings and numbers one by one, each in a subquery. That is a compound
 *    SELECT, whose first SELECT names the column, so an alias of the expression has no effect. A column with
 *    last_insert_rowid(), which the server does not tell with rows, is added.
 * 2. A parameter that JSON cannot carry becomes a literal of SQL. All others become ?1, ?2, ... in the order of their use.
 * 3. A *window* is a part of a table: its rows after a key, in the order of that key. In a window, a common table expression
 *    with the table's own name is before the client's SELECT, so that this sees no other row of the table.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_STATEMENT_TEXT_H
#define SQLIPC_DAEMON_WORKER_RQLITE_STATEMENT_TEXT_H

#include "daemon/worker/rqlite/text-buffer.h"
#include "dbus-interfaces/wire/page-decoder.h"

typedef struct sqlite3_stmt sqlite3_stmt;

/* A statement that SQLite has compiled here. */
typedef struct StatementText {
        const char *sql;         /* borrowed, sql_size bytes, valid UTF-8. Nothing follows its last token */
        size_t sql_size;
        sqlite3_stmt *stmt;      /* borrowed: knows its parameters */
        const PageValue *values; /* borrowed, of all its parameters; NULL: it has none */
} StatementText;

typedef struct StatementWindow {
        const char *table, *key; /* borrowed: names */
        bool bounded;            /* its rows are those after `after`; false: it is the first window */
        int64_t after;
        uint32_t n_rows;         /* at most so many */
} StatementWindow;

/* Adds the JSON of the statement as it is: an array of SQL and parameters. */
void statement_text_add(TextBuffer *json, const StatementText *s);

/* The same for a SELECT of n_columns columns, by the rules above. `window` NULL: all rows. */
void statement_text_add_select(TextBuffer *json, const StatementText *s, unsigned n_columns, const StatementWindow *window);

/* The same for a statement with RETURNING, whose expressions begin at the offset `returning`. */
void statement_text_add_returning(TextBuffer *json, const StatementText *s, size_t returning, unsigned n_columns);

/* Writes the SQL of the client's SELECT in a window, as it is compiled here to check it. */
void statement_text_window_sql(TextBuffer *sql, const StatementText *s, const StatementWindow *window);

/* Adds the JSON of a statement with one row: how many rows the window has, and their largest key. */
void statement_text_add_bounds(TextBuffer *json, const StatementWindow *window);

#endif
