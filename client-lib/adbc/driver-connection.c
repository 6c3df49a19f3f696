/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* AdbcConnection (driver-connection.h). ADBC driver. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/adbc/adbc-error.h"
#include "client-lib/adbc/cleanup.h"
#include "client-lib/adbc/driver-connection.h"
#include "client-lib/adbc/driver-database.h"
#include "client-lib/adbc/result-stream.h"

/* ---- Life ---------------------------------------------------------------------------------------------------------- */

DriverConnection *driver_connection_ref(DriverConnection *c) {
        atomic_fetch_add(&c->n_refs, 1);
        return c;
}

DriverConnection *driver_connection_unref(DriverConnection *c) {
        if (!c || atomic_fetch_sub(&c->n_refs, 1) > 1)
                return NULL;
        sqlipc_transaction_close(c->transaction);
        sqlipc_close(c->connection);
        (void) pthread_mutex_destroy(&c->mutex);
        (void) pthread_mutex_destroy(&c->option_mutex);
        free(c->bus);
        free(c->catalog);
        for (size_t i = 0; i < c->n_pinned; i++)
                free(c->pinned[i]);
        free(c->pinned);
        for (size_t i = 0; i < c->n_early; i++) {
                free(c->early[i].key);
                free(c->early[i].value);
        }
        free(c->early);
        free(c);
        return NULL;
}

void driver_connection_lock(DriverConnection *c) { (void) pthread_mutex_lock(&c->mutex); }

void driver_connection_unlock(DriverConnection *c) { (void) pthread_mutex_unlock(&c->mutex); }

AdbcStatusCode driver_connection_new(struct AdbcConnection *connection, struct AdbcError *error) {
        DriverConnection *c = calloc(1, sizeof *c);
        pthread_mutexattr_t recursive;

        if (!c)
                return adbc_error_memory(error);
        (void) pthread_mutexattr_init(&recursive);
        (void) pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
        (void) pthread_mutex_init(&c->mutex, &recursive);
        (void) pthread_mutexattr_destroy(&recursive);
        (void) pthread_mutex_init(&c->option_mutex, NULL);
        atomic_init(&c->n_refs, 1);
        c->autocommit = true;
        c->settings = DRIVER_SETTINGS_DEFAULT;
        connection->private_data = c;
        return ADBC_STATUS_OK;
}

/* Sets the options that were set before the connection was initialized: they take precedence over the database's. */
static AdbcStatusCode inherit(DriverConnection *c, const DriverDatabase *d, struct AdbcError *error) {
        AdbcStatusCode status = ADBC_STATUS_OK;

        c->settings = d->settings;
        for (size_t i = 0; status == ADBC_STATUS_OK && i < c->n_early; i++)
                status = driver_settings_set(&c->settings, c->early[i].key, c->early[i].value, error);
        return status;
}

/* Keeps an option for inherit(). */
static AdbcStatusCode keep_early(DriverConnection *c, const char *key, const char *value, struct AdbcError *error) {
        EarlyOption *early = reallocarray(c->early, c->n_early + 1, sizeof *early);

        if (!early)
                return adbc_error_memory(error);
        c->early = early;
        early += c->n_early;
        *early = (EarlyOption) { .key = strdup(key), .value = strdup(value) };
        if (!early->key || !early->value) {
                free(early->key);
                free(early->value);
                return adbc_error_memory(error);
        }
        c->n_early++;
        return ADBC_STATUS_OK;
}

static int open_bus(const char *bus, const char *database, sqlipc_connection **ret) {
        if (!bus || (database && !strchr(bus, ':'))) /* an error says if the other bus has the database */
                return sqlipc_open(database, bus, ret);
        if (strcmp(bus, "system") == 0)
                return sqlipc_open_system(ret);
        return strcmp(bus, "user") == 0 ? sqlipc_open_user(ret) : sqlipc_open_address(bus, ret);
}

static void apply_timeouts(DriverConnection *c) {
        (void) sqlipc_set_timeout(c->connection, driver_settings_usec(c->settings.timeout));
        (void) sqlipc_set_run_timeout(c->connection, driver_settings_usec(c->settings.run_timeout));
}

