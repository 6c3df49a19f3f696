/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * @file sqlipc.h - rows of SQLite databases that another program shares, over D-Bus and a passed pipe.
 *
 *      sqlipc_connection  one bus, one daemon           sqlipc_open_user() ... sqlipc_connection_unref() or sqlipc_close()
 *      sqlipc_statement   one compiled SELECT           sqlipc_prepare() ... sqlipc_finalize()
 *      sqlipc_cursor      one run of it, row by row     sqlipc_execute() or sqlipc_query() ... sqlipc_cursor_close()
 *
 * Errors. A function that can fail returns a negative errno. The object it was called on then holds the details until its
 * next call that fails: sqlipc_error_code(), sqlipc_statement_error_code(), sqlipc_cursor_error_code() and the functions
 * beside them. The connection also holds those of the last call that failed on any of its statements and cursors, or that
 * should have made one. Where nothing else is said a function may also return -EINVAL for an argument that cannot be right
 * (a NULL handle), -ENOMEM, -ECHILD in a process that forked after the connection was opened, -ENOTCONN after
 * sqlipc_close(), and -EBUSY for a call that waits from within a handler of the same bus connection. What is -EAGAIN is no
 * failure, and leaves the details as they are.
 *
 * Threads. A connection, its statements and its cursors are used by one thread at a time; different connections are
 * independent. Only sqlipc_cursor_cancel(), sqlipc_interrupt(), sqlipc_connection_ref() and sqlipc_connection_unref() may be
 * called from any thread while another uses the cursor or connection.
 *
 * Signals. The library never changes a signal's disposition, and never raises SIGPIPE. A call that waits goes on after a
 * signal handler; to end it, the handler calls sqlipc_cursor_cancel() or sqlipc_interrupt().
 *
 * Ownership. What a function hands out as `ret_...` is the caller's to close, and is written only on success. Strings and
 * values that are returned stay the library's, and are valid until what their function names. What is passed in is
 * copied. Statements and cursors keep their connection alive, so a program may free the three kinds of object in any order.
 *
 * Blocking. Functions block until they are done or the connection's timeout has passed (-ETIMEDOUT), unless
 * sqlipc_set_blocking() said otherwise: then they never wait, and what is not there yet is -EAGAIN. See "Event loops".
 *
 * Values of enums may be added; expect ones that you do not know.
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
 * The version of the library that runs, "0.1.0"; static. The one that a program was built with may have been another.
 * Since: 0.1
 */
const char *sqlipc_version(void);

typedef struct sqlipc_connection sqlipc_connection;
typedef struct sqlipc_statement sqlipc_statement;
typedef struct sqlipc_cursor sqlipc_cursor;

/* ---- Connections -------------------------------------------------------------------------------------------------- */

/**
 * Open a connection of its own to the system bus, to the user's bus, or to the bus at `address` (a D-Bus address, as
 * "unix:path=/run/user/1000/bus"; copied). Does not wait for the bus, nor start the daemon: the first call does. If the bus
 * connection is lost later, the next call that needs it opens another one. The connection comes with one reference, the
 * caller's, to be given back by sqlipc_connection_unref() or sqlipc_close().
 *
 * Errors: what connecting the socket gave (-ENOENT, -ECONNREFUSED, -EACCES), -ENOMEDIUM where the environment does not
 * say where the user's bus is. There is no connection then to ask for details. Since: 0.1
 */
int sqlipc_open_system(sqlipc_connection **ret_connection);
int sqlipc_open_user(sqlipc_connection **ret_connection);
int sqlipc_open_address(const char *address, sqlipc_connection **ret_connection);

