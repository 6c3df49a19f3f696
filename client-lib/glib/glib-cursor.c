/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cursors (glib-cursor.h). GLib library. */
#include "client-lib/glib/glib-cursor.h"

#include <errno.h>

#include "client-lib/glib/glib-connection.h"
#include "client-lib/glib/glib-error.h"

/**
 * SqlipcCursor:
 *
 * One run of a statement, row by row.
 *
 * Rows that have arrived are taken without a turn of the main loop. The run is parked at the service while the program does
 * not read, and the service ends it after a time (`ParkTimeoutSec=`), so a program should read a result to its end or close
 * the cursor. Dropping the last reference closes it.
 */
struct _SqlipcCursor {
        GObject parent;
        SqlipcConnection *connection;
        GObject *owner;             /* the statement, which must not be finalized before; NULL: a query */
        sqlipc_cursor *handle;      /* NULL: closed */
        Columns *columns;
        const sqlipc_value *values; /* of the block, from the next row on; valid until the next block */
        gsize n_rows;               /* that are left of it */
        SqlipcRows *held;           /* the block, if it was kept; NULL: it is libsqlipc's */
        GQueue kept;                /* of SqlipcRows, the next blocks, which came after a cancellation */
        bool reads;                 /* it is the library's own, and changes nothing */
        bool busy;                  /* an operation is under way */
};

G_DEFINE_FINAL_TYPE(SqlipcCursor, sqlipc_glib_cursor, G_TYPE_OBJECT)

static void on_ready(sqlipc_cursor *handle, void *userdata) {
        (void) handle;
        operation_wake(userdata);
}

static Outcome fail(const SqlipcConnection *connection, int r, GError **error) {
        error_set_last(error, connection_handle((SqlipcConnection *) connection), r);
        return OUTCOME_FAILED;
}

/* ---- Runs that are cancelled -------------------------------------------------------------------------------------- */

static void keep(SqlipcCursor *self, const sqlipc_value *values, gsize n) {
        if (n > 0)
                g_queue_push_tail(&self->kept, rows_new(self->columns, values, n));
}

static void drop_rows(SqlipcCursor *self) {
        self->n_rows = 0;
        g_clear_object(&self->held);
        g_queue_clear_full(&self->kept, g_object_unref);
}

/* Reads the run to its end, which tells if it has written. If it has, the program gets its rows, so they are kept. */
static Outcome drain(SqlipcCursor *self, GError **error) {
        const sqlipc_value *values;
        gsize n;
        int r;

        if (!self->held) { /* libsqlipc needs the memory for the next block */
                keep(self, self->values, self->n_rows);
                self->n_rows = 0;
        }
        r = sqlipc_cursor_next_block(self->handle, 0, &values, &n);
        if (r > 0) {
                keep(self, values, n);
                return OUTCOME_AGAIN;
        }
        if (r == -EAGAIN)
                return OUTCOME_WAIT;
        if (r == 0)
                return OUTCOME_DONE;
        drop_rows(self); /* of changes that were taken back, or may have been */
        return fail(self->connection, r, error);
}

/* ---- A run that begins -------------------------------------------------------------------------------------------- */

static Outcome try_query(Operation *o, GError **error) {
        const sqlipc_value *values = NULL;
        SqlipcCursor *cursor;
        gsize n = 0;
        int r;

        if (o->result) /* cancelled, after its first rows had come */
                return drain(SQLIPC_CURSOR(o->result), error);
        r = sqlipc_cursor_next_block(o->handle, 0, &values, &n);
        if (r == -EAGAIN)
                return OUTCOME_WAIT;
        if (r < 0)
                return fail(o->connection, r, error);
        cursor = g_object_new(SQLIPC_TYPE_CURSOR, NULL);
        cursor->connection = g_object_ref(o->connection);
        cursor->owner = o->data ? g_object_ref(o->data) : NULL;
        cursor->handle = g_steal_pointer(&o->handle);
        cursor->reads = !o->may_write;
        cursor->columns = columns_new(cursor->handle);
        cursor->values = values;
        cursor->n_rows = r > 0 ? n : 0;
        o->result = G_OBJECT(cursor);
        if (r > 0 && o->cancelled)
                return OUTCOME_AGAIN;
        return OUTCOME_DONE;
}

