/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Failures as GError (glib-error.h). GLib library. */
#include <errno.h>

#include "client-lib/glib/glib-error.h"
#include "client-lib/glib/sqlipc-glib.h"

/* The details of an error of the domain, beside its code and message. */
typedef struct {
        int sqlite_code;
        int sql_offset;
        char *name;
} SqlipcErrorPrivate;

static void sqlipc_error_private_init(SqlipcErrorPrivate *private) {
        *private = (SqlipcErrorPrivate) { .sql_offset = -1 };
}

static void sqlipc_error_private_copy(const SqlipcErrorPrivate *from, SqlipcErrorPrivate *to) {
        *to = (SqlipcErrorPrivate) { .sqlite_code = from->sqlite_code, .sql_offset = from->sql_offset,
                                     .name = g_strdup(from->name) };
}

static void sqlipc_error_private_clear(SqlipcErrorPrivate *private) {
        g_free(private->name);
}

G_DEFINE_EXTENDED_ERROR(SqlipcError, sqlipc_error)

static GError *new_error(const sqlipc_connection *connection) {
        GError *e = g_error_new_literal(SQLIPC_GLIB_ERROR, (int) sqlipc_error_code(connection),
                                        sqlipc_error_message(connection));
        SqlipcErrorPrivate *private = sqlipc_error_get_private(e);

        private->sqlite_code = sqlipc_error_sqlite_extended_code(connection);
        private->sql_offset = sqlipc_error_sql_offset(connection);
        private->name = g_strdup(sqlipc_error_name(connection));
        return e;
}

static int io_code(int r) {
        switch (-r) {
        case EHOSTDOWN: /* no service on this bus */
                return G_IO_ERROR_HOST_UNREACHABLE;
        case ENOTCONN: /* after close */
                return G_IO_ERROR_CLOSED;
        case ECONNRESET:
                return G_IO_ERROR_CONNECTION_CLOSED;
        default:
                return (int) g_io_error_from_errno(-r);
        }
}

void error_set_last(GError **error, const sqlipc_connection *connection, int r) {
        const char *message = connection ? sqlipc_error_message(connection) : "";

        if (!error)
                return;
        if (connection && sqlipc_error_code(connection) != SQLIPC_ERROR_NONE)
                *error = new_error(connection);
        else
                g_set_error_literal(error, G_IO_ERROR, io_code(r), *message ? message : g_strerror(-r));
}

GError *error_new_outcome_unknown(const char *sentence, const char *fact) {
        GError *e = g_error_new(SQLIPC_GLIB_ERROR, SQLIPC_GLIB_ERROR_OUTCOME_UNKNOWN, "%s It is unknown whether %s.",
                                sentence, fact);

        sqlipc_error_get_private(e)->name = g_strdup("org.sqlipc1.Error.OutcomeUnknown");
        return e;
}

void error_set_invalid(GError **error, const char *format, ...) {
        va_list arguments;

        if (!error)
                return;
        va_start(arguments, format);
        *error = g_error_new_valist(G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, format, arguments);
        va_end(arguments);
}

/**
 * sqlipc_glib_error_get_sqlite_code:
 * @error: an error
 *
 * Gets SQLite's extended result code, as in sqlite3.h; its low byte is the primary code.
 *
 * Returns: the code; 0 if SQLite did not fail, or if the error is of another domain
 */
int sqlipc_glib_error_get_sqlite_code(const GError *error) {
        return g_error_matches(error, SQLIPC_GLIB_ERROR, error ? error->code : 0)
                       ? sqlipc_error_get_private(error)->sqlite_code
                       : 0;
}

/**
 * sqlipc_glib_error_get_sql_offset:
 * @error: an error
 *
 * Gets the place of the error in the SQL.
 *
 * Returns: the offset in bytes, from 0; -1 if it is unknown, or if the error is of another domain
 */
int sqlipc_glib_error_get_sql_offset(const GError *error) {
        return g_error_matches(error, SQLIPC_GLIB_ERROR, error ? error->code : 0)
                       ? sqlipc_error_get_private(error)->sql_offset
                       : -1;
}

/**
 * sqlipc_glib_error_get_name:
 * @error: an error
 *
 * Gets the D-Bus name of the error, such as `org.sqlipc1.Error.Sql`.
 *
 * Returns: (nullable): the name; %NULL if it has none, or if the error is of another domain
 */
const char *sqlipc_glib_error_get_name(const GError *error) {
        return g_error_matches(error, SQLIPC_GLIB_ERROR, error ? error->code : 0) ? sqlipc_error_get_private(error)->name
                                                                                  : NULL;
}