/**
 * The same for the system bus, or the user's bus, of another machine, over ssh as `busctl --host` does it: `host` is
 * [USER@]HOST[:PORT], HOST in brackets where it holds colons, or a name that ssh's configuration knows. ssh (found by PATH)
 * asks on the terminal and complains on standard error; SIGINT does not end it. The other machine needs
 * systemd-stdio-bridge. Returns before anything is connected: a host that is not reached is SQLIPC_ERROR_DAEMON_LOST from
 * the first call. What ssh waits for, a password, counts for that call's timeout.
 *
 * Nothing but bytes comes through: see "Buses without descriptors" at sqlipc_set_transport().
 *
 * Errors: -EINVAL (no such host can be), -EAGAIN, -EMFILE (no process, no descriptor). Since: 0.1
 */
int sqlipc_open_system_remote(const char *host, sqlipc_connection **ret_connection);
int sqlipc_open_user_remote(const char *host, sqlipc_connection **ret_connection);

/**
 * Uses the caller's bus connection, and takes a reference on it. Our blocking calls dispatch whatever arrives on it; the
 * caller's loop may dispatch it too. If it is lost the library cannot open another: calls then fail with
 * SQLIPC_ERROR_DAEMON_LOST. The bus connection and all that uses it belong to one thread. One that passes no descriptors
 * shall be ready (sd_bus_is_ready()) where no call waits: before, that cannot be seen but from its address. Since: 0.1
 */
int sqlipc_open_bus(struct sd_bus *bus, sqlipc_connection **ret_connection);

/**
 * The bus connection, for calls of the program's own (org.sqlipc1.Manager). Opens another one if it was lost. Stays the
 * connection's: it is valid until the next call on that, which may do the same; who keeps it longer takes a reference, and
 * has a dead bus then. NULL where there is none, with the details in the connection: SQLIPC_ERROR_DAEMON_LOST as a rule.
 * Since: 0.1
 */
struct sd_bus *sqlipc_get_bus(sqlipc_connection *connection);

/**
 * Takes a reference, and returns the connection; gives one back, and returns NULL. With the last reference the connection is
 * closed, as by sqlipc_close(), and freed. Each statement and each cursor holds a reference, too: a connection that the
 * program gave back goes on working for those that are left, and ends with the last of them. From any thread that has a
 * reference; the last one closes in its thread, which for sqlipc_open_bus() must be that of the bus. NULL is allowed.
 * Since: 0.1
 */
sqlipc_connection *sqlipc_connection_ref(sqlipc_connection *connection);
sqlipc_connection *sqlipc_connection_unref(sqlipc_connection *connection);

/**
 * Closes the connection at once, and gives back the caller's reference: runs under way end, the bus connection is closed
 * (unless it is the caller's, of sqlipc_open_bus()), sqlipc_get_fd()'s descriptor too. Statements and cursors that are still
 * open stay the caller's to free, in any order; a cursor that had not ended, and every other call on them or the connection
 * that could fail, gives -ENOTCONN, and there is no current row. Values may still be bound. May be called by a visitor, or
 * by a handler of the bus connection: a call that waits then returns -ENOTCONN. Never blocks. NULL is allowed. Returns NULL.
 * Since: 0.1
 */
sqlipc_connection *sqlipc_close(sqlipc_connection *connection);

/**
 * The longest that one blocking call waits, in microseconds; UINT64_MAX: without end. Default 25 s. It bounds the call,
 * not the run: a sqlipc_cursor_next() that gave -ETIMEDOUT may be repeated.
 * Since: 0.1
 */
int sqlipc_set_timeout(sqlipc_connection *connection, uint64_t usec);

/**
 * The longest that a run may take at the service, in microseconds from its arrival there, waits for the reader included;
 * then sqlipc_cursor_next() gives -ETIMEDOUT with SQLIPC_ERROR_TIMED_OUT. UINT64_MAX, the default: as long as the service
 * allows (RunTimeoutSec=, sqlipcd.conf(5)), which this can only shorten. For the runs that are asked for from now on: those
 * of sqlipc_execute() and sqlipc_query(). Errors: -EINVAL (0).
 * Since: 0.1
 */
