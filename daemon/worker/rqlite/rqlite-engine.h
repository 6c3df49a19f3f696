/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. rqlite as an engine: SQLite's dialect, on a cluster that speaks HTTP and JSON. rqlite-pool.h has the
 * overview.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_RQLITE_ENGINE_H
#define SQLIPC_DAEMON_WORKER_RQLITE_RQLITE_ENGINE_H

#include "daemon/worker/core/engine.h"

extern const Engine rqlite_engine;

#endif
