/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * @file sqlipc.h - rows of SQLite databases that another program shares, over D-Bus and a passed pipe.
 *
 *      sqlipc_connection  one bus, one daemon           sqlipc_open_user() ... sqlipc_close()
 *      sqlipc_statement   one compiled SELECT           sqlipc_prepare() ... sqlipc_finalize()
 *      sqlipc_cursor      one run of it, row by row     sqlipc_execute() or sqlipc_query() ... sqlipc_cursor_close()
 *
 * Errors. A function that can fail returns a negative errno; the connection it belongs to then holds the details until its
 * next call that fails: sqlipc_error_code() and the functions beside it. Where nothing else is said a function may also return -EINVAL
 * for an argument that cannot be right (a NULL handle, an index out of range) and -ENOMEM.
 *
 * Threads. A connection, its statements and its cursors are used by one thread at a time; different connections are
 * independent. Only sqlipc_cursor_cancel() may be called from any thread while another uses the cursor.
 *
 * Signals. The library never changes a signal's disposition, and never raises SIGPIPE.
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

typedef struct sqlipc_connection sqlipc_connection;
typedef struct sqlipc_statement sqlipc_statement;
typedef struct sqlipc_cursor sqlipc_cursor;

/* ---- Connections -------------------------------------------------------------------------------------------------- */

/** Opens a connection of its own to the system bus, to the user's bus, or to the bus at `address`. */
int sqlipc_open_system(sqlipc_connection **ret_connection);
int sqlipc_open_user(sqlipc_connection **ret_connection);
int sqlipc_open_address(const char *address, sqlipc_connection **ret_connection);
/** Uses the caller's bus connection; takes a reference on it. */
int sqlipc_open_bus(struct sd_bus *bus, sqlipc_connection **ret_connection);
/** Closes cursors, finalizes statements, closes the connection. NULL is allowed. Returns NULL. */
sqlipc_connection *sqlipc_close(sqlipc_connection *connection);

/** The longest that a blocking call waits, in microseconds; UINT64_MAX: without end. Default 25 s. */
int sqlipc_set_timeout(sqlipc_connection *connection, uint64_t usec);

/** Calls `visit` for each database that the caller may use, by name; stops at its first non-zero return, which is returned. */
typedef int (*sqlipc_database_visitor)(const char *name, const char *description, void *userdata);
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
        SQLIPC_ERROR_ACCESS_DENIED = 36
} sqlipc_error;

/** The last failure on this connection. 0 (SQLIPC_ERROR_NONE) where it was none of the service's: see sqlipc_error_name(). */
sqlipc_error sqlipc_error_code(const sqlipc_connection *connection);
/** Its D-Bus name, "org.sqlipc1.Error.Sql" or one of the bus's own; NULL where none. Borrowed until the next call on the connection. */
const char *sqlipc_error_name(const sqlipc_connection *connection);
/** A sentence in UTF-8, never NULL. Borrowed until the next call on the connection. */
const char *sqlipc_error_message(const sqlipc_connection *connection);
/** SQLite's primary and extended result code; 0 where SQLite did not fail. */
int sqlipc_error_sqlite_code(const sqlipc_connection *connection);
int sqlipc_error_sqlite_extended_code(const sqlipc_connection *connection);
/** Byte offset into the SQL of what it is about; -1 where unknown. */
int sqlipc_error_sql_offset(const sqlipc_connection *connection);

/* ---- Statements --------------------------------------------------------------------------------------------------- */

/** Compiles `sql` (NUL-terminated UTF-8, one statement) on `database`. If worker or daemon are lost, sqlipc_execute() compiles it again. */
int sqlipc_prepare(sqlipc_connection *connection, const char *database, const char *sql, sqlipc_statement **ret_statement);
/** Closes its cursor and forgets the statement, here and in the daemon. NULL is allowed. Returns NULL. Never blocks. */
sqlipc_statement *sqlipc_finalize(sqlipc_statement *statement);
/** 1: compiled; 0: not yet (only without blocking); negative: failed. */
int sqlipc_statement_is_ready(sqlipc_statement *statement);

