/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Failures and their details (error.h). Library.
 *
 * Failures have three sources: the table that the daemon shares with the library, some names of the bus itself, and the
 * numbers of ERROR frames. An error that this library does not know (from a newer daemon) keeps its name and sentence, and
 * its errno is -EREMOTEIO.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client-lib/connection.h"
#include "client-lib/cursor.h"
#include "client-lib/error.h"
#include "client-lib/prepared.h"
#include "dbus-interfaces/sqlipc-names.h"

/* The numbers in sqlipc.h must equal those in the table that daemon and library share. */
#define X(number, symbol, name, error) _Static_assert((int) SQLIPC_ERROR_##symbol == (number), #symbol);
SQLIPC_ERROR_TABLE(X)
#undef X

typedef struct ErrorRow {
        const char *name; /* D-Bus name; a name that ends in '.' is a prefix */
        uint32_t number;
        int error;
} ErrorRow;

static const ErrorRow error_rows[] = {
#define X(number_, symbol, name_, error_) { SQLIPC_ERROR_PREFIXED(name_), number_, error_ },
        SQLIPC_ERROR_TABLE(X)
#undef X
};

/* Errors that the bus, or systemd on its behalf, sends instead of the service. NoReply always means that the service is
 * gone: the library sets no deadline on calls that could cause it otherwise. */
static const ErrorRow bus_rows[] = {
        { "org.freedesktop.DBus.Error.ServiceUnknown", ERROR_DAEMON_LOST, EHOSTDOWN },
        { "org.freedesktop.DBus.Error.NameHasNoOwner", ERROR_DAEMON_LOST, EHOSTDOWN },
        { "org.freedesktop.DBus.Error.Spawn.", ERROR_DAEMON_LOST, EHOSTDOWN },
        { "org.freedesktop.systemd1.", ERROR_DAEMON_LOST, EHOSTDOWN },
        { "org.freedesktop.DBus.Error.NoReply", ERROR_DAEMON_LOST, ECONNRESET },
        { "org.freedesktop.DBus.Error.Disconnected", ERROR_DAEMON_LOST, ECONNRESET },
        { "org.freedesktop.DBus.Error.UnknownObject", ERROR_UNKNOWN_DATABASE, ENOENT },
        { "org.freedesktop.DBus.Error.AccessDenied", ERROR_ACCESS_DENIED, EACCES },
        { "org.freedesktop.DBus.Error.AuthFailed", ERROR_ACCESS_DENIED, EACCES },
        { "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", ERROR_ACCESS_DENIED, EACCES },
        { "org.freedesktop.DBus.Error.NoMemory", ERROR_OUT_OF_MEMORY, ENOMEM },
        { "org.freedesktop.DBus.Error.LimitsExceeded", ERROR_LIMITS_EXCEEDED, EDQUOT },
        { "org.freedesktop.DBus.Error.Timeout", ERROR_TIMED_OUT, ETIMEDOUT },
        { "org.freedesktop.DBus.Error.TimedOut", ERROR_TIMED_OUT, ETIMEDOUT },
        { "org.freedesktop.DBus.Error.UnknownMethod", ERROR_NONE, EOPNOTSUPP },
        { "org.freedesktop.DBus.Error.UnknownInterface", ERROR_NONE, EOPNOTSUPP },
        { "org.freedesktop.DBus.Error.InvalidArgs", ERROR_NONE, EOPNOTSUPP },
};

static const ErrorRow unknown_row = { "", ERROR_NONE, EREMOTEIO };

static const ErrorRow *row_by_number(uint32_t number) {
        for (size_t i = 0; i < sizeof error_rows / sizeof error_rows[0]; i++)
                if (error_rows[i].number == number)
                        return &error_rows[i];
        return &unknown_row;
}

static bool row_has_name(const ErrorRow *row, const char *name) {
        size_t size = strlen(row->name);

        return row->name[size - 1] == '.' ? strncmp(row->name, name, size) == 0 : strcmp(row->name, name) == 0;
}

