/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Turns what the server says about a failure into an error of the one table. The server sends SQLite's
 * sentences without their codes, so the sentences are looked up.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_SERVER_ERROR_H
#define SQLIPC_DAEMON_WORKER_RQLITE_SERVER_ERROR_H

#include "daemon/worker/rqlite/shadow-schema.h"

/* extended_code of an error that is worth another try (ERROR_BUSY), for server_error_give_up(). */
typedef enum ServerTrouble {
        SERVER_TROUBLE_NO_LEADER = 1,
        SERVER_TROUBLE_UNREACHABLE,
        SERVER_TROUBLE_CONNECTIONS, /* all of ConnectionsMax= are in use */
        SERVER_TROUBLE_SCHEMA,      /* it keeps changing */
} ServerTrouble;

/* Sets the error of a statement that the server's SQLite has refused. `shadow` tells keys of tables from other unique
 * columns. Always returns false. */
bool server_error_set(SqlError *error, const char *message, ShadowSchema *shadow);

/* True if the message says that the cluster has no leader at the moment, so that nothing was carried out. */
bool server_error_is_no_leader(const char *message);

/* Sets ERROR_BUSY with the reason. Always returns false. */
bool server_error_retry(SqlError *error, ServerTrouble trouble, const char *reason);

/* Turns ERROR_BUSY into the error for the client. */
void server_error_give_up(SqlError *error);

#endif
