/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The result of a statement as an ArrowArrayStream (result-stream.h). ADBC driver. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/adbc/adbc-error.h"
#include "client-lib/adbc/arrow-struct.h"
#include "client-lib/adbc/cleanup.h"
#include "client-lib/adbc/column-builder.h"
#include "client-lib/adbc/first-rows.h"
#include "client-lib/adbc/result-stream.h"
#include "client-lib/adbc/utf8-check.h"

/* A column as its cursor describes it. */
typedef struct ResultColumn {
        char *name;
        ColumnType declared;
} ResultColumn;

struct ResultStream {
        DriverConnection *connection; /* a reference */
        char *catalog;                /* the current one when it began; NULL: none */
        DriverSettings settings;
        ResultOwner owner;
        bool finished; /* the owner was told */
        unsigned n_cancels; /* of the connection, when the stream began */
        sqlipc_cursor *cursor;
        size_t n_columns;
        ResultColumn *columns; /* NULL until the first run has told them */
        ColumnBuilder *builders;
        struct ArrowSchema schema;
        FirstRows first;
        int64_t n_rows; /* in batches so far */
        AdbcStatusCode status;
        struct AdbcError error;
        ResultStream *previous; /* open streams of the connection */
        ResultStream *next;
};

/* ---- Life ---------------------------------------------------------------------------------------------------------- */

static void link_stream(ResultStream *s) {
        s->next = s->connection->streams;
        if (s->next)
                s->next->previous = s;
        s->connection->streams = s;
        atomic_fetch_add(&s->connection->n_busy, 1);
}

static void unlink_stream(ResultStream *s) {
        if (s->previous)
                s->previous->next = s->next;
        else
                s->connection->streams = s->next;
        if (s->next)
                s->next->previous = s->previous;
        s->previous = s->next = NULL;
        atomic_fetch_sub(&s->connection->n_busy, 1);
}

static void close_cursor(ResultStream *s) {
        if (s->owner.slot && !s->finished)
                cancel_slot_set(s->owner.slot, NULL);
        s->cursor = sqlipc_cursor_close(s->cursor);
}

/* The stream needs neither cursor nor owner any more. */
static void finish(ResultStream *s) {
        if (s->finished)
                return;
        close_cursor(s);
        first_rows_done(&s->first);
        unlink_stream(s);
        s->finished = true;
        if (s->owner.finished)
                s->owner.finished(s->owner.userdata);
}

static ResultStream *free_stream(ResultStream *s) {
        DriverConnection *connection = s->connection;

        driver_connection_lock(connection);
        finish(s);
        driver_connection_unlock(connection);
        for (size_t i = 0; s->builders && i < s->n_columns; i++)
                column_builder_done(&s->builders[i]);
        for (size_t i = 0; s->columns && i < s->n_columns; i++)
                free(s->columns[i].name);
        free(s->builders);
        free(s->columns);
        free(s->catalog);
        arrow_struct_release_schema(&s->schema);
        if (s->error.release)
                s->error.release(&s->error);
        free(s);
        (void) driver_connection_unref(connection);
        return NULL;
}

/* Keeps the error, which the stream repeats. */
static AdbcStatusCode keep_error(ResultStream *s, AdbcStatusCode status) {
        s->status = status;
        finish(s);
        return status;
}

void result_stream_abandon(ResultStream *s, const char *why) {
        if (s->finished)
                return;
        (void) keep_error(s, adbc_error_set(&s->error, ADBC_STATUS_INVALID_STATE, "24000", "%s", why));
}

/* The same for an error of the statement, which may have written. */
static AdbcStatusCode fail(ResultStream *s, AdbcStatusCode status) {
        if (s->owner.judge)
                status = s->owner.judge(s->owner.userdata, s->cursor, status, &s->error);
        return keep_error(s, status);
}

void result_stream_abandon_all(DriverConnection *connection, const char *why) {
        while (connection->streams)
                result_stream_abandon(connection->streams, why);
}

bool result_stream_is_open(const ResultStream *s) { return !s->finished; }

