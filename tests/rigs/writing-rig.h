/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker's loop in the test's process, as a supervisor holds it, with an engine that writes nothing, but remembers what
 * it would have written. Time advances only when the test says so. Tests only.
 *
 * A statement is a name and its actions: "a" writes; "b fail", "c rollback" (the failure ends the transaction), "d rows=5"
 * (it returns rows of 3,000 bytes), "e big" (a row of 1 MiB), "f read", "g hang" (it steps until it is interrupted), "h
 * slow=4" (it takes 4 ms), "i hook" (it calls writing.hook()). For each row of a load "a" writes "a:" and its first value,
 * which is TEXT. The actions happen at the row of " at=2", or at the first.
 */
#ifndef SQLIPC_TESTS_RIGS_WRITING_RIG_H
#define SQLIPC_TESTS_RIGS_WRITING_RIG_H

#include <glib.h>

#include "daemon/worker/core/worker-loop.h"
#include "tests/rigs/channel-rig.h"

#define WRITING_ROW_SIZE 3000
#define WRITING_IDLE_USEC UINT64_C(5000000)
#define WRITING_OLD 517 /* the code of the engine for a snapshot that is old; reports then say "old" */

typedef struct Writing {
        WorkerLoop loop;
        Rig rig;                /* only its sockets, numbers and limits: for clients of channels */
        Setup *setup;           /* that of the worker, which a test may change */
        uint64_t clock_usec, until_usec;
        uint64_t transaction;   /* of the jobs that the test sends; 0: none */
        uint64_t pin;           /* of the other jobs, and of the transactions that it begins; 0: none */
        ForeignKeys foreign_keys; /* of the jobs and transactions that the test sends. The worker's setup has keys off */
        uint64_t lock_wait_usec; /* of the transactions that the test begins; UINT64_MAX at first */
        uint64_t job_lock_wait_usec; /* of its jobs; the same */
        void (*polls)(void);    /* called once, when the worker polls the memory of channels */
        void (*later)(void);    /* called once, at this time, when the worker waits or polls */
        uint64_t later_usec;

        /* what the engine does */
        unsigned n_begin_busy;  /* so many begin() fail */
        bool others_commit;     /* meanwhile */
        uint64_t program_usec;  /* about so long are the transactions of another program, with 10 us between them; 0: none */
        uint64_t program_commits, program_seen;              /* until now; when begin() failed last, 0: it did not */
        uint64_t program_committed_usec, program_next_usec;  /* its last commit, its next one */
        ErrorNumber begin_error;
        void (*begin_hook)(void); /* called once, by the next begin() that succeeds */
        ErrorNumber commits[8]; /* results of the next commits; ERROR_NONE: it is committed */
        void (*hook)(void);
        uint64_t commit_usec;   /* how long a commit takes */
        bool reader_locks;      /* snapshots, and "read" while it is stepped, keep writers out, and a commit is busy */
        bool has_no_wal;         /* the database has a rollback journal */
        bool reader_logs;       /* snapshots, and "read" while it is stepped, keep the log */
        bool foreign_writer;    /* another program waits for these locks, or the log is too large */
        bool loses_snapshots;   /* a statement that reads ends its transaction */
        bool counts_commits;    /* commits change the state of the file, so the supervisor hears of them */
        uint32_t file_counter;  /* the state of the file */

        /* what was called */
        GString *durable;       /* names, with a bar after each commit; "keys" before those of a transaction that enforces
                                 * foreign keys */
        unsigned n_commits, n_rollbacks, n_compiles, n_begins, n_reader_savepoints;
        int n_connections, n_statements, n_snapshots;

        /* the engine's own */
        GString *pending;
        gsize saved;
        bool in_transaction, is_saved, savepoints;
        unsigned n_commit_results, n_locks;
        EngineProgress progress;
        void *userdata;
        int extra_fds[2];       /* the supervisor's end of the job socket */
} Writing;

extern Writing writing;

/* The engine, for tests that change a part of it. */
extern const Engine writing_engine;

void writing_begin(void);
void writing_end(void);

/* The same with another engine, which was initialized, and a setup whose strings are borrowed until writing_end(). The
 * memory of the fake engine stays empty. */
void writing_begin_on(const Engine *engine, const Setup *limits);

/* Lets the worker work until it waits; or for so long, in its time. */
void writing_settle(void);
void writing_pass(uint64_t usec);

/* The reports of the worker since the last call, without PARKED, PROGRESS and FILLING. To be freed. */
char *writing_reports(void);

/* Lets the worker work until it waits. Fails unless its reports since the last call are `expected`. */
void writing_expect(const char *expected);

/* The same when the worker has ended. */
void writing_expect_last(const char *expected);

/* Fails unless these names are durable, as `writing.durable` has them. */
void writing_expect_durable(const char *expected);

/* Messages of the supervisor, which the worker has not read yet. They return the number. */
void writing_say(MessageKind kind);
/* ATTACH; without a path it is an unknown database. */
void writing_attach(uint64_t pin, const char *name, const char *path);
void writing_cancel(uint64_t number);
uint64_t writing_execute(const char *sql);
uint64_t writing_run(const char *sql, int *ret_fd);

/* LOAD; *ret_fd is the write end of the pipe. */
uint64_t writing_load(const char *sql, int *ret_fd);
uint64_t writing_load_until(const char *sql, uint64_t usec, int *ret_fd);
/* EXECUTE_BATCH: the statements have semicolons between them. */
uint64_t writing_execute_batch(const char *statements);
uint64_t writing_execute_batch_until(const char *statements, uint64_t usec);

/* A transaction that begins within `usec`, and ends then at the latest. The next jobs belong to it if the test sets
 * writing.transaction. */
uint64_t writing_open(bool writes, uint64_t usec);

/* The same for one that reads until it writes. */
uint64_t writing_open_deferred(uint64_t usec);

/* A pin, which goes on with this transaction; 0: with none. */
uint64_t writing_open_pin(uint64_t transaction);
void writing_commit(uint64_t transaction);
void writing_try_commit(uint64_t transaction);

/* EXECUTE with a deadline, so long from now. */
uint64_t writing_execute_until(const char *sql, uint64_t usec);

/* Reads a run's stream to its end. */
Outcome writing_read(int fd, uint64_t number);

#endif
