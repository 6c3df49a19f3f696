/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The parameters of a connection to a server: those of Connection=, those that each session has, and the
 * defaults that the configuration, a service file or the environment can replace. Does no I/O except to read the service
 * file.
 *
 * A connection over TCP goes to the program that answers there, and has the password. So by default the server must prove
 * its name by TLS (sslmode=verify-full), and the password is not sent as it is (require_auth). That holds for loopback, too:
 * any user can take the port of a server that does not run. libpq ignores sslmode on sockets of the file system.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_SERVER_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/worker/core/sql-error.h"

/* A server, or several from which libpq chooses. */
typedef struct PgServer {
        char **keywords, **values; /* owned, with a NULL at the end, for PQconnectStartParams(); NULL: see `error` */
        uint64_t timeout_usec;  /* connect_timeout */
        uint64_t retry_usec;    /* no attempt before */
        uint64_t pause_usec;    /* after the last failure; 0: the last attempt succeeded */
        SqlError error;         /* of the last attempt, or why there can be none */
} PgServer;

/* Sets the defaults of the process, in its environment, before it has threads. -ENOMEM. */
int pg_server_set_defaults(void);

/* Reads `connection`. If it is not valid, `s` has the error. False: there is no memory. */
bool pg_server_init(PgServer *s, const char *connection, const char *password, bool is_primary);

/* Wipes the password, and frees what is owned. */
void pg_server_done(PgServer *s);

#endif