static sqlipc_cursor *run_of(const Operation *o) {
        return o->result ? SQLIPC_CURSOR(o->result)->handle : o->handle;
}

static bool run_may_write(const Operation *o) { return !sqlipc_cursor_is_readonly(run_of(o)); }

static void cancel_run(Operation *o) { (void) sqlipc_cursor_cancel(run_of(o)); }

static void settles(Operation *o) {
        o->may_write = run_may_write;
        o->cancel = cancel_run;
        o->fact = "the statement took effect";
}

static void release_run(Operation *o, bool failed) {
        if (o->result)
                (void) sqlipc_cursor_set_ready_callback(run_of(o), NULL, NULL);
        if (failed)
                g_clear_object(&o->result);
        /* Closing cancels the run at the service. */
        o->handle = sqlipc_cursor_close(o->handle);
}

void cursor_prepare_read(Operation *o, sqlipc_cursor *handle, GObject *owner) {
        o->handle = handle;
        o->data = owner;
        o->try = try_query;
        o->release = release_run;
        if (handle)
                (void) sqlipc_cursor_set_ready_callback(handle, on_ready, o);
}

void cursor_prepare_query(Operation *o, sqlipc_cursor *handle, GObject *owner) {
        cursor_prepare_read(o, handle, owner);
        settles(o);
}

/* ---- A run for its effect ----------------------------------------------------------------------------------------- */

static Outcome try_execute(Operation *o, GError **error) {
        const sqlipc_value *values;
        gsize n;
        int r = sqlipc_cursor_next_block(o->handle, 0, &values, &n);

        if (r > 0)
                return OUTCOME_AGAIN;
        if (r == -EAGAIN)
                return OUTCOME_WAIT;
        if (r < 0)
                return fail(o->connection, r, error);
        o->changes = sqlipc_cursor_changes(o->handle);
        o->last_rowid = sqlipc_cursor_last_rowid(o->handle);
        return OUTCOME_DONE;
}

void cursor_prepare_execute(Operation *o, sqlipc_cursor *handle) {
        cursor_prepare_query(o, handle, NULL);
        o->try = try_execute;
}

/* ---- The next rows ------------------------------------------------------------------------------------------------ */

/* 1: the block has a row; 0: the end; else a negative errno. */
static int ensure_block(SqlipcCursor *self, gsize n_rows_max) {
        int r;

        if (self->n_rows > 0)
                return 1;
        if (!self->handle)
                return -ENOTCONN;
        g_clear_object(&self->held);
        self->held = g_queue_pop_head(&self->kept);
        if (self->held) {
                self->values = rows_values(self->held, 0);
                self->n_rows = sqlipc_glib_rows_get_n_rows(self->held);
                return 1;
        }
        r = sqlipc_cursor_next_block(self->handle, n_rows_max, &self->values, &self->n_rows);
        if (r <= 0)
                self->n_rows = 0;
        return r;
}

static const sqlipc_value *take_rows(SqlipcCursor *self, gsize n) {
        const sqlipc_value *values = self->values;

        self->values += n * self->columns->n;
        self->n_rows -= n;
        return values;
}

Columns *cursor_columns(SqlipcCursor *self) { return self->columns; }

