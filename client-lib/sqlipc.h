/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * @file sqlipc.h - reads and writes SQLite databases that another program publishes, over D-Bus and a passed pipe.
 *
 *      sqlipc_connection  one bus, one daemon           sqlipc_open_user() ... sqlipc_connection_unref() or sqlipc_close()
 *      sqlipc_statement   one compiled statement        sqlipc_prepare() ... sqlipc_finalize()
 *      sqlipc_cursor      one run of it, row by row     sqlipc_execute() or sqlipc_query() ... sqlipc_cursor_close()
 *      sqlipc_transaction several runs as one           sqlipc_begin() ... sqlipc_commit() ... sqlipc_transaction_close()
 *      sqlipc_load        one run for each row          sqlipc_load_open() ... sqlipc_load_finish() ... sqlipc_load_close()
 *      sqlipc_batch       several statements as one     sqlipc_batch_new() ... sqlipc_batch_run() ... sqlipc_batch_close()
 *      sqlipc_watch       tells when tables change      sqlipc_watch_open() ... sqlipc_watch_next() ... sqlipc_watch_close()
 *      sqlipc_live        a result that follows them    sqlipc_live_open() ... sqlipc_live_next() ... sqlipc_live_close()
 *
 * Errors. A function that can fail returns a negative errno. The object that it was called on then holds the details until
 * its next call that fails: see sqlipc_error_code(), sqlipc_statement_error_code(), sqlipc_cursor_error_code() and the
 * functions beside them. The connection also holds the details of the last call that failed on any of its objects, or that
 * should have created one; transactions, loads, batches, watches and live queries have none of their own. Unless stated
 * otherwise, a function may also return -EINVAL for an invalid argument (a NULL handle), -ENOMEM, -ECHILD in a process that
 * was forked after the connection was opened, -ENOTCONN after sqlipc_close(), and -EBUSY for a blocking call from within a
 * handler of the same bus connection. -EAGAIN is not a failure and leaves the details as they are.
 *
 * Threads. A connection and its objects may be used by only one thread at a time; different connections are independent.
 * Only sqlipc_cursor_cancel(), sqlipc_interrupt(), sqlipc_connection_ref() and sqlipc_connection_unref() may be called
 * from any thread while another thread uses the cursor or connection.
 *
 * Signals. The library never changes a signal's disposition, and never raises SIGPIPE. A blocking call continues after a
 * signal handler returns; to end the call, the handler calls sqlipc_cursor_cancel() or sqlipc_interrupt().
 *
 * Ownership. The caller must close what a function returns through `ret_...`, which is written only on success. Returned
 * strings and values belong to the library and are valid as long as their function says. Arguments are copied. All objects
 * keep their connection alive, so a program may free objects in any order.
 *
 * Blocking. Functions block until they are done or the connection's timeout has passed (-ETIMEDOUT). After
 * sqlipc_set_blocking(connection, 0) they never wait, and return -EAGAIN for a result that is not there yet. See "Event
 * loops".
 *
 * Later versions may add values to the enums; expect values that you do not know.
 */
#ifndef SQLIPC_H
#define SQLIPC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sd_bus;

/**
 * Returns the version of the running library, such as "0.2.0"; a static string. The program may have been built with another
 * version. Since: 0.1
 */
const char *sqlipc_version(void);

typedef struct sqlipc_connection sqlipc_connection;
typedef struct sqlipc_statement sqlipc_statement;
typedef struct sqlipc_cursor sqlipc_cursor;
typedef struct sqlipc_transaction sqlipc_transaction;
typedef struct sqlipc_load sqlipc_load;
typedef struct sqlipc_batch sqlipc_batch;
typedef struct sqlipc_watch sqlipc_watch;
typedef struct sqlipc_live sqlipc_live;

/* ---- Connections -------------------------------------------------------------------------------------------------- */

/**
 * Opens a connection to the bus whose service has `database`. `bus`: "user", "system", a D-Bus address, or NULL: that of
 * $SQLIPC_BUS. If neither chooses a bus, the name is looked up on the user's bus, and then on the system's; sqlipc_open(3)
 * has the rule. With NULL for `database`, a bus is taken if it has the service. The connection keeps its bus. This function
 * waits for the services, and starts them; with an address it does not.
 *
 * If a service or a bus has refused, *ret_connection is a connection nevertheless, which has the details and must be freed,
 * as with sqlite3_open(); otherwise it is NULL. Errors: -ENOENT (no such database, SQLIPC_ERROR_UNKNOWN_DATABASE),
 * -ENOMEDIUM (there is no bus), -EINVAL (`bus` or $SQLIPC_BUS is malformed), and those of the functions below and of
 * sqlipc_list_databases(). Since: 0.2
 */
int sqlipc_open(const char *database, const char *bus, sqlipc_connection **ret_connection);

/**
 * Returns "user" or "system", or NULL if the connection is to another bus: one with an address, of the caller, or of another
 * machine. A static string. Since: 0.2
 */
const char *sqlipc_get_bus_name(sqlipc_connection *connection);

/**
 * Open a connection to the system bus, to the user's bus, or to the bus at `address` (a D-Bus address such as
 * "unix:path=/run/user/1000/bus"; copied). The bus connection is the library's own. These functions neither wait for the bus
 * nor start the daemon: the first call does. If the bus connection is lost later, the next call that needs it opens another
 * one. The caller gets one reference, and must drop it with sqlipc_connection_unref() or sqlipc_close().
 *
 * Errors: the errno of connecting the socket (-ENOENT, -ECONNREFUSED, -EACCES), or -ENOMEDIUM if the environment does not
 * tell where the user's bus is, or -EPERM if that bus belongs to another user, as under sudo. There is no connection then
 * that could hold details. Since: 0.1
 */
int sqlipc_open_system(sqlipc_connection **ret_connection);
int sqlipc_open_user(sqlipc_connection **ret_connection);
int sqlipc_open_address(const char *address, sqlipc_connection **ret_connection);

/**
 * Open a connection to the system bus, or the user's bus, of another machine, over ssh as `busctl --host` does it: `host` is
 * [USER@]HOST[:PORT], with HOST in brackets if it contains colons, or a name from ssh's configuration. ssh is found by PATH;
 * it asks questions on the terminal and reports errors on standard error; SIGINT does not end it. The other machine needs
 * systemd-stdio-bridge. These functions return before anything is connected: if the host cannot be reached, the first call
 * fails with SQLIPC_ERROR_DAEMON_LOST. The time that ssh waits, for example for a password, counts towards that call's
 * timeout.
 *
 * Such a bus passes no descriptors: see "Buses without descriptors" at sqlipc_set_transport().
 *
 * Errors: -EINVAL (`host` is malformed), -EAGAIN, -EMFILE (no more processes or descriptors). Since: 0.1
 */
int sqlipc_open_system_remote(const char *host, sqlipc_connection **ret_connection);
int sqlipc_open_user_remote(const char *host, sqlipc_connection **ret_connection);

/**
 * Uses the caller's bus connection, and takes a reference on it. Blocking calls of the library dispatch every message that
 * arrives on it; the caller's loop may dispatch it, too. If it is lost, the library cannot open another one: calls then fail
 * with SQLIPC_ERROR_DAEMON_LOST. The bus connection and all that uses it belong to one thread.
 *
 * A bus connection that passes no descriptors must be ready (sd_bus_is_ready()) before the first call without blocking:
 * until then only its address can tell the library, which otherwise assumes that descriptors pass. Since: 0.1
 */
int sqlipc_open_bus(struct sd_bus *bus, sqlipc_connection **ret_connection);

/**
 * Returns the bus connection, for the program's own calls (org.sqlipc1.Manager). Opens another one if it was lost. The bus
 * connection is borrowed and valid until the next call on the sqlipc connection, which may replace it if it was lost. A
 * program that keeps it longer must take a reference, and may then hold a dead bus. Returns NULL if there is no bus; the
 * connection then has the details, usually SQLIPC_ERROR_DAEMON_LOST. Since: 0.1
 */
struct sd_bus *sqlipc_get_bus(sqlipc_connection *connection);

/**
 * sqlipc_connection_ref() takes a reference and returns the connection; sqlipc_connection_unref() drops one and returns
 * NULL. When the last reference is dropped, the connection is closed, as by sqlipc_close(), and freed. Each statement and
 * each cursor holds a reference, too: after the program has dropped its own, the connection keeps working for those that are
 * left, and ends with the last of them. Any thread that has a reference may call these functions. The thread that drops the
 * last reference closes the connection; for sqlipc_open_bus() it must be the thread of the bus. NULL is allowed. Since: 0.1
 */
sqlipc_connection *sqlipc_connection_ref(sqlipc_connection *connection);
sqlipc_connection *sqlipc_connection_unref(sqlipc_connection *connection);