int sqlipc_set_run_timeout(sqlipc_connection *connection, uint64_t usec);

/**
 * Ends all that goes on: as sqlipc_cursor_cancel() for each cursor that has not ended, and statements that are being
 * compiled and sqlipc_list_databases() fail with -ECANCELED. What begins after the call is not affected. From any thread and
 * from signal handlers, as long as a reference is held; keeps errno.
 * Since: 0.1
 */
int sqlipc_interrupt(sqlipc_connection *connection);

/**
 * 1: where an administrator has polkit ask, the user may be asked to authenticate for a call; 0, the default: such a call
 * fails with -EACCES. For programs with a user before them. sqlipc_prepare(), sqlipc_execute() and sqlipc_query() then wait
 * for their answer without end, whatever the connection's timeout: somebody may have to find a password.
 * Since: 0.1
 */
int sqlipc_set_allow_interactive_authorization(sqlipc_connection *connection, int allow);

/**
 * A row of which more than `size` bytes come is not kept in memory, but in a file without a name in $TMPDIR (else /tmp),
 * which is mapped: the kernel can write its pages out and take the memory back. For programs that shall stay small whatever
 * a database holds. SIZE_MAX, the default: never, so no value goes to a disk. Where there is no such file, or no room for
 * it, the row is in memory all the same. For the runs that start from now on; what a reply of D-Bus brought
 * (SQLIPC_TRANSPORT_DBUS) is in memory besides. Since: 0.1
 */
int sqlipc_set_row_memory_max(sqlipc_connection *connection, size_t size);

/** One database of the list. */
typedef struct sqlipc_database sqlipc_database;

/**
 * Its name, as sqlipc_query() takes it; what the administrator says of it, "" for nothing; and what may be done with it,
 * "read-only" for all databases today. Never NULL, but for a NULL `database`. Valid until the visitor returns. Since: 0.1
 */
const char *sqlipc_database_name(const sqlipc_database *database);
const char *sqlipc_database_description(const sqlipc_database *database);
const char *sqlipc_database_mode(const sqlipc_database *database);

/** What sqlipc_list_databases() calls; `database` is valid until it returns. 0: go on. */
typedef int (*sqlipc_database_visitor)(const sqlipc_database *database, void *userdata);

/**
 * Calls `visit` for each database that the caller may use, in the order of their names; stops at its first non-zero return,
 * which is returned. Always waits, whatever sqlipc_set_blocking() said. 0 at the end of the list.
 *
 * Errors: -EHOSTDOWN (no service on this bus), -EACCES, -ETIMEDOUT, -ECONNRESET (it died).
 * Since: 0.1
 */
int sqlipc_list_databases(sqlipc_connection *connection, sqlipc_database_visitor visit, void *userdata);

/* ---- Errors ------------------------------------------------------------------------------------------------------- */

/** What went wrong; the same numbers as in ERROR frames, sqlipc-page(5). */
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
        SQLIPC_ERROR_OUTCOME_UNKNOWN = 39
} sqlipc_error;

/**
 * What the last failure on this connection was. SQLIPC_ERROR_NONE where it was not the service's: a wrong argument, a
 * timeout of ours, a lack of memory here.
 * Since: 0.1
 */
sqlipc_error sqlipc_error_code(const sqlipc_connection *connection);

/**
 * Its D-Bus name, "org.sqlipc1.Error.Sql" or one of the bus's own; NULL where it has none. Valid until the next call on the
 * connection.
 * Since: 0.1
 */
const char *sqlipc_error_name(const sqlipc_connection *connection);

/**
 * A sentence for people, in UTF-8, never NULL ("" before the first failure). Valid until the next call on the connection.
 * Since: 0.1
 */
const char *sqlipc_error_message(const sqlipc_connection *connection);

/**
 * SQLite's primary and extended result code, as in sqlite3.h; 0 where SQLite did not fail.
 * Since: 0.1
 */
