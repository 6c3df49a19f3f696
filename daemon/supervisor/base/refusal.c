/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Refusals and the supervisor's expansion of the error table. Pure. */
#include <errno.h>
#include <glib.h>

#include "daemon/supervisor/base/refusal.h"

#define CODE_BUSY 5 /* SQLite's SQLITE_BUSY: the supervisor does not include sqlite3.h */

int error_to_errno(uint32_t number) {
        switch (number) {
#define X(n, symbol, name, error) case n: return error;
                SQLIPC_ERROR_TABLE(X)
#undef X
        }
        return EBADE;
}

const char *error_to_name(uint32_t number) {
        switch (number) {
#define X(n, symbol, name, error) case n: return SQLIPC_ERROR_PREFIXED(name);
                SQLIPC_ERROR_TABLE(X)
#undef X
        }
        return SQLIPC_ERROR_PREFIXED(Internal);
}

__attribute__((format(printf, 4, 0)))
static int refuse_with(Refusal *refusal, ErrorNumber error, int32_t extended_code, const char *format, va_list ap) {
        if (refusal->error == ERROR_NONE)
                *refusal = (Refusal) {
                        .error = error,
                        .details = refusal->details,
                        .extended_code = extended_code,
                        .sql_offset = -1,
                        .message = g_strdup_vprintf(format, ap),
                };
        return -error_to_errno(refusal->error);
}

int refuse(Refusal *refusal, ErrorNumber error, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        int r = refuse_with(refusal, error, 0, format, ap);
        va_end(ap);
        return r;
}

int refuse_for_now(Refusal *refusal, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        int r = refuse_with(refusal, ERROR_LIMITS_EXCEEDED, CODE_BUSY, format, ap);
        va_end(ap);
        return r;
}

Failure refusal_as_failure(const Refusal *refusal) {
        return (Failure) {
                .error = refusal->error,
                .extended_code = refusal->extended_code,
                .sql_offset = refusal->sql_offset,
                .message = refusal->message,
        };
}

void refusal_done(Refusal *refusal) {
        g_free(refusal->message);
        *refusal = REFUSAL_INIT;
}