/**
 * Closes the connection at once and drops the caller's reference. Ends its runs, and closes its bus connection (unless it is
 * the caller's, see sqlipc_open_bus()) and the descriptor of sqlipc_get_fd(). The caller must still free open statements and
 * cursors, in any order. Every later call on them or on the connection that can fail returns -ENOTCONN, except that a cursor
 * that had ended repeats its answer; there is no current row any more. Values may still be bound. A visitor, or a handler of
 * the bus connection, may call this function: a blocking call that is in progress then returns -ENOTCONN. Never blocks. NULL
 * is allowed. Returns NULL. Since: 0.1
 */
sqlipc_connection *sqlipc_close(sqlipc_connection *connection);

/**
 * Sets how long one blocking call may wait, in microseconds; UINT64_MAX means forever. The default is 25 s. The timeout
 * bounds the call, not the run: after -ETIMEDOUT sqlipc_cursor_next() may be called again. Since: 0.1
 */
int sqlipc_set_timeout(sqlipc_connection *connection, uint64_t usec);

/**
 * Sets how long a run may take at the service, in microseconds from its arrival there, including the time it waits for the
 * reader. After that sqlipc_cursor_next() returns -ETIMEDOUT with SQLIPC_ERROR_TIMED_OUT. The default, UINT64_MAX, is the
 * service's own limit (RunTimeoutSec=, sqlipcd.conf(5)), which this function can only shorten. Applies to later calls of
 * sqlipc_execute(), sqlipc_query(), sqlipc_load_open() and sqlipc_batch_run(). Errors: -EINVAL (0). Since: 0.1
 */
int sqlipc_set_run_timeout(sqlipc_connection *connection, uint64_t usec);

/**
 * Ends everything in progress: acts as sqlipc_cursor_cancel() on each cursor that has not ended; statements that are
 * being compiled, transactions and watches that have not begun, loads and sqlipc_list_databases() fail with -ECANCELED; a
 * batch is cancelled, too; a call that waits for a commit, a rollback or a change returns. An open transaction without a
 * statement under way stays open. Does not affect what begins after the call. May be called from any thread and from signal
 * handlers as long as a reference is held; keeps errno. Since: 0.1
 */
int sqlipc_interrupt(sqlipc_connection *connection);

/**
 * How long a program that has cancelled what writes should wait for the answer, in microseconds. A service that works
 * cancels within a second, or ends its worker; after this time, the outcome is unknown. Since: 0.2
 */
#define SQLIPC_CANCEL_WAIT_USEC 5000000

/**
 * 1: if the administrator requires polkit authorization, the user may be asked to authenticate for a call. 0, the default:
 * such a call fails with -EACCES. This is for interactive programs. sqlipc_prepare(), sqlipc_execute() and sqlipc_query()
 * then wait for their answer without a limit, regardless of the connection's timeout, because a user may have to look for a
 * password; so do sqlipc_exec(), sqlipc_begin(), sqlipc_load_open() and sqlipc_batch_run(). If polkit decides who may write,
 * the user is asked when a statement is about to write; with sqlipc_query() and sqlipc_prepare() only if the connection
 * blocks. Since: 0.1
 */
int sqlipc_set_allow_interactive_authorization(sqlipc_connection *connection, int allow);

/**
 * Sets the size in bytes above which a row is not kept in memory, but in a mapped file without a name in $TMPDIR (else
 * /tmp), so that the kernel can write its pages out and free the memory. This is for programs that must stay small even if
 * a database contains large rows. The default, SIZE_MAX, means never, so that no value is written to a disk. If the file
 * cannot be created, or the disk is full, the row is kept in memory anyway. Applies to runs that start after the call.
 * Data from D-Bus replies (SQLIPC_TRANSPORT_DBUS) is held in memory in addition. Since: 0.1
 */
int sqlipc_set_row_memory_max(sqlipc_connection *connection, size_t size);

/** A database in the list. */
typedef struct sqlipc_database sqlipc_database;

/**
 * Return the name of the database, as sqlipc_query() takes it; the administrator's description, "" if there is none; and how
 * it is published, "read-only" or "read-write". Never NULL, unless `database` is NULL. Valid until the visitor
 * returns. Since: 0.1
 */
const char *sqlipc_database_name(const sqlipc_database *database);
const char *sqlipc_database_description(const sqlipc_database *database);
const char *sqlipc_database_mode(const sqlipc_database *database);

/** Called by sqlipc_list_databases(); `database` is valid until it returns. Returns 0 to continue. */
typedef int (*sqlipc_database_visitor)(const sqlipc_database *database, void *userdata);

/**
 * Calls `visit` for each database that the caller may use, ordered by name. Stops at the first non-zero return value of
 * `visit`, and returns that value. Returns 0 at the end of the list. Always waits, even after
 * sqlipc_set_blocking(connection, 0).
 *
 * Errors: -EHOSTDOWN (no service on this bus), -EACCES, -ETIMEDOUT, -ECONNRESET (the service died). Since: 0.1
 */
int sqlipc_list_databases(sqlipc_connection *connection, sqlipc_database_visitor visit, void *userdata);

/* ---- Errors ------------------------------------------------------------------------------------------------------- */

/** Errors of the service; the same numbers as in ERROR frames, sqlipc-page(5). */
typedef enum sqlipc_error {
        SQLIPC_ERROR_NONE = 0,
        SQLIPC_ERROR_UNKNOWN_DATABASE = 1,
        SQLIPC_ERROR_UNKNOWN_STATEMENT = 2,
        SQLIPC_ERROR_UNKNOWN_RUN = 3,
        SQLIPC_ERROR_UNKNOWN_OPTION = 4,
        SQLIPC_ERROR_INVALID_OPTION = 5,
        SQLIPC_ERROR_PARAMETER_COUNT = 6,
        SQLIPC_ERROR_UNKNOWN_PARAMETER = 7,
        SQLIPC_ERROR_PARAMETER_TYPE = 8,
        SQLIPC_ERROR_EMPTY_STATEMENT = 9,
        SQLIPC_ERROR_SEVERAL_STATEMENTS = 10,
        SQLIPC_ERROR_SQL = 11,
        SQLIPC_ERROR_MISSING_FUNCTION = 12,
        SQLIPC_ERROR_MISSING_COLLATION = 13,
        SQLIPC_ERROR_MISSING_MODULE = 14,
        SQLIPC_ERROR_READ_ONLY = 15,
        SQLIPC_ERROR_NOT_ALLOWED = 16,
        SQLIPC_ERROR_CORRUPT = 17,
        SQLIPC_ERROR_FILE_MISSING = 18,
        SQLIPC_ERROR_CANNOT_OPEN = 19,
        SQLIPC_ERROR_NEEDS_OWNER = 20,
        SQLIPC_ERROR_NEEDS_RECOVERY = 21,
        SQLIPC_ERROR_INPUT_OUTPUT = 22,
        SQLIPC_ERROR_LIMITS_EXCEEDED = 23,
        SQLIPC_ERROR_ROW_TOO_LARGE = 24,
        SQLIPC_ERROR_OUT_OF_MEMORY = 25,
        SQLIPC_ERROR_NO_SPACE = 26,
        SQLIPC_ERROR_BUSY = 27,
        SQLIPC_ERROR_TIMED_OUT = 28,
        SQLIPC_ERROR_READER_TOO_SLOW = 29,
        SQLIPC_ERROR_CANCELLED = 30,
        SQLIPC_ERROR_PIPE_CLOSED = 31,
        SQLIPC_ERROR_WORKER_LOST = 32,
        SQLIPC_ERROR_DAEMON_LOST = 33,
        SQLIPC_ERROR_SHUTTING_DOWN = 34,
        SQLIPC_ERROR_INTERNAL = 35,
        SQLIPC_ERROR_ACCESS_DENIED = 36,
        SQLIPC_ERROR_INVALID_REQUEST = 37,
        SQLIPC_ERROR_NO_DESCRIPTORS = 38,
        SQLIPC_ERROR_OUTCOME_UNKNOWN = 39,
        SQLIPC_ERROR_TRANSACTION_ENDED = 40,
        SQLIPC_ERROR_SERVER_UNREACHABLE = 41,
        SQLIPC_ERROR_LOGIN_FAILED = 42,
        SQLIPC_ERROR_COMMIT_REFUSED = 43,
        SQLIPC_ERROR_NEEDS_PIN = 44,
        SQLIPC_ERROR_PIN_LOST = 45
} sqlipc_error;

/**
 * Returns the error of the last failure on this connection. SQLIPC_ERROR_NONE if the service did not cause it: an invalid
 * argument, the connection's own timeout, no memory in this process. Since: 0.1
 */
sqlipc_error sqlipc_error_code(const sqlipc_connection *connection);

/**
 * Returns the D-Bus name of that error, "org.sqlipc1.Error.Sql" or one of the bus's own; NULL if it has none. Valid until
 * the next call on the connection. Since: 0.1
 */
const char *sqlipc_error_name(const sqlipc_connection *connection);

/**
 * Returns a sentence for people, in UTF-8; never NULL ("" before the first failure). Valid until the next call on the
 * connection. Since: 0.1
 */
