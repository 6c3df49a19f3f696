/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libsqlipc-glib: libsqlipc for programs with GObject and GIO, and for their languages by introspection (namespace Sqlipc).
 * The documentation of each function is beside its definition, and in the pages that gi-docgen makes of it.
 *
 * Types begin with Sqlipc, functions and constants with sqlipc_glib_ and SQLIPC_GLIB_, so that a program may include
 * sqlipc.h as well.
 */
#ifndef SQLIPC_CLIENT_LIB_GLIB_SQLIPC_GLIB_H
#define SQLIPC_CLIENT_LIB_GLIB_SQLIPC_GLIB_H

#include <gio/gio.h>

G_BEGIN_DECLS

/* ---- Enums -------------------------------------------------------------------------------------------------------- */

/**
 * SqlipcBus:
 * @SQLIPC_GLIB_BUS_SYSTEM: the system bus
 * @SQLIPC_GLIB_BUS_USER: the user's bus
 * @SQLIPC_GLIB_BUS_FOUND: the bus that has the database, by the rule of **sqlipc_open**(3): `$SQLIPC_BUS` chooses it, or it
 *   is the user's bus if the service there has the database, or else the system's. Since: 0.2
 *
 * The bus of a connection that has no address. Another machine has no %SQLIPC_GLIB_BUS_FOUND.
 */
typedef enum {
        SQLIPC_GLIB_BUS_SYSTEM,
        SQLIPC_GLIB_BUS_USER,
        SQLIPC_GLIB_BUS_FOUND,
} SqlipcBus;

/**
 * SqlipcTransport:
 * @SQLIPC_GLIB_TRANSPORT_AUTO: the library chooses
 * @SQLIPC_GLIB_TRANSPORT_PIPE: requests over the bus, rows through a pipe
 * @SQLIPC_GLIB_TRANSPORT_CHANNEL: a private socket to the worker
 * @SQLIPC_GLIB_TRANSPORT_DBUS: over the bus alone
 *
 * How requests and rows travel. The transports differ in speed only.
 */
typedef enum {
        SQLIPC_GLIB_TRANSPORT_AUTO,
        SQLIPC_GLIB_TRANSPORT_PIPE,
        SQLIPC_GLIB_TRANSPORT_CHANNEL,
        SQLIPC_GLIB_TRANSPORT_DBUS,
} SqlipcTransport;

/**
 * SqlipcTransactionMode:
 * @SQLIPC_GLIB_TRANSACTION_MODE_READ: all statements read the same state of the database
 * @SQLIPC_GLIB_TRANSACTION_MODE_WRITE: the changes are committed together, or none
 * @SQLIPC_GLIB_TRANSACTION_MODE_DEFERRED: reads until a statement writes, which is %SQLIPC_GLIB_ERROR_BUSY if any program
 *   has committed since the first read
 *
 * The kinds of transaction.
 */
typedef enum {
        SQLIPC_GLIB_TRANSACTION_MODE_READ = 1,
        SQLIPC_GLIB_TRANSACTION_MODE_WRITE = 2,
        SQLIPC_GLIB_TRANSACTION_MODE_DEFERRED = 3,
} SqlipcTransactionMode;

/**
 * SqlipcValueType:
 * @SQLIPC_GLIB_VALUE_TYPE_INTEGER: a 64-bit integer
 * @SQLIPC_GLIB_VALUE_TYPE_REAL: a double
 * @SQLIPC_GLIB_VALUE_TYPE_TEXT: text
 * @SQLIPC_GLIB_VALUE_TYPE_BLOB: bytes
 * @SQLIPC_GLIB_VALUE_TYPE_NULL: SQL's NULL
 *
 * The storage classes of SQLite, with its numbers.
 */
typedef enum {
        SQLIPC_GLIB_VALUE_TYPE_INTEGER = 1,
        SQLIPC_GLIB_VALUE_TYPE_REAL = 2,
        SQLIPC_GLIB_VALUE_TYPE_TEXT = 3,
        SQLIPC_GLIB_VALUE_TYPE_BLOB = 4,
        SQLIPC_GLIB_VALUE_TYPE_NULL = 5,
} SqlipcValueType;

