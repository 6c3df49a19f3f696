/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * AdbcStatement: SQL or the target of an ingest, bound rows, and the execution of both. ADBC driver.
 *
 * A statement has one result at a time: executing it again makes the result before stale. A statement that is prepared, or
 * about which the transaction must know if it writes, has a statement of libsqlipc; another one is run in one round trip.
 *
 * Bound rows. The statement runs once for each row, and not at all if there is none. An execution that wants no result sends
 * several rows as a load (sqlipc_load_open()), if the statement is one that can be loaded; else they run one after the
 * other, in one transaction.
 *
 * Failures. An execution that fails says so with the failure's own status only if it is certain that it has written nothing,
 * or that its transaction is rolled back. Otherwise the outcome is unknown (adbc_error_outcome()). The library says which
 * outcome a run has. The driver adds the runs that have ended before, and failures of its own: a timeout while it reads rows
 * (it closes the cursor then, and waits for no answer), or a value that fits no column.
 *
 * Schema. ExecuteSchema() must tell the types that an execution will have, and types depend on values (column-type.h). So it
 * executes a statement that only reads up to its first rows, and gives the bound data back.
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_DRIVER_STATEMENT_H
#define SQLIPC_CLIENT_LIB_ADBC_DRIVER_STATEMENT_H

#include "client-lib/adbc/bound-rows.h"
#include "client-lib/adbc/cancel-slot.h"
#include "client-lib/adbc/driver-connection.h"
#include "client-lib/adbc/ingest-target.h"
#include "client-lib/adbc/result-stream.h"

typedef struct DriverStatement {
        atomic_uint n_refs;
        DriverConnection *connection; /* a reference */
        DriverSettings settings;
        CancelSlot slot;
        char *sql;
        sqlipc_statement *prepared; /* NULL: not, or it could not be */
        IngestTarget target;
        struct ArrowArrayStream bound; /* released: nothing is bound */
        int64_t n_bound;               /* the number of rows; -1: unknown */
        int by_name;
        BoundRows *rows;      /* of the execution; NULL: it has no parameters */
        bool ran;             /* the execution without parameters has run */
        bool lasting;         /* its runs are committed by themselves, not by a transaction */
        bool may_write;       /* a run of it that has ended was not known to change nothing */
        unsigned guard;       /* of the connection, for this execution; 0: none */
        unsigned n_ended;     /* its runs that have ended, and so taken effect */
        unsigned n_cancels;   /* of the connection, when it began */
        ResultStream *stream; /* borrowed; NULL: no open result */
} DriverStatement;

/* Functions of the driver's table. */
AdbcStatusCode driver_statement_new(struct AdbcConnection *connection, struct AdbcStatement *statement,
                                    struct AdbcError *error);
AdbcStatusCode driver_statement_release(struct AdbcStatement *statement, struct AdbcError *error);
AdbcStatusCode driver_statement_set_sql(struct AdbcStatement *statement, const char *sql, struct AdbcError *error);
AdbcStatusCode driver_statement_set_substrait(struct AdbcStatement *statement, const uint8_t *plan, size_t size,
                                              struct AdbcError *error);
AdbcStatusCode driver_statement_prepare(struct AdbcStatement *statement, struct AdbcError *error);
AdbcStatusCode driver_statement_bind(struct AdbcStatement *statement, struct ArrowArray *values, struct ArrowSchema *schema,
                                     struct AdbcError *error);
AdbcStatusCode driver_statement_bind_stream(struct AdbcStatement *statement, struct ArrowArrayStream *stream,
                                            struct AdbcError *error);
AdbcStatusCode driver_statement_execute(struct AdbcStatement *statement, struct ArrowArrayStream *ret_stream,
                                        int64_t *ret_affected, struct AdbcError *error);
AdbcStatusCode driver_statement_execute_partitions(struct AdbcStatement *statement, struct ArrowSchema *ret_schema,
                                                   struct AdbcPartitions *ret_partitions, int64_t *ret_affected,
                                                   struct AdbcError *error);
AdbcStatusCode driver_statement_execute_schema(struct AdbcStatement *statement, struct ArrowSchema *ret_schema,
                                               struct AdbcError *error);
AdbcStatusCode driver_statement_parameter_schema(struct AdbcStatement *statement, struct ArrowSchema *ret_schema,
                                                 struct AdbcError *error);
AdbcStatusCode driver_statement_cancel(struct AdbcStatement *statement, struct AdbcError *error);
AdbcStatusCode driver_statement_set_option(struct AdbcStatement *statement, const char *key, const char *value,
                                           struct AdbcError *error);
AdbcStatusCode driver_statement_set_option_bytes(struct AdbcStatement *statement, const char *key, const uint8_t *value,
                                                 size_t size, struct AdbcError *error);
AdbcStatusCode driver_statement_set_option_int(struct AdbcStatement *statement, const char *key, int64_t value,
                                               struct AdbcError *error);
AdbcStatusCode driver_statement_set_option_double(struct AdbcStatement *statement, const char *key, double value,
                                                  struct AdbcError *error);
AdbcStatusCode driver_statement_get_option(struct AdbcStatement *statement, const char *key, char *value, size_t *length,
                                           struct AdbcError *error);
AdbcStatusCode driver_statement_get_option_bytes(struct AdbcStatement *statement, const char *key, uint8_t *value,
                                                 size_t *length, struct AdbcError *error);
AdbcStatusCode driver_statement_get_option_int(struct AdbcStatement *statement, const char *key, int64_t *ret_value,
                                               struct AdbcError *error);
AdbcStatusCode driver_statement_get_option_double(struct AdbcStatement *statement, const char *key, double *ret_value,
                                                  struct AdbcError *error);

#endif