static Outcome try_next(Operation *o, GError **error) {
        SqlipcCursor *self = SQLIPC_CURSOR(o->owner);
        const bool one = o->flag;
        gsize n;
        int r;

        if (o->cancelled) {
                Outcome outcome = drain(self, error);

                if (outcome != OUTCOME_DONE)
                        return outcome;
        }
        r = ensure_block(self, one ? 0 : o->position);
        if (r == -EAGAIN)
                return OUTCOME_WAIT;
        if (r < 0 && !self->handle) {
                g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_CLOSED, "The cursor is closed.");
                return OUTCOME_FAILED;
        }
        if (r < 0)
                return fail(o->connection, r, error);
        if (r == 0)
                return OUTCOME_DONE;
        n = one ? 1 : MIN(o->position, self->n_rows);
        o->result = one ? G_OBJECT(row_new(self->columns, take_rows(self, 1)))
                        : G_OBJECT(rows_new(self->columns, take_rows(self, n), n));
        return OUTCOME_DONE;
}

/* A reader that does not wait any longer wants no more rows: the run ends at the service, too. */
static void release_next(Operation *o, bool failed) {
        SqlipcCursor *self = SQLIPC_CURSOR(o->owner);

        self->busy = false;
        if (self->handle) {
                (void) sqlipc_cursor_set_ready_callback(self->handle, NULL, NULL);
                if (failed && g_cancellable_is_cancelled(o->cancellable))
                        (void) sqlipc_cursor_cancel(self->handle);
        }
}

static bool next_may_write(const Operation *o) {
        const SqlipcCursor *self = SQLIPC_CURSOR(o->owner);

        return self->handle && !self->reads && !sqlipc_cursor_is_readonly(self->handle);
}

static void cancel_next(Operation *o) { (void) sqlipc_cursor_cancel(SQLIPC_CURSOR(o->owner)->handle); }

static Operation *new_next(SqlipcCursor *self, bool one, guint n_rows_max, GCancellable *cancellable, GError **error) {
        Operation *o = operation_new(self->connection, self, cancellable);

        o->try = try_next;
        o->flag = one;
        o->position = n_rows_max > 0 ? n_rows_max : 1024;
        if (self->busy) {
                g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_PENDING, "The cursor has an operation under way.");
                return o;
        }
        self->busy = true;
        o->release = release_next;
        o->may_write = next_may_write;
        o->cancel = cancel_next;
        o->fact = "the statement took effect";
        if (self->handle)
                (void) sqlipc_cursor_set_ready_callback(self->handle, on_ready, o);
        return o;
}

static gpointer next_sync(SqlipcCursor *self, bool one, guint n_rows_max, GCancellable *cancellable, GError **error) {
        g_autoptr(Operation) o = NULL;
        GError *failure = NULL;

        o = new_next(self, one, n_rows_max, cancellable, &failure);
        return operation_run(o, failure, error) ? operation_take(o) : NULL;
}

static void next_async(SqlipcCursor *self, bool one, guint n_rows_max, gpointer tag, GCancellable *cancellable,
                       GAsyncReadyCallback callback, gpointer user_data) {
        GError *failure = NULL;
        Operation *o = new_next(self, one, n_rows_max, cancellable, &failure);

        operation_set_task(o, tag, callback, user_data);
        operation_start(o, failure);
}

static gpointer next_finish(SqlipcCursor *self, GAsyncResult *result, gpointer tag, GError **error) {
        Operation *o = operation_finish(self, result, tag, error);

        return o ? operation_take(o) : NULL;
}

/**
 * sqlipc_glib_cursor_next:
 * @self: a cursor
 * @cancellable: (nullable): a cancellable; cancels the run at the service
 * @error: return location for an error
 *
 * Goes to the next row.
 *
 * If the run of a statement that may write is cancelled, this function waits for up to five seconds until the service has
 * said how the run ended. After %G_IO_ERROR_CANCELLED it has changed nothing. If it was done before, the function succeeds,
 * and the cursor still has all rows. After %SQLIPC_GLIB_ERROR_OUTCOME_UNKNOWN the statement may have taken effect.
 *
 * Returns: (transfer full) (nullable): the row; %NULL without an error at the end of the result
 */
SqlipcRow *sqlipc_glib_cursor_next(SqlipcCursor *self, GCancellable *cancellable, GError **error) {
        g_return_val_if_fail(SQLIPC_IS_CURSOR(self), NULL);
        return next_sync(self, true, 0, cancellable, error);
}