const char *sqlipc_error_message(const sqlipc_connection *connection);

/**
 * Return SQLite's primary and extended result code, as in sqlite3.h; 0 if SQLite did not fail. Since: 0.1
 */
int sqlipc_error_sqlite_code(const sqlipc_connection *connection);
int sqlipc_error_sqlite_extended_code(const sqlipc_connection *connection);

/**
 * Returns the offset in bytes, from 0, of the error in the SQL; -1 if unknown. Since: 0.1
 */
int sqlipc_error_sql_offset(const sqlipc_connection *connection);

/**
 * The same for the last call on this statement that failed: binding, executing, sqlipc_statement_is_ready(). Failures of its
 * cursors belong to the cursors. Strings are valid until the next call on the statement. Since: 0.1
 */
sqlipc_error sqlipc_statement_error_code(const sqlipc_statement *statement);
const char *sqlipc_statement_error_name(const sqlipc_statement *statement);
const char *sqlipc_statement_error_message(const sqlipc_statement *statement);
int sqlipc_statement_error_sqlite_code(const sqlipc_statement *statement);
int sqlipc_statement_error_sqlite_extended_code(const sqlipc_statement *statement);
int sqlipc_statement_error_sql_offset(const sqlipc_statement *statement);

/**
 * The same for the last sqlipc_cursor_next() on this cursor that failed, regardless of later failures on the connection.
 * Strings are valid until the next call on the cursor. Since: 0.1
 */
sqlipc_error sqlipc_cursor_error_code(const sqlipc_cursor *cursor);
const char *sqlipc_cursor_error_name(const sqlipc_cursor *cursor);
const char *sqlipc_cursor_error_message(const sqlipc_cursor *cursor);
int sqlipc_cursor_error_sqlite_code(const sqlipc_cursor *cursor);
int sqlipc_cursor_error_sqlite_extended_code(const sqlipc_cursor *cursor);
int sqlipc_cursor_error_sql_offset(const sqlipc_cursor *cursor);

/* ---- Statements --------------------------------------------------------------------------------------------------- */

/**
 * Compiles `sql` (NUL-terminated UTF-8, one statement) on `database`. Both are copied. If its worker, the daemon or the bus
 * connection is lost later, sqlipc_execute() compiles it again automatically. The caller frees the statement with
 * sqlipc_finalize().
 *
 * Without blocking, this function returns before the statement is compiled; sqlipc_statement_is_ready() tells when it is.
 * Values may be bound and the statement executed in the meantime.
 *
 * Errors: -ENOENT (no such database), -EINVAL (the SQL is wrong: SQLIPC_ERROR_SQL with an offset, EMPTY_STATEMENT,
 * SEVERAL_STATEMENTS, MISSING_...), -EROFS, -EPERM, -EHOSTDOWN, -ETIMEDOUT, -ECONNRESET, -EOPNOTSUPP (a bus that passes no
 * descriptors: use sqlipc_query()). sqlipc_error(3) lists all of them. Since: 0.1
 */
int sqlipc_prepare(sqlipc_connection *connection, const char *database, const char *sql, sqlipc_statement **ret_statement);

/**
 * Frees the statement, here and in the daemon. Ends its cursor if that is still open: the cursor returns -ESTALE from then
 * on, and the caller must still close it. Never blocks. NULL is allowed. Returns NULL. Since: 0.1
 */
sqlipc_statement *sqlipc_finalize(sqlipc_statement *statement);

/**
 * Returns 1 if the statement is compiled; 0 if it is not compiled yet (only without blocking); or the failure, as from
 * sqlipc_prepare(). Since: 0.1
 */
int sqlipc_statement_is_ready(sqlipc_statement *statement);

/**
 * Returns 1 if the service has said that the statement changes nothing; 0 if it may write, or is not ready yet. The library
 * repeats only runs of statements that change nothing. Since: 0.2
 */
int sqlipc_statement_is_readonly(sqlipc_statement *statement);

/**
 * The columns as of compilation. The columns of a run belong to its cursor, and may differ if the schema has changed. 0 and
 * NULL until the statement is ready. `column` counts from 0; NULL if there is no such column. Strings are valid until the
 * statement is executed or finalized. The declared type of an expression is NULL. Since: 0.1
 */
unsigned sqlipc_statement_column_count(sqlipc_statement *statement);
const char *sqlipc_statement_column_name(sqlipc_statement *statement, unsigned column);
const char *sqlipc_statement_column_decltype(sqlipc_statement *statement, unsigned column);

/**
 * The parameters; 0 and NULL until the statement is ready. The count is the largest index. Indices start at 1, as in SQLite.
 * Names include their prefix (":id"); a nameless parameter has the name NULL. Names are valid until the statement is
 * executed or finalized. Since: 0.1
 */
unsigned sqlipc_statement_parameter_count(sqlipc_statement *statement);
const char *sqlipc_statement_parameter_name(sqlipc_statement *statement, unsigned index);

/**
 * Returns the index of `name`, which may lack its prefix; 0 if there is no such parameter, or if a name without prefix
 * matches several. Since: 0.1
 */
unsigned sqlipc_statement_parameter_index(sqlipc_statement *statement, const char *name);

/**
 * Bind a value to parameter `index` (from 1). Bytes are copied; the value stays bound over executions until it is replaced.
 * Parameters that were never bound are NULL, as in SQLite. `text` may contain any bytes, including NUL; `size` SIZE_MAX
 * means up to the first NUL. NULL `text` of size 0 or SIZE_MAX is SQL's NULL; NULL `blob` of size 0 is an empty BLOB. A run
 * keeps the values that were bound when it was requested.
 *
 * Errors: -ERANGE (no such index). If the statement is not ready yet, a wrong index is accepted, and the run fails with
 * SQLIPC_ERROR_PARAMETER_COUNT. Since: 0.1
 */
int sqlipc_bind_null(sqlipc_statement *statement, unsigned index);
int sqlipc_bind_int64(sqlipc_statement *statement, unsigned index, int64_t value);
int sqlipc_bind_double(sqlipc_statement *statement, unsigned index, double value);
int sqlipc_bind_text(sqlipc_statement *statement, unsigned index, const char *text, size_t size);
int sqlipc_bind_blob(sqlipc_statement *statement, unsigned index, const void *blob, size_t size);

/**
 * The same by name, with or without its prefix. If the statement is not ready yet, the name is looked up when the statement
 * runs, and takes precedence over a binding by index.
 *
 * Errors: -ENXIO with SQLIPC_ERROR_UNKNOWN_PARAMETER (no such name, or a name without prefix that matches several
 * parameters). If the name is looked up later, the run fails with this error. Since: 0.1
 */
int sqlipc_bind_null_by_name(sqlipc_statement *statement, const char *name);
int sqlipc_bind_int64_by_name(sqlipc_statement *statement, const char *name, int64_t value);
int sqlipc_bind_double_by_name(sqlipc_statement *statement, const char *name, double value);
int sqlipc_bind_text_by_name(sqlipc_statement *statement, const char *name, const char *text, size_t size);
int sqlipc_bind_blob_by_name(sqlipc_statement *statement, const char *name, const void *blob, size_t size);

/**
 * Drops all bound values: every parameter is NULL again. Since: 0.1
 */
int sqlipc_clear_bindings(sqlipc_statement *statement);

/* ---- Runs --------------------------------------------------------------------------------------------------------- */

/**
 * Runs the statement with the bound values. A blocking call returns when the run has started, or has failed to start; a run
 * that has shown nothing after a tenth of a second counts as started. Ends an earlier cursor of the statement
 * that is still open: that cursor returns -ESTALE from then on. The caller closes each cursor with sqlipc_cursor_close().
 *
 * Errors: those of sqlipc_prepare(), because the database may have changed; -EINVAL (SQLIPC_ERROR_PARAMETER_...), -EDQUOT
 * (parameters or runs exceed a limit), -EBUSY. Without blocking, sqlipc_cursor_next() returns them. Since: 0.1
 */
int sqlipc_execute(sqlipc_statement *statement, sqlipc_cursor **ret_cursor);

/**
 * Prepares, binds, runs and finalizes in one round trip. `types` has a letter for each positional parameter; NULL or ""
 * means none. The arguments after it must have exactly these types (a literal 5 is an int: write (int64_t) 5):
 *
 *      i int64_t · d double · s const char * (NULL: SQL NULL) · t const char *, size_t · b const void *, size_t
 *      n nothing: SQL NULL
 *
 * The caller closes the cursor with sqlipc_cursor_close(). Errors: those of sqlipc_prepare() and sqlipc_execute(). If the
 * connection's timeout passes before the service has answered, the statement may write, and may be carried out all the same:
 * -ECONNABORTED with SQLIPC_ERROR_OUTCOME_UNKNOWN; in a transaction as sqlipc_exec() says. Since: 0.1
 */
int sqlipc_query(sqlipc_connection *connection, const char *database, const char *sql, sqlipc_cursor **ret_cursor,
                 const char *types, ...);

