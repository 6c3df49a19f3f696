/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The lease of a database file: one worker at a time writes, and all others wait for their turn (docs/design/writing.md).
 * Supervisor.
 *
 *      FREE --a worker wants it--> HELD --another one waits--> ASKED --returned, or its worker is gone--> FREE, or HELD by
 *                                                                                                    the next worker
 *
 * 1. Of the uids that wait, the one whose last turn was longest ago is next. So more workers do not get a uid more turns.
 *    The workers of one uid take its turns in the order in which they asked.
 * 2. A worker keeps the lease while no other one waits. Then it is asked for it, once. If it does not return it within the
 *    time that a run or transaction of its user may take, it is killed.
 * 3. The lease of a worker that ends is passed on when its process is reaped: until then the process may hold SQLite's lock.
 *    An undead worker may hold that for hours. The lease is passed on before, so that the others learn that the database is
 *    locked instead of waiting.
 *
 * 4. A holder that was asked, and has a transaction open, says so (KEPT), and the workers that wait are told (TAKEN): their
 *    clients may want to wait for a lock only for a while. Without that, the time that the holder needs to return an idle
 *    lease would look the same.
 *
 * The lease only makes the turns fair. SQLite's lock keeps the file intact, so two paths that lead to one file do no harm.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_WORKERS_LEASE_H
#define SQLIPC_DAEMON_SUPERVISOR_WORKERS_LEASE_H

#include <stdbool.h>

#include "daemon/protocol/protocol.h"

typedef struct Context Context;
typedef struct Worker Worker;

/* Messages from a worker. -EBADMSG: the worker may not send this now. */
int lease_on_wanted(Worker *w);
int lease_on_returned(Worker *w);
int lease_on_kept(Worker *w);
int lease_on_committed(Worker *w, const Committed *committed);

/* The worker is gone, or given up as undead: passes its lease on, or takes it out of the queue. */
void lease_leave(Worker *w);

/* True if the worker has a lease, so that it may write. */
bool lease_is_held_by(const Worker *w);

/* Clients have begun to watch the file, or have stopped: tells the holder. True: it will answer with COMMITTED, or lose the
 * lease before. */
bool lease_on_watched(const Context *context, const char *path);

/* True if a worker may write to the file now. */
bool lease_has_holder(const Context *context, const char *path);

/* Asks the holder to tell what it has committed until now. False: there is no holder, or it cannot be asked. */
bool lease_ask(const Context *context, const char *path);

#endif
