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
#include "client-lib/parameter.h"
#include "dbus-interfaces/sqlipc-names.h"

/* The numbers in sqlipc.h must equal those in the table that daemon and library share. */
#define X(number, symbol, name, error) _Static_assert((int) SQLIPC_ERROR_##symbol == (number), #symbol);
SQLIPC_ERROR_TABLE(X)
#undef X

/* If the sentence that came with an error of the bus follows ours, in brackets. */
typedef enum Reason {
        REASON_OMITTED,
        REASON_GIVEN,     /* it tells which limit, or how the program ended */
        REASON_FROM_BOTH, /* it tells which call; sd-bus in the service sends it, too, with a sentence for programmers */
} Reason;

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

/* An error that the bus sends instead of the service, or systemd on the bus's behalf, or sd-bus in either process. */
typedef struct BusRow {
        ErrorRow row;
        const char *sentence; /* without its full stop; NULL: the sentence of the service, which alone sends this error */
        Reason reason;
} BusRow;

#define BUS_ERROR "org.freedesktop.DBus.Error."
#define READ_ITS_LOG "read its log, by journalctl -u sqlipcd"

/* NoReply always means that the service is gone: the library sets no deadline on calls that could cause it otherwise. After
 * it, and after Disconnected, no sentence advises to try again, because the outcome of a write is unknown. The first row
 * that has the name counts. */
