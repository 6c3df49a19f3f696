/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. sqlipc-engine is the worker program for databases of servers. The service manager starts it for a
 * connection of the supervisor (docs/design/engines.md), which it gets as ENGINE_CONNECTION_FD. The process itself becomes
 * the keeper; its child is the worker.
 *
 * Exit status: 0, also if the worker failed, which the keeper has told the supervisor; 1 the worker could not be made; 2 it
 * was started by hand. Those of the worker are in engine-connection.h and serve.h.
 */
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "daemon/protocol/engine-connection.h"
#include "daemon/worker/keeper.h"
#include "daemon/worker/serve.h"
#if SQLIPC_POSTGRESQL
#include "daemon/worker/postgresql/postgresql-engine.h"
#endif
#if SQLIPC_RQLITE
#include "daemon/worker/rqlite/rqlite-engine.h"
#endif

static const Engine *find_engine(EngineKind kind) {
        switch (kind) {
#if SQLIPC_POSTGRESQL
        case ENGINE_KIND_POSTGRESQL: return &postgresql_engine;
#endif
#if SQLIPC_RQLITE
        case ENGINE_KIND_RQLITE: return &rqlite_engine;
#endif
        default: return NULL;
        }
}

int main(int argc, char **argv) {
        static const WorkerProgramKind program = { .name = "sqlipc-engine", .find_engine = find_engine, .network = true };
        int r;

        if (argc != 1 || !serve_has_socket(ENGINE_CONNECTION_FD)) {
                (void) fprintf(stderr, "%s " SQLIPC_VERSION ": started by sqlipc-engine.socket, not by hand: see "
                               "sqlipcd(8)\n", argv[0]);
                return 2;
        }
        r = keeper_run(ENGINE_CONNECTION_FD);
        if (r < 0) {
                (void) fprintf(stderr, "sqlipc-engine: the worker cannot be made: %s\n", strerror(-r));
                return 1;
        }
        return r == KEEPER_IN_WORKER ? serve(&program) : 0;
}
