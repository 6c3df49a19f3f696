/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* AdbcDatabase (driver-database.h). ADBC driver. */
#include <stdlib.h>
#include <string.h>

#include "client-lib/adbc/adbc-error.h"
#include "client-lib/adbc/cleanup.h"
#include "client-lib/adbc/driver-database.h"

#define SCHEME "sqlipc://"

static AdbcStatusCode released(struct AdbcError *error) {
        return adbc_error_set(error, ADBC_STATUS_INVALID_STATE, "HY000", "The database is released");
}

AdbcStatusCode driver_database_new(struct AdbcDatabase *database, struct AdbcError *error) {
        DriverDatabase *d = malloc(sizeof *d);

        if (!d)
                return adbc_error_memory(error);
        *d = (DriverDatabase) { .settings = DRIVER_SETTINGS_DEFAULT };
        database->private_data = d;
        return ADBC_STATUS_OK;
}

AdbcStatusCode driver_database_release(struct AdbcDatabase *database, struct AdbcError *error) {
        DriverDatabase *d = database->private_data;

        if (!d)
                return released(error);
        free(d->bus);
        free(d->name);
        free(d);
        database->private_data = NULL;
        return ADBC_STATUS_OK;
}

AdbcStatusCode driver_database_init(struct AdbcDatabase *database, struct AdbcError *error) {
        return database->private_data ? ADBC_STATUS_OK : released(error);
}

/* ---- Options ------------------------------------------------------------------------------------------------------- */

static AdbcStatusCode replace(char **string, const char *value, size_t size, struct AdbcError *error) {
        char *copy = size > 0 ? strndup(value, size) : NULL;

        if (size > 0 && !copy)
                return adbc_error_memory(error);
        free(*string);
        *string = copy;
        return ADBC_STATUS_OK;
}

static AdbcStatusCode set_uri(DriverDatabase *d, const char *uri, struct AdbcError *error) {
        const char *bus = uri + strlen(SCHEME), *slash;
        AdbcStatusCode status;

        if (strncmp(uri, SCHEME, strlen(SCHEME)) != 0) {
                if (strchr(uri, ':') || strchr(uri, '/'))
                        return adbc_error_set(error, ADBC_STATUS_INVALID_ARGUMENT, "HY024",
                                              "\"%s\" is neither sqlipc://BUS/DATABASE nor the name of a database", uri);
                return replace(&d->name, uri, strlen(uri), error);
        }
        slash = strrchr(bus, '/'); /* an address has slashes, too */
        if (!slash)
                return adbc_error_set(error, ADBC_STATUS_INVALID_ARGUMENT, "HY024",
                                      "\"%s\" names no database: write sqlipc://BUS/DATABASE", uri);
        status = replace(&d->bus, bus, (size_t) (slash - bus), error);
        return status == ADBC_STATUS_OK ? replace(&d->name, slash + 1, strlen(slash + 1), error) : status;
}

static AdbcStatusCode set(void *object, const char *key, const char *value, struct AdbcError *error) {
        DriverDatabase *d = object;

        if (!d)
                return released(error);
        if (!value)
                return driver_settings_no_value(key, error);
        if (strcmp(key, "uri") == 0)
                return set_uri(d, value, error);
        if (strcmp(key, "adbc.sqlipc.database") == 0)
                return replace(&d->name, value, strlen(value), error);
        if (strcmp(key, "adbc.sqlipc.bus") == 0)
                return replace(&d->bus, value, strlen(value), error);
        return driver_settings_set(&d->settings, key, value, error);
}

static AdbcStatusCode get_uri(const DriverDatabase *d, char **ret_value, struct AdbcError *error) {
        size_t size;

        size = strlen(SCHEME) + strlen(d->bus ? d->bus : "") + strlen(d->name ? d->name : "") + 2;
        *ret_value = malloc(size);
        if (!*ret_value)
                return adbc_error_memory(error);
        (void) stpcpy(stpcpy(stpcpy(stpcpy(*ret_value, SCHEME), d->bus ? d->bus : ""), "/"), d->name ? d->name : "");
        return ADBC_STATUS_OK;
}

static AdbcStatusCode get(void *object, const char *key, char **ret_value, struct AdbcError *error) {
        const DriverDatabase *d = object;

        if (!d)
                return released(error);
        if (strcmp(key, "uri") == 0)
                return get_uri(d, ret_value, error);
        if (strcmp(key, "adbc.sqlipc.database") == 0)
                return driver_settings_copy(d->name ? d->name : "", ret_value, error);
        if (strcmp(key, "adbc.sqlipc.bus") == 0)
                return driver_settings_copy(d->bus ? d->bus : "", ret_value, error);
        return driver_settings_get(&d->settings, key, ret_value, error);
}

AdbcStatusCode driver_database_set_option(struct AdbcDatabase *database, const char *key, const char *value,
                                          struct AdbcError *error) {
        return set(database->private_data, key, value, error);
}

AdbcStatusCode driver_database_set_option_bytes(struct AdbcDatabase *database, const char *key, const uint8_t *value,
                                                size_t size, struct AdbcError *error) {
        return driver_settings_set_bytes(set, database->private_data, key, value, size, error);
}

AdbcStatusCode driver_database_set_option_int(struct AdbcDatabase *database, const char *key, int64_t value,
                                              struct AdbcError *error) {
        return driver_settings_set_int(set, database->private_data, key, value, error);
}

AdbcStatusCode driver_database_set_option_double(struct AdbcDatabase *database, const char *key, double value,
                                                 struct AdbcError *error) {
        return driver_settings_set_double(set, database->private_data, key, value, error);
}

AdbcStatusCode driver_database_get_option(struct AdbcDatabase *database, const char *key, char *value, size_t *length,
                                          struct AdbcError *error) {
        return driver_settings_get_string(get, database->private_data, key, value, length, error);
}

AdbcStatusCode driver_database_get_option_bytes(struct AdbcDatabase *database, const char *key, uint8_t *value,
                                                size_t *length, struct AdbcError *error) {
        return driver_settings_get_bytes(get, database->private_data, key, value, length, error);
}

AdbcStatusCode driver_database_get_option_int(struct AdbcDatabase *database, const char *key, int64_t *ret_value,
                                              struct AdbcError *error) {
        return driver_settings_get_int(get, database->private_data, key, ret_value, error);
}

AdbcStatusCode driver_database_get_option_double(struct AdbcDatabase *database, const char *key, double *ret_value,
                                                 struct AdbcError *error) {
        return driver_settings_get_double(get, database->private_data, key, ret_value, error);
}