/**
 * SqlipcLiveKind:
 * @SQLIPC_GLIB_LIVE_KIND_ADDED: a row was inserted
 * @SQLIPC_GLIB_LIVE_KIND_REMOVED: a row was removed
 * @SQLIPC_GLIB_LIVE_KIND_MOVED: a row was removed and inserted elsewhere
 * @SQLIPC_GLIB_LIVE_KIND_CHANGED: a row has other values
 * @SQLIPC_GLIB_LIVE_KIND_SETTLED: the list equals the result of the last run
 *
 * The kinds of change of a live query.
 */
typedef enum {
        SQLIPC_GLIB_LIVE_KIND_ADDED = 1,
        SQLIPC_GLIB_LIVE_KIND_REMOVED = 2,
        SQLIPC_GLIB_LIVE_KIND_MOVED = 3,
        SQLIPC_GLIB_LIVE_KIND_CHANGED = 4,
        SQLIPC_GLIB_LIVE_KIND_SETTLED = 5,
} SqlipcLiveKind;

/**
 * SQLIPC_GLIB_ERROR:
 *
 * The error domain of the service's errors. Codes are of [error@Sqlipc.Error]. Other failures, such as a lost network or a
 * cancelled operation, have the domain %G_IO_ERROR.
 */
#define SQLIPC_GLIB_ERROR (sqlipc_error_quark())

/**
 * SqlipcError:
 * @SQLIPC_GLIB_ERROR_UNKNOWN_DATABASE: no such database
 * @SQLIPC_GLIB_ERROR_UNKNOWN_STATEMENT: no such statement
 * @SQLIPC_GLIB_ERROR_UNKNOWN_RUN: no such run
 * @SQLIPC_GLIB_ERROR_UNKNOWN_OPTION: an option that the service does not know
 * @SQLIPC_GLIB_ERROR_INVALID_OPTION: an invalid option
 * @SQLIPC_GLIB_ERROR_PARAMETER_COUNT: the number of parameters is wrong
 * @SQLIPC_GLIB_ERROR_UNKNOWN_PARAMETER: no such parameter
 * @SQLIPC_GLIB_ERROR_PARAMETER_TYPE: a parameter has a type that SQLite does not have
 * @SQLIPC_GLIB_ERROR_EMPTY_STATEMENT: the SQL has no statement
 * @SQLIPC_GLIB_ERROR_SEVERAL_STATEMENTS: the SQL has more than one statement
 * @SQLIPC_GLIB_ERROR_SQL: the SQL is wrong, or a constraint failed
 * @SQLIPC_GLIB_ERROR_MISSING_FUNCTION: no such SQL function
 * @SQLIPC_GLIB_ERROR_MISSING_COLLATION: no such collation
 * @SQLIPC_GLIB_ERROR_MISSING_MODULE: no such virtual table module
 * @SQLIPC_GLIB_ERROR_READ_ONLY: the database is read-only for this user
 * @SQLIPC_GLIB_ERROR_NOT_ALLOWED: the statement is not allowed
 * @SQLIPC_GLIB_ERROR_CORRUPT: the database file is damaged
 * @SQLIPC_GLIB_ERROR_FILE_MISSING: the database file is missing
 * @SQLIPC_GLIB_ERROR_CANNOT_OPEN: the database file cannot be opened
 * @SQLIPC_GLIB_ERROR_NEEDS_OWNER: only the owner of the file can open it
 * @SQLIPC_GLIB_ERROR_NEEDS_RECOVERY: the file needs recovery
 * @SQLIPC_GLIB_ERROR_INPUT_OUTPUT: an input or output error
 * @SQLIPC_GLIB_ERROR_LIMITS_EXCEEDED: a limit of the service is exceeded
 * @SQLIPC_GLIB_ERROR_ROW_TOO_LARGE: a row is too large
 * @SQLIPC_GLIB_ERROR_OUT_OF_MEMORY: out of memory
 * @SQLIPC_GLIB_ERROR_NO_SPACE: no space on the disk
 * @SQLIPC_GLIB_ERROR_BUSY: another program keeps the file locked
 * @SQLIPC_GLIB_ERROR_TIMED_OUT: a time limit has passed
 * @SQLIPC_GLIB_ERROR_READER_TOO_SLOW: the rows were read too slowly
 * @SQLIPC_GLIB_ERROR_CANCELLED: the run was cancelled
 * @SQLIPC_GLIB_ERROR_PIPE_CLOSED: the reader closed its pipe
 * @SQLIPC_GLIB_ERROR_WORKER_LOST: the worker process was lost
 * @SQLIPC_GLIB_ERROR_DAEMON_LOST: the service was lost
 * @SQLIPC_GLIB_ERROR_SHUTTING_DOWN: the service is shutting down
 * @SQLIPC_GLIB_ERROR_INTERNAL: an internal error
 * @SQLIPC_GLIB_ERROR_ACCESS_DENIED: access denied
 * @SQLIPC_GLIB_ERROR_INVALID_REQUEST: the bytes of a request are invalid
 * @SQLIPC_GLIB_ERROR_NO_DESCRIPTORS: the bus passes no descriptors
 * @SQLIPC_GLIB_ERROR_OUTCOME_UNKNOWN: the operation may or may not have been done
 * @SQLIPC_GLIB_ERROR_TRANSACTION_ENDED: the transaction has ended
 * @SQLIPC_GLIB_ERROR_SERVER_UNREACHABLE: the server of the database cannot be reached
 * @SQLIPC_GLIB_ERROR_LOGIN_FAILED: the server of the database refuses the service
 * @SQLIPC_GLIB_ERROR_COMMIT_REFUSED: deferred foreign keys are violated, and the transaction is still open
 * @SQLIPC_GLIB_ERROR_NEEDS_PIN: a live query must not use TEMP tables
 * @SQLIPC_GLIB_ERROR_PIN_LOST: the TEMP tables of the connection are gone
 *
 * Errors of the service, with the numbers of the error table. Later versions may add more.
 */
