/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. A statement that the server has prepared, with the data that is kept beside it for its next run. It lives in
 * a slot of its connection's cache. When the connection is opened again, the slots stay, and are prepared again at their
 * next use.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_STATEMENT_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_STATEMENT_H

#include "daemon/worker/core/engine.h"
#include "daemon/worker/postgresql/pg-connection.h"
#include "daemon/worker/postgresql/pg-effects.h"
#include "daemon/worker/postgresql/pg-text.h"
#include "daemon/worker/postgresql/pg-types.h"
#include "daemon/worker/postgresql/pg-value.h"

#define PG_STATEMENTS_N 32

typedef struct PgStatements PgStatements;

typedef enum PgStatementState {
        PG_STATEMENT_RESTS,
        PG_STATEMENT_RUNS,      /* results are to be read */
        PG_STATEMENT_ENDED,
} PgStatementState;

/* How it is run for the rows of a load. */
typedef enum PgLoad {
        PG_LOAD_UNKNOWN,
        PG_LOAD_ROWS,           /* once for each of them */
        PG_LOAD_COPY,
} PgLoad;

typedef struct PgStatement {
        PgStatements *cache;    /* borrowed */
        char *sql;              /* owned, sql_size bytes: the client's; NULL: the slot is free */
        size_t sql_size;
        uint64_t id;            /* never used before in this worker */
        uint64_t used;          /* larger is later */
        bool kept;              /* for another run; false: it is the one of the slot `single` */
        PgText text;            /* owned */

        /* as the server has it */
        char name[24];
        uint64_t generation;    /* of the connection on which it is prepared; 0: it is not */
        uint64_t described_usec;
        PGresult *description;  /* owned; has the names of columns and the types of parameters */
        unsigned n_columns;
        PgKind *kinds;          /* owned; of the columns */
        const char **types;     /* owned array; names of the columns' types, borrowed from `cache->types` */
        bool binary;            /* the form of the results */
        PgEffects effects;      /* of a query */
        uint8_t *columns;       /* owned: the COLUMNS payload; NULL: not made yet */
        size_t columns_size;

        /* the parameters */
        PgKind *parameter_kinds; /* owned arrays; the server's parameters. The bytes are in `bytes` */
        const char **values;
        int *lengths, *formats;
        uint8_t *bytes;         /* owned */
        size_t bytes_capacity;

        /* the run */
        PgStatementState state;
        const JobSpec *spec;    /* borrowed; with its parameters */
        uint64_t deadline_usec;
        PGresult *rows;         /* owned; with the row that waits; NULL: none */
        int row, n_rows;
        bool ahead;             /* it was sent already (pg-ahead.h) */
        bool awaits;            /* the last result was ENGINE_AWAITS */
        bool final;             /* it must not be sent again: its transaction had begun before, or this is the second time */
        bool alone;             /* the transaction ends with the statement */
        bool guarded;           /* a savepoint was made for it: its failure does not end the transaction */
        int64_t n_changes;
        PgLoad load;
        PgScratch scratch;      /* owned; for the value that was decoded last */

        /* what it writes */
        EngineTables written;   /* owned */
        bool written_known, written_any;
        uint64_t asked_in;      /* the transaction in which the server was asked for these */
} PgStatement;

struct PgStatements {
        PgConnection *connection; /* borrowed */
        PgTypes *types;         /* borrowed: of the pool */
        PgStatement slots[PG_STATEMENTS_N];
        PgStatement single;     /* one that is too long to be kept */
};

void pg_statements_init(PgStatements *s, PgConnection *connection, PgTypes *types);

/* Frees all statements. Those of the server end with the connection. */
void pg_statements_done(PgStatements *s);

bool pg_statements_have(const PgStatements *s, const char *sql, size_t sql_size, const EngineHint *hint);

/* compile() of engine.h. */
bool pg_statements_compile(PgStatements *s, const char *sql, size_t sql_size, bool describe, EngineHint *hint,
                           PgStatement **ret, SqlError *error);

/* Prepares it on the present connection if it is not prepared there. A query may count as a statement that writes then, if a
 * function that it calls was replaced. */
bool pg_statement_prepare(PgStatement *s, SqlError *error);

/* Sends it to libpq, with its parameters. False: the connection is lost. */
bool pg_statement_send(PgStatement *s);

/* Takes it back, and keeps it for the next run of the same SQL. */
void pg_statement_release(PgStatement *s);

/* Has it prepared again before its next run, because the tables have changed. */
void pg_statement_forget(PgStatement *s);

bool pg_statement_describe(PgStatement *s, EngineDescription *ret, SqlError *error);

bool pg_statement_columns(PgStatement *s, uint32_t page_size, const uint8_t **ret_payload, size_t *ret_size,
                          SqlError *error);

static inline bool pg_statement_writes(const PgStatement *s) {
        return s->text.command != PG_COMMAND_READ;
}

#endif
