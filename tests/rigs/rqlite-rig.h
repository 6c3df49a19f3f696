/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A cluster of rqlite's imitation (rqlite_imitation.py), or another server, and the engine for it in the test's process,
 * used as the core uses it. Tests only.
 */
#ifndef SQLIPC_TESTS_RIGS_RQLITE_RIG_H
#define SQLIPC_TESTS_RIGS_RQLITE_RIG_H

#include <glib.h>

#include "daemon/worker/core/engine.h"
#include "dbus-interfaces/wire/page-decoder.h"

typedef struct sqlite3 sqlite3;

#define RQLITE_NODES_MAX 3

/* Servers, each of which ends at the latest when the test does. */
typedef struct RqliteNodes {
        char *folder;
        unsigned n;
        GPid pids[RQLITE_NODES_MAX]; /* 0: it was killed */
        int stdin_fds[RQLITE_NODES_MAX], ports[RQLITE_NODES_MAX];
} RqliteNodes;

/* Starts a cluster. `user` is "NAME:PASSWORD" or NULL. */
void rqlite_nodes_start(RqliteNodes *nodes, unsigned n, const char *user);

/* Starts one server that does as `mode` says (rqlite_hostile.py). */
void rqlite_nodes_start_hostile(RqliteNodes *nodes, const char *mode);

/* Connection= of all nodes; `user` NULL: none. To be freed. */
char *rqlite_nodes_urls(const RqliteNodes *nodes, const char *user);

/* The node that other nodes say leads, or -1 if there is none. */
int rqlite_nodes_leader(const RqliteNodes *nodes);

void rqlite_nodes_kill(RqliteNodes *nodes, unsigned i);
void rqlite_nodes_stop(RqliteNodes *nodes);

typedef struct RqliteRig {
        Setup setup;
        char *connection;
        EnginePool *pool;
        unsigned n_progress;       /* calls of the progress function */
        unsigned interrupt_at;     /* the call from which on it interrupts; 0: never */
        SqlError error;            /* of the last query or write */

} RqliteRig;

/* A setup that may write; takes `connection` over. */
void rqlite_rig_begin(RqliteRig *rig, char *connection);
void rqlite_rig_end(RqliteRig *rig);

/* Runs a query, with parameters as rqlite_rig_row() has made them, and returns its rows as text; NULL: rig->error says why
 * not. A value is n, iDIGITS, rNUMBER, tTEXT or bHEX; "|" is between values, a newline after each row. To be freed. */
char *rqlite_rig_query(RqliteRig *rig, const char *sql, GByteArray *parameters, unsigned n_parameters);

/* The same for the program's own SQLite. */
char *rqlite_rig_query_here(sqlite3 *db, const char *sql);

/* Adds values to a row of parameters. */
GByteArray *rqlite_rig_row(unsigned n, const PageValue *values);

/* One transaction of the core: several jobs with a statement each. False with rig->error, that of the commit or of the job.
 */
typedef struct RqliteWrite {
        const char *sql;
        int64_t n_changes, last_rowid; /* results */
        char *rows;                    /* of RETURNING; NULL: none. To be freed */
} RqliteWrite;
bool rqlite_rig_write(RqliteRig *rig, RqliteWrite *writes, unsigned n, bool one_job);

/* One statement. */
bool rqlite_rig_execute(RqliteRig *rig, const char *sql);

#endif