static const BusRow bus_rows[] = {
        { { BUS_ERROR "ServiceUnknown", ERROR_DAEMON_LOST, EHOSTDOWN },
          "The service does not run on this bus, and the bus cannot start it: install sqlipcd, or choose another bus",
          REASON_OMITTED },
        { { BUS_ERROR "NameHasNoOwner", ERROR_DAEMON_LOST, EHOSTDOWN },
          "The service has ended, or could not be started: try again; if that fails, " READ_ITS_LOG,
          REASON_OMITTED },
        { { BUS_ERROR "Spawn.ChildSignaled", ERROR_DAEMON_LOST, EHOSTDOWN },
          "The service was killed while it started: try again", REASON_OMITTED },
        { { BUS_ERROR "Spawn.", ERROR_DAEMON_LOST, EHOSTDOWN },
          "The bus could not start the service: " READ_ITS_LOG, REASON_GIVEN },
        { { "org.freedesktop.systemd1.", ERROR_DAEMON_LOST, EHOSTDOWN },
          "systemd could not start the service: " READ_ITS_LOG, REASON_GIVEN },
        { { BUS_ERROR "NoReply", ERROR_DAEMON_LOST, ECONNRESET },
          "The service ended before it answered", REASON_OMITTED },
        { { BUS_ERROR "Disconnected", ERROR_DAEMON_LOST, ECONNRESET },
          "The connection to the bus was lost", REASON_OMITTED },
        { { BUS_ERROR "UnknownObject", ERROR_UNKNOWN_DATABASE, ENOENT }, NULL, REASON_OMITTED }, /* error_set_reply() */
        { { BUS_ERROR "AccessDenied", ERROR_ACCESS_DENIED, EACCES },
          "The bus does not let you call the service: its policy forbids it, or AppArmor or SELinux; ask the administrator "
          "for access", REASON_OMITTED },
        { { BUS_ERROR "AuthFailed", ERROR_ACCESS_DENIED, EACCES },
          "The bus does not accept your authentication: ask the administrator for access", REASON_OMITTED },
        { { BUS_ERROR "InteractiveAuthorizationRequired", ERROR_ACCESS_DENIED, EACCES }, NULL, REASON_OMITTED },
        { { BUS_ERROR "NoMemory", ERROR_OUT_OF_MEMORY, ENOMEM },
          "The bus is out of memory: try again later", REASON_OMITTED },
        { { BUS_ERROR "LimitsExceeded", ERROR_LIMITS_EXCEEDED, EDQUOT },
          "The bus refused the call, because a limit of the bus is reached: try again when other calls have ended, or have "
          "the limit raised", REASON_GIVEN },
        { { BUS_ERROR "TimedOut", ERROR_TIMED_OUT, ETIMEDOUT },
          "The service did not start in time: try again later; if that fails, " READ_ITS_LOG,
          REASON_OMITTED },
        { { BUS_ERROR "Timeout", ERROR_TIMED_OUT, ETIMEDOUT },
          "The service did not answer in time: try again later", REASON_OMITTED },
        { { BUS_ERROR "UnknownMethod", ERROR_NONE, EOPNOTSUPP },
          "The service does not know this call: install a newer version of sqlipcd", REASON_FROM_BOTH },
        { { BUS_ERROR "UnknownInterface", ERROR_NONE, EOPNOTSUPP },
          "The service does not know this call: install a newer version of sqlipcd", REASON_FROM_BOTH },
        { { BUS_ERROR "InvalidArgs", ERROR_NONE, EOPNOTSUPP },
          "The service does not accept this call: install the same version of sqlipcd and libsqlipc", REASON_FROM_BOTH },
        { { BUS_ERROR, ERROR_NONE, EREMOTEIO }, "The bus refused the call", REASON_GIVEN },
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

/* NULL: not an error of the bus. */
static const BusRow *bus_row_by_name(const char *name) {
        for (size_t i = 0; i < sizeof bus_rows / sizeof bus_rows[0]; i++)
                if (row_has_name(&bus_rows[i].row, name))
                        return &bus_rows[i];
        return NULL;
}

static const ErrorRow *row_by_name(const char *name) {
        for (size_t i = 0; i < sizeof error_rows / sizeof error_rows[0]; i++)
                if (row_has_name(&error_rows[i], name))
                        return &error_rows[i];
        return &unknown_row;
}

/* The size of a noncharacter, or of one byte that is not of a character. */
static size_t size_of_replaced(const char *from) {
        unsigned char lead = (unsigned char) *from;
        size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 1;

        for (size_t i = 1; i < size; i++)
                if (((unsigned char) from[i] & 0xc0) != 0x80)
                        return 1;
        return size;
}

/* Puts U+FFFD in the place of all that no string of D-Bus may have. SQLite's messages have names and SQL, which may be any
 * bytes, and a cut may be within a character; but programs show a message, and pass it on, as text. */
static void make_valid(Error *e) {
        static const char replacement[] = "\xef\xbf\xbd";
        const char *from = e->message;
        char text[sizeof e->message];
        size_t size = 0, bad;

        if (parameter_is_bus_string(from, strlen(from), &bad))
                return;
        while (!parameter_is_bus_string(from, strlen(from), &bad)) {
                if (size + bad + strlen(replacement) >= sizeof text)
                        break;
                memcpy(text + size, from, bad);
                memcpy(text + size + bad, replacement, strlen(replacement));
                size += bad + strlen(replacement);
                from += bad + size_of_replaced(from + bad);
        }
        bad = strnlen(from, sizeof text - size - 1);
        (void) parameter_is_bus_string(from, bad, &bad);
        memcpy(text + size, from, bad);
        text[size + bad] = 0;
        memcpy(e->message, text, size + bad + 1);
}

static void set_message(Error *e, const char *message, size_t size) {
        if (size >= sizeof e->message) {
                size = sizeof e->message - 1;
                while (size > 0 && ((unsigned char) message[size] & 0xC0) == 0x80) /* cut between characters */
                        size--;
        }
        memcpy(e->message, message, size);
        e->message[size] = 0;
        make_valid(e);
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
        make_valid(e);
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
        make_valid(e);
        return r;
}

int error_set_bus_lost(Error *e, sd_bus *bus) {
        const char *address;

        if (sd_bus_get_address(bus, &address) >= 0 && bus_open_is_relayed(address))
                return error_set(e, ERROR_DAEMON_LOST, "The connection to the bus was lost, or never came about: what leads "
                                 "there (ssh, as a rule) ended, and may have said why on standard error.");
        return error_set(e, ERROR_DAEMON_LOST, "The connection to the bus was lost.");
}

/* True if the service sent the error with a sentence of its own. The sender of an error of the bus, and of one that sd-bus
 * makes up in this process, is the bus. */
static bool is_worded_by_service(const BusRow *row, sd_bus_message *reply) {
        const char *sender = sd_bus_message_get_sender(reply);

        return !row->sentence || (row->reason != REASON_FROM_BOTH && sender && sender[0] == ':');
}

/* Words an error of the bus, whose own sentences are for programmers, and have no full stop. */
static void set_bus_message(Error *e, const BusRow *row, const char *reason) {
        size_t size = strlen(reason);
        char text[2 * sizeof e->message];

        while (size > 0 && reason[size - 1] == '.')
                size--;
        if (row->reason == REASON_OMITTED || size == 0)
                (void) snprintf(text, sizeof text, "%s.", row->sentence);
        else
                (void) snprintf(text, sizeof text, "%s (%.*s).", row->sentence,
                                (int) (size < sizeof text ? size : sizeof text), reason);
        set_message(e, text, strlen(text));
}

int error_set_reply(Error *e, sd_bus_message *reply) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        const char *signature = sd_bus_message_get_signature(reply, true), *message = NULL;
        const BusRow *of_bus;

        if (!error)
                return error_set_errno(e, -EBADMSG, "The service sent a reply that its interface does not describe.");
        if (strcmp(error->name, SD_BUS_ERROR_NO_REPLY) == 0 && sd_bus_is_open(sd_bus_message_get_bus(reply)) <= 0)
                return error_set_bus_lost(e, sd_bus_message_get_bus(reply));

        of_bus = bus_row_by_name(error->name);
        set_row(e, of_bus ? &of_bus->row : row_by_name(error->name));
        (void) snprintf(e->name, sizeof e->name, "%s", error->name);
        message = error->message && error->message[0] ? error->message : error->name;
        if (e->number == ERROR_UNKNOWN_DATABASE) /* the bus's own sentence would be about objects */
                message = "There is no database of this name, or it is not yours to use.";
        if (of_bus && !is_worded_by_service(of_bus, reply))
                set_bus_message(e, of_bus, error->message ?: "");
        else
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

int error_set_bus_refusal(Error *e, int r) {
        switch (r) {
        case -ENOBUFS:
                return error_set(e, ERROR_LIMITS_EXCEEDED, "The bus has no connection left for this user: close connections "
                                 "that are not needed, or have the limit of the bus raised (max_connections_per_user).");
        case -ENOMEM:
                return error_set(e, ERROR_OUT_OF_MEMORY, "The bus refused the connection, because it is out of memory: try "
                                 "again later.");
        case -EACCES:
        case -EPERM:
                return error_set(e, ERROR_ACCESS_DENIED, "The bus refused the connection: ask the administrator for "
                                 "access.");
        default:
                return error_set(e, ERROR_DAEMON_LOST, "The bus refused the connection (%s): try again, or choose another "
                                 "bus.", strerror(-r));
        }
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
        case -EOVERFLOW: /* of parameter_read_all() and parameter_row_init() */
                return error_set(e, ERROR_LIMITS_EXCEEDED, "The statement has more than the 32766 parameters that the "
                                 "largest VariablesMax= allows: pass fewer values at a time.");
        case -E2BIG:
        case -EMSGSIZE:
        case -ENOBUFS:
                return error_set(e, ERROR_LIMITS_EXCEEDED, "SQL or parameters are too large for one call.");
        default:
                return error_set_errno(e, r, NULL);
        }
}

int error_set_no_descriptors(Error *e) {
        return error_set(e, ERROR_NO_DESCRIPTORS, "This bus connection passes no descriptors, as over ssh, and so there are "
                         "no prepared statements, pipes and channels: query with SQLIPC_TRANSPORT_AUTO or _DBUS.");
}