typedef enum {
        SQLIPC_GLIB_ERROR_UNKNOWN_DATABASE = 1,
        SQLIPC_GLIB_ERROR_UNKNOWN_STATEMENT = 2,
        SQLIPC_GLIB_ERROR_UNKNOWN_RUN = 3,
        SQLIPC_GLIB_ERROR_UNKNOWN_OPTION = 4,
        SQLIPC_GLIB_ERROR_INVALID_OPTION = 5,
        SQLIPC_GLIB_ERROR_PARAMETER_COUNT = 6,
        SQLIPC_GLIB_ERROR_UNKNOWN_PARAMETER = 7,
        SQLIPC_GLIB_ERROR_PARAMETER_TYPE = 8,
        SQLIPC_GLIB_ERROR_EMPTY_STATEMENT = 9,
        SQLIPC_GLIB_ERROR_SEVERAL_STATEMENTS = 10,
        SQLIPC_GLIB_ERROR_SQL = 11,
        SQLIPC_GLIB_ERROR_MISSING_FUNCTION = 12,
        SQLIPC_GLIB_ERROR_MISSING_COLLATION = 13,
        SQLIPC_GLIB_ERROR_MISSING_MODULE = 14,
        SQLIPC_GLIB_ERROR_READ_ONLY = 15,
        SQLIPC_GLIB_ERROR_NOT_ALLOWED = 16,
        SQLIPC_GLIB_ERROR_CORRUPT = 17,
        SQLIPC_GLIB_ERROR_FILE_MISSING = 18,
        SQLIPC_GLIB_ERROR_CANNOT_OPEN = 19,
        SQLIPC_GLIB_ERROR_NEEDS_OWNER = 20,
        SQLIPC_GLIB_ERROR_NEEDS_RECOVERY = 21,
        SQLIPC_GLIB_ERROR_INPUT_OUTPUT = 22,
        SQLIPC_GLIB_ERROR_LIMITS_EXCEEDED = 23,
        SQLIPC_GLIB_ERROR_ROW_TOO_LARGE = 24,
        SQLIPC_GLIB_ERROR_OUT_OF_MEMORY = 25,
        SQLIPC_GLIB_ERROR_NO_SPACE = 26,
        SQLIPC_GLIB_ERROR_BUSY = 27,
        SQLIPC_GLIB_ERROR_TIMED_OUT = 28,
        SQLIPC_GLIB_ERROR_READER_TOO_SLOW = 29,
        SQLIPC_GLIB_ERROR_CANCELLED = 30,
        SQLIPC_GLIB_ERROR_PIPE_CLOSED = 31,
        SQLIPC_GLIB_ERROR_WORKER_LOST = 32,
        SQLIPC_GLIB_ERROR_DAEMON_LOST = 33,
        SQLIPC_GLIB_ERROR_SHUTTING_DOWN = 34,
        SQLIPC_GLIB_ERROR_INTERNAL = 35,
        SQLIPC_GLIB_ERROR_ACCESS_DENIED = 36,
        SQLIPC_GLIB_ERROR_INVALID_REQUEST = 37,
        SQLIPC_GLIB_ERROR_NO_DESCRIPTORS = 38,
        SQLIPC_GLIB_ERROR_OUTCOME_UNKNOWN = 39,
        SQLIPC_GLIB_ERROR_TRANSACTION_ENDED = 40,
        SQLIPC_GLIB_ERROR_SERVER_UNREACHABLE = 41,
        SQLIPC_GLIB_ERROR_LOGIN_FAILED = 42,
        SQLIPC_GLIB_ERROR_COMMIT_REFUSED = 43,
        SQLIPC_GLIB_ERROR_NEEDS_PIN = 44,
        SQLIPC_GLIB_ERROR_PIN_LOST = 45,
} SqlipcError;