AdbcStatusCode driver_connection_init(struct AdbcConnection *connection, struct AdbcDatabase *database,
                                      struct AdbcError *error) {
        DriverConnection *c = connection->private_data;
        const DriverDatabase *d = database->private_data;
        AdbcStatusCode status;
        int r;

        if (!c || !d)
                return adbc_error_set(error, ADBC_STATUS_INVALID_STATE, "HY000", "The connection or database is released");
        if (c->connection)
                return adbc_error_set(error, ADBC_STATUS_INVALID_STATE, "HY000", "The connection is open already");
        c->bus = d->bus ? strdup(d->bus) : NULL;
        if (!c->catalog && d->name)
                c->catalog = strdup(d->name);
        if ((d->bus && !c->bus) || (d->name && !c->catalog))
                return adbc_error_memory(error);
        status = inherit(c, d, error);
        if (status != ADBC_STATUS_OK)
                return status;
        r = open_bus(c->bus, c->catalog, &c->connection);
        if (r < 0 && c->connection) {
                status = adbc_error_connection(error, c->connection, r);
                c->connection = sqlipc_close(c->connection);
                return status;
        }
        if (r < 0)
                return adbc_error_set(error, r == -ENOMEM ? ADBC_STATUS_INTERNAL : ADBC_STATUS_IO, "08001",
                                      "Cannot connect to the bus \"%s\": %s", c->bus ? c->bus : "", strerror(-r));
        apply_timeouts(c);
        return ADBC_STATUS_OK;
}

AdbcStatusCode driver_connection_release(struct AdbcConnection *connection, struct AdbcError *error) {
        DriverConnection *c = connection->private_data;

        if (!c)
                return adbc_error_set(error, ADBC_STATUS_INVALID_STATE, "HY000", "The connection is released");
        /* Results that are still open belong to a transaction that cannot be committed any more. */
        driver_connection_lock(c);
        c->transaction = sqlipc_transaction_close(c->transaction);
        driver_connection_unlock(c);
        connection->private_data = driver_connection_unref(c);
        return ADBC_STATUS_OK;
}

AdbcStatusCode driver_connection_check(DriverConnection *c, bool need_catalog, struct AdbcError *error) {
        if (!c || !c->connection)
                return adbc_error_set(error, ADBC_STATUS_INVALID_STATE, "08003", "The connection is not open");
        if (need_catalog && !c->catalog)
                return adbc_error_set(error, ADBC_STATUS_INVALID_STATE, "3D000",
                                      "No database is chosen: set uri, adbc.sqlipc.database, or the connection's current "
                                      "catalog");
        return ADBC_STATUS_OK;
}

AdbcStatusCode driver_connection_cancel(struct AdbcConnection *connection, struct AdbcError *error) {
        DriverConnection *c = connection->private_data;

        if (!c || !c->connection || atomic_load(&c->n_busy) == 0)
                return adbc_error_set(error, ADBC_STATUS_INVALID_STATE, "HY000", "There is nothing to cancel");
        atomic_fetch_add(&c->n_cancels, 1); /* first: an operation that the interruption ends must find it */
        (void) sqlipc_interrupt(c->connection);
        return ADBC_STATUS_OK;
}

unsigned driver_connection_cancels(const DriverConnection *c) { return atomic_load(&c->n_cancels); }

AdbcStatusCode driver_connection_cancelled(struct AdbcError *error) {
        return adbc_error_set(error, ADBC_STATUS_CANCELLED, "57014", "The connection was cancelled");
}

/* Rolls the transaction back, which ends a load in it. False: that could not be sent, and it is open. */
static bool roll_back(DriverConnection *c) {
        return sqlipc_rollback(c->transaction) >= 0 || sqlipc_transaction_is_open(c->transaction) <= 0;
}

/* Has the service cancel the load, and waits until it has said how the load ended, but not for long. */
static int cancel_load(DriverConnection *c, sqlipc_load *load, int64_t *ret_changes) {
        uint64_t timeout = driver_settings_usec(c->settings.timeout);
        int r;

        (void) sqlipc_load_cancel(load);
        (void) sqlipc_set_timeout(c->connection, timeout < SQLIPC_CANCEL_WAIT_USEC ? timeout : SQLIPC_CANCEL_WAIT_USEC);
        r = sqlipc_load_finish(load, ret_changes);
        (void) sqlipc_set_timeout(c->connection, timeout);
        return r;
}

