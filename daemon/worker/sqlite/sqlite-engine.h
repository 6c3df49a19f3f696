/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. SQLite as an engine (engine.h).
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_ENGINE_H
#define SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_ENGINE_H

#include "daemon/worker/core/engine.h"

extern const Engine sqlite_engine;

#endif