GQuark sqlipc_error_quark(void);
int sqlipc_glib_error_get_sqlite_code(const GError *error);
int sqlipc_glib_error_get_sql_offset(const GError *error);
const char *sqlipc_glib_error_get_name(const GError *error);

/* ---- Classes ------------------------------------------------------------------------------------------------------ */

#define SQLIPC_TYPE_CONNECTION (sqlipc_glib_connection_get_type())
G_DECLARE_FINAL_TYPE(SqlipcConnection, sqlipc_glib_connection, SQLIPC, CONNECTION, GObject)

#define SQLIPC_TYPE_STATEMENT (sqlipc_glib_statement_get_type())
G_DECLARE_FINAL_TYPE(SqlipcStatement, sqlipc_glib_statement, SQLIPC, STATEMENT, GObject)

#define SQLIPC_TYPE_CURSOR (sqlipc_glib_cursor_get_type())
G_DECLARE_FINAL_TYPE(SqlipcCursor, sqlipc_glib_cursor, SQLIPC, CURSOR, GObject)

#define SQLIPC_TYPE_ROW (sqlipc_glib_row_get_type())
G_DECLARE_FINAL_TYPE(SqlipcRow, sqlipc_glib_row, SQLIPC, ROW, GObject)

#define SQLIPC_TYPE_ROWS (sqlipc_glib_rows_get_type())
G_DECLARE_FINAL_TYPE(SqlipcRows, sqlipc_glib_rows, SQLIPC, ROWS, GObject)

#define SQLIPC_TYPE_TRANSACTION (sqlipc_glib_transaction_get_type())
G_DECLARE_FINAL_TYPE(SqlipcTransaction, sqlipc_glib_transaction, SQLIPC, TRANSACTION, GObject)

#define SQLIPC_TYPE_LOAD (sqlipc_glib_load_get_type())
G_DECLARE_FINAL_TYPE(SqlipcLoad, sqlipc_glib_load, SQLIPC, LOAD, GObject)

