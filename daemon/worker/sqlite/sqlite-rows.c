/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See sqlite-rows.h.
 */
#include "daemon/worker/sqlite/sqlite-rows.h"

#include <sqlite3.h>
#include <string.h>

#include "daemon/worker/core/row-sink.h"
#include "daemon/worker/sqlite/sqlite-write.h"

/* Sets the error for SQLite's failure. If the progress handler has set an error, that is the reason, whatever SQLite made of
 * the interrupt: a virtual table may turn it into another error. */
static EngineResult fail(SqliteStatement *s, int rc, SqlError *error) {
        if (error->error == ERROR_NONE)
                (void) sqlite_connection_fail(s->connection, rc, 0, error);
        if (error->error == ERROR_LIMITS_EXCEEDED && (rc & 0xff) == SQLITE_TOOBIG)
                error->error = ERROR_ROW_TOO_LARGE; /* already one value is too large */
        return ENGINE_FAILED;
}

static bool fail_memory(SqliteStatement *s, SqlError *error) {
        (void) fail(s, SQLITE_NOMEM, error);
        return false;
}

/* True if another program is in the way for a moment: a lock, a log that is being recovered, a schema that keeps
 * changing. */
static bool is_transient(int rc) {
        return (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_PROTOCOL || (rc & 0xff) == SQLITE_SCHEMA;
}

static EngineResult is_busy(int rc, SqlError *error) {
        (void) sql_error_set(error, ERROR_BUSY, "%s", sqlite3_errstr(rc));
        error->extended_code = rc;
        return ENGINE_BUSY;
}

/* A writer that died has left a journal. If this worker may write, it rolls the journal back, and the run goes on. */
static EngineResult recover(SqliteStatement *s, SqlError *error) {
        const SqliteConnection *c = s->connection;
        bool recovered = !c->writes && !c->attached.files && sqlite_connection_recover(c->setup, error);

        if (!recovered && (c->writes || error->error != ERROR_BUSY))
                return ENGINE_FAILED;
        (void) is_busy(SQLITE_BUSY, error);
        if (recovered) /* no lock is in the way */
                error->extended_code = 0;
        return ENGINE_BUSY;
}

static EngineResult step(SqliteStatement *s, RowSink *sink, int *ret_rc) {
        /* the connection has the reason of a failure until it is used again */
        int rc = s->of_dump      ? dumped_table_step(s->connection, s->stmt)
                 : s->runs_alone ? sqlite_write_alone(s->connection, s->stmt)
                                 : sqlite_counts_step(&s->connection->counts, s->stmt, s->changes_rows, s->asks_changes);

        *ret_rc = rc;
        sink->row_waits = rc == SQLITE_ROW;
        return rc == SQLITE_ROW ? ENGINE_ROW : rc == SQLITE_DONE ? ENGINE_DONE : ENGINE_FAILED;
}

/* SQLite has closed a file that it could not attach, so nothing damaged is left in its cache. */
static void explain_opened(SqliteConnection *c, int rc, SqlError *error) {
        bool doubtful = c->doubtful;

        c->about = attached_opened(&c->attached);
        (void) sqlite_connection_fail(c, rc, 0, error);
        c->about = NULL;
        c->doubtful = doubtful;
}

static EngineResult attach(SqliteStatement *s, int *ret_rc, SqlError *error) {
        SqliteConnection *c = s->connection;
        int rc = attached_step(&c->attached, c->file, &c->access, s->stmt, error);

        if (rc != SQLITE_DONE && (rc & 0xff) != SQLITE_BUSY && error->error == ERROR_NONE && attached_opened(&c->attached))
                explain_opened(c, rc, error);
        attached_settle(&c->attached, c->file);
        *ret_rc = rc;
        if (rc == SQLITE_DONE)
                return ENGINE_DONE;
        return error->error == ERROR_BUSY ? ENGINE_BUSY : ENGINE_FAILED;
}

EngineResult sqlite_rows_step(SqliteStatement *s, RowSink *sink, SqlError *error) {
        EngineResult result;
        int rc;

        if (!s->runs_alone && !sqlite_connection_may_step(s->connection, error))
                return ENGINE_FAILED;
        if (s->does_nothing)
                return ENGINE_DONE;
        result = s->attaches ? attach(s, &rc, error) : step(s, sink, &rc);
        if (result == ENGINE_FAILED && is_transient(rc) && error->error == ERROR_NONE)
                return is_busy(rc, error);
        if (result == ENGINE_FAILED) {
                (void) fail(s, rc, error);
                return recover(s, error);
        }
        sink->n_columns = (unsigned) sqlite3_column_count(s->stmt);
        return result;
}

/* Adds value `v`. False: SQLite had no memory to convert it. */
static inline bool add_value(PageRow *row, sqlite3_value *v) {
        const void *bytes;
        uint8_t *at;
        size_t size;
        int type = sqlite3_value_type(v);

        switch (type) {
        case SQLITE_TEXT:
                bytes = sqlite3_value_text(v);
                if (!bytes)
                        return false;
                size = (size_t) sqlite3_value_bytes(v) + 1; /* SQLite puts a NUL after it */
                at = page_row_add(row, VALUE_TEXT, size);
                if (at)
                        memcpy(at, bytes, size);
                return true;
        case SQLITE_INTEGER:
                at = page_row_add(row, VALUE_INTEGER, 8);
                if (at)
                        store_le64(at, (uint64_t) sqlite3_value_int64(v));
                return true;
        case SQLITE_FLOAT:
                at = page_row_add(row, VALUE_REAL, 8);
                if (at)
                        store_le_double(at, sqlite3_value_double(v));
                return true;
        case SQLITE_BLOB:
                /* the size before the blob: zeroblob() need not be expanded if it does not fit anyway */
                size = (size_t) sqlite3_value_bytes(v);
                at = page_row_add(row, VALUE_BLOB, size);
                if (!at || size == 0)
                        return true;
                bytes = sqlite3_value_blob(v);
                if (!bytes)
                        return false;
                memcpy(at, bytes, size);
                return true;
        default:
                (void) page_row_add(row, VALUE_NULL, 0);
                return true;
        }
}

/* Encodes the row that waits. ENGINE_FAILED: SQLite had no memory to convert a value. */
static EngineResult encode(SqliteStatement *s, RowSink *sink) {
        unsigned n = sink->n_columns;
        EngineResult result = row_sink_begin(sink);
        RowLayout layout;
        sqlite3_value *first;
        PageRow row;

        if (result != ENGINE_ROW)
                return result;
        first = row_layout_first(&s->layout, s->stmt, n);
        layout = s->layout;
        row = sink->encoder->values;
        for (unsigned i = 0; i < n; i++) {
                /* At most one lookup for each column: sqlite3_column_type/text/bytes would each repeat it. The value is
                 * "unprotected", which only matters if threads share the connection (see sqlite3_value in sqlite3.h). */
                sqlite3_value *v = first ? row_layout_value(&layout, first, i) : sqlite3_column_value(s->stmt, (int) i);

                if (!add_value(&row, v)) {
                        page_encoder_abort_row(sink->encoder);
                        return ENGINE_FAILED;
                }
        }
        sink->encoder->values = row;
        return row_sink_end(sink);
}

EngineResult sqlite_rows_fill(SqliteStatement *s, RowSink *sink, SqlError *error) {
        for (;;) {
                EngineResult result = sink->row_waits ? encode(s, sink) : ENGINE_ROW;
                int rc = SQLITE_NOMEM;

                if (result == ENGINE_ROW)
                        result = step(s, sink, &rc);
                if (result == ENGINE_FAILED)
                        return fail(s, rc, error);
                if (result != ENGINE_ROW)
                        return result;
        }
}

/* Does not expand a zeroblob(), which may be over the limit. */
bool sqlite_rows_measure(SqliteStatement *s, unsigned i, ValueType *ret_type, uint64_t *ret_size, SqlError *error) {
        sqlite3_value *v = sqlite3_column_value(s->stmt, (int) i);

        *ret_type = (ValueType) sqlite3_value_type(v);
        *ret_size = 0;
        switch (*ret_type) {
        case VALUE_INTEGER:
        case VALUE_REAL:
                *ret_size = 8;
                break;
        case VALUE_TEXT:
                if (!sqlite3_value_text(v)) /* could not be converted to UTF-8 */
                        return fail_memory(s, error);
                *ret_size = (uint64_t) sqlite3_value_bytes(v) + 1; /* SQLite puts a NUL after it */
                break;
        case VALUE_BLOB:
                *ret_size = (uint64_t) sqlite3_value_bytes(v);
                break;
        case VALUE_NULL:
                break;
        }
        return true;
}

const uint8_t *sqlite_rows_value(SqliteStatement *s, unsigned i, uint8_t number[static 8], SqlError *error) {
        sqlite3_value *v = sqlite3_column_value(s->stmt, (int) i);
        const uint8_t *bytes;

        switch (sqlite3_value_type(v)) {
        case SQLITE_INTEGER:
                store_le64(number, (uint64_t) sqlite3_value_int64(v));
                return number;
        case SQLITE_FLOAT:
                store_le_double(number, sqlite3_value_double(v));
                return number;
        case SQLITE_TEXT:
                bytes = sqlite3_value_text(v);
                break;
        default:
                bytes = sqlite3_value_blob(v);
        }
        if (!bytes)
                (void) fail_memory(s, error);
        return bytes;
}