AdbcStatusCode driver_connection_take_back(DriverConnection *c, sqlipc_load *load, int64_t *ret_changes,
                                           struct AdbcError *error) {
        AdbcStatusCode status = adbc_error_connection(error, c->connection, -ECONNABORTED);
        int r;

        if (c->transaction)
                return roll_back(c) ? adbc_error_set(error, ADBC_STATUS_TIMEOUT, "HYT00",
                                                     "The service has not said in time how the load ended, and the "
                                                     "transaction is rolled back")
                                    : status;
        r = cancel_load(c, load, ret_changes);
        if (r == -ECANCELED)
                return adbc_error_set(error, ADBC_STATUS_TIMEOUT, "HYT00",
                                      "The load did not end in time, and was cancelled: nothing was written");
        return r < 0 ? adbc_error_connection(error, c->connection, r) : ADBC_STATUS_OK;
}

/* ---- Transactions -------------------------------------------------------------------------------------------------- */

bool driver_connection_must_know(const DriverConnection *c) {
        bool deferred = !c->autocommit && !c->transaction && c->settings.transaction == TRANSACTION_DEFERRED;

        return deferred || c->readonly;
}

static AdbcStatusCode begin(DriverConnection *c, const char *catalog, sqlipc_transaction_mode mode,
                            struct AdbcError *error) {
        int r = sqlipc_begin(c->connection, catalog, mode, &c->transaction);

        if (r < 0)
                return adbc_error_connection(error, c->connection, r);
        c->transaction_reads = mode != SQLIPC_TRANSACTION_WRITE;
        c->transaction_refuses = mode == SQLIPC_TRANSACTION_READ;
        return ADBC_STATUS_OK;
}

int driver_connection_add_pin(DriverConnection *c, const char *catalog) {
        char **pinned;

        if (driver_connection_has_pin(c, catalog))
                return 0;
        pinned = reallocarray(c->pinned, c->n_pinned + 1, sizeof *pinned);
        if (!pinned)
                return -ENOMEM;
        c->pinned = pinned;
        pinned[c->n_pinned] = strdup(catalog);
        return pinned[c->n_pinned] ? (c->n_pinned++, 0) : -ENOMEM;
}

bool driver_connection_has_pin(const DriverConnection *c, const char *catalog) {
        for (size_t i = 0; i < c->n_pinned; i++)
                if (strcmp(c->pinned[i], catalog) == 0)
                        return true;
        return false;
}

AdbcStatusCode driver_connection_check_turn(DriverConnection *c, const char *catalog, struct AdbcError *error) {
        bool is_within = c->transaction && strcmp(catalog, c->catalog) == 0;
        bool one_by_one = is_within ? c->transaction_reads : driver_connection_has_pin(c, catalog);

        if (!one_by_one || !result_stream_any_open(c, catalog))
                return ADBC_STATUS_OK;
        return adbc_error_set(error, ADBC_STATUS_INVALID_STATE, "24000",
                              !is_within ? "A connection that has had TEMP tables, or settings of its own, runs one "
                                           "statement at a time: read the open result to its end, or release it"
                              : c->guard ? "On a connection that is read-only, over a bus that passes no descriptors, one "
                                         "statement runs at a time: read the open result to its end, or release it"
                                       : "A transaction that has begun to read runs one statement at a time: read the open "
                                         "result to its end, or release it");
}

/* The service refuses all that writes, as the driver would if it knew the effect. */
static AdbcStatusCode begin_readonly(DriverConnection *c, struct AdbcError *error) {
        AdbcStatusCode status = begin(c, c->catalog, SQLIPC_TRANSACTION_READ, error);

        if (status == ADBC_STATUS_OK && c->autocommit)
                c->guard = ++c->n_guards;
        return status;
}

