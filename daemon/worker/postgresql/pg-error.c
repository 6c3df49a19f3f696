/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-error.h. SQLSTATE has five characters, of which the first two are the class. The codes are SQLite's,
 * from its documentation, because clients know those.
 */
#include "daemon/worker/postgresql/pg-error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SQLITE_ERROR 1
#define SQLITE_BUSY 5
#define SQLITE_NOMEM 7
#define SQLITE_READONLY 8
#define SQLITE_IOERR 10
#define SQLITE_CORRUPT 11
#define SQLITE_FULL 13
#define SQLITE_CONSTRAINT 19
#define SQLITE_AUTH 23
#define SQLITE_CONSTRAINT_CHECK (SQLITE_CONSTRAINT | 1 << 8)
#define SQLITE_CONSTRAINT_FOREIGNKEY (SQLITE_CONSTRAINT | 3 << 8)
#define SQLITE_CONSTRAINT_NOTNULL (SQLITE_CONSTRAINT | 5 << 8)
#define SQLITE_CONSTRAINT_UNIQUE (SQLITE_CONSTRAINT | 8 << 8)

/* The first entry that SQLSTATE begins with decides. */
static const struct {
        const char *state;
        ErrorNumber error;
        int32_t code;
} states[] = {
        { "08", ERROR_SERVER_UNREACHABLE, 0 },
        { "23502", ERROR_SQL, SQLITE_CONSTRAINT_NOTNULL },
        { "23503", ERROR_SQL, SQLITE_CONSTRAINT_FOREIGNKEY },
        { "23001", ERROR_SQL, SQLITE_CONSTRAINT_FOREIGNKEY },
        { "23505", ERROR_SQL, SQLITE_CONSTRAINT_UNIQUE },
        { "23514", ERROR_SQL, SQLITE_CONSTRAINT_CHECK },
        { "23", ERROR_SQL, SQLITE_CONSTRAINT },
        { "25006", ERROR_READ_ONLY, SQLITE_READONLY },
        { "25P02", ERROR_TRANSACTION_ENDED, 0 },
        { "25P03", ERROR_TRANSACTION_ENDED, 0 },
        { "28", ERROR_LOGIN_FAILED, 0 },
        { "3D000", ERROR_LOGIN_FAILED, 0 }, /* there is no such database */
        { "40001", ERROR_BUSY, SQLITE_BUSY },
        { "40P01", ERROR_BUSY, SQLITE_BUSY },
        { "40", ERROR_TRANSACTION_ENDED, 0 },
        { "42501", ERROR_NOT_ALLOWED, SQLITE_AUTH },
        { "42883", ERROR_MISSING_FUNCTION, SQLITE_ERROR },
        { "53100", ERROR_NO_SPACE, SQLITE_FULL },
        { "53200", ERROR_OUT_OF_MEMORY, SQLITE_NOMEM },
        { "53300", ERROR_BUSY, SQLITE_BUSY },
        { "53", ERROR_LIMITS_EXCEEDED, 0 },
        { "54", ERROR_LIMITS_EXCEEDED, 0 },
        { "55P03", ERROR_BUSY, SQLITE_BUSY },
        { "57014", ERROR_TIMED_OUT, 0 }, /* statement_timeout; our own cancel has set its reason before */
        { "57P", ERROR_SERVER_UNREACHABLE, 0 },
        { "58", ERROR_INPUT_OUTPUT, SQLITE_IOERR },
        { "XX001", ERROR_CORRUPT, SQLITE_CORRUPT },
        { "XX002", ERROR_CORRUPT, SQLITE_CORRUPT },
        { "XX", ERROR_INTERNAL, 0 },
        { "F0", ERROR_INTERNAL, 0 },
        { "", ERROR_SQL, SQLITE_ERROR },
};

static void set(SqlError *error, const char *state, const char *message, size_t size) {
        size_t i = 0;

        while (strncmp(states[i].state, state, strlen(states[i].state)) != 0)
                i++;
        (void) sql_error_set(error, states[i].error, "%.*s", (int) size, message);
        error->extended_code = states[i].code;
}

/* The message is libpq's own. It has no code for a row that does not fit into memory. */
static bool set_own(SqlError *error, const char *what, const char *message) {
        if (strstr(message, "out of memory") || strstr(message, "cannot allocate memory"))
                return sql_error_set(error, ERROR_OUT_OF_MEMORY,
                                     "out of memory: a row needs more than a worker has (HeapMax=)");
        return sql_error_set(error, ERROR_SERVER_UNREACHABLE, "%s: %.*s", what, (int) strcspn(message, "\n"), message);
}

bool pg_error_take(SqlError *error, const PGresult *result, const PgText *text) {
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
        const char *position = PQresultErrorField(result, PG_DIAG_STATEMENT_POSITION);

        if (error->error != ERROR_NONE)
                return false;
        if (!state || !message)
                return set_own(error, "the server does not keep to the protocol", PQresultErrorMessage(result));
        set(error, state, message, strlen(message));
        if (text && position)
                error->sql_offset = pg_text_offset(text, strtol(position, NULL, 10));
        if (error->error == ERROR_READ_ONLY)
                sql_error_prefix(error, "a function that writes can only be called in a transaction that writes: ");
        return false;
}

