/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Transactions. GLib library. */
#include <errno.h>

#include "client-lib/glib/glib-connection.h"
#include "client-lib/glib/glib-error.h"

/**
 * SqlipcTransaction:
 *
 * Several runs as one.
 *
 * Everything that the connection runs on the database belongs to the transaction until its end. A connection has at most one
 * transaction on a database. Dropping the last reference rolls it back, as [method@Sqlipc.Transaction.close] does.
 *
 * The service ends a transaction that takes too long (`TransactionTimeoutSec=`), or that is idle while others wait to write.
 */
struct _SqlipcTransaction {
        GObject parent;
        SqlipcConnection *connection;
        sqlipc_transaction *handle; /* NULL: closed */
        SqlipcTransactionMode mode;
        bool commits;               /* Commit was sent */
        bool busy;                  /* an operation is under way */
};

G_DEFINE_FINAL_TYPE(SqlipcTransaction, sqlipc_glib_transaction, G_TYPE_OBJECT)

static void on_ready(sqlipc_transaction *handle, void *userdata) {
        (void) handle;
        operation_wake(userdata);
}

static Outcome fail(Operation *o, int r, GError **error) {
        error_set_last(error, connection_handle(o->connection), r);
        return OUTCOME_FAILED;
}

/* ---- Begin -------------------------------------------------------------------------------------------------------- */

static Outcome try_begin(Operation *o, GError **error) {
        SqlipcTransaction *transaction;
        int r = sqlipc_transaction_is_open(o->handle);

        if (r == 0)
                return OUTCOME_WAIT;
        if (r < 0)
                return fail(o, r, error);
        transaction = g_object_new(SQLIPC_TYPE_TRANSACTION, NULL);
        transaction->connection = g_object_ref(o->connection);
        transaction->handle = g_steal_pointer(&o->handle);
        transaction->mode = (SqlipcTransactionMode) o->position;
        (void) sqlipc_transaction_set_ready_callback(transaction->handle, NULL, NULL);
        o->result = G_OBJECT(transaction);
        return OUTCOME_DONE;
}

static void release_begin(Operation *o, bool failed) {
        (void) failed;
        o->handle = sqlipc_transaction_close(o->handle);
}

static Operation *new_begin(SqlipcConnection *connection, const char *database, SqlipcTransactionMode mode,
                            GCancellable *cancellable, GError **error) {
        Operation *o = operation_new(connection, connection, cancellable);
        sqlipc_transaction *handle = NULL;
        int r;

        if (g_cancellable_set_error_if_cancelled(cancellable, error))
                return o;
        r = sqlipc_begin(connection_handle(connection), database, (sqlipc_transaction_mode) mode, &handle);
        if (r < 0) {
                error_set_last(error, connection_handle(connection), r);
                return o;
        }
        o->handle = handle;
        o->position = mode;
        o->try = try_begin;
        o->release = release_begin;
        (void) sqlipc_transaction_set_ready_callback(handle, on_ready, o);
        return o;
}

/**
 * sqlipc_glib_connection_begin:
 * @self: a connection
 * @database: the name of a database
 * @mode: the kind of transaction
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Begins a transaction.
 *
 * Returns: (transfer full): the transaction
 */
SqlipcTransaction *sqlipc_glib_connection_begin(SqlipcConnection *self, const char *database, SqlipcTransactionMode mode,
                                                GCancellable *cancellable, GError **error) {
        g_autoptr(Operation) o = NULL;
        GError *failure = NULL;

        g_return_val_if_fail(SQLIPC_IS_CONNECTION(self) && database, NULL);
        o = new_begin(self, database, mode, cancellable, &failure);
        return operation_run(o, failure, error) ? operation_take(o) : NULL;
}

/**
 * sqlipc_glib_connection_begin_async:
 * @self: a connection
 * @database: the name of a database
 * @mode: the kind of transaction
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async): called when the transaction has begun
 * @user_data: data of @callback
 *
 * Begins a transaction, without waiting.
 */
void sqlipc_glib_connection_begin_async(SqlipcConnection *self, const char *database, SqlipcTransactionMode mode,
                                        GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data) {
        GError *failure = NULL;
        Operation *o;

        g_return_if_fail(SQLIPC_IS_CONNECTION(self) && database);
        o = new_begin(self, database, mode, cancellable, &failure);
        operation_set_task(o, sqlipc_glib_connection_begin_async, callback, user_data);
        operation_start(o, failure);
}

