/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parts of the workload soak: for a chosen time, many clients use all operations at once and also provoke errors.
 *
 *      workload-soak.c   the parent: starts processes, kills some, lets all rest between rounds, and evaluates the results
 *      soak-process.c    a process with several clients, each with its own connection; one client has a turn at a time
 *      soak-turns.c      the operations of a turn, and the checks of their answers
 *      soak-errors.c     the errors that clients provoke, and the checks that these are the expected ones
 *      soak-rows.c       the expected rows, read by SQLite in process
 *      soak-sample.c     what the service holds at a moment
 *      soak-tally.c      counts and times; pure
 *      soak-report.c     figures and tables
 *
 * The processes keep their counters in memory that they share with the parent, so that the counters survive when a process
 * is killed.
 */
#ifndef SQLIPC_TOOLS_BENCH_SOAK_SOAK_H
#define SQLIPC_TOOLS_BENCH_SOAK_SOAK_H

#include <stdatomic.h>

#include "tools/bench/core/library.h"
#include "tools/bench/core/random.h"
#include "tools/bench/report/report.h"
#include "tools/bench/soak/soak-tally.h"

enum {
        SOAK_TEXT_LENGTH = 32,
        SOAK_PATIENCE_USEC = 600 * 1000 * 1000, /* for an answer; only a hang takes so long, even beside other tests */
};

/* A row of the dataset `point`. Its key is its position, counted from 1. */
typedef struct SoakRow {
        int64_t n;
        double r;
        char t[SOAK_TEXT_LENGTH];
} SoakRow;

typedef enum SoakKind {
        SOAK_POINT, /* the first four are in the order of sqlipc_transport */
        SOAK_POINT_PIPE,
        SOAK_POINT_CHANNEL,
        SOAK_POINT_DBUS,
        SOAK_PREPARED,
        SOAK_LEFT,
        SOAK_BULK,
        SOAK_SLOW,
        SOAK_CANCELLED,
        SOAK_ENDLESS,
        SOAK_DROPPED,
        SOAK_FINALIZED,
        SOAK_RECONNECTED,
        SOAK_FIRST_ERROR, /* from here on, the expected answer is an error */
        SOAK_BAD_SQL = SOAK_FIRST_ERROR,
        SOAK_UNKNOWN_DATABASE,
        SOAK_WRITE,
        SOAK_TOO_DEEP,
        SOAK_PARAMETERS,
        SOAK_OUR_TIMEOUT,
        SOAK_THEIR_TIMEOUT,
        SOAK_KINDS,
} SoakKind;

/* One process, in shared memory. The process writes the fields, except those of the parent. */
typedef struct SoakProcess {
        pid_t pid;               /* of the parent; 0: none */
        bool killed;             /* of the parent: it killed the process */
        uint64_t given_up[SOAK_KINDS]; /* of the parent: begun by a process that was killed before the answer */
        atomic_uint at_rest;     /* number of the rest that it has reached, from 1 */
        uint64_t too_slow;       /* runs of slow readers that the service ended, as documented */
        SoakTally tallies[SOAK_KINDS];
} SoakProcess;

/* In shared memory; the parent writes it. */
typedef struct SoakState {
        atomic_uint rest;        /* number of the rest that all processes must reach; 0: none */
        atomic_bool stop;
        atomic_uint n_told;      /* failures that were reported */
        SoakProcess processes[];
} SoakState;

typedef struct Soak {
        const BenchOptions *options;
        const SoakRow *rows;
        int64_t n_rows;
        SoakState *state;
        unsigned n_processes, n_clients;
        GArray *uids;            /* of uid_t: the processes use them in turn; empty: use this process's own */
} Soak;