/** Types of values; SQLite's own numbers. */
typedef enum sqlipc_type {
        SQLIPC_INTEGER = 1,
        SQLIPC_REAL = 2,
        SQLIPC_TEXT = 3,
        SQLIPC_BLOB = 4,
        SQLIPC_NULL = 5
} sqlipc_type;

/**
 * One named or positional value for sqlipc_query_with(). Set `struct_size` to sizeof(sqlipc_parameter), and unused fields to
 * zero: later versions may add fields at the end, and the library uses the size to tell which fields a program knows.
 */
typedef struct sqlipc_parameter {
        size_t struct_size;
        const char *name;    /* with or without prefix; NULL: the next positional one */
        sqlipc_type type;
        int64_t integer;     /* SQLIPC_INTEGER */
        double real;         /* SQLIPC_REAL */
        const void *bytes;   /* SQLIPC_TEXT, SQLIPC_BLOB */
        size_t size;         /* of bytes */
} sqlipc_parameter;

/**
 * Like sqlipc_query(), with an array of `n_parameters` parameters, of which nothing is kept. Positional and named ones may
 * be mixed as long as each parameter of the statement gets exactly one value.
 *
 * Errors: those of sqlipc_query(); -EINVAL (`struct_size` is invalid, or differs between elements); -EOPNOTSUPP with
 * SQLIPC_ERROR_NONE (a field that this version of the library does not know is not zero). Since: 0.1
 */
int sqlipc_query_with(sqlipc_connection *connection, const char *database, const char *sql,
                      const sqlipc_parameter *parameters, size_t n_parameters, sqlipc_cursor **ret_cursor);

/**
 * Run one statement to its end, for its effect: INSERT, UPDATE, DELETE or CREATE. Rows that it returns are dropped. 0: the
 * statement is done, and its changes are committed, or belong to the connection's transaction (sqlipc_begin());
 * `*ret_changes` (NULL: not wanted) is then as sqlipc_cursor_changes(). These functions always wait, even after
 * sqlipc_set_blocking(connection, 0); a program that cannot wait uses sqlipc_query() and sqlipc_cursor_next().
 * sqlipc_interrupt() ends the wait.
 *
 * The library never sends a statement twice unless it is certain that it was not carried out, or that it only reads.
 *
 * Errors: those of sqlipc_query() and sqlipc_cursor_next(). They are -ECONNABORTED with SQLIPC_ERROR_OUTCOME_UNKNOWN if the
 * service was lost or the connection's timeout passed after the statement was sent and before an answer came, or if the call
 * was interrupted, and the service has not told in time how the statement ended: it may have taken effect. If the service
 * was lost, its next instance is asked first if the statement only reads. After any other error that has a code of the
 * service, it has changed nothing, except for rows that OR FAIL or RAISE(FAIL) keeps. In a transaction the second and the
 * third are -ETIMEDOUT and -ECANCELED, and the library rolls the transaction back, so that nothing of the statement is ever
 * committed: sqlipc_commit() then fails. Since: 0.2
 */
int sqlipc_exec(sqlipc_connection *connection, const char *database, const char *sql, int64_t *ret_changes);
int sqlipc_exec_with(sqlipc_connection *connection, const char *database, const char *sql,
                     const sqlipc_parameter *parameters, size_t n_parameters, int64_t *ret_changes);

/**
 * Goes to the next row. Returns 1 if there is one; 0 if the result has ended and is complete; negative if it is not
 * complete. A cursor that has ended or failed repeats its answer.
 *
 * Errors: -EAGAIN (not there yet, only without blocking); -ETIMEDOUT with SQLIPC_ERROR_NONE (the connection's timeout
 * passed: the run continues, and the call may be repeated) or with SQLIPC_ERROR_TIMED_OUT (the daemon ended the run);
 * -ECONNRESET (SQLIPC_ERROR_WORKER_LOST or SQLIPC_ERROR_DAEMON_LOST: the rows so far are incomplete; the next query works
 * again); -ECONNABORTED (SQLIPC_ERROR_OUTCOME_UNKNOWN: the same for a statement that may write, so it may have taken effect.
 * If the service had not said that it only reads, the next instance was asked, and did not say so either); -ECANCELED;
 * -ETIME (the rows were read too slowly); -ESTALE (the statement was executed again or finalized); -EMSGSIZE (a row is too
 * large); -EBADMSG (the data is not in the page format); and errors of SQLite: see sqlipc_error(3). Since: 0.1
 */
int sqlipc_cursor_next(sqlipc_cursor *cursor);

/** A value of a block. Its layout will not change; `size` is 0 except for TEXT and BLOB. */
typedef struct sqlipc_value {
        sqlipc_type type;
        uint32_t size;           /* bytes; for TEXT without the NUL after it */
        union {
                int64_t integer; /* SQLIPC_INTEGER; 0 for SQLIPC_NULL */
                double real;     /* SQLIPC_REAL */
                const char *text; /* SQLIPC_TEXT */
                const void *blob; /* SQLIPC_BLOB, not NULL if empty */
        } as;
} sqlipc_value;

/**
 * sqlipc_cursor_next() for many rows at once, for programs that convert each value. Takes the next row, and those after it
 * that have arrived already, at most `n_rows_max` (0: as many as the library chooses, up to some thousand values). If it
 * returns 1, `*ret_values` has the values of `*ret_n_rows` rows, one row after the other: value `column` of row `i` of the
 * block has the index i * sqlipc_column_count() + column. The values and the bytes that they point to are valid until the
 * next call of this function or of sqlipc_cursor_next() on this cursor, its close, or the next execution of its statement.
 * The current row, for sqlipc_column_int64() and the like, is the last one of the block. The two functions may be mixed on
 * one cursor.
 *
 * Errors: those of sqlipc_cursor_next(). If an error comes after some rows, the block has these rows, and the next call
 * returns the error. Since: 0.1
 */
int sqlipc_cursor_next_block(sqlipc_cursor *cursor, size_t n_rows_max, const sqlipc_value **ret_values, size_t *ret_n_rows);

/**
 * Frees the cursor, and ends its run if that has not ended. Never blocks. NULL is allowed. Returns NULL. Since: 0.1
 */
sqlipc_cursor *sqlipc_cursor_close(sqlipc_cursor *cursor);

/**
 * Cancels the run at the service. sqlipc_cursor_next() then returns the rows that were already on their way, and after them
 * -ECANCELED, or 0 if the run ended before it could be cancelled. After -ECANCELED nothing was written: the function waits
 * until the service has said so. If the service does not, the error of a run that may write is -ECONNABORTED with
 * SQLIPC_ERROR_OUTCOME_UNKNOWN; in a transaction it is -ECANCELED, and the library rolls the transaction back. May be called
 * from any thread and from signal handlers as long as the cursor is not closed; keeps errno. Since: 0.1
 */
int sqlipc_cursor_cancel(sqlipc_cursor *cursor);

/**
 * The columns of this run. They are known once sqlipc_cursor_next() has returned 1 or 0; before that 0 and NULL. `column`
 * counts from 0. Strings are valid until the cursor is closed, or its statement is executed again or finalized. The declared
 * type of an expression is NULL. Since: 0.1
 */
unsigned sqlipc_column_count(sqlipc_cursor *cursor);
const char *sqlipc_column_name(sqlipc_cursor *cursor, unsigned column);
const char *sqlipc_column_decltype(sqlipc_cursor *cursor, unsigned column);

/**
 * The values of the current row, read in place: pointers are valid until the next sqlipc_cursor_next() on this cursor, its
 * close, or the next execution of its statement. If there is no row, or no such column, the value is NULL.
 *
 * There are no conversions except between integer and real, as in C (a real that no int64_t can hold gives the nearest one).
 * For a value of another type, sqlipc_column_int64() returns 0, sqlipc_column_double() 0.0, and text and blob are NULL with
 * size 0. sqlipc_column_text() and sqlipc_column_blob() return the bytes of both TEXT and BLOB. TEXT is followed by a NUL,
 * BLOB is not. The size does not count that NUL; TEXT may contain other NULs, and any bytes. An empty BLOB is a non-NULL
 * pointer. `ret_size` may be NULL. Since: 0.1
 */
sqlipc_type sqlipc_column_type(sqlipc_cursor *cursor, unsigned column);
int sqlipc_column_is_null(sqlipc_cursor *cursor, unsigned column);
int64_t sqlipc_column_int64(sqlipc_cursor *cursor, unsigned column);
double sqlipc_column_double(sqlipc_cursor *cursor, unsigned column);
const char *sqlipc_column_text(sqlipc_cursor *cursor, unsigned column, size_t *ret_size);
const void *sqlipc_column_blob(sqlipc_cursor *cursor, unsigned column, size_t *ret_size);

/**
 * Gets the service's counters after sqlipc_cursor_next() has returned 0: rows, bytes of pages, and microseconds from the
 * arrival of the run to its end, including the time it waited for the reader. All are zero before. Any pointer may be NULL.
 * Since: 0.1
 */