/**
 * sqlipc_glib_cursor_next_async:
 * @self: a cursor
 * @cancellable: (nullable): a cancellable; cancels the run at the service
 * @callback: (scope async): called when the row is there
 * @user_data: data of @callback
 *
 * Goes to the next row, without waiting. A cursor has one such call at a time. For a cancellation see
 * [method@Sqlipc.Cursor.next].
 */
void sqlipc_glib_cursor_next_async(SqlipcCursor *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                   gpointer user_data) {
        g_return_if_fail(SQLIPC_IS_CURSOR(self));
        next_async(self, true, 0, sqlipc_glib_cursor_next_async, cancellable, callback, user_data);
}

/**
 * sqlipc_glib_cursor_next_finish:
 * @self: a cursor
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Returns: (transfer full) (nullable): the row; %NULL without an error at the end of the result
 */
SqlipcRow *sqlipc_glib_cursor_next_finish(SqlipcCursor *self, GAsyncResult *result, GError **error) {
        g_return_val_if_fail(SQLIPC_IS_CURSOR(self), NULL);
        return next_finish(self, result, sqlipc_glib_cursor_next_async, error);
}

/**
 * sqlipc_glib_cursor_next_rows:
 * @self: a cursor
 * @n_rows_max: the largest number of rows; 0: the library chooses
 * @cancellable: (nullable): a cancellable; cancels the run at the service
 * @error: return location for an error
 *
 * Takes the next row, and those after it that have arrived already. For a cancellation see [method@Sqlipc.Cursor.next].
 *
 * Returns: (transfer full) (nullable): the rows; %NULL without an error at the end of the result
 */
SqlipcRows *sqlipc_glib_cursor_next_rows(SqlipcCursor *self, guint n_rows_max, GCancellable *cancellable, GError **error) {
        g_return_val_if_fail(SQLIPC_IS_CURSOR(self), NULL);
        return next_sync(self, false, n_rows_max, cancellable, error);
}

/**
 * sqlipc_glib_cursor_next_rows_async:
 * @self: a cursor
 * @n_rows_max: the largest number of rows; 0: the library chooses
 * @cancellable: (nullable): a cancellable; cancels the run at the service
 * @callback: (scope async): called when rows are there
 * @user_data: data of @callback
 *
 * Takes the next rows, without waiting. For a cancellation see [method@Sqlipc.Cursor.next].
 */
void sqlipc_glib_cursor_next_rows_async(SqlipcCursor *self, guint n_rows_max, GCancellable *cancellable,
                                        GAsyncReadyCallback callback, gpointer user_data) {
        g_return_if_fail(SQLIPC_IS_CURSOR(self));
        next_async(self, false, n_rows_max, sqlipc_glib_cursor_next_rows_async, cancellable, callback, user_data);
}

/**
 * sqlipc_glib_cursor_next_rows_finish:
 * @self: a cursor
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Returns: (transfer full) (nullable): the rows; %NULL without an error at the end of the result
 */
SqlipcRows *sqlipc_glib_cursor_next_rows_finish(SqlipcCursor *self, GAsyncResult *result, GError **error) {
        g_return_val_if_fail(SQLIPC_IS_CURSOR(self), NULL);
        return next_finish(self, result, sqlipc_glib_cursor_next_rows_async, error);
}

/* ---- Other functions for programs --------------------------------------------------------------------------------- */

/**
 * sqlipc_glib_cursor_get_n_columns:
 * @self: a cursor
 *
 * Returns: the number of columns
 */
guint sqlipc_glib_cursor_get_n_columns(SqlipcCursor *self) {
        g_return_val_if_fail(SQLIPC_IS_CURSOR(self), 0);
        return self->columns->n;
}

/**
 * sqlipc_glib_cursor_dup_column_names:
 * @self: a cursor
 *
 * Returns: (array zero-terminated=1) (transfer full): the names of the columns
 */