bool result_stream_any_open(const DriverConnection *connection, const char *catalog) {
        for (const ResultStream *s = connection->streams; s; s = s->next)
                if (s->cursor && (!catalog || (s->catalog && strcmp(s->catalog, catalog) == 0)))
                        return true;
        return false;
}

/* ---- Rows ---------------------------------------------------------------------------------------------------------- */

static AdbcStatusCode start_run(ResultStream *s) {
        AdbcStatusCode status;

        if (s->cursor && s->owner.ended)
                s->owner.ended(s->owner.userdata, s->cursor);
        close_cursor(s);
        status = s->owner.run(s->owner.userdata, &s->cursor, &s->error);
        if (status == ADBC_STATUS_OK && s->cursor && s->owner.slot)
                cancel_slot_set(s->owner.slot, s->cursor);
        return status;
}

/* Takes at most `n_max` rows from the cursor, or from the cursors of the runs after it. `*ret_n` is 0 at the end of all. */
static AdbcStatusCode take_rows(ResultStream *s, size_t n_max, const sqlipc_value **ret_values, size_t *ret_n) {
        *ret_n = 0;
        while (s->cursor) {
                AdbcStatusCode status;
                int r = sqlipc_cursor_next_block(s->cursor, n_max, ret_values, ret_n);

                if (r < 0)
                        return adbc_error_cursor(&s->error, s->cursor, r);
                if (s->columns && sqlipc_column_count(s->cursor) != s->n_columns)
                        return adbc_error_set(&s->error, ADBC_STATUS_INVALID_STATE, "HY000",
                                              "The columns of the statement changed between two rows of parameters");
                if (r > 0)
                        return ADBC_STATUS_OK;
                *ret_n = 0;
                if (!s->columns) /* they are known only now, and the caller needs this cursor for them */
                        return ADBC_STATUS_OK;
                status = start_run(s);
                if (status != ADBC_STATUS_OK)
                        return status;
        }
        return ADBC_STATUS_OK;
}

static const char *type_name(sqlipc_type type) {
        switch (type) {
        case SQLIPC_INTEGER:
                return "an INTEGER";
        case SQLIPC_REAL:
                return "a REAL";
        case SQLIPC_TEXT:
                return "a TEXT";
        case SQLIPC_BLOB:
                return "a BLOB";
        case SQLIPC_NULL:
                break;
        }
        return "a NULL";
}

static const char *column_type_name(ColumnType type) {
        switch (type) {
        case COLUMN_TYPE_INT64:
                return "int64";
        case COLUMN_TYPE_DOUBLE:
                return "double";
        case COLUMN_TYPE_UTF8:
                return "utf8";
        case COLUMN_TYPE_BINARY:
                return "binary";
        case COLUMN_TYPE_UNKNOWN:
                break;
        }
        return "null";
}

/* The error of column_builder_append() for `value`, in row `row` of the result, from 1. */
static AdbcStatusCode value_error(ResultStream *s, size_t column, int64_t row, const sqlipc_value *value, int r) {
        const char *name = s->columns[column].name;
        AdbcStatusCode status = ADBC_STATUS_INVALID_DATA;

        if (r == -ENOMEM)
                return adbc_error_memory(&s->error);
        if (r == -EOVERFLOW)
                (void) adbc_error_set(&s->error, status, "54000",
                                      "Row %" PRId64 ", column \"%s\": more than 2 GiB in one batch", row, name);
        else if (r == -EILSEQ)
                (void) adbc_error_set(&s->error, status, "22021",
                                      "Row %" PRId64 ", column \"%s\": the TEXT is not valid UTF-8. Set adbc.sqlipc.text to "
                                      "\"binary\" to get the bytes, or select CAST(... AS BLOB).",
                                      row, name);
        else
                (void) adbc_error_set(&s->error, status, "22018",
                                      "Row %" PRId64
                                      ", column \"%s\": %s does not fit the type %s that the column got by its "
                                      "declaration and first values. Select CAST(... AS ...), or see adbc.sqlipc.types.",
                                      row, name, type_name(value->type), column_type_name(s->builders[column].type));
        adbc_error_add_number(&s->error, "sqlipc.row", row);
        adbc_error_add(&s->error, "sqlipc.column", name);
        return status;
}

