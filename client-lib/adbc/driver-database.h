/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * AdbcDatabase: the bus and the name of a database, and the defaults of its connections. It opens nothing. ADBC driver.
 *
 *      uri                     "sqlipc://BUS/NAME", BUS being as below, or "" for its default; or only NAME
 *      adbc.sqlipc.database    the name of the database, as the service publishes it; the current catalog of new connections
 *      adbc.sqlipc.bus         "user", "system" or a D-Bus address; by default the user's bus, for root the system's, as
 * ipcq-cli
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_DRIVER_DATABASE_H
#define SQLIPC_CLIENT_LIB_ADBC_DRIVER_DATABASE_H

#include "client-lib/adbc/adbc-abi.h"
#include "client-lib/adbc/driver-settings.h"

typedef struct DriverDatabase {
        char *bus;  /* NULL: the default */
        char *name; /* NULL: none */
        DriverSettings settings;
} DriverDatabase;

/* Functions of the driver's table. */
AdbcStatusCode driver_database_new(struct AdbcDatabase *database, struct AdbcError *error);
AdbcStatusCode driver_database_init(struct AdbcDatabase *database, struct AdbcError *error);
AdbcStatusCode driver_database_release(struct AdbcDatabase *database, struct AdbcError *error);
AdbcStatusCode driver_database_set_option(struct AdbcDatabase *database, const char *key, const char *value,
                                          struct AdbcError *error);
AdbcStatusCode driver_database_set_option_bytes(struct AdbcDatabase *database, const char *key, const uint8_t *value,
                                                size_t size, struct AdbcError *error);
AdbcStatusCode driver_database_set_option_int(struct AdbcDatabase *database, const char *key, int64_t value,
                                              struct AdbcError *error);
AdbcStatusCode driver_database_set_option_double(struct AdbcDatabase *database, const char *key, double value,
                                                 struct AdbcError *error);
AdbcStatusCode driver_database_get_option(struct AdbcDatabase *database, const char *key, char *value, size_t *length,
                                          struct AdbcError *error);
AdbcStatusCode driver_database_get_option_bytes(struct AdbcDatabase *database, const char *key, uint8_t *value,
                                                size_t *length, struct AdbcError *error);
AdbcStatusCode driver_database_get_option_int(struct AdbcDatabase *database, const char *key, int64_t *ret_value,
                                              struct AdbcError *error);
AdbcStatusCode driver_database_get_option_double(struct AdbcDatabase *database, const char *key, double *ret_value,
                                                 struct AdbcError *error);

#endif