char **sqlipc_glib_cursor_dup_column_names(SqlipcCursor *self) {
        g_return_val_if_fail(SQLIPC_IS_CURSOR(self), NULL);
        return g_strdupv(self->columns->names);
}

/**
 * sqlipc_glib_cursor_get_column_decltype:
 * @self: a cursor
 * @column: a column, from 0
 *
 * Returns: (nullable): the declared type of the column; %NULL for an expression
 */
const char *sqlipc_glib_cursor_get_column_decltype(SqlipcCursor *self, guint column) {
        g_return_val_if_fail(SQLIPC_IS_CURSOR(self), NULL);
        return column < self->columns->n ? self->columns->decltypes[column] : NULL;
}

/**
 * sqlipc_glib_cursor_cancel:
 * @self: a cursor
 *
 * Cancels the run at the service. The next calls return the rows that were on their way, and then
 * %SQLIPC_GLIB_ERROR_CANCELLED, or the end if the run had ended before.
 */
void sqlipc_glib_cursor_cancel(SqlipcCursor *self) {
        g_return_if_fail(SQLIPC_IS_CURSOR(self));
        if (self->handle)
                (void) sqlipc_cursor_cancel(self->handle);
}

/**
 * sqlipc_glib_cursor_close:
 * @self: a cursor
 *
 * Ends the run, and gives back what the service holds for it. If the run may write and has not ended, its outcome is not
 * told. Later calls for rows fail with %G_IO_ERROR_CLOSED. If a call is under way, use [method@Sqlipc.Cursor.cancel]
 * instead.
 */
void sqlipc_glib_cursor_close(SqlipcCursor *self) {
        g_return_if_fail(SQLIPC_IS_CURSOR(self));
        g_return_if_fail(!self->busy);
        drop_rows(self);
        self->handle = sqlipc_cursor_close(self->handle);
}

/**
 * sqlipc_glib_cursor_get_changes:
 * @self: a cursor
 *
 * Returns: how many rows the run has changed, after its end; else 0
 */
gint64 sqlipc_glib_cursor_get_changes(SqlipcCursor *self) {
        g_return_val_if_fail(SQLIPC_IS_CURSOR(self), 0);
        return self->handle ? sqlipc_cursor_changes(self->handle) : 0;
}

/**
 * sqlipc_glib_cursor_get_last_rowid:
 * @self: a cursor
 *
 * Returns: the rowid of the last row that the run has inserted, after its end; else 0
 */
gint64 sqlipc_glib_cursor_get_last_rowid(SqlipcCursor *self) {
        g_return_val_if_fail(SQLIPC_IS_CURSOR(self), 0);
        return self->handle ? sqlipc_cursor_last_rowid(self->handle) : 0;
}

/**
 * sqlipc_glib_cursor_get_sequence:
 * @self: a cursor
 *
 * Gets the change sequence of the database for this run: each change that the result does not have gets a larger number.
 *
 * Returns: the sequence after the end of the run; else 0
 */
guint64 sqlipc_glib_cursor_get_sequence(SqlipcCursor *self) {
        g_return_val_if_fail(SQLIPC_IS_CURSOR(self), 0);
        return self->handle ? sqlipc_cursor_sequence(self->handle) : 0;
}

static void finalize(GObject *object) {
        SqlipcCursor *self = SQLIPC_CURSOR(object);

        drop_rows(self);
        self->handle = sqlipc_cursor_close(self->handle);
        g_clear_pointer(&self->columns, columns_unref);
        g_clear_object(&self->owner);
        g_clear_object(&self->connection);
        G_OBJECT_CLASS(sqlipc_glib_cursor_parent_class)->finalize(object);
}

static void sqlipc_glib_cursor_init(SqlipcCursor *self) { (void) self; }

static void sqlipc_glib_cursor_class_init(SqlipcCursorClass *class) { G_OBJECT_CLASS(class)->finalize = finalize; }
