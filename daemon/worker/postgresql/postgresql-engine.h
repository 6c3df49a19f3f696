/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. PostgreSQL, and other servers with its protocol, as an engine (engine.h).
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_POSTGRESQL_ENGINE_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_POSTGRESQL_ENGINE_H

#include "daemon/worker/core/engine.h"

extern const Engine postgresql_engine;

#endif
