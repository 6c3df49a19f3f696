/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A value for each letter (arguments.h). Library. */
#include <string.h>

#include "client-lib/arguments.h"

/* Reads one argument, of the type that its letter names. */
static int take_argument(Parameter *ret, char type, va_list *ap) {
        *ret = (Parameter) { .type = SQLIPC_NULL };
        switch (type) {
        case 'i':
                ret->type = SQLIPC_INTEGER;
                ret->integer = va_arg(*ap, int64_t);
                return 0;
        case 'd':
                ret->type = SQLIPC_REAL;
                ret->real = va_arg(*ap, double);
                return 0;
        case 's':
                ret->bytes = va_arg(*ap, const char *);
                if (ret->bytes) {
                        ret->type = SQLIPC_TEXT;
                        ret->size = strlen(ret->bytes);
                }
                return 0;
        case 't':
        case 'b':
                ret->type = type == 't' ? SQLIPC_TEXT : SQLIPC_BLOB;
                ret->bytes = va_arg(*ap, const void *);
                ret->size = va_arg(*ap, size_t);
                return 0;
        case 'n':
                return 0;
        default:
                return -EINVAL;
        }
}

int arguments_read(const char *types, va_list *ap, Parameter **ret, size_t *ret_n) {
        size_t n = types ? strlen(types) : 0;
        _cleanup_free_ Parameter *parameters = calloc(n + 1, sizeof *parameters);
        int r;

        if (!parameters)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                r = take_argument(&parameters[i], types[i], ap);
                if (r < 0)
                        return r;
        }
        *ret = steal(parameters);
        *ret_n = n;
        return 0;
}
