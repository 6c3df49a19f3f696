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

#include "client-lib/bus-open.h"
#include "client-lib/error.h"
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

int error_set_bus_lost(Error *e, sd_bus *bus) {
        const char *address;

        if (sd_bus_get_address(bus, &address) >= 0 && bus_open_is_relayed(address))
                return error_set(e, ERROR_DAEMON_LOST, "The connection to the bus was lost, or never came about: what leads "
                                 "there (ssh, as a rule) ended, and may have said why on standard error.");
        return error_set(e, ERROR_DAEMON_LOST, "The connection to the bus was lost.");
}

int error_set_reply(Error *e, sd_bus_message *reply) {
        /* the bus driver's own are for programmers, and have no full stop */
        static const struct { const char *name, *message; } sentences[] = {
                { SD_BUS_ERROR_NO_REPLY, "The service ended before it answered." },
                { SD_BUS_ERROR_NAME_HAS_NO_OWNER, "The service has ended." },
                { "org.freedesktop.DBus.Error.Spawn.ChildSignaled", "The service was killed while it started." },
        };
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        const char *signature = sd_bus_message_get_signature(reply, true), *message = NULL;

        if (!error)
                return error_set_errno(e, -EBADMSG, "The service sent a reply that its interface does not describe.");
        if (strcmp(error->name, SD_BUS_ERROR_NO_REPLY) == 0 && sd_bus_is_open(sd_bus_message_get_bus(reply)) <= 0)
                return error_set_bus_lost(e, sd_bus_message_get_bus(reply));

        set_row(e, row_by_name(error->name));
        (void) snprintf(e->name, sizeof e->name, "%s", error->name);
        message = error->message && error->message[0] ? error->message : error->name;
        if (e->number == ERROR_UNKNOWN_DATABASE) /* the bus's own sentence would be about objects */
                message = "There is no database of this name, or it is not yours to use.";
        for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++)
                if (strcmp(sentences[i].name, error->name) == 0)
                        message = sentences[i].message;
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

int error_set_no_descriptors(Error *e) {
        return error_set(e, ERROR_NO_DESCRIPTORS, "This bus connection passes no descriptors, as over ssh, and so there are "
                         "no prepared statements, pipes and channels: query with SQLIPC_TRANSPORT_AUTO or _DBUS.");
}
