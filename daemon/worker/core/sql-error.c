/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See sql-error.h.
 */
#include "daemon/worker/core/sql-error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dbus-interfaces/wire/page-encoder.h"

void sql_error_done(SqlError *e) {
        free(e->message);
        *e = SQL_ERROR_INIT;
}

/* No message is longer than one in a frame. */
static char *cut(char *message) {
        if (message && strlen(message) > SQLIPC_MESSAGE_SIZE_MAX)
                strcpy(message + page_message_kept(message), PAGE_ELLIPSIS);
        return message;
}

bool sql_error_set(SqlError *e, ErrorNumber error, const char *format, ...) {
        char *message = NULL;
        va_list ap;

        va_start(ap, format);
        if (vasprintf(&message, format, ap) < 0)
                message = NULL;
        va_end(ap);
        free(e->message);
        *e = (SqlError) { .error = error, .sql_offset = -1, .message = cut(message) };
        return false;
}

void sql_error_prefix(SqlError *e, const char *format, ...) {
        char *prefix, *message;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&prefix, format, ap);
        va_end(ap);
        if (r < 0)
                return;
        r = asprintf(&message, "%s%s", prefix, sql_error_as_failure(e).message);
        free(prefix);
        if (r < 0)
                return;
        free(e->message);
        e->message = cut(message);
}

void sql_error_copy(SqlError *to, const SqlError *from) {
        sql_error_done(to);
        *to = *from;
        if (from->message)
                to->message = strdup(from->message);
}

Failure sql_error_as_failure(const SqlError *e) {
        return (Failure) {
                .error = e->error,
                .extended_code = e->extended_code,
                .sql_offset = e->sql_offset,
                .message = e->message ?: "out of memory",
        };
}
