/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The errors of ADBC (adbc-error.h). ADBC driver. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/adbc/adbc-error.h"
#include "client-lib/adbc/cleanup.h"

#define DETAILS_MAX 8
#define UNKNOWN_SQLSTATE "HY000"
#define OUTCOME_SQLSTATE "08007"
#define OUTCOME_NAME "org.sqlipc1.Error.OutcomeUnknown"

/* The `private_data` of an error of version 1.1. */
typedef struct ErrorDetails {
        int n;
        struct {
                const char *key; /* static */
                char *value;
        } items[DETAILS_MAX];
} ErrorDetails;

static bool has_details(const struct AdbcError *error) { return error->vendor_code == ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA; }

static void release(struct AdbcError *error) {
        free(error->message);
        error->message = NULL;
        if (has_details(error) && error->private_data) {
                ErrorDetails *details = error->private_data;

                for (int i = 0; i < details->n; i++)
                        free(details->items[i].value);
                free(details);
                error->private_data = NULL;
        }
        error->release = NULL;
}

AdbcStatusCode adbc_error_set(struct AdbcError *error, AdbcStatusCode status, const char *sqlstate, const char *format,
                              ...) {
        va_list arguments;
        int r;

        if (!error)
                return status;
        if (error->release)
                error->release(error);
        va_start(arguments, format);
        r = vasprintf(&error->message, format, arguments);
        va_end(arguments);
        if (r < 0)
                error->message = NULL;
        memcpy(error->sqlstate, sqlstate, sizeof error->sqlstate);
        if (has_details(error))
                error->private_data = calloc(1, sizeof(ErrorDetails));
        else
                error->vendor_code = 0;
        error->release = release;
        return status;
}

void adbc_error_add(struct AdbcError *error, const char *key, const char *value) {
        ErrorDetails *details;
        char *copy;

        if (!error || !has_details(error) || !error->private_data)
                return;
        details = error->private_data;
        copy = details->n < DETAILS_MAX ? strdup(value) : NULL;
        if (!copy)
                return;
        details->items[details->n].key = key;
        details->items[details->n++].value = copy;
}

void adbc_error_add_number(struct AdbcError *error, const char *key, int64_t value) {
        char text[24];

        (void) snprintf(text, sizeof text, "%" PRId64, value);
        adbc_error_add(error, key, text);
}

static bool ends_sentence(const char *message) {
        size_t size = strlen(message);

        return size > 0 && message[size - 1] == '.';
}

AdbcStatusCode adbc_error_memory(struct AdbcError *error) {
        return adbc_error_set(error, ADBC_STATUS_INTERNAL, "HY001", "Out of memory");
}

/* ---- Errors of libsqlipc ------------------------------------------------------------------------------------------- */

/* The details of the object on which a call failed. */
typedef struct Report {
        int r;
        sqlipc_error code;
        const char *name;
        const char *message;
        int sqlite_code;
        int extended_code;
        int sql_offset;
} Report;

/* How an error of the service, or an errno without one, appears in ADBC. */
typedef struct Meaning {
        int code;
        AdbcStatusCode status;
        const char *sqlstate;
} Meaning;

