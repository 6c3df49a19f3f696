/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Binding of values to a statement's parameters. Library.
 *
 * Once the statement is compiled, indexes and names are checked here. Before that (without blocking) a value is stored
 * unchecked, and a wrong index or name fails the run.
 */
#include <string.h>

#include "client-lib/bindings.h"
#include "client-lib/connection.h"
#include "client-lib/error.h"
#include "client-lib/prepared.h"

/* A statement that the service did not keep was run without being compiled for itself: nothing is known of its
 * parameters. */
static bool is_described(const sqlipc_statement *s) {
        return s->described && (s->state == STATEMENT_READY || s->state == STATEMENT_LOST);
}

static int bind(sqlipc_statement *s, unsigned index, const Parameter *value) {
        unsigned max = is_described(s) ? s->description.n_parameters : N_PARAMETERS_MAX;
        int r;

        if (!value->name && (index < 1 || index > max))
                return prepared_report(s, error_set_errno(&s->connection->error, -ERANGE,
                                                          "There is no parameter %u: the statement has %u.",
                                                          index, s->description.n_parameters));
        r = bindings_set(&s->bindings, index, value);
        return r < 0 ? prepared_report(s, connection_fail_errno(s->connection, r)) : 0;
}

static int bind_by_name(sqlipc_statement *s, const Parameter *value) {
        Parameter nameless = *value;
        unsigned index;

        if (!is_described(s))
                return bind(s, 0, value);
        index = prepared_look_up(s, value->name);
        if (index == 0) {
                (void) error_set(&s->connection->error, ERROR_UNKNOWN_PARAMETER,
                                 "The statement has no parameter named %s, or several of that name.", value->name);
                return prepared_report(s, s->connection->error.result = -ENXIO);
        }
        nameless.name = NULL;
        return bind(s, index, &nameless);
}

static int check_bytes(sqlipc_statement *s, const void *bytes, size_t size) {
        return !bytes && size > 0 ? prepared_report(s, connection_fail_errno(s->connection, -EINVAL)) : 0;
}

/* NULL text without a size is SQL's NULL, as in sqlipc_query(). */
static Parameter text_value(const char *text, size_t size) {
        if (!text && (size == SIZE_MAX || size == 0))
                return (Parameter) { .type = SQLIPC_NULL };
        if (size == SIZE_MAX)
                size = strlen(text);
        return (Parameter) { .type = SQLIPC_TEXT, .bytes = text, .size = size };
}

_public_ int sqlipc_bind_null(sqlipc_statement *statement, unsigned index) {
        return statement ? bind(statement, index, &(Parameter) { .type = SQLIPC_NULL }) : -EINVAL;
}

_public_ int sqlipc_bind_int64(sqlipc_statement *statement, unsigned index, int64_t value) {
        if (!statement)
                return -EINVAL;
        return bind(statement, index, &(Parameter) { .type = SQLIPC_INTEGER, .integer = value });
}

_public_ int sqlipc_bind_double(sqlipc_statement *statement, unsigned index, double value) {
        if (!statement)
                return -EINVAL;
        return bind(statement, index, &(Parameter) { .type = SQLIPC_REAL, .real = value });
}

_public_ int sqlipc_bind_text(sqlipc_statement *statement, unsigned index, const char *text, size_t size) {
        Parameter value = text_value(text, size);
        int r;

        if (!statement)
                return -EINVAL;
        r = check_bytes(statement, text, value.size);
        return r < 0 ? r : bind(statement, index, &value);
}

_public_ int sqlipc_bind_blob(sqlipc_statement *statement, unsigned index, const void *blob, size_t size) {
        Parameter value = { .type = SQLIPC_BLOB, .bytes = blob, .size = size };
        int r;

        if (!statement)
                return -EINVAL;
        r = check_bytes(statement, blob, size);
        return r < 0 ? r : bind(statement, index, &value);
}

_public_ int sqlipc_bind_null_by_name(sqlipc_statement *statement, const char *name) {
        if (!statement || !name)
                return -EINVAL;
        return bind_by_name(statement, &(Parameter) { .name = name, .type = SQLIPC_NULL });
}

_public_ int sqlipc_bind_int64_by_name(sqlipc_statement *statement, const char *name, int64_t value) {
        if (!statement || !name)
                return -EINVAL;
        return bind_by_name(statement, &(Parameter) { .name = name, .type = SQLIPC_INTEGER, .integer = value });
}

_public_ int sqlipc_bind_double_by_name(sqlipc_statement *statement, const char *name, double value) {
        if (!statement || !name)
                return -EINVAL;
        return bind_by_name(statement, &(Parameter) { .name = name, .type = SQLIPC_REAL, .real = value });
}

_public_ int sqlipc_bind_text_by_name(sqlipc_statement *statement, const char *name, const char *text, size_t size) {
        Parameter value = text_value(text, size);
        int r;

        if (!statement || !name)
                return -EINVAL;
        r = check_bytes(statement, text, value.size);
        if (r < 0)
                return r;
        value.name = name;
        return bind_by_name(statement, &value);
}

_public_ int sqlipc_bind_blob_by_name(sqlipc_statement *statement, const char *name, const void *blob, size_t size) {
        Parameter value = { .name = name, .type = SQLIPC_BLOB, .bytes = blob, .size = size };
        int r;

        if (!statement || !name)
                return -EINVAL;
        r = check_bytes(statement, blob, size);
        if (r < 0)
                return r;
        return bind_by_name(statement, &value);
}

_public_ int sqlipc_clear_bindings(sqlipc_statement *statement) {
        if (!statement)
                return -EINVAL;
        statement->bindings = bindings_unref(statement->bindings);
        return 0;
}