void driver_connection_end_guard(DriverConnection *c, unsigned guard) {
        if (guard == 0 || guard != c->guard)
                return;
        c->transaction = sqlipc_transaction_close(c->transaction);
        c->guard = 0;
}

static AdbcStatusCode begin_on(DriverConnection *c, const char *catalog, StatementEffect effect, struct AdbcError *error) {
        bool writes = effect == STATEMENT_WRITES || effect == STATEMENT_WRITES_TEMP;
        AdbcStatusCode status;

        if (!result_stream_any_open(c, NULL)) /* all rows of its execution have arrived */
                driver_connection_end_guard(c, c->guard);
        if (c->readonly && (writes ||
                            (effect == STATEMENT_UNKNOWN && c->transaction && !c->transaction_refuses)))
                return adbc_error_set(error, ADBC_STATUS_INVALID_STATE, "25006",
                                      "The statement writes, or may write, but adbc.connection.readonly is set");
        status = driver_connection_check_turn(c, catalog, error);
        if (status != ADBC_STATUS_OK || (c->autocommit && !c->transaction && !(c->readonly && effect == STATEMENT_UNKNOWN)))
                return status;
        if (c->transaction) {
                int r = sqlipc_transaction_is_open(c->transaction);

                return r < 0 ? adbc_error_connection(error, c->connection, r) : ADBC_STATUS_OK;
        }
        if (c->readonly)
                return begin_readonly(c, error);
        switch (c->settings.transaction) {
        case TRANSACTION_READ:
                return begin(c, c->catalog, SQLIPC_TRANSACTION_READ, error);
        case TRANSACTION_WRITE:
                return begin(c, c->catalog, SQLIPC_TRANSACTION_WRITE, error);
        default: /* if the effect is unknown, the user may not be allowed to write, and must be able to read */
                return begin(c, c->catalog,
                             effect == STATEMENT_WRITES ? SQLIPC_TRANSACTION_WRITE : SQLIPC_TRANSACTION_DEFERRED, error);
        }
}

AdbcStatusCode driver_connection_begin(DriverConnection *c, StatementEffect effect, struct AdbcError *error) {
        return begin_on(c, c->catalog, effect, error);
}

/* Ends the transaction. If the outcome of a commit is unknown, the transaction is kept until it is rolled back: another
 * commit must not succeed because there is nothing to commit, and no statement may run as if it had ended. */
static AdbcStatusCode end(DriverConnection *c, int (*how)(sqlipc_transaction *), struct AdbcError *error) {
        AdbcStatusCode status = ADBC_STATUS_OK;
        bool is_unknown;
        int r;

        if (!c->transaction)
                return status;
        if (c->transaction_reads) /* it would wait until they are read */
                result_stream_abandon_all(c, "The transaction has ended");
        (void) sqlipc_set_blocking(c->connection, 0);
        r = how(c->transaction);
        (void) sqlipc_set_blocking(c->connection, 1);
        if (r == -EAGAIN) { /* it is sent, so each cancellation that is accepted ends the wait */
                atomic_fetch_add(&c->n_busy, 1);
                r = how(c->transaction);
                atomic_fetch_sub(&c->n_busy, 1);
        }
        if (r < 0)
                status = adbc_error_connection(error, c->connection, r);
        is_unknown = r < 0 && how == sqlipc_commit && sqlipc_error_code(c->connection) == SQLIPC_ERROR_OUTCOME_UNKNOWN;
        if (r >= 0 || (!is_unknown && sqlipc_transaction_is_open(c->transaction) <= 0))
                c->transaction = sqlipc_transaction_close(c->transaction);
        return status;
}

static AdbcStatusCode end_explicitly(struct AdbcConnection *connection, int (*how)(sqlipc_transaction *),
                                     struct AdbcError *error) {
        DriverConnection *c = connection->private_data;
        AdbcStatusCode status;

        status = driver_connection_check(c, false, error);
        if (status != ADBC_STATUS_OK)
                return status;
        if (c->autocommit)
                return adbc_error_set(error, ADBC_STATUS_INVALID_STATE, "25000",
                                      "The connection commits each statement itself");
        driver_connection_lock(c);
        status = end(c, how, error);
        driver_connection_unlock(c);
        return status;
}