int sqlipc_error_sqlite_code(const sqlipc_connection *connection);
int sqlipc_error_sqlite_extended_code(const sqlipc_connection *connection);

/**
 * The byte of the SQL that it is about, from 0; -1 where unknown.
 * Since: 0.1
 */
int sqlipc_error_sql_offset(const sqlipc_connection *connection);

/**
 * The same of the last call on this statement that failed: binding, executing, sqlipc_statement_is_ready(). Calls on its
 * cursors count as theirs. Strings are valid until the next call on the statement. Since: 0.1
 */
sqlipc_error sqlipc_statement_error_code(const sqlipc_statement *statement);
const char *sqlipc_statement_error_name(const sqlipc_statement *statement);
const char *sqlipc_statement_error_message(const sqlipc_statement *statement);
int sqlipc_statement_error_sqlite_code(const sqlipc_statement *statement);
int sqlipc_statement_error_sqlite_extended_code(const sqlipc_statement *statement);
int sqlipc_statement_error_sql_offset(const sqlipc_statement *statement);

/**
 * The same of the last sqlipc_cursor_next() on this cursor that failed, whatever else failed on the connection since.
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
 * connection are lost later, sqlipc_execute() compiles it again by itself. The caller frees it with sqlipc_finalize().
 *
 * Without blocking it returns before anything is known: sqlipc_statement_is_ready() tells, and values may be bound and
 * the statement executed meanwhile.
 *
 * Errors: -ENOENT (no such database), -EINVAL (the SQL is wrong: SQLIPC_ERROR_SQL with an offset, EMPTY_STATEMENT,
 * SEVERAL_STATEMENTS, MISSING_...), -EROFS, -EPERM, -EHOSTDOWN, -ETIMEDOUT, -ECONNRESET, -EOPNOTSUPP (a bus that passes no
 * descriptors: use sqlipc_query()); all of them: sqlipc_error(3).
 * Since: 0.1
 */
int sqlipc_prepare(sqlipc_connection *connection, const char *database, const char *sql, sqlipc_statement **ret_statement);

/**
 * Forgets the statement, here and in the daemon. Its cursor, if still open, is ended: it gives -ESTALE from then on, and is
 * still the caller's to close. Never blocks. NULL is allowed. Returns NULL.
 * Since: 0.1
 */
sqlipc_statement *sqlipc_finalize(sqlipc_statement *statement);

/**
 * 1: compiled; 0: not yet (only without blocking); negative: the failure, as from sqlipc_prepare().
 * Since: 0.1
 */
int sqlipc_statement_is_ready(sqlipc_statement *statement);

/**
 * The columns as the compiler sees them; a run's own are the cursor's, which may differ where the schema changed. 0 and NULL
 * until the statement is ready. `column` counts from 0; NULL where there is none. Strings are valid until the statement
 * is executed or finalized. The declared type is NULL for an expression. Since: 0.1
 */
unsigned sqlipc_statement_column_count(sqlipc_statement *statement);
const char *sqlipc_statement_column_name(sqlipc_statement *statement, unsigned column);
const char *sqlipc_statement_column_decltype(sqlipc_statement *statement, unsigned column);

/**
 * The parameters; 0 and NULL until the statement is ready. The count is the largest index. Indices start at 1, as
 * SQLite's; names have their prefix (":id"), and are NULL for a nameless one; valid until the statement is executed or
 * finalized. Since: 0.1
 */
unsigned sqlipc_statement_parameter_count(sqlipc_statement *statement);
const char *sqlipc_statement_parameter_name(sqlipc_statement *statement, unsigned index);

/**
 * The index of `name`, with or without its prefix; 0 if there is none, or more than one without prefix.
 * Since: 0.1
 */
unsigned sqlipc_statement_parameter_index(sqlipc_statement *statement, const char *name);