/** Columns as the compiler sees them; a run's own are the cursor's. Borrowed until the statement is executed or finalized. */
unsigned sqlipc_statement_column_count(sqlipc_statement *statement);
const char *sqlipc_statement_column_name(sqlipc_statement *statement, unsigned column);
const char *sqlipc_statement_column_decltype(sqlipc_statement *statement, unsigned column);

/** Parameters. Indices start at 1, as SQLite's; names have their prefix (":id"); NULL for a nameless one. */
unsigned sqlipc_statement_parameter_count(sqlipc_statement *statement);
const char *sqlipc_statement_parameter_name(sqlipc_statement *statement, unsigned index);
/** The index of `name`, with or without its prefix; 0 if there is none, or more than one without prefix. */
unsigned sqlipc_statement_parameter_index(sqlipc_statement *statement, const char *name);

/** Binds a value to parameter `index` (from 1); bytes are copied; kept over executions until bound again. Parameters that were never bound
 * are NULL, as in SQLite. `text` may hold any bytes; size SIZE_MAX: up to its NUL. -ERANGE: no such index. */
int sqlipc_bind_null(sqlipc_statement *statement, unsigned index);
int sqlipc_bind_int64(sqlipc_statement *statement, unsigned index, int64_t value);
int sqlipc_bind_double(sqlipc_statement *statement, unsigned index, double value);
int sqlipc_bind_text(sqlipc_statement *statement, unsigned index, const char *text, size_t size);
int sqlipc_bind_blob(sqlipc_statement *statement, unsigned index, const void *blob, size_t size);
/** The same by name. -ENXIO: no such name (SQLIPC_ERROR_UNKNOWN_PARAMETER). */
int sqlipc_bind_null_by_name(sqlipc_statement *statement, const char *name);
int sqlipc_bind_int64_by_name(sqlipc_statement *statement, const char *name, int64_t value);
int sqlipc_bind_double_by_name(sqlipc_statement *statement, const char *name, double value);
int sqlipc_bind_text_by_name(sqlipc_statement *statement, const char *name, const char *text, size_t size);
int sqlipc_bind_blob_by_name(sqlipc_statement *statement, const char *name, const void *blob, size_t size);
/** Forgets every bound value. */
int sqlipc_clear_bindings(sqlipc_statement *statement);

/* ---- Runs --------------------------------------------------------------------------------------------------------- */

/** Runs the statement with what is bound. Its earlier cursor, if still open, is ended: it gives -ESTALE from then on. The caller closes each. */
int sqlipc_execute(sqlipc_statement *statement, sqlipc_cursor **ret_cursor);

/** Prepares, binds, runs and finalizes in one round trip. `types` has a letter per positional parameter, NULL or "" for none:
 *      i int64_t · d double · s const char * (NULL: SQL NULL) · t const char *, size_t · b const void *, size_t · n nothing: SQL NULL */
int sqlipc_query(sqlipc_connection *connection, const char *database, const char *sql, sqlipc_cursor **ret_cursor, const char *types, ...);

/** One named or positional value for sqlipc_query_with(). */
typedef enum sqlipc_type {
        SQLIPC_INTEGER = 1,
        SQLIPC_REAL = 2,
        SQLIPC_TEXT = 3,
        SQLIPC_BLOB = 4,
        SQLIPC_NULL = 5
} sqlipc_type;

typedef struct sqlipc_parameter {
        const char *name;    /* with or without prefix; NULL: the next positional one */
        sqlipc_type type;
        int64_t integer;     /* SQLIPC_INTEGER */
        double real;         /* SQLIPC_REAL */
        const void *bytes;   /* SQLIPC_TEXT, SQLIPC_BLOB */
        size_t size;         /* of bytes */
} sqlipc_parameter;

/** sqlipc_query() with an array of parameters; nothing of it is kept. */
int sqlipc_query_with(sqlipc_connection *connection, const char *database, const char *sql, const sqlipc_parameter *parameters,
                      size_t n_parameters, sqlipc_cursor **ret_cursor);

/** Goes to the next row. 1: there is one; 0: the result ended, complete; negative: it did not. -EAGAIN: not there yet (only without
 * blocking). -ECONNRESET: worker or daemon were lost, sqlipc_error_code() says which. -ETIMEDOUT where the connection's
 * timeout passed, code 0 then: the run goes on, the call may be repeated. Ended or failed cursors repeat their answer. */
