/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Refusals and the supervisor's expansion of the error table. Pure. */
#include <errno.h>
#include <glib.h>

#include "daemon/supervisor/base/refusal.h"

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

int refuse(Refusal *refusal, ErrorNumber error, const char *format, ...) {
        if (refusal->error == ERROR_NONE) {
                va_list ap;

                va_start(ap, format);
                *refusal = (Refusal) { .error = error, .sql_offset = -1, .message = g_strdup_vprintf(format, ap) };
                va_end(ap);
        }
        return -error_to_errno(refusal->error);
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
