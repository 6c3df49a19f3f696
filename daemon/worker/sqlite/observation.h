/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Looks for commits of other programs to a database file, without getting in the way of any.
 *
 * 1. It takes no lock of a database in rollback mode, not even for a moment: a program that writes, and does not wait for
 *    locks, would get SQLITE_BUSY because of it. It asks the system if a writer is at work instead.
 * 2. In WAL mode it has a connection like any reader, whose wal-index it reads. SQLite changes the wal-index after the log,
 *    and only changes of the log are noticed, so a writer at work must be asked about again.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_OBSERVATION_H
#define SQLIPC_DAEMON_WORKER_SQLITE_OBSERVATION_H

#include "daemon/worker/sqlite/pool.h"

/* Describes the file now. Has `notifier_fd` (inotify; -1: none) tell of changes of the file, of those beside it, and of
 * names in its folder. `ret->name` is borrowed until the next call. */
void observation_look(Pool *pool, int notifier_fd, Observed *ret);

/* Closes the connection. */
void observation_close(Observation *o);

#endif