static AdbcStatusCode append_rows(ResultStream *s, const sqlipc_value *values, size_t n, int64_t n_before) {
        for (size_t i = 0; i < s->n_columns; i++) {
                size_t bad = 0;
                int r = column_builder_append(&s->builders[i], values + i, s->n_columns, n, &bad);

                if (r < 0)
                        return value_error(s, i, n_before + (int64_t) bad + 1, values + bad * s->n_columns + i, r);
        }
        return ADBC_STATUS_OK;
}

static bool batch_has_size(const ResultStream *s) {
        size_t size = 0;

        for (size_t i = 0; i < s->n_columns; i++)
                size += column_builder_size(&s->builders[i]);
        return size >= (size_t) s->settings.batch_bytes;
}

/* Fills the builders with the rows of one batch. */
static AdbcStatusCode fill(ResultStream *s, int64_t *ret_n) {
        int64_t n = 0;

        while (n < s->settings.batch_rows && !batch_has_size(s)) {
                size_t n_max = (size_t) (s->settings.batch_rows - n), n_block;
                const sqlipc_value *values;
                AdbcStatusCode status;

                n_block = first_rows_take(&s->first, n_max, &values);
                if (n_block == 0) {
                        status = take_rows(s, n_max, &values, &n_block);
                        if (status != ADBC_STATUS_OK)
                                return status;
                }
                if (n_block == 0)
                        break;
                status = append_rows(s, values, n_block, s->n_rows + n);
                if (status != ADBC_STATUS_OK)
                        return status;
                n += (int64_t) n_block;
        }
        *ret_n = n;
        return ADBC_STATUS_OK;
}

static AdbcStatusCode finish_batch(ResultStream *s, int64_t n, struct ArrowArray *ret_array) {
        _cleanup_(arrow_struct_release_array) struct ArrowArray batch = { .release = NULL };
        void *buffers[1] = { NULL };

        if (arrow_struct_array(&batch, n, 0, buffers, 1, s->n_columns) < 0)
                return adbc_error_memory(&s->error);
        for (size_t i = 0; i < s->n_columns; i++)
                if (column_builder_finish(&s->builders[i], batch.children[i]) < 0)
                        return adbc_error_memory(&s->error);
        s->n_rows += n;
        *ret_array = batch;
        batch.release = NULL;
        return ADBC_STATUS_OK;
}

/* ---- Types --------------------------------------------------------------------------------------------------------- */

static AdbcStatusCode add_first_rows(ResultStream *s, const sqlipc_value *values, size_t n) {
        return n == 0 || first_rows_add(&s->first, values, n, s->n_columns) >= 0 ? ADBC_STATUS_OK
                                                                                 : adbc_error_memory(&s->error);
}

static AdbcStatusCode add_column(ResultStream *s, const char *name, const char *declared) {
        ResultColumn *column = &s->columns[s->n_columns];

        column->declared = column_type_of_declaration(declared);
        column->name = utf8_make_valid(name ? name : ""); /* errors have it, too */
        if (!column->name)
                return adbc_error_memory(&s->error);
        s->n_columns++;
        return ADBC_STATUS_OK;
}

static AdbcStatusCode describe(ResultStream *s) {
        unsigned n = sqlipc_column_count(s->cursor);
        AdbcStatusCode status = ADBC_STATUS_OK;

        s->columns = calloc(n + 1, sizeof *s->columns);
        if (!s->columns)
                return adbc_error_memory(&s->error);
        for (unsigned i = 0; i < n && status == ADBC_STATUS_OK; i++)
                status = add_column(s, sqlipc_column_name(s->cursor, i), sqlipc_column_decltype(s->cursor, i));
        return status;
}

static AdbcStatusCode describe_statement(ResultStream *s, sqlipc_statement *prepared) {
        unsigned n = sqlipc_statement_column_count(prepared);
        AdbcStatusCode status = ADBC_STATUS_OK;

        s->columns = calloc(n + 1, sizeof *s->columns);
        if (!s->columns)
                return adbc_error_memory(&s->error);
        for (unsigned i = 0; i < n && status == ADBC_STATUS_OK; i++)
                status = add_column(s, sqlipc_statement_column_name(prepared, i),
                                    sqlipc_statement_column_decltype(prepared, i));
        return status;
}

