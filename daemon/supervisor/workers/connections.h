/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The connections to a server that the workers of one user may have for one database: ConnectionsMax= in all. Supervisor.
 *
 * A worker starts with one. If all of its connections are in use when a job needs one, it says CONNECTION_WANTED, and gets
 * one more while some are left. Otherwise those workers are asked for one that have more connections than runs. They return
 * one that is not in use, or that was not opened yet. So any number of workers can use all of them, and a run that waits for
 * its reader keeps only its own connection.
 *
 * After a reload, the workers of the old configuration keep what they use until their runs end, and get no more. They count,
 * unless they have another server. A new worker is bounded in group.h.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_WORKERS_CONNECTIONS_H
#define SQLIPC_DAEMON_SUPERVISOR_WORKERS_CONNECTIONS_H

typedef struct Context Context;
typedef struct Group Group;
typedef struct Worker Worker;

/* Messages from a worker. -EBADMSG: the worker may not send this now. */
int connections_on_wanted(Worker *w);
int connections_on_returned(Worker *w);

/* A worker of the group has fewer runs, so that it may have a connection to spare. */
void connections_on_work_over(const Group *g);

/* A worker was reaped, so its connections are left for others. */
void connections_on_worker_gone(const Context *context);

#endif
