/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See sqlite-load.h.
 */
#include "daemon/worker/sqlite/sqlite-load.h"

#include <sqlite3.h>

#include "daemon/worker/core/row-source.h"
#include "daemon/worker/sqlite/bind.h"

bool sqlite_load_takes_rows(SqliteStatement *s, SqlError *error) {
        if (sqlite3_column_count(s->stmt) > 0 || !s->changes_rows)
                return sql_error_set(error, ERROR_NOT_ALLOWED,
                                     "Load takes one INSERT, UPDATE or DELETE without RETURNING: run other statements with "
                                     "Query or Execute");
        if (sqlite3_bind_parameter_count(s->stmt) == 0)
                return sql_error_set(error, ERROR_PARAMETER_COUNT,
                                     "Load runs the statement once for each row, and this one has no parameter for a value");
        return true;
}

/* The connection has the reason of a failure until it is used again. */
static bool fail(SqliteStatement *s, int rc, SqlError *error) {
        if (error->error == ERROR_NONE)
                (void) sqlite_connection_fail(s->connection, rc, 0, error);
        (void) access_reset(&s->connection->access, s->stmt);
        return false;
}

/* The bytes of a row are valid until the next one is decoded. By then the statement is reset. */
bool sqlite_load(SqliteStatement *s, RowSource *source, SqlError *error) {
        unsigned n = source->decoder.n_columns, count = (unsigned) sqlite3_bind_parameter_count(s->stmt);
        Access *access = &s->connection->access;
        sqlite3 *file = s->connection->file;

        if (!sqlite_connection_may_step(s->connection, error))
                return false;
        if (n != count)
                return sql_error_set(error, ERROR_PARAMETER_COUNT, "%u values in a row, for a statement with %u parameters",
                                     n, count);
        do {
                int rc = bind_row(s->stmt, &source->decoder, n);

                if (rc == SQLITE_OK)
                        rc = sqlite_counts_step(&s->connection->counts, s->stmt, s->changes_rows, s->asks_changes);
                if (rc != SQLITE_DONE)
                        return fail(s, rc, error);
                (void) access_reset(access, s->stmt);
        } while (row_source_next(source, sqlite3_changes64(file)));
        return true;
}