/**
 * Bind a value to parameter `index` (from 1). Bytes are copied; the value is kept over executions until bound again.
 * Parameters that were never bound are NULL, as in SQLite. `text` may hold any bytes, NULs too; `size` SIZE_MAX: up to its
 * NUL. NULL `text` of size 0 or SIZE_MAX is SQL's NULL; NULL `blob` of size 0 is an empty BLOB. A run that was asked for
 * already keeps the values it was asked for with.
 *
 * Errors: -ERANGE (no such index; before the statement is ready, and then wrong: the run fails with
 * SQLIPC_ERROR_PARAMETER_COUNT).
 * Since: 0.1
 */
int sqlipc_bind_null(sqlipc_statement *statement, unsigned index);
int sqlipc_bind_int64(sqlipc_statement *statement, unsigned index, int64_t value);
int sqlipc_bind_double(sqlipc_statement *statement, unsigned index, double value);
int sqlipc_bind_text(sqlipc_statement *statement, unsigned index, const char *text, size_t size);
int sqlipc_bind_blob(sqlipc_statement *statement, unsigned index, const void *blob, size_t size);

/**
 * The same by name, with or without its prefix. Before the statement is ready the name is looked up when it runs, and
 * wins over a binding by index.
 *
 * Errors: -ENXIO (no such name, or several without prefix: SQLIPC_ERROR_UNKNOWN_PARAMETER; the run gives it where the name
 * was looked up late).
 * Since: 0.1
 */
int sqlipc_bind_null_by_name(sqlipc_statement *statement, const char *name);
int sqlipc_bind_int64_by_name(sqlipc_statement *statement, const char *name, int64_t value);
int sqlipc_bind_double_by_name(sqlipc_statement *statement, const char *name, double value);
int sqlipc_bind_text_by_name(sqlipc_statement *statement, const char *name, const char *text, size_t size);
int sqlipc_bind_blob_by_name(sqlipc_statement *statement, const char *name, const void *blob, size_t size);

/**
 * Forgets every bound value.
 * Since: 0.1
 */
int sqlipc_clear_bindings(sqlipc_statement *statement);

/* ---- Runs --------------------------------------------------------------------------------------------------------- */

/**
 * Runs the statement with what is bound. Blocking, it returns once the run has started, or failed to; one on a channel that
 * has nothing to show after a tenth of a second counts as started. An earlier cursor of the statement that is still open is
 * ended: it gives -ESTALE from then on. The caller closes each with sqlipc_cursor_close().
 *
 * Errors: those of sqlipc_prepare(), since the database may have changed; -EINVAL (SQLIPC_ERROR_PARAMETER_...), -EDQUOT
 * (parameters or runs over a limit), -EBUSY. Without blocking they come from sqlipc_cursor_next().
 * Since: 0.1
 */
int sqlipc_execute(sqlipc_statement *statement, sqlipc_cursor **ret_cursor);

/**
 * Prepares, binds, runs and finalizes in one round trip. `types` has a letter per positional parameter, NULL or "" for
 * none; the arguments behind it are of exactly these types (a literal 5 is an int: write (int64_t) 5):
 *
 *      i int64_t · d double · s const char * (NULL: SQL NULL) · t const char *, size_t · b const void *, size_t
 *      n nothing: SQL NULL
 *
 * The caller closes the cursor with sqlipc_cursor_close(). Errors: those of sqlipc_prepare() and sqlipc_execute().
 * Since: 0.1
 */
int sqlipc_query(sqlipc_connection *connection, const char *database, const char *sql, sqlipc_cursor **ret_cursor,
                 const char *types, ...);

/** What a value is; SQLite's own numbers. */
typedef enum sqlipc_type {
        SQLIPC_INTEGER = 1,
        SQLIPC_REAL = 2,
        SQLIPC_TEXT = 3,
        SQLIPC_BLOB = 4,
        SQLIPC_NULL = 5
} sqlipc_type;