static const ErrorRow *row_by_name(const char *name) {
        for (size_t i = 0; i < sizeof error_rows / sizeof error_rows[0]; i++)
                if (row_has_name(&error_rows[i], name))
                        return &error_rows[i];
        for (size_t i = 0; i < sizeof bus_rows / sizeof bus_rows[0]; i++)
                if (row_has_name(&bus_rows[i], name))
                        return &bus_rows[i];
        return &unknown_row;
}

static void set_message(Error *e, const char *message, size_t size) {
        if (size >= sizeof e->message) {
                size = sizeof e->message - 1;
                while (size > 0 && ((unsigned char) message[size] & 0xC0) == 0x80) /* cut between characters */
                        size--;
        }
        memcpy(e->message, message, size);
        e->message[size] = 0;
}

static void set_row(Error *e, const ErrorRow *row) {
        *e = (Error) { .result = -row->error, .number = row->number, .sql_offset = -1 };
        (void) snprintf(e->name, sizeof e->name, "%s", row->name);
}

int error_set(Error *e, ErrorNumber number, const char *format, ...) {
        va_list ap;

        set_row(e, row_by_number(number));
        va_start(ap, format);
        (void) vsnprintf(e->message, sizeof e->message, format, ap);
        va_end(ap);
        return e->result;
}

int error_set_errno(Error *e, int r, const char *format, ...) {
        va_list ap;

        *e = (Error) { .result = r, .sql_offset = -1 };
        if (!format) {
                char buffer[128];
                const char *text = strerror_r(-r, buffer, sizeof buffer);

                set_message(e, text, strlen(text));
                return r;
        }
        va_start(ap, format);
        (void) vsnprintf(e->message, sizeof e->message, format, ap);
        va_end(ap);
        return r;
}

/* For the error that sd-bus itself returns for calls in progress when the connection closes. */
static int set_bus_lost(Error *e, sd_bus *bus) {
        const char *address;

        if (sd_bus_get_address(bus, &address) >= 0 && is_relayed_address(address))
                return error_set(e, ERROR_DAEMON_LOST, "The connection to the bus was lost, or never came about: what leads "
                                 "there (ssh, as a rule) ended, and may have said why on standard error.");
        return error_set(e, ERROR_DAEMON_LOST, "The connection to the bus was lost.");
}

int error_set_reply(Error *e, sd_bus_message *reply) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        const char *signature = sd_bus_message_get_signature(reply, true), *message = NULL;

        if (!error)
                return error_set_errno(e, -EBADMSG, "The service sent a reply that its interface does not describe.");
        if (strcmp(error->name, SD_BUS_ERROR_NO_REPLY) == 0 && sd_bus_is_open(sd_bus_message_get_bus(reply)) <= 0)
                return set_bus_lost(e, sd_bus_message_get_bus(reply));

        set_row(e, row_by_name(error->name));
        (void) snprintf(e->name, sizeof e->name, "%s", error->name);
        message = error->message && error->message[0] ? error->message : error->name;
        if (e->number == ERROR_UNKNOWN_DATABASE) /* the bus's own sentence would be about objects */
                message = "There is no database of this name, or it is not yours to use.";
        set_message(e, message, strlen(message));

        /* The service's errors carry SQLite's code and the offset after the sentence, because call_append_options() asks
         * for them. sd-bus has read the sentence already. */
        if (strncmp(error->name, SQLIPC_ERROR_PREFIX, strlen(SQLIPC_ERROR_PREFIX)) == 0 && signature &&
            strncmp(signature, "sii", 3) == 0) {
                int32_t extended_code, sql_offset;

                (void) sd_bus_message_rewind(reply, true);
                if (sd_bus_message_read(reply, "sii", NULL, &extended_code, &sql_offset) > 0) {
                        e->extended_code = extended_code;
                        e->sql_offset = sql_offset < 0 ? -1 : sql_offset;
                }
        }
        return e->result;
}

int error_set_frame(Error *e, const PageDecoder *d) {
        set_row(e, row_by_number(d->error_number));
        e->extended_code = d->error_extended_code;
        e->sql_offset = d->error_sql_offset < 0 ? -1 : d->error_sql_offset;
        set_message(e, d->error_message, d->error_message_size);
        return e->result;
}

