/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SQL and parameters of a call (call-file.h). Library. */
#include <string.h>

#include "client-lib/call-file.h"
#include "client-lib/parameter-row.h"
#include "dbus-interfaces/wire/call-arguments.h"

static int write_file(const char *sql, size_t sql_size, const ParameterRow *row, int *ret_fd) {
        uint64_t size = CALL_ARGUMENTS_HEAD_SIZE + (uint64_t) sql_size + 1 + row->size;
        uint8_t *bytes, *at;
        int fd, r;

        r = call_arguments_new(size, &fd, &bytes);
        if (r < 0)
                return r;
        call_arguments_write_head(bytes, sql_size, row->size, row->n_positional, row->n_named);
        at = bytes + CALL_ARGUMENTS_HEAD_SIZE;
        memcpy(at, sql, sql_size);
        at[sql_size] = 0;
        if (row->size > 0)
                parameter_row_write(row, at + sql_size + 1);
        r = call_arguments_seal(fd, bytes, size);
        if (r >= 0)
                *ret_fd = fd;
        return r;
}

int call_file_append(sd_bus_message *m, bool passes_descriptors, const char *sql, const Parameter *parameters,
                     size_t n_parameters, size_t n_positional_min, int *ret_fd) {
        size_t sql_size = sql ? strlen(sql) : 0;
        bool large_sql = passes_descriptors && sql_size > MESSAGE_SQL_MAX, in_file = large_sql;
        ParameterRow row;
        int r = 0;

        *ret_fd = -1;
        if (passes_descriptors) {
                r = parameter_row_init(&row, parameters, n_parameters, n_positional_min, SQLIPC_ROW_SIZE_MAX);
                in_file = in_file || (r >= 0 && row.size > MESSAGE_PARAMETERS_MAX);
        }
        if (r >= 0 && in_file)
                r = write_file(large_sql ? sql : "", large_sql ? sql_size : 0, &row, ret_fd);
        if (r >= 0 && sql)
                r = sd_bus_message_append(m, "s", large_sql ? "" : sql);
        if (r >= 0)
                r = in_file ? sd_bus_message_append(m, "ava{sv}", 0, 0)
                            : parameter_append_all(m, parameters, n_parameters, n_positional_min);
        if (r < 0)
                *ret_fd = safe_close(*ret_fd);
        return r;
}

int call_file_append_sql(sd_bus_message *m, bool passes_descriptors, const char *sql, int *ret_fd) {
        const ParameterRow none = {};
        size_t size = strlen(sql);
        int r = 0;

        *ret_fd = -1;
        if (passes_descriptors && size > MESSAGE_SQL_MAX)
                r = write_file(sql, size, &none, ret_fd);
        return r < 0 ? r : sd_bus_message_append(m, "s", *ret_fd >= 0 ? "" : sql);
}