void sqlipc_cursor_get_totals(sqlipc_cursor *cursor, uint64_t *ret_rows, uint64_t *ret_bytes, uint64_t *ret_usec);

/**
 * Return what the run has changed, after sqlipc_cursor_next() has returned 0: the number of rows that it inserted, updated
 * or deleted, and the rowid of the last row that it inserted, as sqlite3_changes64() and sqlite3_last_insert_rowid() count
 * them. The changes are committed then, unless they belong to a transaction that is still open. 0 before, and if the run did
 * not write. Since: 0.2
 */
int64_t sqlipc_cursor_changes(sqlipc_cursor *cursor);
int64_t sqlipc_cursor_last_rowid(sqlipc_cursor *cursor);

/**
 * Returns 1 if the service has said that the run changes nothing; 0 if it may write, or if the service has not said so: over
 * a channel of a user who may write, it says so only of a statement. Since: 0.2
 */
int sqlipc_cursor_is_readonly(sqlipc_cursor *cursor);

/**
 * Returns the change sequence of the database for this run, after sqlipc_cursor_next() has returned 0: every change that the
 * result does not have gets a larger number. After a run that wrote, it is the number of its commit or a later one, unless
 * the run belongs to a transaction. 0 before, and if the service does not count changes. Compare it with
 * sqlipc_watch_sequence(). Numbers of different instances of the service cannot be compared. Since: 0.2
 */
uint64_t sqlipc_cursor_sequence(sqlipc_cursor *cursor);

/**
 * How the requests and rows of runs travel. The transports differ in speed only. AUTO, the default, sends requests over the
 * bus and reads rows from a pipe, which suits large results. It moves to a channel (a private socket to the worker, one for
 * each database) from the second small result on, returns to the bus if the channel is lost, and uses the bus
 * and a pipe for queries whose results turn out to be large. For parameters of more than 1 MiB the library opens a channel,
 * or sends them in a file over the bus.
 *
 * Buses without descriptors. Pipes and channels are descriptors, and some buses pass none: those behind a program
 * ("unixexec:" in their address, as over ssh) or TCP, and those that do not negotiate it. There AUTO is the same as DBUS,
 * and sqlipc_prepare(), PIPE and CHANNEL fail with SQLIPC_ERROR_NO_DESCRIPTORS. Rows of more than 16 MiB and parameters of
 * more than 1 MiB are not possible there. On other buses DBUS is the slowest transport; each execution of a statement
 * compiles it again.
 */
typedef enum sqlipc_transport {
        SQLIPC_TRANSPORT_AUTO = 0,
        SQLIPC_TRANSPORT_PIPE = 1,    /* over the bus and through a pipe, always */
        SQLIPC_TRANSPORT_CHANNEL = 2, /* a channel from the first run on, except for runs that would wait forever there */
        SQLIPC_TRANSPORT_DBUS = 3     /* over the bus alone, with the rows in replies */
} sqlipc_transport;

/**
 * Sets the transport of runs that start after the call. Errors: -EINVAL; -EOPNOTSUPP with SQLIPC_ERROR_NO_DESCRIPTORS.
 * Since: 0.1
 */
int sqlipc_set_transport(sqlipc_connection *connection, sqlipc_transport transport);

/**
 * Returns the transport of this run: SQLIPC_TRANSPORT_PIPE, _CHANNEL or _DBUS; _AUTO until it is decided. Since: 0.1
 */
sqlipc_transport sqlipc_cursor_get_transport(sqlipc_cursor *cursor);

/* ---- Transactions ------------------------------------------------------------------------------------------------- */

/** The kinds of transaction. */
typedef enum sqlipc_transaction_mode {
        SQLIPC_TRANSACTION_READ = 1, /* all statements read the same state of the database */
        SQLIPC_TRANSACTION_WRITE = 2, /* their changes are committed together, or none; no other client writes meanwhile */
        SQLIPC_TRANSACTION_DEFERRED = 3 /* reads until a statement writes, as BEGIN DEFERRED of SQLite */
} sqlipc_transaction_mode;

/**
 * Begins a transaction on `database`. Everything that the connection runs there from now on belongs to it, by
 * sqlipc_query(), sqlipc_exec(), sqlipc_execute(), sqlipc_batch_run() or sqlipc_load_open(), until the program has learned
 * its end: sqlipc_commit() or sqlipc_rollback() has returned, or the program has closed it. The caller frees it with
 * sqlipc_transaction_close(), which rolls it back if it is still open.
 *
 * Without blocking, this function returns before the transaction has begun: sqlipc_transaction_is_open() tells when it has.
 * Statements may be run meanwhile; they wait for it.
 *
 * A statement that fails has changed nothing, except for rows that OR FAIL or RAISE(FAIL) keeps, and the transaction goes
 * on, unless the failure has rolled it back (ON CONFLICT ROLLBACK, a full disk, a statement that was cancelled or took too
 * long). The library rolls it back if the program waits no longer for a statement that may write, and its outcome is
 * unknown. The service also ends a transaction after TransactionTimeoutSec=, or if it has been idle for
 * TransactionIdleSec= while others wait to write (sqlipcd.conf(5)). If its worker or the service is lost, it has changed
 * nothing. Every later call for it then fails with -ENOTCONN and SQLIPC_ERROR_TRANSACTION_ENDED. Nothing is repeated, and
 * no statement runs on its own in place of the transaction.
 *
 * A deferred transaction reads one state of the database from its first statement that reads, and writes from its first
 * statement that writes. If it has read before, and any program has committed since, that statement fails with -EBUSY and
 * SQLIPC_ERROR_BUSY, and SQLite's extended code is 517 (SQLITE_BUSY_SNAPSHOT). The code is 5 (SQLITE_BUSY) if another
 * transaction is writing. The transaction goes on reading then: roll it back, and repeat it.
 *
 * Statements of a transaction use the bus (SQLIPC_TRANSPORT_PIPE or _DBUS) regardless of sqlipc_set_transport().
 * sqlipc_prepare() compiles outside of the transaction, and does not see tables that the transaction has created. In a
 * transaction that reads, a statement waits until the rows of the one before it are read or their cursor is closed; also in
 * a deferred one until it writes.
 *
 * Errors: those of sqlipc_prepare() about the database; -EINVAL (the mode); -EBUSY with SQLIPC_ERROR_NONE (the connection
 * has a transaction on this database already) or with SQLIPC_ERROR_BUSY (another program keeps the file locked, or the time
 * of sqlipc_set_lock_wait() has passed); -EROFS
 * (SQLIPC_ERROR_READ_ONLY: this user may not write it); -EDQUOT (TransactionsMax=); -ENOTCONN with
 * SQLIPC_ERROR_TRANSACTION_ENDED (other clients wrote for too long); -ECANCELED (sqlipc_interrupt()); -ETIMEDOUT;
 * -EOPNOTSUPP (a service of version 0.1). Since: 0.2
 */
int sqlipc_begin(sqlipc_connection *connection, const char *database, sqlipc_transaction_mode mode,
                 sqlipc_transaction **ret_transaction);

/**
 * Sets how long a transaction that begins later, or a statement, batch or load outside of transactions, waits at the service
 * for the lock of another transaction, of the service or of another program, in microseconds. After that it fails with
 * -EBUSY and SQLIPC_ERROR_BUSY; of a deferred transaction the statement does. Only the time counts in which the database is
 * known to be locked, so with 0 nothing waits: it begins if there is no lock. BusyTimeoutSec= bounds the wait
 * for other programs in any case (sqlipcd.conf(5)); without a limit (UINT64_MAX, the default) other clients are waited for
 * until TransactionTimeoutSec=, or RunTimeoutSec= of the statement. Does not apply to the commit. A service whose Features
 * have no "lock-wait" refuses a transaction with a limit: SQLIPC_ERROR_UNKNOWN_OPTION. Since: 0.2
 */
int sqlipc_set_lock_wait(sqlipc_connection *connection, uint64_t usec);

/**
 * Returns 1 if the transaction is open as far as the library knows; 0 if it has not begun yet (only without blocking); or
 * the failure to begin, or -ENOTCONN with SQLIPC_ERROR_TRANSACTION_ENDED. Does not ask the service. Since: 0.2
 */
int sqlipc_transaction_is_open(sqlipc_transaction *transaction);