/**
 * One named or positional value for sqlipc_query_with(). Set `struct_size` to sizeof(sqlipc_parameter), and what is not used
 * to zero: fields may be added at the end, and the library tells by the size which ones a program knows.
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
 * sqlipc_query() with an array of `n_parameters` parameters; nothing of it is kept. Positional and named ones may be
 * mixed as long as each parameter of the statement gets exactly one value.
 *
 * Errors: those of sqlipc_query(); -EINVAL (a `struct_size` that cannot be, or not the same in all elements); -EOPNOTSUPP
 * with SQLIPC_ERROR_NONE (a field behind those that this version of the library knows is not zero).
 * Since: 0.1
 */
int sqlipc_query_with(sqlipc_connection *connection, const char *database, const char *sql,
                      const sqlipc_parameter *parameters, size_t n_parameters, sqlipc_cursor **ret_cursor);

/**
 * Goes to the next row. 1: there is one; 0: the result ended, complete; negative: it did not. An ended or failed cursor
 * repeats its answer.
 *
 * Errors: -EAGAIN (not there yet, only without blocking); -ETIMEDOUT with SQLIPC_ERROR_NONE (the connection's timeout
 * passed: the run goes on, the call may be repeated), with SQLIPC_ERROR_TIMED_OUT (the daemon ended the run);
 * -ECONNRESET (SQLIPC_ERROR_WORKER_LOST or SQLIPC_ERROR_DAEMON_LOST: the rows so far are not all; the next query works
 * again); -ECONNABORTED (SQLIPC_ERROR_OUTCOME_UNKNOWN: the same of a statement that the service has not said to be
 * read-only, so it may have taken effect); -ECANCELED; -ETIME (the rows were read too slowly); -ESTALE (the statement was
 * executed again or finalized); -EMSGSIZE (a row is too large); -EBADMSG (what came is not the page format); and what SQLite
 * came upon: sqlipc_error(3). Since: 0.1
 */
int sqlipc_cursor_next(sqlipc_cursor *cursor);

/** A value of a block. Its layout does not change; `size` is 0 but for TEXT and BLOB. */
typedef struct sqlipc_value {
        sqlipc_type type;
        uint32_t size;           /* bytes; of TEXT without the NUL behind it */
        union {
                int64_t integer; /* SQLIPC_INTEGER; 0 of SQLIPC_NULL */
                double real;     /* SQLIPC_REAL */
                const char *text; /* SQLIPC_TEXT */
                const void *blob; /* SQLIPC_BLOB, not NULL if it is empty */
        } as;
} sqlipc_value;

/**
 * sqlipc_cursor_next() for many rows at once, for programs that convert each value: it takes the next row, and with it those
 * behind it that are there already, at most `n_rows_max` (0: as many as the library likes, some thousand values). On 1,
 * `*ret_values` are the values of `*ret_n_rows` rows, one row after the other: value `column` of row `i` of the block is at
 * index i * sqlipc_column_count() + column. They and the bytes that they point to are valid until the next call of this
 * function or of sqlipc_cursor_next() on this cursor, its close, or the next execution of its statement. The current row, of
 * sqlipc_column_int64() and the like, is the last of the block. The two functions may be called in turn.
 *
 * Errors: those of sqlipc_cursor_next(). Where a block ends before what is wrong, the next call says so.
 * Since: 0.1
 */
int sqlipc_cursor_next_block(sqlipc_cursor *cursor, size_t n_rows_max, const sqlipc_value **ret_values, size_t *ret_n_rows);

/**
 * Frees the cursor, ending its run if that goes on. Never blocks. NULL is allowed. Returns NULL.
 * Since: 0.1
 */
sqlipc_cursor *sqlipc_cursor_close(sqlipc_cursor *cursor);