#define SQLIPC_TYPE_WATCH (sqlipc_glib_watch_get_type())
G_DECLARE_FINAL_TYPE(SqlipcWatch, sqlipc_glib_watch, SQLIPC, WATCH, GObject)

#define SQLIPC_TYPE_LIVE_QUERY (sqlipc_glib_live_query_get_type())
G_DECLARE_FINAL_TYPE(SqlipcLiveQuery, sqlipc_glib_live_query, SQLIPC, LIVE_QUERY, GObject)

#define SQLIPC_TYPE_LIVE_CHANGE (sqlipc_glib_live_change_get_type())
G_DECLARE_FINAL_TYPE(SqlipcLiveChange, sqlipc_glib_live_change, SQLIPC, LIVE_CHANGE, GObject)

#define SQLIPC_TYPE_LIVE_MODEL (sqlipc_glib_live_model_get_type())
G_DECLARE_FINAL_TYPE(SqlipcLiveModel, sqlipc_glib_live_model, SQLIPC, LIVE_MODEL, GObject)

/* ---- Connections -------------------------------------------------------------------------------------------------- */

const char *sqlipc_glib_library_version(void);

SqlipcConnection *sqlipc_glib_connection_new(SqlipcBus bus, GError **error);
SqlipcConnection *sqlipc_glib_connection_new_for_database(const char *database, SqlipcBus bus, GError **error);
void sqlipc_glib_connection_new_for_database_async(const char *database, SqlipcBus bus, GCancellable *cancellable,
                                                   GAsyncReadyCallback callback, gpointer user_data);
SqlipcConnection *sqlipc_glib_connection_new_for_database_finish(GAsyncResult *result, GError **error);
SqlipcConnection *sqlipc_glib_connection_new_for_address(const char *address, GError **error);
SqlipcConnection *sqlipc_glib_connection_new_remote(const char *host, SqlipcBus bus, GError **error);

void sqlipc_glib_connection_close(SqlipcConnection *self);
gboolean sqlipc_glib_connection_is_closed(SqlipcConnection *self);
void sqlipc_glib_connection_interrupt(SqlipcConnection *self);

int sqlipc_glib_connection_get_error_sqlite_code(SqlipcConnection *self);
int sqlipc_glib_connection_get_error_sql_offset(SqlipcConnection *self);
const char *sqlipc_glib_connection_get_error_name(SqlipcConnection *self);

GVariant *sqlipc_glib_connection_list_databases(SqlipcConnection *self, GCancellable *cancellable, GError **error);
void sqlipc_glib_connection_list_databases_async(SqlipcConnection *self, GCancellable *cancellable,
                                                 GAsyncReadyCallback callback, gpointer user_data);
GVariant *sqlipc_glib_connection_list_databases_finish(SqlipcConnection *self, GAsyncResult *result, GError **error);

SqlipcCursor *sqlipc_glib_connection_query(SqlipcConnection *self, const char *database, const char *sql,
                                           GVariant *parameters, GCancellable *cancellable, GError **error);
void sqlipc_glib_connection_query_async(SqlipcConnection *self, const char *database, const char *sql,
                                        GVariant *parameters, GCancellable *cancellable, GAsyncReadyCallback callback,
                                        gpointer user_data);
SqlipcCursor *sqlipc_glib_connection_query_finish(SqlipcConnection *self, GAsyncResult *result, GError **error);

gboolean sqlipc_glib_connection_execute(SqlipcConnection *self, const char *database, const char *sql,
                                        GVariant *parameters, gint64 *changes, gint64 *last_rowid,
                                        GCancellable *cancellable, GError **error);
void sqlipc_glib_connection_execute_async(SqlipcConnection *self, const char *database, const char *sql,
                                          GVariant *parameters, GCancellable *cancellable, GAsyncReadyCallback callback,
                                          gpointer user_data);
gboolean sqlipc_glib_connection_execute_finish(SqlipcConnection *self, GAsyncResult *result, gint64 *changes,
                                               gint64 *last_rowid, GError **error);