static const Meaning service_meanings[] = {
        { SQLIPC_ERROR_UNKNOWN_DATABASE, ADBC_STATUS_NOT_FOUND, "3D000" },
        { SQLIPC_ERROR_PARAMETER_COUNT, ADBC_STATUS_INVALID_ARGUMENT, "07001" },
        { SQLIPC_ERROR_UNKNOWN_PARAMETER, ADBC_STATUS_INVALID_ARGUMENT, "07001" },
        { SQLIPC_ERROR_PARAMETER_TYPE, ADBC_STATUS_INVALID_ARGUMENT, "07006" },
        { SQLIPC_ERROR_EMPTY_STATEMENT, ADBC_STATUS_INVALID_ARGUMENT, "42000" },
        { SQLIPC_ERROR_SEVERAL_STATEMENTS, ADBC_STATUS_INVALID_ARGUMENT, "42000" },
        { SQLIPC_ERROR_SQL, ADBC_STATUS_INVALID_ARGUMENT, "42000" },
        { SQLIPC_ERROR_MISSING_FUNCTION, ADBC_STATUS_INVALID_ARGUMENT, "42000" },
        { SQLIPC_ERROR_MISSING_COLLATION, ADBC_STATUS_INVALID_ARGUMENT, "42000" },
        { SQLIPC_ERROR_MISSING_MODULE, ADBC_STATUS_INVALID_ARGUMENT, "42000" },
        { SQLIPC_ERROR_READ_ONLY, ADBC_STATUS_UNAUTHORIZED, "25006" },
        { SQLIPC_ERROR_NOT_ALLOWED, ADBC_STATUS_UNAUTHORIZED, "42501" },
        { SQLIPC_ERROR_ACCESS_DENIED, ADBC_STATUS_UNAUTHORIZED, "42501" },
        { SQLIPC_ERROR_TIMED_OUT, ADBC_STATUS_TIMEOUT, "HYT00" },
        { SQLIPC_ERROR_READER_TOO_SLOW, ADBC_STATUS_TIMEOUT, "HYT00" },
        { SQLIPC_ERROR_CANCELLED, ADBC_STATUS_CANCELLED, "57014" },
        { SQLIPC_ERROR_NO_DESCRIPTORS, ADBC_STATUS_NOT_IMPLEMENTED, "0A000" },
        { SQLIPC_ERROR_TRANSACTION_ENDED, ADBC_STATUS_INVALID_STATE, "25000" },
        { SQLIPC_ERROR_SERVER_UNREACHABLE, ADBC_STATUS_IO, "08001" },
        { SQLIPC_ERROR_LOGIN_FAILED, ADBC_STATUS_UNAUTHENTICATED, "28000" },
        { SQLIPC_ERROR_DAEMON_LOST, ADBC_STATUS_IO, "08006" },
        { SQLIPC_ERROR_WORKER_LOST, ADBC_STATUS_IO, "08006" },
        { SQLIPC_ERROR_OUTCOME_UNKNOWN, ADBC_STATUS_IO, OUTCOME_SQLSTATE },
        { SQLIPC_ERROR_SHUTTING_DOWN, ADBC_STATUS_IO, "08006" },
        { SQLIPC_ERROR_LIMITS_EXCEEDED, ADBC_STATUS_IO, "54000" },
        { SQLIPC_ERROR_ROW_TOO_LARGE, ADBC_STATUS_INVALID_DATA, "54000" },
};

static const Meaning errno_meanings[] = {
        { EHOSTDOWN, ADBC_STATUS_IO, "08001" },
        { ECONNREFUSED, ADBC_STATUS_IO, "08001" },
        { ENOENT, ADBC_STATUS_IO, "08001" },
        { ENOMEDIUM, ADBC_STATUS_IO, "08001" },
        { EACCES, ADBC_STATUS_UNAUTHORIZED, "42501" },
        { ECONNRESET, ADBC_STATUS_IO, "08006" },
        { ETIMEDOUT, ADBC_STATUS_TIMEOUT, "HYT00" },
        { ECANCELED, ADBC_STATUS_CANCELLED, "57014" },
        { ESTALE, ADBC_STATUS_INVALID_STATE, "24000" },
        { EINVAL, ADBC_STATUS_INVALID_ARGUMENT, UNKNOWN_SQLSTATE },
        { EBUSY, ADBC_STATUS_INVALID_STATE, UNKNOWN_SQLSTATE },
        { EOPNOTSUPP, ADBC_STATUS_NOT_IMPLEMENTED, "0A000" },
        { ECHILD, ADBC_STATUS_INVALID_STATE, UNKNOWN_SQLSTATE },
};

#define N_ELEMENTS(array) (sizeof(array) / sizeof *(array))
#define SQLITE_CONSTRAINT 19
#define SQLITE_MISMATCH 20
#define SQLITE_BUSY_SNAPSHOT 517

static Meaning meaning_of(const Report *report) {
        if (report->sqlite_code == SQLITE_CONSTRAINT)
                return (Meaning) { 0, ADBC_STATUS_INTEGRITY, "23000" };
        if (report->sqlite_code == SQLITE_MISMATCH)
                return (Meaning) { 0, ADBC_STATUS_INVALID_DATA, "22000" };
        if (report->extended_code == SQLITE_BUSY_SNAPSHOT)
                return (Meaning) { 0, ADBC_STATUS_INVALID_STATE, "40001" };
        for (size_t i = 0; i < N_ELEMENTS(service_meanings); i++)
                if (service_meanings[i].code == (int) report->code)
                        return service_meanings[i];
        for (size_t i = 0; i < N_ELEMENTS(errno_meanings); i++)
                if (errno_meanings[i].code == -report->r)
                        return errno_meanings[i];
        return (Meaning) { 0, ADBC_STATUS_IO, UNKNOWN_SQLSTATE };
}

static AdbcStatusCode report_error(struct AdbcError *error, const Report *report) {
        Meaning meaning = meaning_of(report);
        const char *message = report->message && *report->message ? report->message : strerror(-report->r);

        if (report->r == -ENOMEM && report->code == SQLIPC_ERROR_NONE)
                return adbc_error_memory(error);
        (void) adbc_error_set(error, meaning.status, meaning.sqlstate, "%s", message);
        if (!error)
                return meaning.status;
        if (!has_details(error))
                error->vendor_code = report->extended_code;
        if (report->name)
                adbc_error_add(error, "sqlipc.error", report->name);
        if (report->sqlite_code != 0) {
                adbc_error_add_number(error, "sqlite.code", report->sqlite_code);
                adbc_error_add_number(error, "sqlite.extended_code", report->extended_code);
        }
        if (report->sql_offset >= 0)
                adbc_error_add_number(error, "sqlipc.sql_offset", report->sql_offset);
        return meaning.status;
}

