/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SQL and parameters of a call. If they are too large for the message, they go to a file (call-arguments.h), which the call
 * passes in an option. Library.
 */
#ifndef SQLIPC_CLIENT_LIB_CALL_FILE_H
#define SQLIPC_CLIENT_LIB_CALL_FILE_H

#include "client-lib/parameter.h"
#include "client-lib/util.h"

/* Limits of the service for a message; parameters are measured as a row. A bus passes no message of more than 32 MiB, so
 * Prepare, which has no file, may have less SQL than that. */
#define MESSAGE_SQL_MAX ((size_t) 1000000)
#define MESSAGE_PARAMETERS_MAX ((size_t) 1024 * 1024)
#define MESSAGE_PREPARE_MAX ((size_t) 24 * 1024 * 1024)

/* A descriptor that is closed at the end of its scope. */
static inline void close_file(int *fd) {
        *fd = safe_close(*fd);
}

/* Appends SQL (NULL: the call has none) and parameters, padded with NULL to `n_positional_min` positional ones. If the bus
 * passes descriptors, all parameters go to a file if they or the SQL are too large, and the SQL does if it is. *ret_fd:
 * the file for call_append_options(), which the caller closes; -1: there is none. Errors as those of
 * parameter_append_all(); those of call_arguments_new(). */
int call_file_append(sd_bus_message *m, bool passes_descriptors, const char *sql, const Parameter *parameters,
                     size_t n_parameters, size_t n_positional_min, int *ret_fd);

/* Appends SQL alone. */
int call_file_append_sql(sd_bus_message *m, bool passes_descriptors, const char *sql, int *ret_fd);

#endif
