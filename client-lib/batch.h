/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Several statements that are carried out by one call, all or nothing. Library.
 *
 * batch.c collects the statements, batch-run.c sends them, always over the bus as one ExecuteBatch. A batch is never sent
 * again, unless the service said that it had not begun, or it never left this process.
 */
#ifndef SQLIPC_CLIENT_LIB_BATCH_H
#define SQLIPC_CLIENT_LIB_BATCH_H

#include "client-lib/call.h"
#include "client-lib/connection.h"
#include "client-lib/error.h"
#include "client-lib/transact.h"
#include "dbus-interfaces/wire/call-arguments.h"

/* Limits of the service for one batch. The size counts SQL, values, and BATCH_HEAD_SIZE for each statement. */
#define BATCH_STATEMENTS_MAX ((size_t) 4096)
#define BATCH_SIZE_MAX ((size_t) CALL_ARGUMENTS_SIZE_MAX)
#define BATCH_MESSAGE_SIZE_MAX ((size_t) 4 * 1024 * 1024) /* a larger batch is sent in a file */
#define BATCH_HEAD_SIZE CALL_ARGUMENTS_HEAD_SIZE

typedef struct BatchStatement {
        char *sql;                     /* owned; after its NUL there is a row of parameters, parameter-row.h */
        size_t sql_size, row_size;
        unsigned n_positional, n_named;
} BatchStatement;

struct sqlipc_batch {
        sqlipc_connection *connection; /* a reference */
        char *path;                    /* database object */
        BatchStatement *statements;
        size_t n_statements, n_allocated;
        size_t size;                   /* of the statements, as BATCH_SIZE_MAX counts it */
        bool needs_file;               /* they, or one of them, are too large for a message */
        int64_t *changes;              /* of the statements of the last run that succeeded */
        size_t n_changes;
        sqlipc_transaction *transaction; /* a reference on the one that the run belongs to; NULL: none, or no run */
        Call *call;                    /* ExecuteBatch in progress */
        Cancellation cancellation;     /* of that */
        Error error;                   /* of the last run; result 0: it succeeded */
};

/* Drops all statements. */
void batch_clear(sqlipc_batch *b);

#endif
