/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The request to a server to cancel the statement that runs on a connection. It goes over a connection of its
 * own, which may take long: in a thread of its own, because libpq before 17 can only wait for it. The thread shares only the
 * request with the worker.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_CANCEL_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_CANCEL_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct PgCancel PgCancel;

/* Begins to send a request. It needs `pq` only during this call. NULL: there is no memory, or too many requests are under
 * way. */
PgCancel *pg_cancel_start(PGconn *pq);

/* True if the server has closed the connection of the request, or cannot be reached. Then it has signalled its process: what
 * is sent to it from now on is not cancelled. */
bool pg_cancel_is_over(const PgCancel *cancel);

/* Lets go of a request, which goes on. NULL is allowed. Returns NULL. */
PgCancel *pg_cancel_free(PgCancel *cancel);

/* Waits until all requests are over, for this time at most. For the end of a worker, which would end them. */
void pg_cancel_wait(uint64_t usec);

#endif