AdbcStatusCode driver_connection_commit(struct AdbcConnection *connection, struct AdbcError *error) {
        return end_explicitly(connection, sqlipc_commit, error);
}

AdbcStatusCode driver_connection_rollback(struct AdbcConnection *connection, struct AdbcError *error) {
        return end_explicitly(connection, sqlipc_rollback, error);
}

AdbcStatusCode driver_connection_begin_several(DriverConnection *c, const char *catalog, StatementEffect effect,
                                               bool *ret_began, struct AdbcError *error) {
        bool elsewhere = !c->catalog || strcmp(c->catalog, catalog) != 0;
        AdbcStatusCode status;

        *ret_began = false;
        if (elsewhere && !c->autocommit)
                return adbc_error_set(error, ADBC_STATUS_NOT_IMPLEMENTED, "0A000",
                                      "Without autocommit, only the current catalog can be written: a transaction has one "
                                      "database");
        status = begin_on(c, catalog, effect, error);
        if (status != ADBC_STATUS_OK || c->transaction)
                return status;
        status = begin(c, catalog, effect == STATEMENT_WRITES ? SQLIPC_TRANSACTION_WRITE : SQLIPC_TRANSACTION_DEFERRED,
                       error);
        *ret_began = status == ADBC_STATUS_OK;
        return status;
}

AdbcStatusCode driver_connection_finish(DriverConnection *c, bool began, AdbcStatusCode status, struct AdbcError *error) {
        if (!began)
                return status;
        if (status == ADBC_STATUS_OK)
                status = end(c, sqlipc_commit, error);
        c->transaction = sqlipc_transaction_close(c->transaction); /* rolls back unless it has ended */
        return status;
}

/* ---- Options ------------------------------------------------------------------------------------------------------- */

static AdbcStatusCode set_autocommit(DriverConnection *c, const char *key, const char *value, struct AdbcError *error) {
        AdbcStatusCode status;
        int autocommit;

        status = driver_settings_parse_bool(key, value, &autocommit, error);
        if (status == ADBC_STATUS_OK && autocommit)
                status = end(c, sqlipc_commit, error);
        if (status == ADBC_STATUS_OK)
                c->autocommit = autocommit;
        return status;
}

static AdbcStatusCode set_catalog(DriverConnection *c, const char *value, struct AdbcError *error) {
        char *copy;

        if (c->transaction)
                return adbc_error_set(error, ADBC_STATUS_INVALID_STATE, "25001",
                                      "A transaction is open: end it before you choose another database");
        copy = strdup(value);
        if (!copy)
                return adbc_error_memory(error);
        free(c->catalog);
        c->catalog = copy;
        return ADBC_STATUS_OK;
}

static AdbcStatusCode set_setting(DriverConnection *c, const char *key, const char *value, struct AdbcError *error) {
        AdbcStatusCode status = driver_settings_set(&c->settings, key, value, error);

        if (status != ADBC_STATUS_OK)
                return status;
        if (!c->connection)
                return keep_early(c, key, value, error);
        apply_timeouts(c);
        return status;
}

static AdbcStatusCode set_locked(DriverConnection *c, const char *key, const char *value, struct AdbcError *error) {
        if (c->guard != 0 && result_stream_any_open(c, NULL)) /* its execution would go on in the transaction of others */
                result_stream_abandon_all(c, "An option of the connection was set while the result was read");
        driver_connection_end_guard(c, c->guard);
        if (strcmp(key, "adbc.connection.autocommit") == 0)
                return set_autocommit(c, key, value, error);
        if (strcmp(key, "adbc.connection.readonly") == 0)
                return driver_settings_parse_bool(key, value, &c->readonly, error);
        if (strcmp(key, "adbc.connection.catalog") == 0)
                return set_catalog(c, value, error);
        if (strcmp(key, "adbc.connection.db_schema") == 0 && *value == 0)
                return ADBC_STATUS_OK; /* the only schema */
        if (strcmp(key, "adbc.connection.transaction.isolation_level") == 0 &&
            (strcmp(value, "adbc.connection.transaction.isolation.default") == 0 ||
             strcmp(value, "adbc.connection.transaction.isolation.serializable") == 0))
                return ADBC_STATUS_OK; /* SQLite's transactions are serializable */
        return set_setting(c, key, value, error);
}