/**
 * Ends the run on the server. sqlipc_cursor_next() then gives -ECANCELED, after the rows that were on their way; or 0 if the
 * end was quicker. From any thread and from signal handlers, as long as the cursor is not closed; keeps errno.
 * Since: 0.1
 */
int sqlipc_cursor_cancel(sqlipc_cursor *cursor);

/**
 * The columns of this run, known once sqlipc_cursor_next() returned 1 or 0; 0 and NULL before. `column` counts from 0.
 * Strings are valid until the cursor is closed, or its statement executed again or finalized. The declared type is NULL
 * for an expression. Since: 0.1
 */
unsigned sqlipc_column_count(sqlipc_cursor *cursor);
const char *sqlipc_column_name(sqlipc_cursor *cursor, unsigned column);
const char *sqlipc_column_decltype(sqlipc_cursor *cursor, unsigned column);

/**
 * The values of the current row, read in place: pointers are valid until the next sqlipc_cursor_next() on this cursor, its
 * close, or the next execution of its statement. Where there is no row, or no such column, a value is NULL.
 *
 * No conversions but between integer and real, as C does them (a real that no int64_t can hold gives the nearest): of
 * another type sqlipc_column_int64() is 0, sqlipc_column_double() 0.0, text and blob NULL with size 0.
 * sqlipc_column_text() and sqlipc_column_blob() give the bytes of both TEXT and BLOB; behind TEXT stands a NUL, behind
 * BLOB none. Sizes do not count that NUL; TEXT may hold others, and any bytes. An empty BLOB is a non-NULL pointer.
 * `ret_size` may be NULL. Since: 0.1
 */
sqlipc_type sqlipc_column_type(sqlipc_cursor *cursor, unsigned column);
int sqlipc_column_is_null(sqlipc_cursor *cursor, unsigned column);
int64_t sqlipc_column_int64(sqlipc_cursor *cursor, unsigned column);
double sqlipc_column_double(sqlipc_cursor *cursor, unsigned column);
const char *sqlipc_column_text(sqlipc_cursor *cursor, unsigned column, size_t *ret_size);
const void *sqlipc_column_blob(sqlipc_cursor *cursor, unsigned column, size_t *ret_size);

/**
 * What the server counted, once sqlipc_cursor_next() returned 0: rows, bytes of pages, microseconds from the arrival of the
 * run to its end, waits for the reader included. Zeros before. Any pointer may be NULL.
 * Since: 0.1
 */
void sqlipc_cursor_get_totals(sqlipc_cursor *cursor, uint64_t *ret_rows, uint64_t *ret_bytes, uint64_t *ret_usec);

/**
 * What carries the requests and rows of runs: how fast they go is all that differs. AUTO, the default, asks over the bus and
 * reads from a pipe, which suits large results, and moves to a channel (a private socket to the worker, one for each
 * database) once a program keeps asking for small ones; back where it is lost, and on for results that turn out to be large.
 * Parameters of more than 1 MiB need a channel, and have it opened.
 *
 * Buses without descriptors. Pipes and channels are descriptors, and some buses pass none: those behind a program
 * ("unixexec:" in their address, as over ssh) or TCP, and those that say so. AUTO is DBUS there; sqlipc_prepare(), PIPE and
 * CHANNEL are refused with SQLIPC_ERROR_NO_DESCRIPTORS. A row of more than 16 MiB does not come through, nor do parameters
 * of more than 1 MiB. Elsewhere DBUS is slower than all others; each execution of a statement compiles it again.
 */
typedef enum sqlipc_transport {
        SQLIPC_TRANSPORT_AUTO = 0,
        SQLIPC_TRANSPORT_PIPE = 1,    /* over the bus and down a pipe, always */
        SQLIPC_TRANSPORT_CHANNEL = 2, /* over a channel from the first run on, but for what would wait there without end */
        SQLIPC_TRANSPORT_DBUS = 3     /* over the bus alone, with the rows in replies */
} sqlipc_transport;