/**
 * sqlipc_glib_connection_begin_finish:
 * @self: a connection
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Returns: (transfer full): the transaction
 */
SqlipcTransaction *sqlipc_glib_connection_begin_finish(SqlipcConnection *self, GAsyncResult *result, GError **error) {
        Operation *o = operation_finish(self, result, sqlipc_glib_connection_begin_async, error);

        return o ? operation_take(o) : NULL;
}

/* ---- End ---------------------------------------------------------------------------------------------------------- */

static Outcome try_end(Operation *o, GError **error) {
        SqlipcTransaction *self = SQLIPC_TRANSACTION(o->owner);
        Outcome outcome;
        int r;

        if (!self->handle) {
                g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_CLOSED, "The transaction is closed.");
                return OUTCOME_FAILED;
        }
        r = o->flag ? sqlipc_commit(self->handle) : sqlipc_rollback(self->handle);
        if (r == -EAGAIN) {
                self->commits |= o->flag;
                return OUTCOME_WAIT;
        }
        if (r >= 0)
                return OUTCOME_DONE;
        outcome = fail(o, r, error);
        if (sqlipc_transaction_is_open(self->handle) > 0) /* the commit was refused */
                self->commits = false;
        return outcome;
}

static bool end_may_write(const Operation *o) {
        const SqlipcTransaction *self = SQLIPC_TRANSACTION(o->owner);

        return self->commits && self->mode != SQLIPC_GLIB_TRANSACTION_MODE_READ;
}

static void release_end(Operation *o, bool failed) {
        SqlipcTransaction *self = SQLIPC_TRANSACTION(o->owner);

        (void) failed;
        self->busy = false;
        if (self->handle)
                (void) sqlipc_transaction_set_ready_callback(self->handle, NULL, NULL);
}

static Operation *new_end(SqlipcTransaction *self, bool commits, GCancellable *cancellable, GError **error) {
        Operation *o = operation_new(self->connection, self, cancellable);

        o->try = try_end;
        o->flag = commits;
        o->may_write = commits ? end_may_write : NULL;
        o->fact = "the transaction was committed";
        if (self->busy) {
                g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_PENDING, "The transaction has an operation under way.");
                return o;
        }
        self->busy = true;
        o->release = release_end;
        if (self->handle)
                (void) sqlipc_transaction_set_ready_callback(self->handle, on_ready, o);
        return o;
}

static gboolean end_sync(SqlipcTransaction *self, bool commits, GCancellable *cancellable, GError **error) {
        g_autoptr(Operation) o = NULL;
        GError *failure = NULL;

        o = new_end(self, commits, cancellable, &failure);
        return operation_run(o, failure, error);
}

static void end_async(SqlipcTransaction *self, bool commits, gpointer tag, GCancellable *cancellable,
                      GAsyncReadyCallback callback, gpointer user_data) {
        GError *failure = NULL;
        Operation *o = new_end(self, commits, cancellable, &failure);

        operation_set_task(o, tag, callback, user_data);
        operation_start(o, failure);
}

/**
 * sqlipc_glib_transaction_commit:
 * @self: a transaction
 * @cancellable: (nullable): a cancellable, which ends the wait only: a commit that was sent goes on
 * @error: return location for an error
 *
 * Commits the transaction. On success its changes are durable. After an error it is over and has changed nothing, except
 * after %SQLIPC_GLIB_ERROR_OUTCOME_UNKNOWN, %G_IO_ERROR_CANCELLED and %SQLIPC_GLIB_ERROR_COMMIT_REFUSED. After the last the
 * transaction is open: repair the rows that violate deferred foreign keys, and commit it again, or roll it back.
 *
 * If it is cancelled, this function waits for up to five seconds for the answer of the service. After
 * %G_IO_ERROR_CANCELLED the commit was not sent, and the transaction is still open, or it has only read. After
 * %SQLIPC_GLIB_ERROR_OUTCOME_UNKNOWN the changes may be durable: call this function again to learn the outcome, or look at
 * the data.
 *
 * Returns: whether it is committed
 */
gboolean sqlipc_glib_transaction_commit(SqlipcTransaction *self, GCancellable *cancellable, GError **error) {
        g_return_val_if_fail(SQLIPC_IS_TRANSACTION(self), FALSE);
        return end_sync(self, true, cancellable, error);
}

