/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The result of a statement as an ArrowArrayStream. ADBC driver.
 *
 * Memory is constant: the stream has the batch that it builds, and before the first batch a copy of the rows by which the
 * types are chosen. Releasing the stream early closes the cursor, which ends the run at the service.
 *
 *      open      the cursor has more rows, or there are more runs
 *      ended     all rows were taken; the cursor is closed
 *      failed    an error was found; each later call repeats it
 *      stale     the statement was executed again, or the transaction has ended: as failed
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_RESULT_STREAM_H
#define SQLIPC_CLIENT_LIB_ADBC_RESULT_STREAM_H

#include "client-lib/adbc/cancel-slot.h"
#include "client-lib/adbc/driver-connection.h"

typedef struct ResultStream ResultStream;

/* Starts the next run, for a statement with several rows of bound parameters: `*ret_cursor` is NULL after the last one. */
typedef AdbcStatusCode (*ResultRunner)(void *userdata, sqlipc_cursor **ret_cursor, struct AdbcError *error);

/* Returns the prepared statement, borrowed, for the columns of a result of no runs. */
typedef AdbcStatusCode (*ResultDescriber)(void *userdata, sqlipc_statement **ret_prepared, struct AdbcError *error);

/* Adds to a failure that the statement may have written, unless it certainly has not. `cursor`: of the run that failed, or
 * whose result could not be converted; NULL: the run had not begun. */
typedef AdbcStatusCode (*ResultJudge)(void *userdata, sqlipc_cursor *cursor, AdbcStatusCode status, struct AdbcError *error);

/* The owner of a stream. `finished` is called once, when the stream has no cursor any more. Of a statement that may write it
 * is told which runs are complete, and asked if it is certain that none changes anything (`cursor`: of the present run). */
typedef struct ResultOwner {
        ResultRunner run;
        ResultDescriber describe; /* NULL: there is a run */
        void (*ended)(void *userdata, sqlipc_cursor *cursor); /* this and the next two are NULL if it only reads */
        ResultJudge judge;
        bool (*only_reads)(void *userdata, sqlipc_cursor *cursor);
        void (*finished)(void *userdata);
        void *userdata;
        CancelSlot *slot; /* NULL: none */
} ResultOwner;

/*
 * Makes a stream, takes the first rows, and chooses the types. The caller holds the connection's mutex. `*ret_changes` is
 * the number of rows that the statement changed if it returns no rows or has no run, else -1. `finished` is called also
 * after a failure.
 */
AdbcStatusCode result_stream_new(DriverConnection *connection, const DriverSettings *settings, const ResultOwner *owner,
                                 struct ArrowArrayStream *ret_stream, int64_t *ret_changes, struct AdbcError *error);

/* Returns the stream behind an ArrowArrayStream of result_stream_new(); borrowed. */
ResultStream *result_stream_of(struct ArrowArrayStream *stream);

/* True if the stream is neither ended nor failed: its owner is not told yet that it is finished. */
bool result_stream_is_open(const ResultStream *stream);

/* Makes the stream stale: its cursor is closed, and its consumer gets `why` as the error. */
void result_stream_abandon(ResultStream *stream, const char *why);

/* Makes all open streams of the connection stale; the caller holds its mutex. */
void result_stream_abandon_all(DriverConnection *connection, const char *why);

/* True if a stream of the connection has a cursor, on the database `catalog`; NULL: on any. */
bool result_stream_any_open(const DriverConnection *connection, const char *catalog);

/* Functions of the driver's table. */
const struct AdbcError *result_stream_error(struct ArrowArrayStream *stream, AdbcStatusCode *ret_status);

#endif