/* Copies the rows by which types are chosen. They end after batch_bytes, so that their memory is bounded, too. */
static AdbcStatusCode take_first_rows(ResultStream *s) {
        const sqlipc_value *values;
        size_t n, n_max = (size_t) s->settings.infer_rows;
        AdbcStatusCode status;

        status = take_rows(s, n_max, &values, &n);
        if (status == ADBC_STATUS_OK)
                status = describe(s);
        if (status == ADBC_STATUS_OK)
                status = add_first_rows(s, values, n);
        while (status == ADBC_STATUS_OK && s->n_columns > 0 && s->cursor && s->first.n_rows < n_max &&
               s->first.size < (size_t) s->settings.batch_bytes) {
                status = take_rows(s, n_max - s->first.n_rows, &values, &n);
                if (status == ADBC_STATUS_OK)
                        status = add_first_rows(s, values, n);
        }
        return status;
}

static AdbcStatusCode choose_types(ResultStream *s) {
        s->builders = calloc(s->n_columns + 1, sizeof *s->builders);
        if (!s->builders || arrow_struct_schema(&s->schema, "+s", "", 0, s->n_columns) < 0)
                return adbc_error_memory(&s->error);
        for (size_t i = 0; i < s->n_columns; i++) {
                SeenValues seen = first_rows_see(&s->first, i);
                ColumnType type = column_type_choose((TypeSource) s->settings.types, s->columns[i].declared, &seen);
                const char *format = column_type_format(type, s->settings.text != 0);

                s->builders[i] = (ColumnBuilder) { .type = type, .text_as_binary = s->settings.text != 0 };
                if (arrow_struct_schema(s->schema.children[i], format, s->columns[i].name, ARROW_FLAG_NULLABLE, 0) < 0)
                        return adbc_error_memory(&s->error);
        }
        return ADBC_STATUS_OK;
}

/* A statement without columns: carries out its runs now, because no consumer would pull them. */
static AdbcStatusCode run_all(ResultStream *s, int64_t *ret_changes) {
        AdbcStatusCode status = ADBC_STATUS_OK;

        *ret_changes = 0;
        while (status == ADBC_STATUS_OK && s->cursor) {
                int r = sqlipc_cursor_next(s->cursor);

                if (r < 0)
                        return adbc_error_cursor(&s->error, s->cursor, r);
                *ret_changes += sqlipc_cursor_changes(s->cursor);
                status = start_run(s);
        }
        if (status == ADBC_STATUS_OK)
                finish(s);
        return status;
}

/* The bound data has no rows: the result has the columns of the statement, and no rows. */
static AdbcStatusCode run_nothing(ResultStream *s, int64_t *ret_changes) {
        sqlipc_statement *prepared;
        AdbcStatusCode status;

        status = s->owner.describe(s->owner.userdata, &prepared, &s->error);
        if (status == ADBC_STATUS_OK)
                status = describe_statement(s, prepared);
        if (status == ADBC_STATUS_OK)
                status = choose_types(s);
        if (status == ADBC_STATUS_OK)
                finish(s);
        *ret_changes = 0;
        return status;
}

static AdbcStatusCode begin(ResultStream *s, int64_t *ret_changes) {
        AdbcStatusCode status;

        status = start_run(s);
        if (status == ADBC_STATUS_OK && !s->cursor)
                return run_nothing(s, ret_changes);
        if (status == ADBC_STATUS_OK)
                status = take_first_rows(s);
        if (status == ADBC_STATUS_OK)
                status = choose_types(s);
        *ret_changes = -1;
        return status == ADBC_STATUS_OK && s->n_columns == 0 ? run_all(s, ret_changes) : status;
}

/* ---- The stream ---------------------------------------------------------------------------------------------------- */

ResultStream *result_stream_of(struct ArrowArrayStream *stream) { return stream->private_data; }

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *ret_schema) {
        ResultStream *s = result_stream_of(stream);

        return -arrow_struct_copy_schema(ret_schema, &s->schema);
}

/* True if the connection was cancelled since the last call. The rows of a statement that writes still come: they say that it
 * took effect, and its cursor fails if the cancellation was earlier. */