static AdbcStatusCode set(void *object, const char *key, const char *value, struct AdbcError *error) {
        DriverConnection *c = object;
        AdbcStatusCode status;

        if (!c)
                return adbc_error_set(error, ADBC_STATUS_INVALID_STATE, "HY000", "The connection is released");
        if (!value)
                return driver_settings_no_value(key, error);
        driver_connection_lock(c);
        (void) pthread_mutex_lock(&c->option_mutex);
        status = set_locked(c, key, value, error);
        (void) pthread_mutex_unlock(&c->option_mutex);
        driver_connection_unlock(c);
        return status;
}

static AdbcStatusCode get_locked(const DriverConnection *c, const char *key, char **ret_value, struct AdbcError *error) {
        if (strcmp(key, "adbc.connection.autocommit") == 0)
                return driver_settings_copy(c->autocommit ? "true" : "false", ret_value, error);
        if (strcmp(key, "adbc.connection.readonly") == 0)
                return driver_settings_copy(c->readonly ? "true" : "false", ret_value, error);
        if (strcmp(key, "adbc.connection.catalog") == 0)
                return driver_settings_copy(c->catalog ? c->catalog : "", ret_value, error);
        if (strcmp(key, "adbc.connection.db_schema") == 0)
                return driver_settings_copy("", ret_value, error);
        if (strcmp(key, "adbc.connection.transaction.isolation_level") == 0)
                return driver_settings_copy("adbc.connection.transaction.isolation.serializable", ret_value, error);
        return driver_settings_get(&c->settings, key, ret_value, error);
}

static AdbcStatusCode get(void *object, const char *key, char **ret_value, struct AdbcError *error) {
        DriverConnection *c = object;
        AdbcStatusCode status;

        if (!c)
                return adbc_error_set(error, ADBC_STATUS_INVALID_STATE, "HY000", "The connection is released");
        (void) pthread_mutex_lock(&c->option_mutex);
        status = get_locked(c, key, ret_value, error);
        (void) pthread_mutex_unlock(&c->option_mutex);
        return status;
}

AdbcStatusCode driver_connection_set_option(struct AdbcConnection *connection, const char *key, const char *value,
                                            struct AdbcError *error) {
        return set(connection->private_data, key, value, error);
}

AdbcStatusCode driver_connection_set_option_bytes(struct AdbcConnection *connection, const char *key, const uint8_t *value,
                                                  size_t size, struct AdbcError *error) {
        return driver_settings_set_bytes(set, connection->private_data, key, value, size, error);
}

AdbcStatusCode driver_connection_set_option_int(struct AdbcConnection *connection, const char *key, int64_t value,
                                                struct AdbcError *error) {
        return driver_settings_set_int(set, connection->private_data, key, value, error);
}

AdbcStatusCode driver_connection_set_option_double(struct AdbcConnection *connection, const char *key, double value,
                                                   struct AdbcError *error) {
        return driver_settings_set_double(set, connection->private_data, key, value, error);
}

AdbcStatusCode driver_connection_get_option(struct AdbcConnection *connection, const char *key, char *value, size_t *length,
                                            struct AdbcError *error) {
        return driver_settings_get_string(get, connection->private_data, key, value, length, error);
}

AdbcStatusCode driver_connection_get_option_bytes(struct AdbcConnection *connection, const char *key, uint8_t *value,
                                                  size_t *length, struct AdbcError *error) {
        return driver_settings_get_bytes(get, connection->private_data, key, value, length, error);
}

AdbcStatusCode driver_connection_get_option_int(struct AdbcConnection *connection, const char *key, int64_t *ret_value,
                                                struct AdbcError *error) {
        return driver_settings_get_int(get, connection->private_data, key, ret_value, error);
}

AdbcStatusCode driver_connection_get_option_double(struct AdbcConnection *connection, const char *key, double *ret_value,
                                                   struct AdbcError *error) {
        return driver_settings_get_double(get, connection->private_data, key, ret_value, error);
}