/**
 * Ends the transaction after the statements that were sent before. 0: its changes are durable; a transaction that reads has
 * no changes. Without blocking, returns -EAGAIN until the answer has come: call it again. A transaction that is over repeats
 * its answer. After any error except those marked with (*) it is over, and has changed nothing.
 *
 * Errors: -ENOTCONN with SQLIPC_ERROR_TRANSACTION_ENDED (it was rolled back before, see sqlipc_begin()); -ECONNRESET
 * (SQLIPC_ERROR_WORKER_LOST: nothing was written); -ECONNABORTED with SQLIPC_ERROR_OUTCOME_UNKNOWN (the service was lost
 * during the commit, so it is unknown if the changes were written); the same (*) if the connection's timeout has passed or
 * sqlipc_interrupt() was called: the commit goes on, and another call waits for its answer; -EBUSY with SQLIPC_ERROR_BUSY
 * (other programs read, for longer than BusyTimeoutSec=) or (*) with SQLIPC_ERROR_NONE (a rollback is under way); -EINVAL
 * (*) with SQLIPC_ERROR_COMMIT_REFUSED (deferred foreign keys are violated, SQLITE_CONSTRAINT_FOREIGNKEY: as in SQLite, the
 * transaction is still open, so repair the rows and commit again, or roll back. A service of version 0.1 or before ends it,
 * with SQLIPC_ERROR_SQL); -ENOSPC; -ETIMEDOUT (*) and -ECANCELED (*) (as above, before the commit was
 * sent, or if the transaction only reads); or the error with which it failed to begin. Since: 0.2
 */
int sqlipc_commit(sqlipc_transaction *transaction);

/**
 * Rolls the transaction back, and interrupts a statement under way in it. 0: nothing of it is in the database, also if it
 * had ended by itself before, or its commit has failed. Without blocking, returns -EAGAIN until the answer has come: call it
 * again.
 *
 * Errors: -ENOTCONN with SQLIPC_ERROR_TRANSACTION_ENDED (it was committed before); -ECONNABORTED with
 * SQLIPC_ERROR_OUTCOME_UNKNOWN (the same as from an earlier sqlipc_commit()); -EBUSY (a commit is under way); -ETIMEDOUT and
 * -ECANCELED (the wait ended, and the rollback goes on); or the error with which it failed to begin. Since: 0.2
 */
int sqlipc_rollback(sqlipc_transaction *transaction);

/**
 * Frees the transaction, and rolls it back if it is still open. Does not wait for that, but statements that the connection
 * runs afterwards do not belong to it any more. A commit that is under way goes on, and its outcome is not told. Cursors of
 * the transaction stay for the program to close. Never blocks. NULL is allowed. Returns NULL. Since: 0.2
 */
sqlipc_transaction *sqlipc_transaction_close(sqlipc_transaction *transaction);

/* ---- Batches ------------------------------------------------------------------------------------------------------ */

/**
 * Creates an empty batch for `database`: a list of statements that return no rows, which sqlipc_batch_run() carries out by
 * one call, all or nothing. Sends nothing. The caller frees it with sqlipc_batch_close(). Errors: -ENOMEM. Since: 0.2
 */
int sqlipc_batch_new(sqlipc_connection *connection, const char *database, sqlipc_batch **ret_batch);

/**
 * Add one statement at the end, with positional values as sqlipc_query() takes them, or with parameters as
 * sqlipc_query_with() takes them. SQL and values are copied. The SQL is not compiled before the batch runs, so it may depend
 * on the statements before it. A statement that cannot be added leaves the batch as it was.
 *
 * Errors: -EDQUOT with SQLIPC_ERROR_LIMITS_EXCEEDED (the batch would have more than 4096 statements, or more than 2 GiB of
 * SQL, values and a few bytes for each statement and value; or the statement has more than 1 GiB of values); -EINVAL with
 * SQLIPC_ERROR_SQL (the SQL is not UTF-8) or with SQLIPC_ERROR_NONE (`types`, a type, a name or `struct_size` is invalid);
 * -EOPNOTSUPP (as sqlipc_query_with()); -EBUSY (the batch is running). Since: 0.2
 */
int sqlipc_batch_add(sqlipc_batch *batch, const char *sql, const char *types, ...);
int sqlipc_batch_add_with(sqlipc_batch *batch, const char *sql, const sqlipc_parameter *parameters, size_t n_parameters);

/**
 * Carries out all statements of the batch in their order. 0: they are committed together, or belong to the connection's
 * transaction (sqlipc_begin()); `*ret_changes` (NULL: not wanted) is the sum of their changes, and the batch is empty and
 * may be filled again. After a failure it keeps its statements, and may be run again. Always waits, as sqlipc_exec();
 * sqlipc_interrupt() cancels it.
 *
 * If a statement fails, nothing is left of those before it. The message then begins with its number, from 1 ("statement 2 of
 * 3: ..."), and sqlipc_error_sql_offset() is an offset into its SQL. The library never sends a batch twice unless it is
 * certain that it was not begun.
 *
 * Errors: those of sqlipc_exec(), about one statement or the whole batch. With SQLIPC_ERROR_OUTCOME_UNKNOWN all of the batch
 * may have taken effect, and after a timeout it may still do so; in a transaction, see sqlipc_exec(). -EINVAL with
 * SQLIPC_ERROR_EMPTY_STATEMENT: also for a batch without statements. -EPERM with SQLIPC_ERROR_NOT_ALLOWED: also for a
 * statement that returns rows or is about a savepoint. -EOPNOTSUPP: a service of version 0.1. Since: 0.2
 */
int sqlipc_batch_run(sqlipc_batch *batch, int64_t *ret_changes);

/**
 * Returns the number of rows that `statement` (from 0) of the last run that succeeded has changed, as
 * sqlipc_cursor_changes(). 0 if there is no such statement or run. Since: 0.2
 */
int64_t sqlipc_batch_changes(const sqlipc_batch *batch, size_t statement);

/**
 * Frees the batch. Sends nothing. NULL is allowed. Returns NULL. Since: 0.2
 */
sqlipc_batch *sqlipc_batch_close(sqlipc_batch *batch);

/* ---- Loads -------------------------------------------------------------------------------------------------------- */

/**
 * Begins a load on `database`: `sql`, one INSERT, UPDATE or DELETE with parameters, runs once for each row that
 * sqlipc_load_row() gives, all in one transaction. The rows go through a pipe, without a request for each, so this is
 * the fastest way to write many. If the connection has a transaction on the database (sqlipc_begin()), the load is one
 * statement of it. The caller frees the load with sqlipc_load_close(), which takes everything back unless the load was
 * finished.
 *
 * A load that has sent rows keeps other writers waiting, also this program's own statements on the database. The service
 * therefore ends it after TransactionTimeoutSec=, or if no rows have come for TransactionIdleSec= while others wait to write
 * (sqlipcd.conf(5)). Statements of a transaction wait for the end of a load in it.
 *
 * Without blocking, this function returns before the load has begun: the errors below are those of sqlipc_load_row() and
 * sqlipc_load_finish() then. The library never repeats a load.
 *
 * Errors: those of sqlipc_prepare() about the database and the SQL; -EROFS (SQLIPC_ERROR_READ_ONLY: this user may not write
 * it); -EPERM (SQLIPC_ERROR_NOT_ALLOWED: another kind of statement, RETURNING, or a table that no client may write); -EINVAL
 * with SQLIPC_ERROR_PARAMETER_COUNT (the statement has no parameters); -EDQUOT (RunsMax=, or pages of pipes); -ENOTCONN with
 * SQLIPC_ERROR_TRANSACTION_ENDED; -ECANCELED (sqlipc_interrupt()); -EOPNOTSUPP with SQLIPC_ERROR_NO_DESCRIPTORS (a bus that
 * passes no descriptors) or with SQLIPC_ERROR_NONE (a service of version 0.1). Since: 0.2
 */
int sqlipc_load_open(sqlipc_connection *connection, const char *database, const char *sql, sqlipc_load **ret_load);

/**
 * Gives one row: `n_values` values, as many as the statement has parameters, in their order and without names. 0: the
 * library has the row, and nothing of `values` is needed any longer. The service may not have it yet: an error of the
 * row, such as a violated constraint, is returned by a later call, and its message says which row it was. Each row is
 * taken as a whole or not at all. This function allocates no memory, unless a row is larger than 64 KiB.
 *
 * Errors after which the load goes on, without this row: -EAGAIN (the pipe is full, or the load has not begun; only without
 * blocking); -ETIMEDOUT with SQLIPC_ERROR_NONE (the same for longer than the connection's timeout); -EINVAL with
 * SQLIPC_ERROR_PARAMETER_COUNT (the number of values) or with SQLIPC_ERROR_NONE (a name, an invalid type or `struct_size`);
 * -EOPNOTSUPP (a field that this version of the library does not know is not zero); -EMSGSIZE with
 * SQLIPC_ERROR_ROW_TOO_LARGE (more than 1 GiB); -ENOMEM.
 *
 * After any other error the load is over, nothing was written, and later calls repeat the error: those of sqlipc_exec() for
 * one of the rows, -EINVAL with SQLIPC_ERROR_SQL for example; -EMSGSIZE (a row exceeds RowSizeMax=); -ETIMEDOUT with
 * SQLIPC_ERROR_TIMED_OUT; -ENOTCONN with SQLIPC_ERROR_TRANSACTION_ENDED (other writers waited for too long, or the
 * transaction of the load has ended); -ECONNRESET (SQLIPC_ERROR_WORKER_LOST or SQLIPC_ERROR_DAEMON_LOST); -ECANCELED
 * (sqlipc_interrupt()); or an error of write(2). A load that is finished takes no rows: -EINVAL. Since: 0.2
 */