int connection_fail(sqlipc_connection *connection, const Error *e) {
        if (&connection->error != e)
                connection->error = *e;
        return e->result;
}

int connection_fail_errno(sqlipc_connection *connection, int r) {
        return connection ? error_set_errno(&connection->error, r, NULL) : r;
}

int error_set_send(Error *e, int r) {
        switch (r) {
        case -ENOTCONN:
        case -ECONNRESET:
        case -EPIPE:
        case -ESHUTDOWN:
                return error_set(e, ERROR_DAEMON_LOST, "The connection to the bus is lost.");
        case -E2BIG:
        case -EMSGSIZE:
        case -ENOBUFS:
                return error_set(e, ERROR_LIMITS_EXCEEDED, "The parameters are too large for one call.");
        default:
                return error_set_errno(e, r, NULL);
        }
}

int connection_fail_send(sqlipc_connection *connection, int r) {
        if (connection->closed)
                return connection_check(connection);
        if (r == -ENOTCONN && connection->bus && !connection_is_open(connection))
                return set_bus_lost(&connection->error, connection->bus);
        return error_set_send(&connection->error, r);
}

int error_set_no_descriptors(Error *e) {
        return error_set(e, ERROR_NO_DESCRIPTORS, "This bus connection passes no descriptors, as over ssh, and so there are "
                         "no prepared statements, pipes and channels: query with SQLIPC_TRANSPORT_AUTO or _DBUS.");
}

int connection_fail_wait(sqlipc_connection *connection, int r) {
        if (r != -ETIMEDOUT)
                return connection_fail_send(connection, r);
        return error_set_errno(&connection->error, r, "No answer within %.3g s.", (double) connection->timeout_usec / 1e6);
}

/* ---- What programs read ------------------------------------------------------------------------------------------- */

static const Error *error_of_connection(const sqlipc_connection *c) {
        static const Error none = { .sql_offset = -1 };

        return c ? &c->error : &none;
}

static const Error *error_of_statement(const sqlipc_statement *s) {
        return s ? &s->reported : error_of_connection(NULL);
}

static const Error *error_of_cursor(const sqlipc_cursor *c) {
        return c ? &c->error : error_of_connection(NULL);
}

/* Defines the functions that return a failure's details, for one kind of object. */
#define DEFINE_ERROR_FUNCTIONS(prefix, kind)                                                                          \
        _public_ sqlipc_error prefix##_error_code(const sqlipc_##kind *kind) {                                        \
                return (sqlipc_error) error_of_##kind(kind)->number;                                                  \
        }                                                                                                             \
                                                                                                                      \
        _public_ const char *prefix##_error_name(const sqlipc_##kind *kind) {                                         \
                const Error *e = error_of_##kind(kind);                                                               \
                                                                                                                      \
                return e->name[0] ? e->name : NULL;                                                                   \
        }                                                                                                             \
                                                                                                                      \
        _public_ const char *prefix##_error_message(const sqlipc_##kind *kind) {                                      \
                return error_of_##kind(kind)->message;                                                                \
        }                                                                                                             \
                                                                                                                      \
        _public_ int prefix##_error_sqlite_code(const sqlipc_##kind *kind) {                                          \
                return error_of_##kind(kind)->extended_code & 0xFF;                                                   \
        }                                                                                                             \
                                                                                                                      \
        _public_ int prefix##_error_sqlite_extended_code(const sqlipc_##kind *kind) {                                 \
                return error_of_##kind(kind)->extended_code;                                                          \
        }                                                                                                             \
                                                                                                                      \
        _public_ int prefix##_error_sql_offset(const sqlipc_##kind *kind) {                                           \
                return error_of_##kind(kind)->sql_offset;                                                             \
        }

DEFINE_ERROR_FUNCTIONS(sqlipc, connection)
DEFINE_ERROR_FUNCTIONS(sqlipc_statement, statement)
DEFINE_ERROR_FUNCTIONS(sqlipc_cursor, cursor)