/**
 * sqlipc_glib_transaction_commit_async:
 * @self: a transaction
 * @cancellable: (nullable): see [method@Sqlipc.Transaction.commit]
 * @callback: (scope async): called when the transaction is committed
 * @user_data: data of @callback
 *
 * Commits the transaction, without waiting.
 */
void sqlipc_glib_transaction_commit_async(SqlipcTransaction *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                          gpointer user_data) {
        g_return_if_fail(SQLIPC_IS_TRANSACTION(self));
        end_async(self, true, sqlipc_glib_transaction_commit_async, cancellable, callback, user_data);
}

/**
 * sqlipc_glib_transaction_commit_finish:
 * @self: a transaction
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Returns: whether it is committed
 */
gboolean sqlipc_glib_transaction_commit_finish(SqlipcTransaction *self, GAsyncResult *result, GError **error) {
        g_return_val_if_fail(SQLIPC_IS_TRANSACTION(self), FALSE);
        return operation_finish(self, result, sqlipc_glib_transaction_commit_async, error) != NULL;
}

/**
 * sqlipc_glib_transaction_rollback:
 * @self: a transaction
 * @cancellable: (nullable): a cancellable, which ends the wait only: the rollback goes on
 * @error: return location for an error
 *
 * Rolls the transaction back.
 *
 * Returns: whether nothing of it is in the database
 */
gboolean sqlipc_glib_transaction_rollback(SqlipcTransaction *self, GCancellable *cancellable, GError **error) {
        g_return_val_if_fail(SQLIPC_IS_TRANSACTION(self), FALSE);
        return end_sync(self, false, cancellable, error);
}

/**
 * sqlipc_glib_transaction_rollback_async:
 * @self: a transaction
 * @cancellable: (nullable): a cancellable, which ends the wait only: the rollback goes on
 * @callback: (scope async): called when the transaction is rolled back
 * @user_data: data of @callback
 *
 * Rolls the transaction back, without waiting.
 */
void sqlipc_glib_transaction_rollback_async(SqlipcTransaction *self, GCancellable *cancellable,
                                            GAsyncReadyCallback callback, gpointer user_data) {
        g_return_if_fail(SQLIPC_IS_TRANSACTION(self));
        end_async(self, false, sqlipc_glib_transaction_rollback_async, cancellable, callback, user_data);
}

/**
 * sqlipc_glib_transaction_rollback_finish:
 * @self: a transaction
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Returns: whether nothing of it is in the database
 */
gboolean sqlipc_glib_transaction_rollback_finish(SqlipcTransaction *self, GAsyncResult *result, GError **error) {
        g_return_val_if_fail(SQLIPC_IS_TRANSACTION(self), FALSE);
        return operation_finish(self, result, sqlipc_glib_transaction_rollback_async, error) != NULL;
}

/**
 * sqlipc_glib_transaction_is_open:
 * @self: a transaction
 *
 * Returns: whether the transaction is open, as far as the library knows
 */
gboolean sqlipc_glib_transaction_is_open(SqlipcTransaction *self) {
        g_return_val_if_fail(SQLIPC_IS_TRANSACTION(self), FALSE);
        return self->handle && sqlipc_transaction_is_open(self->handle) > 0;
}

/**
 * sqlipc_glib_transaction_close:
 * @self: a transaction
 *
 * Rolls the transaction back if it is open, without waiting for that. Statements that the connection runs afterwards do not
 * belong to it. If a commit is under way, its outcome is not told.
 */
void sqlipc_glib_transaction_close(SqlipcTransaction *self) {
        g_return_if_fail(SQLIPC_IS_TRANSACTION(self));
        g_return_if_fail(!self->busy);
        self->handle = sqlipc_transaction_close(self->handle);
}

static void finalize(GObject *object) {
        SqlipcTransaction *self = SQLIPC_TRANSACTION(object);

        self->handle = sqlipc_transaction_close(self->handle);
        g_clear_object(&self->connection);
        G_OBJECT_CLASS(sqlipc_glib_transaction_parent_class)->finalize(object);
}

static void sqlipc_glib_transaction_init(SqlipcTransaction *self) { (void) self; }

static void sqlipc_glib_transaction_class_init(SqlipcTransactionClass *class) {
        G_OBJECT_CLASS(class)->finalize = finalize;
}