int sqlipc_load_row(sqlipc_load *load, const sqlipc_parameter *values, size_t n_values);

/**
 * Tells the service that there are no more rows, and waits for the result. 0: all rows were loaded, and the changes are
 * committed, or belong to the connection's transaction; `*ret_changes` (NULL: not wanted) is the number of rows that were
 * inserted, updated or deleted, over all rows, as sqlite3_changes64() counts them. Without blocking, returns -EAGAIN until
 * the answer has come: call it again. A load that is over repeats its answer.
 *
 * Errors: those of sqlipc_load_row() that end the load; -ECONNABORTED with SQLIPC_ERROR_OUTCOME_UNKNOWN (all rows were
 * sent, and then the service was lost, or its answer does not tell the outcome: the rows may have been written; not in a
 * transaction, which ends with such a load, and has changed nothing); the same (*) if the connection's timeout has passed or
 * sqlipc_interrupt() was called, after all rows were sent, also in a transaction: the load goes on, and another call waits
 * for its answer; -ETIMEDOUT (*) with SQLIPC_ERROR_NONE (before all rows were sent: the service writes nothing without the
 * rest, so nothing is written unless another call sends it). After any error except those marked with (*) the load is over,
 * and nothing was written unless the outcome is unknown. Since: 0.2
 */
int sqlipc_load_finish(sqlipc_load *load, int64_t *ret_changes);

/**
 * Cancels the load, without waiting; sqlipc_load_finish() then tells how it ended. Before all rows were sent, that is
 * -ECANCELED at once, and nothing was written. After that, the service is asked to cancel the load, and its answer tells if
 * the rows were loaded (0) or nothing was written (-ECANCELED). A load in a transaction is not cancelled after that, because
 * the transaction would end with it. Errors: -EINVAL (`load` is NULL). Since: 0.2
 */
int sqlipc_load_cancel(sqlipc_load *load);

/**
 * Frees the load. If it is not finished, nothing of it is written; a transaction that it belongs to goes on. Does not wait
 * for that. If sqlipc_load_finish() has sent all rows, but not returned the result, the load goes on, and its outcome is not
 * told. Never blocks. NULL is allowed. Returns NULL. Since: 0.2
 */
sqlipc_load *sqlipc_load_close(sqlipc_load *load);

/* ---- Watches ------------------------------------------------------------------------------------------------------ */

/**
 * Begin to watch tables of `database` for changes, by the service or by programs that open the file themselves. `tables`
 * ends with NULL; NULL, or an empty array, means all tables that the caller may see. sqlipc_watch_open_sql() watches those
 * that a statement reads, through views. A change after the return of these functions is not missed.
 * sqlipc_watch_open_since() also reports a change at once if one after `since` may have affected the tables: a number of
 * sqlipc_cursor_sequence() or sqlipc_watch_sequence(); 0: none. The caller frees the watch with sqlipc_watch_close().
 *
 * If the service restarts, or ends the watch, the library makes it again, tries until that succeeds, and reports one change.
 * It does so also if the bus is lost and the library can open another one.
 *
 * After a change of the schema (VACUUM is one, too) a watch reports changes of all tables: a view may read other tables now,
 * and tables may have been dropped or renamed. To have only those of some tables reported again, open another watch.
 *
 * Without blocking, these functions return before the watch has begun. That it has begun is then reported as a change, so
 * that a program which reads after each change misses none; sqlipc_watch_next() returns the errors.
 *
 * Errors: those of sqlipc_prepare() about the database and the SQL; -EINVAL with SQLIPC_ERROR_SQL (there is no such table);
 * -EPERM with SQLIPC_ERROR_NOT_ALLOWED (the statement writes); -EDQUOT (WatchesMax=, sqlipcd.conf(5)); -ECANCELED
 * (sqlipc_interrupt()); -EOPNOTSUPP (a service of version 0.1). Since: 0.2
 */
int sqlipc_watch_open(sqlipc_connection *connection, const char *database, const char *const *tables,
                      sqlipc_watch **ret_watch);
int sqlipc_watch_open_since(sqlipc_connection *connection, const char *database, const char *const *tables,
                            uint64_t since, sqlipc_watch **ret_watch);
int sqlipc_watch_open_sql(sqlipc_connection *connection, const char *database, const char *sql, sqlipc_watch **ret_watch);

/**
 * Waits for a change, at most for `timeout_usec` microseconds; 0: does not wait; UINT64_MAX: without a limit. The
 * connection's own timeout does not matter. Returns 1 if the tables may have changed since the function last returned 1, or
 * since the watch began; 0 after the timeout. Several changes are reported as one. A change may be reported that changed
 * nothing in the tables; one that did is never lost. Without blocking, never waits, and returns -EAGAIN in place of 0.
 *
 * Errors after which the watch goes on: -EAGAIN; -ECANCELED (sqlipc_interrupt() ended the wait); -EBUSY; -ENOMEM; -ELOOP (a
 * descriptor was readable again and again, and there was nothing to do, which is an error of the library). After any other
 * error the watch is over, and repeats it: those of sqlipc_watch_open(), because the database or the rights may have
 * changed; -ECONNRESET with SQLIPC_ERROR_DAEMON_LOST (the bus is lost, and the library cannot open another one);
 * -EBADMSG. Since: 0.2
 */
int sqlipc_watch_next(sqlipc_watch *watch, uint64_t timeout_usec);

/**
 * Returns a descriptor of this watch alone, for a program that polls it: when it is readable (POLLIN), call
 * sqlipc_watch_next() with timeout 0, which may return 0 or -EAGAIN. The descriptor stays the same when the service
 * restarts. It belongs to the watch: do not close or read it. It is an epoll descriptor, and a process that was forked must
 * not use it. A program that uses sqlipc_get_fd() does not need it. Errors: -EMFILE, -ENFILE. Since: 0.2
 */
int sqlipc_watch_get_fd(sqlipc_watch *watch);

/**
 * Returns the change sequence of the database at the last change that sqlipc_watch_next() returned, or at the beginning of
 * the watch; 0 before it has begun. If it is not larger than sqlipc_cursor_sequence() of a later run at the same instance of
 * the service, the result of that run has the change. Since: 0.2
 */
uint64_t sqlipc_watch_sequence(sqlipc_watch *watch);

/**
 * Ends the watch, and frees it. Never blocks. NULL is allowed. Returns NULL. Since: 0.2
 */
sqlipc_watch *sqlipc_watch_close(sqlipc_watch *watch);

/* ---- Live queries ------------------------------------------------------------------------------------------------- */

/** The kinds of change to the list of a live query's rows. */
typedef enum sqlipc_live_kind {
        SQLIPC_LIVE_ADDED = 1,   /* a row was inserted at `position` */
        SQLIPC_LIVE_REMOVED = 2, /* the row at `position` was removed */
        SQLIPC_LIVE_MOVED = 3,   /* the row at `position` was removed, and inserted again at `new_position` */
        SQLIPC_LIVE_CHANGED = 4, /* the row at `position` has other values in columns that do not belong to its key */
        SQLIPC_LIVE_SETTLED = 5  /* the list equals the result of the last run */
} sqlipc_live_kind;

/**
 * One change. Positions count from 0, in the list as it is at that moment: after all changes before this one. The arrays
 * have a value for each column. The library fills it in; later versions may add fields at the end.
 */
typedef struct sqlipc_live_change {
        sqlipc_live_kind kind;
        size_t position;                /* 0 for SETTLED */
        size_t new_position;            /* after the removal; 0 except for MOVED */
        const sqlipc_value *values;     /* of the row now; a row that moves still has its old ones. NULL: REMOVED, SETTLED */
        const sqlipc_value *old_values; /* of the row before: CHANGED, REMOVED; else NULL */
} sqlipc_live_change;

/** Options of a live query. Set `struct_size` to sizeof(sqlipc_live_options), and unused fields to zero. */
typedef struct sqlipc_live_options {
        size_t struct_size;
        const unsigned *key_columns; /* from 0; NULL: the first column alone */
        size_t n_key_columns;
        uint64_t debounce_usec;      /* how long to wait after a change for others, before the statement runs again */
} sqlipc_live_options;

/**
 * Opens a live query: `sql`, one statement that only reads, runs with its parameters at once, and again whenever its result
 * may have changed. sqlipc_live_next() reports the differences from one result to the next. At most one run is under way;
 * any number of changes meanwhile leads to one more run. The runs do not belong to transactions of the connection. All
 * arguments are copied; `options` may be NULL. The caller frees the live query with sqlipc_live_close().
 *
 * Rows of two results are the same row if they have equal values, of the same types, in all key columns; NULL equals NULL.
 * If several rows of a result have the same key, the first of them in one result is taken to be the first in the other, and
 * so on. The library holds the rows of the last result in memory, and until all differences are taken also those rows that
 * the result before had, and it has not.
 *
 * A blocking call returns when the statement is compiled and watched. Without blocking, sqlipc_live_next() returns the
 * errors.
 *
 * Errors: those of sqlipc_watch_open_sql() and sqlipc_query_with(); -EINVAL (an invalid `struct_size`, or `n_key_columns` is
 * 0 although there are `key_columns`). Since: 0.2
 */