SqlipcStatement *sqlipc_glib_connection_prepare(SqlipcConnection *self, const char *database, const char *sql,
                                                GCancellable *cancellable, GError **error);
void sqlipc_glib_connection_prepare_async(SqlipcConnection *self, const char *database, const char *sql,
                                          GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
SqlipcStatement *sqlipc_glib_connection_prepare_finish(SqlipcConnection *self, GAsyncResult *result, GError **error);

SqlipcTransaction *sqlipc_glib_connection_begin(SqlipcConnection *self, const char *database, SqlipcTransactionMode mode,
                                                GCancellable *cancellable, GError **error);
void sqlipc_glib_connection_begin_async(SqlipcConnection *self, const char *database, SqlipcTransactionMode mode,
                                        GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
SqlipcTransaction *sqlipc_glib_connection_begin_finish(SqlipcConnection *self, GAsyncResult *result, GError **error);

SqlipcLoad *sqlipc_glib_connection_load(SqlipcConnection *self, const char *database, const char *sql, GError **error);

/* ---- Statements --------------------------------------------------------------------------------------------------- */

const char *sqlipc_glib_statement_get_sql(SqlipcStatement *self);
gboolean sqlipc_glib_statement_is_readonly(SqlipcStatement *self);
char **sqlipc_glib_statement_dup_column_names(SqlipcStatement *self);
guint sqlipc_glib_statement_get_n_parameters(SqlipcStatement *self);
const char *sqlipc_glib_statement_get_parameter_name(SqlipcStatement *self, guint index);
guint sqlipc_glib_statement_find_parameter(SqlipcStatement *self, const char *name);

gboolean sqlipc_glib_statement_bind_null(SqlipcStatement *self, guint index, GError **error);
gboolean sqlipc_glib_statement_bind_int64(SqlipcStatement *self, guint index, gint64 value, GError **error);
gboolean sqlipc_glib_statement_bind_double(SqlipcStatement *self, guint index, double value, GError **error);
gboolean sqlipc_glib_statement_bind_text(SqlipcStatement *self, guint index, const char *text, GError **error);
gboolean sqlipc_glib_statement_bind_blob(SqlipcStatement *self, guint index, GBytes *blob, GError **error);
gboolean sqlipc_glib_statement_bind_variant(SqlipcStatement *self, guint index, GVariant *value, GError **error);
gboolean sqlipc_glib_statement_bind_value(SqlipcStatement *self, guint index, const GValue *value, GError **error);
void sqlipc_glib_statement_clear_bindings(SqlipcStatement *self);

SqlipcCursor *sqlipc_glib_statement_query(SqlipcStatement *self, GCancellable *cancellable, GError **error);
void sqlipc_glib_statement_query_async(SqlipcStatement *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                       gpointer user_data);
SqlipcCursor *sqlipc_glib_statement_query_finish(SqlipcStatement *self, GAsyncResult *result, GError **error);

/* ---- Cursors ------------------------------------------------------------------------------------------------------ */

guint sqlipc_glib_cursor_get_n_columns(SqlipcCursor *self);
char **sqlipc_glib_cursor_dup_column_names(SqlipcCursor *self);
const char *sqlipc_glib_cursor_get_column_decltype(SqlipcCursor *self, guint column);

SqlipcRow *sqlipc_glib_cursor_next(SqlipcCursor *self, GCancellable *cancellable, GError **error);
void sqlipc_glib_cursor_next_async(SqlipcCursor *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                   gpointer user_data);
SqlipcRow *sqlipc_glib_cursor_next_finish(SqlipcCursor *self, GAsyncResult *result, GError **error);

SqlipcRows *sqlipc_glib_cursor_next_rows(SqlipcCursor *self, guint n_rows_max, GCancellable *cancellable, GError **error);
void sqlipc_glib_cursor_next_rows_async(SqlipcCursor *self, guint n_rows_max, GCancellable *cancellable,
                                        GAsyncReadyCallback callback, gpointer user_data);
SqlipcRows *sqlipc_glib_cursor_next_rows_finish(SqlipcCursor *self, GAsyncResult *result, GError **error);

void sqlipc_glib_cursor_cancel(SqlipcCursor *self);
void sqlipc_glib_cursor_close(SqlipcCursor *self);
gint64 sqlipc_glib_cursor_get_changes(SqlipcCursor *self);
gint64 sqlipc_glib_cursor_get_last_rowid(SqlipcCursor *self);
guint64 sqlipc_glib_cursor_get_sequence(SqlipcCursor *self);

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

guint sqlipc_glib_row_get_n_columns(SqlipcRow *self);
const char *sqlipc_glib_row_get_column_name(SqlipcRow *self, guint column);
int sqlipc_glib_row_find_column(SqlipcRow *self, const char *name);
SqlipcValueType sqlipc_glib_row_get_value_type(SqlipcRow *self, guint column);
gboolean sqlipc_glib_row_is_null(SqlipcRow *self, guint column);
gint64 sqlipc_glib_row_get_int64(SqlipcRow *self, guint column);
double sqlipc_glib_row_get_double(SqlipcRow *self, guint column);
const char *sqlipc_glib_row_get_text(SqlipcRow *self, guint column);
GBytes *sqlipc_glib_row_dup_blob(SqlipcRow *self, guint column);
char *sqlipc_glib_row_dup_string(SqlipcRow *self, guint column);
GVariant *sqlipc_glib_row_dup_variant(SqlipcRow *self, guint column);
void sqlipc_glib_row_get_value(SqlipcRow *self, guint column, GValue *value);
GVariant *sqlipc_glib_row_to_variant(SqlipcRow *self);
gboolean sqlipc_glib_row_is_loaded(SqlipcRow *self);
guint sqlipc_glib_row_get_version(SqlipcRow *self);

/* ---- Blocks of rows ----------------------------------------------------------------------------------------------- */

guint sqlipc_glib_rows_get_n_rows(SqlipcRows *self);
guint sqlipc_glib_rows_get_n_columns(SqlipcRows *self);
SqlipcRow *sqlipc_glib_rows_get_row(SqlipcRows *self, guint row);
gint64 *sqlipc_glib_rows_dup_int64s(SqlipcRows *self, guint column, gsize *n_values);
double *sqlipc_glib_rows_dup_doubles(SqlipcRows *self, guint column, gsize *n_values);
char **sqlipc_glib_rows_dup_strings(SqlipcRows *self, guint column);
gboolean *sqlipc_glib_rows_dup_nulls(SqlipcRows *self, guint column, gsize *n_values);
GVariant *sqlipc_glib_rows_to_variant(SqlipcRows *self);

/* ---- Transactions ------------------------------------------------------------------------------------------------- */

gboolean sqlipc_glib_transaction_is_open(SqlipcTransaction *self);

gboolean sqlipc_glib_transaction_commit(SqlipcTransaction *self, GCancellable *cancellable, GError **error);
void sqlipc_glib_transaction_commit_async(SqlipcTransaction *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                          gpointer user_data);
gboolean sqlipc_glib_transaction_commit_finish(SqlipcTransaction *self, GAsyncResult *result, GError **error);

gboolean sqlipc_glib_transaction_rollback(SqlipcTransaction *self, GCancellable *cancellable, GError **error);
void sqlipc_glib_transaction_rollback_async(SqlipcTransaction *self, GCancellable *cancellable,
                                            GAsyncReadyCallback callback, gpointer user_data);
gboolean sqlipc_glib_transaction_rollback_finish(SqlipcTransaction *self, GAsyncResult *result, GError **error);

void sqlipc_glib_transaction_close(SqlipcTransaction *self);

/* ---- Loads -------------------------------------------------------------------------------------------------------- */

gboolean sqlipc_glib_load_add_rows(SqlipcLoad *self, GVariant *rows, GCancellable *cancellable, GError **error);
void sqlipc_glib_load_add_rows_async(SqlipcLoad *self, GVariant *rows, GCancellable *cancellable,
                                     GAsyncReadyCallback callback, gpointer user_data);
gboolean sqlipc_glib_load_add_rows_finish(SqlipcLoad *self, GAsyncResult *result, GError **error);

gboolean sqlipc_glib_load_complete(SqlipcLoad *self, gint64 *changes, GCancellable *cancellable, GError **error);
void sqlipc_glib_load_complete_async(SqlipcLoad *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                     gpointer user_data);
gboolean sqlipc_glib_load_complete_finish(SqlipcLoad *self, GAsyncResult *result, gint64 *changes, GError **error);

void sqlipc_glib_load_close(SqlipcLoad *self);

/* ---- Watches and live queries ------------------------------------------------------------------------------------- */

SqlipcWatch *sqlipc_glib_connection_watch_tables(SqlipcConnection *self, const char *database, const char *const *tables,
                                                 GError **error);
SqlipcWatch *sqlipc_glib_connection_watch_statement(SqlipcConnection *self, const char *database, const char *sql,
                                                    GError **error);
gboolean sqlipc_glib_watch_next(SqlipcWatch *self, GCancellable *cancellable, GError **error);
void sqlipc_glib_watch_next_async(SqlipcWatch *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                  gpointer user_data);
gboolean sqlipc_glib_watch_next_finish(SqlipcWatch *self, GAsyncResult *result, GError **error);
void sqlipc_glib_watch_start(SqlipcWatch *self);
void sqlipc_glib_watch_close(SqlipcWatch *self);
guint64 sqlipc_glib_watch_get_sequence(SqlipcWatch *self);

SqlipcLiveQuery *sqlipc_glib_connection_live_query(SqlipcConnection *self, const char *database, const char *sql,
                                                   GVariant *parameters, const guint *key_columns, guint n_key_columns,
                                                   GError **error);
SqlipcLiveChange *sqlipc_glib_live_query_next(SqlipcLiveQuery *self, GCancellable *cancellable, GError **error);
void sqlipc_glib_live_query_next_async(SqlipcLiveQuery *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                       gpointer user_data);
SqlipcLiveChange *sqlipc_glib_live_query_next_finish(SqlipcLiveQuery *self, GAsyncResult *result, GError **error);
void sqlipc_glib_live_query_close(SqlipcLiveQuery *self);

SqlipcLiveKind sqlipc_glib_live_change_get_kind(SqlipcLiveChange *self);
guint sqlipc_glib_live_change_get_position(SqlipcLiveChange *self);
guint sqlipc_glib_live_change_get_new_position(SqlipcLiveChange *self);
SqlipcRow *sqlipc_glib_live_change_get_row(SqlipcLiveChange *self);
SqlipcRow *sqlipc_glib_live_change_get_old_row(SqlipcLiveChange *self);

/* ---- Live models -------------------------------------------------------------------------------------------------- */

SqlipcLiveModel *sqlipc_glib_live_model_new(SqlipcConnection *connection, const char *database, const char *sql,
                                            GVariant *parameters, const char *const *key);
SqlipcLiveModel *sqlipc_glib_live_model_new_windowed(SqlipcConnection *connection, const char *database, const char *sql,
                                                     GVariant *parameters, const char *const *key,
                                                     const char *const *order);
void sqlipc_glib_live_model_set_query(SqlipcLiveModel *self, const char *sql, GVariant *parameters);
void sqlipc_glib_live_model_set_order(SqlipcLiveModel *self, const char *const *order);
void sqlipc_glib_live_model_refresh(SqlipcLiveModel *self);
gboolean sqlipc_glib_live_model_is_settled(SqlipcLiveModel *self);
const GError *sqlipc_glib_live_model_get_error(SqlipcLiveModel *self);
int sqlipc_glib_live_model_find(SqlipcLiveModel *self, SqlipcRow *row);
char **sqlipc_glib_live_model_dup_column_names(SqlipcLiveModel *self);

G_END_DECLS

#endif
