/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. sqlipc-worker runs the queries of one uid, for the supervisor that started it with the job
 * socket on WORKER_JOB_FD and its own control socket on WORKER_CONTROL_FD. It knows no bus, no policy, no other user.
 *
 * Exit status: 0 the supervisor told it to end, or is gone; 1 it could not set itself up, or the supervisor sent an invalid
 * message; 2 it was started by hand.
 */
#include <stdio.h>
#include <sys/prctl.h>

#include "config.h"
#include "daemon/protocol/protocol.h"
#include "daemon/worker/serve.h"
#include "daemon/worker/sqlite/sqlite-engine.h"

static const Engine *find_engine(EngineKind kind) {
        return kind == ENGINE_KIND_SQLITE ? &sqlite_engine : NULL;
}

int main(int argc, char **argv) {
        static const WorkerProgramKind program = { .name = "sqlipc-worker", .find_engine = find_engine };

        if (argc != 1 || !serve_has_socket(WORKER_JOB_FD) || !serve_has_socket(WORKER_CONTROL_FD)) {
                (void) fprintf(stderr, "%s " SQLIPC_VERSION ": started by sqlipcd, not by hand: see sqlipcd(8)\n", argv[0]);
                return 2;
        }
        (void) prctl(PR_SET_NAME, "sqlipc-worker"); /* otherwise it has the name of the descriptor by which it was started */
        return serve(&program);
}