int sqlipc_live_open(sqlipc_connection *connection, const char *database, const char *sql,
                     const sqlipc_parameter *parameters, size_t n_parameters, const sqlipc_live_options *options,
                     sqlipc_live **ret_live);

/**
 * Waits for the next change to the list of rows, which is empty at first; for `timeout_usec` as sqlipc_watch_next(). Returns
 * 1 if there is one: `*ret_change` and its values are valid until the next call of this function or sqlipc_live_close().
 * Returns 0 after the timeout. A program that applies the changes in their order has the same list as the service. After the
 * last difference of a run comes SQLIPC_LIVE_SETTLED, after the first run also if it has no rows; a later run without
 * differences is not reported. The number of moves is the least possible. Without blocking, never waits, and returns -EAGAIN
 * in place of 0.
 *
 * If a run fails, the list stays as it is, and the function returns the error once: those of sqlipc_cursor_next(), for
 * example -EINVAL with SQLIPC_ERROR_SQL (a table was dropped), -EINVAL with SQLIPC_ERROR_NONE (the result has no such key
 * column), -ENOMEM. The statement runs again after the next change; if the reason may pass by itself, also after a pause;
 * and after -ECANCELED (sqlipc_interrupt()) at once. After -ELOOP the live query goes on as a watch does, see
 * sqlipc_watch_next(). A restart of the service is not an error. -ECONNRESET with
 * SQLIPC_ERROR_DAEMON_LOST (the bus is lost, and the library cannot open another one), and errors that end a watch, end the
 * live query, too, unless the statement cannot be compiled any more; they are repeated. Since: 0.2
 */
int sqlipc_live_next(sqlipc_live *live, uint64_t timeout_usec, const sqlipc_live_change **ret_change);

/**
 * Returns a descriptor of this live query alone, as sqlipc_watch_get_fd(): when it is readable, call sqlipc_live_next() with
 * timeout 0 until that returns no change. Since: 0.2
 */
int sqlipc_live_get_fd(sqlipc_live *live);

/**
 * The columns of the last result; 0 and NULL before the first change was returned. `column` counts from 0; NULL if there is
 * no such column. If their number changes, because the schema did, all rows are removed and added again. Strings are valid
 * until the next sqlipc_live_next(). Since: 0.2
 */
unsigned sqlipc_live_column_count(sqlipc_live *live);
const char *sqlipc_live_column_name(sqlipc_live *live, unsigned column);

/**
 * Returns the change sequence of the database for the last result, as sqlipc_cursor_sequence(); 0 before the first.
 * Since: 0.2
 */
uint64_t sqlipc_live_sequence(sqlipc_live *live);

/**
 * Ends the live query, and frees it with its rows. Never blocks. NULL is allowed. Returns NULL. Since: 0.2
 */
sqlipc_live *sqlipc_live_close(sqlipc_live *live);

/* ---- Event loops -------------------------------------------------------------------------------------------------- */

/**
 * 0: functions of this connection never wait. 1, the default: they do. Without blocking, sqlipc_prepare(),
 * sqlipc_execute(), sqlipc_query(), sqlipc_begin(), sqlipc_load_open(), sqlipc_watch_open() and sqlipc_live_open() return at
 * once, and sqlipc_statement_is_ready(), sqlipc_cursor_next(), sqlipc_transaction_is_open(), sqlipc_load_row(),
 * sqlipc_watch_next() and sqlipc_live_next() return their errors; sqlipc_commit(), sqlipc_rollback() and
 * sqlipc_load_finish() return -EAGAIN until they are done. sqlipc_list_databases(), sqlipc_exec()
 * and sqlipc_batch_run() wait in any case. Since: 0.1
 */
int sqlipc_set_blocking(sqlipc_connection *connection, int blocking);

/**
 * Returns one epoll descriptor for the whole connection. Poll it for sqlipc_get_events(), at most until
 * sqlipc_get_timeout(), then call sqlipc_process() and try again what returned -EAGAIN. The descriptor never changes and
 * belongs to the connection: do not close it. Since: 0.1
 */
int sqlipc_get_fd(sqlipc_connection *connection);

/**
 * Returns the events to poll the descriptor for, as in poll(2): POLLIN today; more may be added. Since: 0.1
 */
int sqlipc_get_events(sqlipc_connection *connection);

/**
 * Gets the time until which to wait: CLOCK_MONOTONIC in microseconds; 0 means do not wait, UINT64_MAX wait without a limit.
 * Ask before each wait. Since: 0.1
 */
int sqlipc_get_timeout(sqlipc_connection *connection, uint64_t *ret_usec);

/**
 * Does what can be done without waiting. Returns 1 if anything was done, else 0. A cursor's pipe wakes the descriptor once
 * after each -EAGAIN of its sqlipc_cursor_next(), so a cursor that the program does not read costs nothing. Since: 0.1
 */
int sqlipc_process(sqlipc_connection *connection);

/**
 * Sets the `callback` that sqlipc_process() calls with the cursor when sqlipc_cursor_next() should be tried again, or with
 * the statement when sqlipc_statement_is_ready() should. A program with many of them then need not try each one after each
 * turn of its loop. The callback is called once after each -EAGAIN, or after each 0 from sqlipc_statement_is_ready(), when
 * there is news; the next try may return the same again, which is not an error. NULL, the default, means no callback.
 *
 * Callbacks run only within sqlipc_process(), first those of transactions, then those of loads, of statements, of watches,
 * of cursors in the order in which they began, and of live queries. A callback may call any function, and free its own
 * object and any other; only sqlipc_process() fails, with -EBUSY. Anything that becomes ready during the callbacks is
 * reported by the next sqlipc_process(). Since: 0.1
 */
typedef void (*sqlipc_cursor_callback)(sqlipc_cursor *cursor, void *userdata);
typedef void (*sqlipc_statement_callback)(sqlipc_statement *statement, void *userdata);
int sqlipc_cursor_set_ready_callback(sqlipc_cursor *cursor, sqlipc_cursor_callback callback, void *userdata);
int sqlipc_statement_set_ready_callback(sqlipc_statement *statement, sqlipc_statement_callback callback, void *userdata);

/**
 * The same for a transaction: the callback tells that sqlipc_transaction_is_open(), sqlipc_commit() or sqlipc_rollback(),
 * whichever has returned 0 or -EAGAIN, should be tried again. Since: 0.2
 */
typedef void (*sqlipc_transaction_callback)(sqlipc_transaction *transaction, void *userdata);
int sqlipc_transaction_set_ready_callback(sqlipc_transaction *transaction, sqlipc_transaction_callback callback,
                                          void *userdata);

/**
 * The same for a load: the callback tells that sqlipc_load_row() or sqlipc_load_finish(), whichever has returned -EAGAIN,
 * should be tried again. Since: 0.2
 */
typedef void (*sqlipc_load_callback)(sqlipc_load *load, void *userdata);
int sqlipc_load_set_ready_callback(sqlipc_load *load, sqlipc_load_callback callback, void *userdata);

/**
 * The same for a watch or a live query: the callback tells that sqlipc_watch_next() or sqlipc_live_next() should be tried
 * again after -EAGAIN. Since: 0.2
 */
typedef void (*sqlipc_watch_callback)(sqlipc_watch *watch, void *userdata);
typedef void (*sqlipc_live_callback)(sqlipc_live *live, void *userdata);
int sqlipc_watch_set_ready_callback(sqlipc_watch *watch, sqlipc_watch_callback callback, void *userdata);
int sqlipc_live_set_ready_callback(sqlipc_live *live, sqlipc_live_callback callback, void *userdata);

/* ---- Cleanup helpers ---------------------------------------------------------------------------------------------- */

/**
 * For __attribute__((cleanup)): drop, close or free the object that the variable holds, in any order. Since: 0.1
 */
void sqlipc_connection_unrefp(sqlipc_connection **connection);
void sqlipc_closep(sqlipc_connection **connection);
void sqlipc_finalizep(sqlipc_statement **statement);
void sqlipc_cursor_closep(sqlipc_cursor **cursor);

/**
 * The same for a transaction: it is rolled back unless it was committed before. Since: 0.2
 */
void sqlipc_transaction_closep(sqlipc_transaction **transaction);

/**
 * The same for a load: nothing of it is written unless it was finished before. Since: 0.2
 */
void sqlipc_load_closep(sqlipc_load **load);

/**
 * The same for a batch. Since: 0.2
 */
void sqlipc_batch_closep(sqlipc_batch **batch);

/**
 * The same for a watch and a live query. Since: 0.2
 */
void sqlipc_watch_closep(sqlipc_watch **watch);
void sqlipc_live_closep(sqlipc_live **live);

#ifdef __cplusplus
}
#endif

#endif
