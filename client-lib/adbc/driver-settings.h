/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The options adbc.sqlipc.* that databases, connections and statements share: a connection begins with the values of its
 * database, and a statement with those of its connection. And how options are read and written as each type. ADBC driver.
 *
 *      adbc.sqlipc.batch_rows      the most rows of a batch
 *      adbc.sqlipc.batch_bytes     a batch ends when its buffers have this size
 *      adbc.sqlipc.infer_rows      the number of rows whose values decide about the types
 *      adbc.sqlipc.types           "auto", "declared" or "values" (column-type.h)
 *      adbc.sqlipc.text            "utf8"; or "binary": text of any bytes, as Arrow's binary type
 *      adbc.sqlipc.timeout         seconds that a call may wait for the service; 0: without a limit
 *      adbc.sqlipc.run_timeout     seconds that a run may take; 0: the service's own limit
 *      adbc.sqlipc.transaction     "deferred", "read" or "write": when a transaction begins (driver-connection.h)
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_DRIVER_SETTINGS_H
#define SQLIPC_CLIENT_LIB_ADBC_DRIVER_SETTINGS_H

#include "client-lib/adbc/adbc-abi.h"

/* The values of adbc.sqlipc.transaction. */
enum { TRANSACTION_DEFERRED, TRANSACTION_READ, TRANSACTION_WRITE };

typedef struct DriverSettings {
        int64_t batch_rows;
        int64_t batch_bytes;
        int64_t infer_rows;
        int64_t types; /* a TypeSource */
        int64_t text;  /* 0: utf8, 1: binary */
        int64_t transaction;
        double timeout;
        double run_timeout;
} DriverSettings;

#define DRIVER_SETTINGS_DEFAULT                                                                                             \
        ((DriverSettings) { .batch_rows = 65536, .batch_bytes = (int64_t) 16 << 20, .infer_rows = 1000 })

/* Sets the option `key`. Returns ADBC_STATUS_OK; ADBC_STATUS_INVALID_ARGUMENT if `value` is not allowed; or
 * ADBC_STATUS_NOT_IMPLEMENTED, with an error, if there is no such option here. */
AdbcStatusCode driver_settings_set(DriverSettings *settings, const char *key, const char *value, struct AdbcError *error);

/* Gets the option as a string, in memory that the caller frees. Returns ADBC_STATUS_OK, ADBC_STATUS_NOT_FOUND with an error
 * if there is no such option, or ADBC_STATUS_INTERNAL. */
AdbcStatusCode driver_settings_get(const DriverSettings *settings, const char *key, char **ret_value,
                                   struct AdbcError *error);

/* Returns the microseconds of a number of seconds; UINT64_MAX for 0. */
uint64_t driver_settings_usec(double seconds);

/* ---- Options of any object ------------------------------------------------------------------------------------------
 *
 * An object has two functions for its options, which are strings; the functions below do the rest of ADBC's interface. */

typedef AdbcStatusCode (*OptionSetter)(void *object, const char *key, const char *value, struct AdbcError *error);
typedef AdbcStatusCode (*OptionGetter)(void *object, const char *key, char **ret_value, struct AdbcError *error);

AdbcStatusCode driver_settings_set_bytes(OptionSetter set, void *object, const char *key, const uint8_t *value, size_t size,
                                         struct AdbcError *error);
AdbcStatusCode driver_settings_set_int(OptionSetter set, void *object, const char *key, int64_t value,
                                       struct AdbcError *error);
AdbcStatusCode driver_settings_set_double(OptionSetter set, void *object, const char *key, double value,
                                          struct AdbcError *error);
AdbcStatusCode driver_settings_get_string(OptionGetter get, void *object, const char *key, char *value, size_t *length,
                                          struct AdbcError *error);
AdbcStatusCode driver_settings_get_bytes(OptionGetter get, void *object, const char *key, uint8_t *value, size_t *length,
                                         struct AdbcError *error);
AdbcStatusCode driver_settings_get_int(OptionGetter get, void *object, const char *key, int64_t *ret_value,
                                       struct AdbcError *error);
AdbcStatusCode driver_settings_get_double(OptionGetter get, void *object, const char *key, double *ret_value,
                                          struct AdbcError *error);

/* Reads "true" or "false". */
AdbcStatusCode driver_settings_parse_bool(const char *key, const char *value, int *ret_value, struct AdbcError *error);

/* Errors for a value that is NULL, and for a key that an object does not have. */
AdbcStatusCode driver_settings_no_value(const char *key, struct AdbcError *error);
AdbcStatusCode driver_settings_unknown(const char *key, struct AdbcError *error);
AdbcStatusCode driver_settings_not_found(const char *key, struct AdbcError *error);

/* Copies a string for a getter. */
AdbcStatusCode driver_settings_copy(const char *value, char **ret_value, struct AdbcError *error);

#endif