AdbcStatusCode adbc_error_connection(struct AdbcError *error, const sqlipc_connection *connection, int r) {
        Report report = { .r = r, .sql_offset = -1 };

        if (connection)
                report = (Report) {
                        .r = r,
                        .code = sqlipc_error_code(connection),
                        .name = sqlipc_error_name(connection),
                        .message = sqlipc_error_message(connection),
                        .sqlite_code = sqlipc_error_sqlite_code(connection),
                        .extended_code = sqlipc_error_sqlite_extended_code(connection),
                        .sql_offset = sqlipc_error_sql_offset(connection),
                };
        return report_error(error, &report);
}

AdbcStatusCode adbc_error_statement(struct AdbcError *error, const sqlipc_statement *statement, int r) {
        Report report = {
                .r = r,
                .code = sqlipc_statement_error_code(statement),
                .name = sqlipc_statement_error_name(statement),
                .message = sqlipc_statement_error_message(statement),
                .sqlite_code = sqlipc_statement_error_sqlite_code(statement),
                .extended_code = sqlipc_statement_error_sqlite_extended_code(statement),
                .sql_offset = sqlipc_statement_error_sql_offset(statement),
        };

        return report_error(error, &report);
}

AdbcStatusCode adbc_error_cursor(struct AdbcError *error, const sqlipc_cursor *cursor, int r) {
        Report report = {
                .r = r,
                .code = sqlipc_cursor_error_code(cursor),
                .name = sqlipc_cursor_error_name(cursor),
                .message = sqlipc_cursor_error_message(cursor),
                .sqlite_code = sqlipc_cursor_error_sqlite_code(cursor),
                .extended_code = sqlipc_cursor_error_sqlite_extended_code(cursor),
                .sql_offset = sqlipc_cursor_error_sql_offset(cursor),
        };

        return report_error(error, &report);
}

/* Replaces the name of the service's error, which promises that nothing was written. */
static void set_name(struct AdbcError *error, const char *name) {
        ErrorDetails *details = has_details(error) ? error->private_data : NULL;
        char *copy;

        for (int i = 0; details && i < details->n; i++)
                if (strcmp(details->items[i].key, "sqlipc.error") == 0) {
                        copy = strdup(name);
                        if (copy) {
                                free(details->items[i].value);
                                details->items[i].value = copy;
                        }
                        return;
                }
        adbc_error_add(error, "sqlipc.error", name);
}

AdbcStatusCode adbc_error_outcome(struct AdbcError *error, const char *fact) {
        _cleanup_free_ char *before = NULL;
        char *message;

        if (!error || !error->release || memcmp(error->sqlstate, OUTCOME_SQLSTATE, sizeof error->sqlstate) == 0)
                return ADBC_STATUS_IO;
        before = error->message;
        error->message = NULL;
        if (asprintf(&message, "%s%s%s", before ? before : "", before && !ends_sentence(before) ? ". " : " ", fact) >= 0)
                error->message = message;
        memcpy(error->sqlstate, OUTCOME_SQLSTATE, sizeof error->sqlstate);
        set_name(error, OUTCOME_NAME);
        return ADBC_STATUS_IO;
}

int adbc_error_errno(AdbcStatusCode status) {
        switch (status) {
        case ADBC_STATUS_OK:
                return 0;
        case ADBC_STATUS_CANCELLED:
                return ECANCELED;
        case ADBC_STATUS_TIMEOUT:
                return ETIMEDOUT;
        case ADBC_STATUS_NOT_IMPLEMENTED:
                return ENOTSUP;
        case ADBC_STATUS_UNAUTHORIZED:
                return EACCES;
        case ADBC_STATUS_IO:
                return EIO;
        case ADBC_STATUS_INTERNAL:
                return ENOMEM;
        default:
                return EINVAL;
        }
}

/* ---- Details ------------------------------------------------------------------------------------------------------- */

int adbc_error_detail_count(const struct AdbcError *error) {
        const ErrorDetails *details = error && has_details(error) ? error->private_data : NULL;

        return details ? details->n : 0;
}

struct AdbcErrorDetail adbc_error_detail(const struct AdbcError *error, int index) {
        const ErrorDetails *details = error && has_details(error) ? error->private_data : NULL;

        if (!details || index < 0 || index >= details->n)
                return (struct AdbcErrorDetail) { NULL, NULL, 0 };
        return (struct AdbcErrorDetail) {
                .key = details->items[index].key,
                .value = (const uint8_t *) details->items[index].value,
                .value_length = strlen(details->items[index].value),
        };
}
