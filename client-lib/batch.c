/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The statements of a batch (batch.h). Library. */
#include <stdarg.h>
#include <string.h>

#include "client-lib/call-file.h"
#include "client-lib/arguments.h"
#include "client-lib/batch.h"
#include "client-lib/call.h"
#include "client-lib/connection.h"
#include "client-lib/error.h"
#include "client-lib/parameter-row.h"
#include "client-lib/parameter.h"
#include "client-lib/transport.h"

void batch_clear(sqlipc_batch *b) {
        for (size_t i = 0; i < b->n_statements; i++)
                free(b->statements[i].sql);
        b->n_statements = 0;
        b->size = 0;
        b->needs_file = false;
}

_public_ int sqlipc_batch_new(sqlipc_connection *connection, const char *database, sqlipc_batch **ret_batch) {
        sqlipc_batch *b;
        char *path;
        int r;

        if (!connection || !database || !ret_batch)
                return connection_fail_errno(connection, -EINVAL);
        r = connection_check(connection);
        if (r < 0)
                return r;
        r = call_database_path(database, &path);
        if (r < 0)
                return connection_fail_errno(connection, r);
        b = malloc(sizeof *b);
        if (!b) {
                free(path);
                return connection_fail_errno(connection, -ENOMEM);
        }
        *b = (sqlipc_batch) { .connection = sqlipc_connection_ref(connection), .path = path,
                              .error = { .sql_offset = -1 } };
        *ret_batch = b;
        return 0;
}

/* ---- Statements --------------------------------------------------------------------------------------------------- */

static int grow(sqlipc_batch *b) {
        size_t n = b->n_allocated > 0 ? 2 * b->n_allocated : 16;
        BatchStatement *statements;

        if (b->n_statements < b->n_allocated)
                return 0;
        statements = reallocarray(b->statements, n, sizeof *statements);
        if (!statements)
                return -ENOMEM;
        b->statements = statements;
        b->n_allocated = n;
        return 0;
}

/* Adds a copy of SQL and parameters. */
static int add_copy(sqlipc_batch *b, const char *sql, const ParameterRow *row) {
        size_t sql_size = strlen(sql) + 1, size = sql_size + row->size;
        char *copy;
        int r;

        if (b->n_statements == BATCH_STATEMENTS_MAX || sql_size > BATCH_SIZE_MAX || row->size > BATCH_SIZE_MAX ||
            BATCH_HEAD_SIZE + size > BATCH_SIZE_MAX - b->size)
                return error_set(&b->connection->error, ERROR_LIMITS_EXCEEDED, "A batch has at most %zu statements, and %zu "
                                 "MiB of SQL and parameters: divide it.", BATCH_STATEMENTS_MAX, BATCH_SIZE_MAX >> 20);
        r = grow(b);
        if (r < 0)
                return connection_fail_errno(b->connection, r);
        copy = malloc(size);
        if (!copy)
                return connection_fail_errno(b->connection, -ENOMEM);
        memcpy(copy, sql, sql_size);
        if (row->size > 0)
                parameter_row_write(row, (uint8_t *) copy + sql_size);
        b->statements[b->n_statements++] = (BatchStatement) { .sql = copy, .sql_size = sql_size - 1,
                                                              .row_size = row->size,
                                                              .n_positional = row->n_positional,
                                                              .n_named = row->n_named };
        b->size += BATCH_HEAD_SIZE + size;
        b->needs_file = b->needs_file || b->size > BATCH_MESSAGE_SIZE_MAX || sql_size > MESSAGE_SQL_MAX ||
                        row->size > MESSAGE_PARAMETERS_MAX;
        return 0;
}

static int add(sqlipc_batch *b, const char *sql, const Parameter *parameters, size_t n_parameters) {
        sqlipc_connection *c = b->connection;
        ParameterRow row;
        int r;

        r = connection_check(c);
        if (r < 0)
                return r;
        if (b->call)
                return connection_fail_errno(c, -EBUSY);
        r = call_check_sql(&c->error, sql);
        if (r < 0)
                return r;
        r = parameter_row_init(&row, parameters, n_parameters, 0, SQLIPC_ROW_SIZE_MAX);
        return r < 0 ? connection_fail_send(c, r) : add_copy(b, sql, &row);
}

_public_ int sqlipc_batch_add(sqlipc_batch *batch, const char *sql, const char *types, ...) {
        _cleanup_free_ Parameter *parameters = NULL;
        size_t n;
        va_list ap;
        int r;

        if (!batch)
                return -EINVAL;
        if (!sql)
                return connection_fail_errno(batch->connection, -EINVAL);
        va_start(ap, types);
        r = arguments_read(types, &ap, &parameters, &n);
        va_end(ap);
        return r < 0 ? connection_fail_errno(batch->connection, r) : add(batch, sql, parameters, n);
}

_public_ int sqlipc_batch_add_with(sqlipc_batch *batch, const char *sql, const sqlipc_parameter *parameters,
                                   size_t n_parameters) {
        _cleanup_free_ Parameter *read = NULL;
        int r;

        if (!batch)
                return -EINVAL;
        if (!sql || (n_parameters > 0 && !parameters))
                return connection_fail_errno(batch->connection, -EINVAL);
        r = parameter_read_all(parameters, n_parameters, &read);
        return r < 0 ? connection_fail_send(batch->connection, r) : add(batch, sql, read, n_parameters);
}

/* ---- Afterwards --------------------------------------------------------------------------------------------------- */

_public_ int64_t sqlipc_batch_changes(const sqlipc_batch *batch, size_t statement) {
        return batch && statement < batch->n_changes ? batch->changes[statement] : 0;
}

_public_ sqlipc_batch *sqlipc_batch_close(sqlipc_batch *b) {
        if (!b)
                return NULL;
        batch_clear(b);
        free(b->statements);
        free(b->changes);
        free(b->path);
        (void) sqlipc_connection_unref(b->connection);
        free(b);
        return NULL;
}

_public_ void sqlipc_batch_closep(sqlipc_batch **batch) {
        (void) sqlipc_batch_close(*batch);
}
