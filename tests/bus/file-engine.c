/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sqlipc-engine with SQLite in the place of PostgreSQL's engine: Connection= is the path of a file. So the tests of all that
 * is around an engine need no server. "hang" instead of a path: the worker waits for ever, as in a call to a server. Tests
 * only.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/protocol/engine-connection.h"
#include "daemon/worker/keeper.h"
#include "daemon/worker/serve.h"
#include "daemon/worker/sqlite/sqlite-engine.h"

static Setup changed;
static Engine engine;
static EngineConnections connections; /* all in use: the worker is asked for one that it has to spare, and keeps it */

static int init(const Setup *setup) {
        while (strcmp(setup->connection, "hang") == 0)
                (void) sleep(1000);
        if (setup->password && strcmp(setup->password, "secret") != 0)
                return -1;
        return sqlite_engine.init(setup);
}

static int start(const Setup *setup, EngineProgress progress, void *userdata, EnginePool **ret) {
        changed = *setup;
        changed.path = setup->connection;
        connections.n = connections.n_max = setup->connections_max;
        return sqlite_engine.start(&changed, progress, userdata, ret);
}

static EngineConnections *connections_of(EnginePool *pool) {
        (void) pool;
        return &connections;
}

static bool close_idle(EnginePool *pool) {
        (void) pool;
        return false;
}

static const Engine *find_engine(EngineKind kind) {
        if (kind != ENGINE_KIND_POSTGRESQL)
                return NULL;
        engine = sqlite_engine;
        engine.init = init;
        engine.start = start;
        engine.connections = connections_of;
        engine.close_idle = close_idle;
        return &engine;
}

int main(void) {
        static const WorkerProgramKind program = { .name = "file-engine", .find_engine = find_engine, .network = true };
        int r = keeper_run(ENGINE_CONNECTION_FD);

        if (r < 0) {
                (void) fprintf(stderr, "file-engine: %s\n", strerror(-r));
                return 1;
        }
        return r == KEEPER_IN_WORKER ? serve(&program) : 0;
}
