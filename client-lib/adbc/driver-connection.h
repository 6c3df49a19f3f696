/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * AdbcConnection: a connection of libsqlipc, the database that statements use (the current catalog), and the transaction.
 * ADBC driver.
 *
 * Life: AdbcConnectionNew() makes it, AdbcConnectionInit() opens the bus. Statements and results hold references, so
 * programs may release connection, statements and results in any order.
 *
 * Threads: libsqlipc allows one thread at a time. `mutex` serializes all calls, so that different objects of one connection
 * may be used in different threads; they then wait for each other. A stream of bound data is called without the mutex,
 * because it may belong to the same connection.
 *
 * Transactions. With autocommit, each statement is on its own. Without, by the option adbc.sqlipc.transaction:
 *
 *      deferred    the first statement begins it: one that writes begins a transaction that writes, and any other a deferred
 *                  one, also one that may write only TEMP tables: it must not wait for others, nor keep them from the file
 *      read        the first statement begins a transaction that reads
 *      write       the first statement begins a transaction that writes
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_DRIVER_CONNECTION_H
#define SQLIPC_CLIENT_LIB_ADBC_DRIVER_CONNECTION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "client-lib/adbc/adbc-abi.h"
#include "client-lib/adbc/driver-settings.h"
#include "client-lib/sqlipc.h"

/* An option that was set before AdbcConnectionInit(). */
typedef struct EarlyOption {
        char *key;
        char *value;
} EarlyOption;

typedef struct DriverConnection {
        atomic_uint n_refs;
        pthread_mutex_t mutex;         /* recursive */
        pthread_mutex_t option_mutex;  /* of the options, which any thread may get */
        sqlipc_connection *connection; /* NULL before AdbcConnectionInit() */
        char *bus;
        char *catalog; /* the name of the database; NULL: none */
        DriverSettings settings;
        EarlyOption *early;
        size_t n_early;
        int autocommit;
        int readonly;
        sqlipc_transaction *transaction; /* NULL: none is open */
        bool transaction_reads;       /* or has begun to: its statements run one after the other */
        bool transaction_refuses;     /* all that writes */
        unsigned guard;               /* not 0: the transaction is that of one execution, which might write */
        unsigned n_guards;            /* there were so far */
        char **pinned;                /* databases on which it may have a pin (client-lib/transact.h) */
        size_t n_pinned;
        atomic_uint n_busy;           /* calls and results in progress, for AdbcConnectionCancel() */
        atomic_uint n_cancels;        /* how often AdbcConnectionCancel() was called */
        struct ResultStream *streams; /* open results, a list */
} DriverConnection;

DriverConnection *driver_connection_ref(DriverConnection *connection);
DriverConnection *driver_connection_unref(DriverConnection *connection);

void driver_connection_lock(DriverConnection *connection);
void driver_connection_unlock(DriverConnection *connection);

/* Fails if AdbcConnectionInit() was not called, or if there is no current catalog and `need_catalog`. */
AdbcStatusCode driver_connection_check(DriverConnection *connection, bool need_catalog, struct AdbcError *error);

/* True if it matters for the transaction if the next statement may write. */
bool driver_connection_must_know(const DriverConnection *connection);

/* The effect of a statement, as far as it is known before it runs. */
typedef enum StatementEffect {
        STATEMENT_READS,
        STATEMENT_WRITES,
        STATEMENT_WRITES_TEMP, /* it writes, but perhaps only TEMP tables */
        STATEMENT_UNKNOWN, /* it may write: it cannot be prepared */
} StatementEffect;

/* Begins a transaction if the mode asks for one before such a statement, or if the connection is read-only and only the
 * service can refuse to write. With autocommit the latter sets `guard` to a new number, and the execution must end it. */
AdbcStatusCode driver_connection_begin(DriverConnection *connection, StatementEffect effect, struct AdbcError *error);
void driver_connection_end_guard(DriverConnection *connection, unsigned guard);

