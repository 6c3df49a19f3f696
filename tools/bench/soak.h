/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parts of the workload soak: many clients that do everything at once, for as long as is asked, and go wrong on purpose.
 *
 *      workload-soak.c   the parent: starts processes, kills some, has all rest between rounds, and judges
 *      soak-process.c    a process of some clients, each with a connection of its own; one turn of one client at a time
 *      soak-turns.c      what a client does in its turn, and that the answer is right
 *      soak-errors.c     errors that it provokes, and that they are the right ones
 *      soak-rows.c       the rows that are right, read by SQLite in process
 *      soak-sample.c     what the service holds, now
 *      soak-tally.c      how often, how long; pure
 *      soak-report.c     figures and tables
 *
 * What processes count stands in memory that they share with the parent, so that it outlives one that is killed.
 */
#ifndef BENCH_SOAK_H
#define BENCH_SOAK_H

#include <stdatomic.h>

#include "library.h"
#include "random.h"
#include "soak-tally.h"

enum {
        SOAK_TEXT_LENGTH = 32,
        SOAK_PATIENCE_USEC = 60 * 1000 * 1000, /* for an answer, on a machine that is busy with all of them */
};

/* A row of the dataset `point`; its key is its place, from 1. */
typedef struct SoakRow {
        int64_t n;
        double r;
        char t[SOAK_TEXT_LENGTH];
} SoakRow;

typedef enum SoakKind {
        SOAK_POINT, /* the four in the order of sqlipc_transport */
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
        SOAK_FIRST_ERROR, /* from here on an answer is the error that was provoked */
        SOAK_BAD_SQL = SOAK_FIRST_ERROR,
        SOAK_UNKNOWN_DATABASE,
        SOAK_WRITE,
        SOAK_TOO_DEEP,
        SOAK_PARAMETERS,
        SOAK_OUR_TIMEOUT,
        SOAK_THEIR_TIMEOUT,
        SOAK_KINDS,
} SoakKind;

/* One process, in shared memory: written by it, but for what is the parent's. */
typedef struct SoakProcess {
        pid_t pid;               /* the parent's; 0: none */
        bool killed;             /* the parent's: by it */
        uint64_t given_up[SOAK_KINDS]; /* the parent's: begun by a process that was killed before the answer */
        atomic_uint at_rest;     /* the rest that it has come to, from 1 */
        uint64_t too_slow;       /* slow readers that the service ended, as it says it does */
        SoakTally tallies[SOAK_KINDS];
} SoakProcess;

/* In shared memory, the parent's. */
typedef struct SoakState {
        atomic_uint rest;        /* the number of the rest that all are to come to; 0: none */
        atomic_bool stop;
        atomic_uint n_told;      /* failures that were said */
        SoakProcess processes[];
} SoakState;

typedef struct Soak {
        const BenchOptions *options;
        const SoakRow *rows;
        int64_t n_rows;
        SoakState *state;
        unsigned n_processes, n_clients;
        GArray *uids;            /* of uid_t, whose clients take turns; empty: this process' own */
} Soak;

/* One of the clients of a process. */
typedef struct SoakClient {
        sqlipc_connection *connection; /* NULL: not connected */
        sqlipc_transport transport;
        sqlipc_statement *left;        /* prepared and left */
        sqlipc_cursor *slow;           /* read now and then, */
        int64_t slow_key;              /* up to this row, */
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
        Spent spent;                   /* rows and bytes that came */
} SoakTurn;

/* What is done in a turn. 0: answered, and right; negative: it was not, and stderr says why. */
typedef int (*SoakAct)(SoakTurn *turn);
typedef struct SoakOperation {
        const char *name;
        unsigned weight;
        SoakAct act;
} SoakOperation;
extern const SoakOperation soak_operations[SOAK_KINDS];

/** Reads the rows of `path`'s table point; the caller frees them. -EBADMSG: they are not the dataset's. Says what fails. */
int soak_read_rows(const char *path, SoakRow **ret, int64_t *ret_n);

/** In a process of its own: takes turns until the parent says stop. Negative: it could not begin. */
int soak_process_run(const Soak *soak, unsigned number, uint64_t seed);

/** Opens the connection where there is none. Says what fails. */
int soak_connect(SoakTurn *turn);
/** Closes it with all that is open there; what is asked of a slow reader is given up. */
void soak_disconnect(SoakTurn *turn);
/** Closes the connection, opens it again, and asks for one row. Says what fails. */
int soak_reconnect(SoakTurn *turn);
/** Goes on with the slow reader: a few rows, or (`whole`) the rest. What becomes of it is counted as SOAK_SLOW. */
int soak_go_on(SoakTurn *turn, bool whole);
/** Says, a few times for all processes, what went wrong. Returns `r`, which is negative. */
int soak_wrong(SoakTurn *turn, int r, const char *what);

int soak_ask_point(SoakTurn *turn);
int soak_bad_sql(SoakTurn *turn);
int soak_unknown_database(SoakTurn *turn);
int soak_write(SoakTurn *turn);
int soak_too_deep(SoakTurn *turn);
int soak_parameters(SoakTurn *turn);
int soak_our_timeout(SoakTurn *turn);
int soak_their_timeout(SoakTurn *turn);

/* A statement that never ends and has no row, which SQLite interrupts within its 1,000 opcodes. */
#define SOAK_ENDLESS_SQL "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x FROM n WHERE x < 0"

/* What the service holds at one moment. NAN where nobody tells. */
typedef struct SoakSample {
        double minutes;          /* of load, since the first round */
        double operations;       /* answered so far */
        double supervisor_kib;   /* RssAnon */
        double workers_kib, n_workers, n_descriptors, n_processes;
        uint64_t n_statements, n_runs, n_channels, n_parked;
} SoakSample;

/** Negative: the service does not answer, which is said. */
int soak_sample(Service *service, SoakSample *ret);

/* What became of all. */
typedef struct SoakFindings {
        SoakSample before, after;
        GArray *under_load, *at_rest; /* of SoakSample */
        SoakTally tallies[SOAK_KINDS];
        uint64_t given_up[SOAK_KINDS], too_slow, n_killed, n_exited;
        double minutes;
        bool broken_off;         /* clients waited in vain, or the service did not come to rest; said on stderr */
} SoakFindings;

/** Sums over all processes. */
void soak_add_up(const Soak *soak, SoakFindings *findings);
/** Answers, of all kinds, so far. */
uint64_t soak_count_answers(const Soak *soak);
/** Writes the figures. Returns whether all is well: all answered, nothing wrong, and nothing left. */
bool soak_report(const SoakFindings *findings, Report *report);

#endif
