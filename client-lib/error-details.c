/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The details of failures that programs read (sqlipc.h): of a connection, a statement or a cursor. Library. */
#include "client-lib/connection.h"
#include "client-lib/cursor.h"
#include "client-lib/prepared.h"

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