/* A statement on the database may have got the connection a pin there. Returns 0 or -ENOMEM. */
int driver_connection_add_pin(DriverConnection *connection, const char *catalog);
bool driver_connection_has_pin(const DriverConnection *connection, const char *catalog);

/* Fails if a query on `catalog` would wait for a result of the same transaction or pin, which its reader has not read. */
AdbcStatusCode driver_connection_check_turn(DriverConnection *connection, const char *catalog, struct AdbcError *error);

/* Begin and end a transaction on `catalog`, for several statements of the driver that belong together, and have this effect.
 * If one is open already, they do nothing. `*ret_began` tells which. driver_connection_finish() commits if `status` is
 * ADBC_STATUS_OK, and else rolls back and returns `status`. */
AdbcStatusCode driver_connection_begin_several(DriverConnection *connection, const char *catalog, StatementEffect effect,
                                               bool *ret_began, struct AdbcError *error);
AdbcStatusCode driver_connection_finish(DriverConnection *connection, bool began, AdbcStatusCode status,
                                        struct AdbcError *error);

/* Tell if an operation was cancelled: the number of calls of AdbcConnectionCancel() differs from that at its begin. The
 * second one sets the error of such an operation. */
unsigned driver_connection_cancels(const DriverConnection *connection);
AdbcStatusCode driver_connection_cancelled(struct AdbcError *error);

/* The program waits no longer for the end of a load, whose outcome is unknown, as the error of the connection says. Cancels
 * the load, or rolls back the transaction to which it belongs. ADBC_STATUS_OK: it was done before, and `*ret_changes` is
 * set; ADBC_STATUS_TIMEOUT: nothing was written; otherwise the outcome is still unknown. */
AdbcStatusCode driver_connection_take_back(DriverConnection *connection, sqlipc_load *load, int64_t *ret_changes,
                                           struct AdbcError *error);

/* Functions of the driver's table. */
AdbcStatusCode driver_connection_new(struct AdbcConnection *connection, struct AdbcError *error);
AdbcStatusCode driver_connection_init(struct AdbcConnection *connection, struct AdbcDatabase *database,
                                      struct AdbcError *error);
AdbcStatusCode driver_connection_release(struct AdbcConnection *connection, struct AdbcError *error);
AdbcStatusCode driver_connection_commit(struct AdbcConnection *connection, struct AdbcError *error);
AdbcStatusCode driver_connection_rollback(struct AdbcConnection *connection, struct AdbcError *error);
AdbcStatusCode driver_connection_cancel(struct AdbcConnection *connection, struct AdbcError *error);
AdbcStatusCode driver_connection_set_option(struct AdbcConnection *connection, const char *key, const char *value,
                                            struct AdbcError *error);
AdbcStatusCode driver_connection_set_option_bytes(struct AdbcConnection *connection, const char *key, const uint8_t *value,
                                                  size_t size, struct AdbcError *error);
AdbcStatusCode driver_connection_set_option_int(struct AdbcConnection *connection, const char *key, int64_t value,
                                                struct AdbcError *error);
AdbcStatusCode driver_connection_set_option_double(struct AdbcConnection *connection, const char *key, double value,
                                                   struct AdbcError *error);
AdbcStatusCode driver_connection_get_option(struct AdbcConnection *connection, const char *key, char *value, size_t *length,
                                            struct AdbcError *error);
AdbcStatusCode driver_connection_get_option_bytes(struct AdbcConnection *connection, const char *key, uint8_t *value,
                                                  size_t *length, struct AdbcError *error);
AdbcStatusCode driver_connection_get_option_int(struct AdbcConnection *connection, const char *key, int64_t *ret_value,
                                                struct AdbcError *error);
AdbcStatusCode driver_connection_get_option_double(struct AdbcConnection *connection, const char *key, double *ret_value,
                                                   struct AdbcError *error);

#endif