/**
 * Chooses it for the runs that start from now on. Errors: -EINVAL; -EOPNOTSUPP with SQLIPC_ERROR_NO_DESCRIPTORS.
 * Since: 0.1
 */
int sqlipc_set_transport(sqlipc_connection *connection, sqlipc_transport transport);

/**
 * What carries this run: SQLIPC_TRANSPORT_PIPE, _CHANNEL or _DBUS; _AUTO as long as it is not decided.
 * Since: 0.1
 */
sqlipc_transport sqlipc_cursor_get_transport(sqlipc_cursor *cursor);

/* ---- Event loops -------------------------------------------------------------------------------------------------- */

/**
 * 0: functions of this connection never wait; 1, the default: they do. Without blocking sqlipc_prepare(),
 * sqlipc_execute() and sqlipc_query() return at once, errors come from sqlipc_statement_is_ready() and
 * sqlipc_cursor_next(). sqlipc_list_databases() waits all the same. Since: 0.1
 */
int sqlipc_set_blocking(sqlipc_connection *connection, int blocking);

/**
 * One epoll descriptor for all of the connection: poll it for sqlipc_get_events(), at most until sqlipc_get_timeout(), then
 * call sqlipc_process() and ask what you wait for. It stays the same, and the connection's: do not close it.
 * Since: 0.1
 */
int sqlipc_get_fd(sqlipc_connection *connection);

/**
 * What to poll it for, as in poll(2): POLLIN today; more may be added.
 * Since: 0.1
 */
int sqlipc_get_events(sqlipc_connection *connection);

/**
 * Until when to wait: CLOCK_MONOTONIC in microseconds, 0 for not at all, UINT64_MAX for without end. Ask before each wait.
 * Since: 0.1
 */
int sqlipc_get_timeout(sqlipc_connection *connection, uint64_t *ret_usec);

/**
 * Does what can be done without waiting. 1: something was done; 0: nothing. A cursor's pipe wakes the descriptor once after
 * each -EAGAIN of its sqlipc_cursor_next(), so a cursor that nobody reads costs nothing.
 * Since: 0.1
 */
int sqlipc_process(sqlipc_connection *connection);

/**
 * Has sqlipc_process() call `callback` with the cursor once it is worth another sqlipc_cursor_next(), or with the statement
 * once it is worth another sqlipc_statement_is_ready(): a program with many of them need not ask each after each turn of its
 * loop. Called once after each -EAGAIN, or 0 of sqlipc_statement_is_ready(), and never before the answer; the call may give
 * the same again, which is no error. NULL: no callback, the default.
 *
 * Callbacks run within sqlipc_process() and nowhere else, statements' first, then cursors' in the order in which they began.
 * A callback may call any function, and free its own object and any other; only sqlipc_process() is -EBUSY. What becomes
 * ready by that is told by the next sqlipc_process().
 * Since: 0.1
 */
typedef void (*sqlipc_cursor_callback)(sqlipc_cursor *cursor, void *userdata);
typedef void (*sqlipc_statement_callback)(sqlipc_statement *statement, void *userdata);
int sqlipc_cursor_set_ready_callback(sqlipc_cursor *cursor, sqlipc_cursor_callback callback, void *userdata);
int sqlipc_statement_set_ready_callback(sqlipc_statement *statement, sqlipc_statement_callback callback, void *userdata);

/* ---- Cleanup helpers ---------------------------------------------------------------------------------------------- */

/**
 * For __attribute__((cleanup)): give back, or close, what the variable holds, in whatever order.
 * Since: 0.1
 */
void sqlipc_connection_unrefp(sqlipc_connection **connection);
void sqlipc_closep(sqlipc_connection **connection);
void sqlipc_finalizep(sqlipc_statement **statement);
void sqlipc_cursor_closep(sqlipc_cursor **cursor);

#ifdef __cplusplus
}
#endif

#endif