bool pg_error_lost(SqlError *error, const PGconn *pq) {
        if (error->error != ERROR_NONE)
                return false;
        return set_own(error, "the connection to the server was lost", PQerrorMessage(pq));
}

/* "SEVERITY:  SQLSTATE: message" begins after "failed: " if the server said it; before that libpq names the host. */
static const char *find_state(const char *message, const char **ret_rest) {
        static const char *const severities[] = { "FATAL:  ", "ERROR:  ", "PANIC:  " };

        for (size_t i = 0; i < sizeof severities / sizeof *severities; i++) {
                const char *at = strstr(message, severities[i]);

                if (!at || strlen(at += strlen(severities[i])) < 7 || strncmp(at + 5, ": ", 2) != 0)
                        continue;
                *ret_rest = at + 7;
                return at;
        }
        return NULL;
}

/* Reasons by parts of libpq's message, whose other parts may be hosts, ports and files. The first that is found decides. */
static const struct {
        const char *part;
        int number;             /* in place of `part`: its text */
        const char *reason;
} reasons[] = {
        { .part = "server does not support SSL",
          .reason = "it does not offer TLS, which is needed over TCP unless Connection= sets a weaker sslmode" },
        { .part = "root certificate",
          .reason = "the authorities that may sign its certificate cannot be read (sslrootcert)" },
        { .part = "does not match host name", .reason = "its certificate is that of another host" },
        { .part = "host name must be specified", .reason = "a certificate is for a name: Connection= needs host" },
        { .part = "certificate verify failed", .reason = "its certificate is not one of a trusted authority" },
        { .part = "authentication method requirement",
          .reason = "it asks for a kind of login that require_auth of Connection= does not allow; unless that is set, the "
                    "password is not sent as it is over TCP" },
        { .part = "could not translate host name", .reason = "the name of its host cannot be looked up" },
        { .part = "definition of service", .reason = "its service is not in the file of services (pg_service.conf)" },
        { .part = "session is ", .reason = "no host is of the kind that target_session_attrs wants" },
        { .part = "hot standby", .reason = "no host is of the kind that target_session_attrs wants" },
        { .part = "server closed the connection", .reason = "the server closed the connection unexpectedly" },
        { .part = "timeout expired", .reason = "it did not answer in time (connect_timeout)" },
        { .number = EAFNOSUPPORT },
        { .number = ECONNREFUSED },
        { .number = ECONNRESET },
        { .number = EHOSTUNREACH },
        { .number = ENETUNREACH },
        { .number = ETIMEDOUT },
        { .number = EACCES },
        { .number = EPERM },
        { .number = ENOENT },
        { .number = EMFILE },
};

/* libpq 17 has no message if it can make a socket for no address. */
static bool has_no_network(void) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd >= 0)
                close(fd);
        return fd < 0 && errno == EAFNOSUPPORT;
}

static const char *reason_of(const char *message) {
        if (!*message && has_no_network())
                return strerror(EAFNOSUPPORT);
        for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
                if (strstr(message, reasons[i].part ?: strerror(reasons[i].number)))
                        return reasons[i].reason ?: strerror(reasons[i].number);
        return "the log of sqlipc-engine has the reason";
}

bool pg_error_connect(SqlError *error, const PGconn *pq, bool to_trust) {
        const char *message = PQerrorMessage(pq), *rest, *state = find_state(message, &rest);

        if (error->error != ERROR_NONE)
                return false;
        if (PQconnectionNeedsPassword(pq))
                return sql_error_set(error, ERROR_LOGIN_FAILED,
                                     "the server asks for a password, and there is none: set PasswordFile=");
        if (state) {
                set(error, state, rest, strcspn(rest, "\n"));
                sql_error_prefix(error, strncmp(state, "28P01", 5) == 0 ?
                                 "the server refuses the user of Connection=, or the password of PasswordFile=: " :
                                 "the server refuses the connection: ");
                if (error->error == ERROR_SQL)
                        error->error = ERROR_LOGIN_FAILED;
                return false;
        }
        (void) sql_error_set(error, to_trust ? ERROR_LOGIN_FAILED : ERROR_SERVER_UNREACHABLE,
                             "no connection to the server: %s", reason_of(message));
        if (strstr(sql_error_as_failure(error).message, strerror(EAFNOSUPPORT))) /* RestrictAddressFamilies= of the unit */
                sql_error_prefix(error, "engine processes have no network, unless a drop-in like network.conf of "
                                 "sqlipc.databases(5) gives them one: ");
        return false;
}

bool pg_error_is_loss(const PGresult *result) {
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

        return state && (strncmp(state, "57P", 3) == 0 || strncmp(state, "08", 2) == 0);
}

bool pg_error_is_of_transaction(const PGresult *result) {
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

        return state && strncmp(state, "40", 2) == 0;
}

bool pg_error_is_outdated(const PGresult *result) {
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        const char *routine = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);

        return state && (strcmp(state, "26000") == 0 ||
                         (strcmp(state, "0A000") == 0 && routine && strcmp(routine, "RevalidateCachedQuery") == 0));
}