static bool is_cancelled(ResultStream *s) {
        unsigned n_cancels = driver_connection_cancels(s->connection);

        if (n_cancels == s->n_cancels)
                return false;
        s->n_cancels = n_cancels;
        return !s->owner.only_reads || s->owner.only_reads(s->owner.userdata, s->cursor);
}

static AdbcStatusCode next_batch(ResultStream *s, struct ArrowArray *ret_array) {
        AdbcStatusCode status = s->status;
        int64_t n = 0;

        *ret_array = (struct ArrowArray) { .release = NULL };
        if (status != ADBC_STATUS_OK || s->finished)
                return status;
        if (is_cancelled(s))
                return fail(s, driver_connection_cancelled(&s->error));
        status = fill(s, &n);
        if (status == ADBC_STATUS_OK && n > 0)
                status = finish_batch(s, n, ret_array);
        if (status != ADBC_STATUS_OK)
                return fail(s, status);
        if (n == 0)
                finish(s);
        return status;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *ret_array) {
        ResultStream *s = result_stream_of(stream);
        AdbcStatusCode status;

        driver_connection_lock(s->connection);
        status = next_batch(s, ret_array);
        driver_connection_unlock(s->connection);
        return adbc_error_errno(status);
}

static const char *get_last_error(struct ArrowArrayStream *stream) { return result_stream_of(stream)->error.message; }

static void release(struct ArrowArrayStream *stream) {
        (void) free_stream(result_stream_of(stream));
        stream->private_data = NULL;
        stream->release = NULL;
}

const struct AdbcError *result_stream_error(struct ArrowArrayStream *stream, AdbcStatusCode *ret_status) {
        const ResultStream *s;

        if (!stream || stream->release != release)
                return NULL;
        s = result_stream_of(stream);
        if (ret_status)
                *ret_status = s->status;
        return s->status == ADBC_STATUS_OK ? NULL : &s->error;
}

/* Hands an error over to the caller's struct, which may be of another version. */
static void move_error(ResultStream *s, struct AdbcError *error) {
        if (!error)
                return;
        if (error->vendor_code == ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA) {
                struct AdbcDriver *driver = error->private_driver;

                if (error->release)
                        error->release(error);
                *error = s->error;
                error->private_driver = driver;
                s->error = (struct AdbcError) { .vendor_code = ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA };
                return;
        }
        (void) adbc_error_set(error, s->status, s->error.sqlstate, "%s", s->error.message ? s->error.message : "");
        for (int i = 0; i < adbc_error_detail_count(&s->error); i++) {
                struct AdbcErrorDetail detail = adbc_error_detail(&s->error, i);

                if (strcmp(detail.key, "sqlite.extended_code") == 0)
                        error->vendor_code = (int32_t) strtol((const char *) detail.value, NULL, 10);
        }
}

AdbcStatusCode result_stream_new(DriverConnection *connection, const DriverSettings *settings, const ResultOwner *owner,
                                 struct ArrowArrayStream *ret_stream, int64_t *ret_changes, struct AdbcError *error) {
        char *catalog = connection->catalog ? strdup(connection->catalog) : NULL;
        ResultStream *s = calloc(1, sizeof *s);
        AdbcStatusCode status;

        if (!s || (connection->catalog && !catalog)) {
                free(catalog);
                free(s);
                if (owner->finished)
                        owner->finished(owner->userdata);
                return adbc_error_memory(error);
        }
        s->connection = driver_connection_ref(connection);
        s->catalog = catalog;
        s->settings = *settings;
        s->owner = *owner;
        s->n_cancels = driver_connection_cancels(connection);
        s->error.vendor_code = ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA;
        link_stream(s);
        status = begin(s, ret_changes);
        if (status != ADBC_STATUS_OK) {
                status = fail(s, status);
                move_error(s, error);
                (void) free_stream(s);
                return status;
        }
        *ret_stream = (struct ArrowArrayStream) {
                .get_schema = get_schema,
                .get_next = get_next,
                .get_last_error = get_last_error,
                .release = release,
                .private_data = s,
        };
        return ADBC_STATUS_OK;
}
