/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See library-side.h. */
#include "tests/reliability/differential/library-side.h"

#include <errno.h>
#include <string.h>

/* Only a service that hangs needs so long. */
#define PATIENCE_USEC ((uint64_t) 120 * 1000 * 1000)

int library_side_open(LibrarySide *side, const char *address) {
        int r = sqlipc_open_address(address, &side->connection);

        if (r >= 0)
                r = sqlipc_set_timeout(side->connection, PATIENCE_USEC);
        if (r >= 0)
                r = sqlipc_set_transport(side->connection, side->transport);
        return r;
}

void library_side_close(LibrarySide *side) {
        side->connection = sqlipc_close(side->connection);
}

static int bind_by_name(sqlipc_statement *s, const sqlipc_parameter *p) {
        switch (p->type) {
        case SQLIPC_INTEGER:
                return sqlipc_bind_int64_by_name(s, p->name, p->integer);
        case SQLIPC_REAL:
                return sqlipc_bind_double_by_name(s, p->name, p->real);
        case SQLIPC_TEXT:
                return sqlipc_bind_text_by_name(s, p->name, p->bytes, p->size);
        case SQLIPC_BLOB:
                return sqlipc_bind_blob_by_name(s, p->name, p->bytes, p->size);
        case SQLIPC_NULL:
                break;
        }
        return sqlipc_bind_null_by_name(s, p->name);
}

static int bind_by_index(sqlipc_statement *s, unsigned index, const sqlipc_parameter *p) {
        switch (p->type) {
        case SQLIPC_INTEGER:
                return sqlipc_bind_int64(s, index, p->integer);
        case SQLIPC_REAL:
                return sqlipc_bind_double(s, index, p->real);
        case SQLIPC_TEXT:
                return sqlipc_bind_text(s, index, p->bytes, p->size);
        case SQLIPC_BLOB:
                return sqlipc_bind_blob(s, index, p->bytes, p->size);
        case SQLIPC_NULL:
                break;
        }
        return sqlipc_bind_null(s, index);
}

static int execute(LibrarySide *side, const char *database, const Query *q, LibraryRun *run) {
        unsigned position = 0;
        int r;

        r = sqlipc_prepare(side->connection, database, q->sql, &run->statement);
        for (size_t i = 0; i < q->n_parameters && r >= 0; i++)
                if (q->parameters[i].name)
                        r = bind_by_name(run->statement, &q->parameters[i]);
                else
                        r = bind_by_index(run->statement, ++position, &q->parameters[i]);
        return r < 0 ? r : sqlipc_execute(run->statement, &run->cursor);
}

void library_side_start(LibrarySide *side, const char *database, const Query *q, LibraryRun *run) {
        *run = (LibraryRun) { .r = sqlipc_set_blocking(side->connection, 0) };
        if (run->r < 0)
                return;
        if (q->prepared && !side->by_relay)
                run->r = execute(side, database, q, run);
        else
                run->r = sqlipc_query_with(side->connection, database, q->sql, q->parameters, q->n_parameters, &run->cursor);
        run->code = run->r < 0 ? sqlipc_error_sqlite_extended_code(side->connection) : 0;
}

static void take_columns(sqlipc_cursor *cursor, Result *result) {
        result->n_columns = sqlipc_column_count(cursor);
        for (unsigned i = 0; i < result->n_columns; i++) {
                result_add_name(result, sqlipc_column_name(cursor, i));
                result_add_name(result, sqlipc_column_decltype(cursor, i));
        }
}

static void take_row(sqlipc_cursor *cursor, Result *result) {
        result_begin_row(result);
        for (unsigned i = 0; i < result->n_columns; i++) {
                sqlipc_type type = sqlipc_column_type(cursor, i);
                const char *bytes;
                size_t size;

                switch (type) {
                case SQLIPC_INTEGER:
                        result_add_int64(result, sqlipc_column_int64(cursor, i));
                        break;
                case SQLIPC_REAL:
                        result_add_double(result, sqlipc_column_double(cursor, i));
                        break;
                case SQLIPC_TEXT:
                        bytes = sqlipc_column_text(cursor, i, &size);
                        if (bytes[size] != 0)
                                result_trouble(result, "no NUL behind TEXT of %zu bytes", size);
                        result_add_value(result, SQLIPC_TEXT, bytes, size);
                        break;
                case SQLIPC_BLOB:
                        bytes = sqlipc_column_blob(cursor, i, &size);
                        if (!bytes)
                                result_trouble(result, "a BLOB of %zu bytes without a pointer", size);
                        result_add_value(result, SQLIPC_BLOB, bytes, size);
                        break;
                case SQLIPC_NULL:
                        result_add_value(result, SQLIPC_NULL, NULL, 0);
                        break;
                }
        }
}

/* The failure `r`. One that SQLite had no part in is no result. */
static void take_failure(LibrarySide *side, int r, int code, Result *result) {
        result_fail(result, code);
        if (code == 0)
                result_trouble(result, "%s: %s", sqlipc_error_name(side->connection) ?: g_strerror(-r),
                               sqlipc_error_message(side->connection));
}

static void take_run(LibrarySide *side, LibraryRun *run, Result *result) {
        sqlipc_transport way;
        uint64_t n_rows = 0;
        int r;

        while ((r = sqlipc_cursor_next(run->cursor)) > 0) {
                if (!result->has_columns)
                        take_columns(run->cursor, result);
                take_row(run->cursor, result);
        }
        if (r < 0) {
                take_failure(side, r, sqlipc_error_sqlite_extended_code(side->connection), result);
                return;
        }
        if (!result->has_columns)
                take_columns(run->cursor, result);
        sqlipc_cursor_get_totals(run->cursor, &n_rows, NULL, NULL);
        if (n_rows != result->rows->len)
                result_trouble(result, "%u rows, and END says %" G_GUINT64_FORMAT, result->rows->len, n_rows);
        way = sqlipc_cursor_get_transport(run->cursor);
        if (way == SQLIPC_TRANSPORT_PIPE && side->way == SQLIPC_TRANSPORT_CHANNEL)
                side->n_by_pipe++;
        else if (way != side->way)
                result_trouble(result, "the run went another way, %d", (int) way);
}

void library_side_drop(LibraryRun *run) {
        run->cursor = sqlipc_cursor_close(run->cursor);
        run->statement = sqlipc_finalize(run->statement);
}

void library_side_finish(LibrarySide *side, LibraryRun *run, Result *result) {
        result_init(result);
        if (run->r >= 0)
                run->r = sqlipc_set_blocking(side->connection, 1);
        if (run->r < 0)
                take_failure(side, run->r, run->code, result);
        else
                take_run(side, run, result);
        library_side_drop(run);
}
