/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Queries with parameters of libsqlipc, for live models. GLib library. */
#ifndef SQLIPC_CLIENT_LIB_GLIB_GLIB_QUERY_H
#define SQLIPC_CLIENT_LIB_GLIB_GLIB_QUERY_H

#include "client-lib/glib/sqlipc-glib.h"
#include "client-lib/sqlipc.h"

/* As sqlipc_glib_connection_query_async(), for SQL that changes nothing. `parameters` are not needed after the call. */
void query_start(SqlipcConnection *self, const char *database, const char *sql, const sqlipc_parameter *parameters, gsize n,
                 GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
SqlipcCursor *query_finish(SqlipcConnection *self, GAsyncResult *result, GError **error);

#endif
