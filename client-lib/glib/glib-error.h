/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Failures of libsqlipc as GError: the domain, and the details that belong to an error. GLib library. */
#ifndef SQLIPC_CLIENT_LIB_GLIB_GLIB_ERROR_H
#define SQLIPC_CLIENT_LIB_GLIB_GLIB_ERROR_H

#include <gio/gio.h>

#include "client-lib/sqlipc.h"

/* Sets the error of the last call that failed on the connection (NULL: there is none), with the result `r`, a negative
 * errno. */
void error_set_last(GError **error, const sqlipc_connection *connection, int r);

/* An error with this sentence, and the one that it is unknown whether `fact`. */
GError *error_new_outcome_unknown(const char *sentence, const char *fact);

/* Sets the error of a call with invalid arguments of the program. */
void error_set_invalid(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

#endif