int sqlipc_cursor_next(sqlipc_cursor *cursor);
/** Ends the run if it goes on, frees the cursor. NULL is allowed. Returns NULL. Never blocks. */
sqlipc_cursor *sqlipc_cursor_close(sqlipc_cursor *cursor);
/** Ends the run on the server: sqlipc_cursor_next() then gives -ECANCELED after the rows that were on their way. From any thread, as long as the cursor is not closed. */
int sqlipc_cursor_cancel(sqlipc_cursor *cursor);

/** The columns of this run; known once sqlipc_cursor_next() returned 1 or 0. Borrowed until the cursor is closed. */
unsigned sqlipc_column_count(sqlipc_cursor *cursor);
const char *sqlipc_column_name(sqlipc_cursor *cursor, unsigned column);
/** The declared type; NULL for an expression. */
const char *sqlipc_column_decltype(sqlipc_cursor *cursor, unsigned column);

/** Values of the current row, read in place: pointers live until the next sqlipc_cursor_next() or close. No conversions but between integer and
 * real as C does them: of another type sqlipc_column_int64() is 0, sqlipc_column_double() 0.0, text and blob NULL with size 0.
 * sqlipc_column_text() and sqlipc_column_blob() give the bytes of both TEXT and BLOB; behind TEXT stands a NUL, behind BLOB none.
 * An empty BLOB is a non-NULL pointer. `ret_size` may be NULL. */
sqlipc_type sqlipc_column_type(sqlipc_cursor *cursor, unsigned column);
int sqlipc_column_is_null(sqlipc_cursor *cursor, unsigned column);
int64_t sqlipc_column_int64(sqlipc_cursor *cursor, unsigned column);
double sqlipc_column_double(sqlipc_cursor *cursor, unsigned column);
const char *sqlipc_column_text(sqlipc_cursor *cursor, unsigned column, size_t *ret_size);
const void *sqlipc_column_blob(sqlipc_cursor *cursor, unsigned column, size_t *ret_size);

/** What the END frame said, once sqlipc_cursor_next() returned 0; zeros before. Any pointer may be NULL. */
void sqlipc_cursor_get_totals(sqlipc_cursor *cursor, uint64_t *ret_rows, uint64_t *ret_bytes, uint64_t *ret_usec);

/* ---- Event loops -------------------------------------------------------------------------------------------------- */

/** 0: functions of this connection never wait (see the top of this file); 1, the default: they do. sqlipc_prepare(), sqlipc_execute() and
 * sqlipc_query() then return at once, errors come from sqlipc_statement_is_ready() and sqlipc_cursor_next(). sqlipc_list_databases() always blocks. */
int sqlipc_set_blocking(sqlipc_connection *connection, int blocking);
/** One epoll descriptor for all of the connection: poll it for sqlipc_get_events(), at most until sqlipc_get_timeout(), then call
 * sqlipc_process() and ask what you wait for. Borrowed. */
int sqlipc_get_fd(sqlipc_connection *connection);
/** POLLIN; more may be added. */
int sqlipc_get_events(sqlipc_connection *connection);
/** Until when to wait: CLOCK_MONOTONIC in microseconds, 0 for not at all, UINT64_MAX for without end. */
int sqlipc_get_timeout(sqlipc_connection *connection, uint64_t *ret_usec);
/** Does what can be done without waiting. 1: something was done; 0: nothing. A cursor's pipe wakes the descriptor once after
 * each -EAGAIN of its sqlipc_cursor_next(), so a cursor that nobody reads costs nothing. */
int sqlipc_process(sqlipc_connection *connection);

/* ---- Cleanup helpers ---------------------------------------------------------------------------------------------- */

/** For __attribute__((cleanup)): close what the variable holds. */
void sqlipc_closep(sqlipc_connection **connection);
void sqlipc_finalizep(sqlipc_statement **statement);
void sqlipc_cursor_closep(sqlipc_cursor **cursor);

#ifdef __cplusplus
}
#endif

#endif
