/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. A worker that looks for commits of other programs to one database file, for the clients that watch it
 * (docs/design/watching.md). It has no user, runs no SQL of a client and reads no rows of a table: it answers OBSERVE with
 * the state of the file, and adds the file to the inotify by which the supervisor learns when to ask again.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_OBSERVING_H
#define SQLIPC_DAEMON_WORKER_CORE_OBSERVING_H

#include "daemon/protocol/protocol.h"
#include "daemon/worker/core/engine.h"

/* Serves the supervisor until it says EXIT, or closes the socket. -errno. */
int observer_run(const Engine *engine, int control_fd, const Setup *setup);

#endif
