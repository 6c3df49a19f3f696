/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One value of a row as renderers see it. Pure. It borrows its bytes: from the cursor's current row, or from a test.
 */
#ifndef SQLIPC_TOOLS_TERMINAL_VALUE_H
#define SQLIPC_TOOLS_TERMINAL_VALUE_H

#include "client-lib/sqlipc.h"

typedef struct Value {
        sqlipc_type type;
        int64_t integer;   /* SQLIPC_INTEGER */
        double real;       /* SQLIPC_REAL */
        const char *bytes; /* SQLIPC_TEXT, SQLIPC_BLOB: any bytes, NULs too */
        size_t size;       /* of bytes */
} Value;

#endif