/* One of the clients of a process. */
typedef struct SoakClient {
        sqlipc_connection *connection; /* NULL: not connected */
        sqlipc_transport transport;
        sqlipc_statement *left;        /* prepared in an earlier turn and not finalized */
        sqlipc_cursor *slow;           /* of the slow reader, read a few rows at a time */
        int64_t slow_key;              /* last key that the slow reader has read */
        double slow_since;
        Spent slow_spent;
} SoakClient;

/* A client's turn. */
typedef struct SoakTurn {
        const Soak *soak;
        SoakProcess *process;
        SoakClient *client;
        Random *random;
        SoakKind kind;
        Spent spent;                   /* rows and bytes received */
} SoakTurn;

/* The operation of a turn. Returns 0 after the right answer, otherwise a negative value; stderr says why. */
typedef int (*SoakAct)(SoakTurn *turn);
typedef struct SoakOperation {
        const char *name;
        unsigned weight;
        SoakAct act;
} SoakOperation;
extern const SoakOperation soak_operations[SOAK_KINDS];

/** Reads the table point of the file `path`; the caller frees the rows. -EBADMSG: the rows are not those of the dataset.
 * Reports errors on stderr. */
int soak_read_rows(const char *path, SoakRow **ret, int64_t *ret_n);

/** The main function of a process: does turns until the parent sets `stop`. Negative: the process could not begin. */
int soak_process_run(const Soak *soak, unsigned number, uint64_t seed);

/** Opens the connection if there is none. Reports errors on stderr. */
int soak_connect(SoakTurn *turn);
/** Closes the connection with its statements and cursors. An unfinished slow reader counts as given up. */
void soak_disconnect(SoakTurn *turn);
/** Closes the connection, opens it again, and asks for one row. Reports errors on stderr. */
int soak_reconnect(SoakTurn *turn);
/** Lets the slow reader read a few rows, or all remaining rows if `whole`. Its result is counted as SOAK_SLOW. */
int soak_go_on(SoakTurn *turn, bool whole);
/** Reports a failure on stderr; only the first few of all processes are reported. Returns `r`, which is negative. */
int soak_wrong(SoakTurn *turn, int r, const char *what);

int soak_ask_point(SoakTurn *turn);
int soak_bad_sql(SoakTurn *turn);
int soak_unknown_database(SoakTurn *turn);
int soak_write(SoakTurn *turn);
int soak_too_deep(SoakTurn *turn);
int soak_parameters(SoakTurn *turn);
int soak_our_timeout(SoakTurn *turn);
int soak_their_timeout(SoakTurn *turn);

/* A query that never ends and has no row. The worker's progress handler can interrupt it every 1,000 opcodes. */
#define SOAK_ENDLESS_SQL "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x FROM n WHERE x < 0"

/* What the service holds at one moment. NAN: unknown. */
typedef struct SoakSample {
        double minutes;          /* of load since the first round */
        double operations;       /* answered so far */
        double supervisor_kib;   /* RssAnon */
        double workers_kib, n_workers, n_descriptors, n_processes;
        uint64_t n_statements, n_runs, n_channels, n_parked;
} SoakSample;

/** Takes a sample. If the service does not answer, reports that on stderr and returns a negative value. */
int soak_sample(Service *service, SoakSample *ret);

/* The results of all clients. */
typedef struct SoakFindings {
        SoakSample before, after;
        GArray *under_load, *at_rest; /* of SoakSample */
        SoakTally tallies[SOAK_KINDS];
        uint64_t given_up[SOAK_KINDS], too_slow, n_killed, n_exited;
        double minutes;
        bool broken_off;         /* clients got no answer, or the service did not come to rest; reported on stderr */
} SoakFindings;

/** Adds up the counters of all processes. */
void soak_add_up(const Soak *soak, SoakFindings *findings);
/** Returns the number of answers of all kinds so far. */
uint64_t soak_count_answers(const Soak *soak);
/** Writes the figures. Returns true if all answers came, all were right, and the service holds nothing more. */
bool soak_report(const SoakFindings *findings, Report *report);

#endif
