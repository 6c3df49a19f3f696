/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One job for a worker: to compile a statement (PREPARE), to run one (RUN, EXECUTE), or to have a transaction open (BEGIN).
 * Its states are in run-life.h. Supervisor.
 *
 * 1. The method that asked is answered exactly once: at STARTED (EXECUTE: at ENDED), or with the reason why the run ended
 *    before. A query that wants no description is answered as soon as an idle worker has it, if it can only read. If it
 *    then ends before STARTED, its reader gets the reason, as an ERROR frame.
 * 2. A run that a worker may have is not freed before the worker said that it ended, or is dead: its number stays known. To
 *    end a run whose job may still be in the job socket, the socket is emptied first (group_jobs_recall), so that no worker
 *    starts a run that was given up.
 * 3. DRAINING and OVER last for StatementIdleSec= at most, and for ParkTimeoutSec= after the client has left.
 * 4. A run has one deadline, the one that matters in its state. When the run's own deadline passes, the worker is told by a
 *    CANCEL, as for any other cancellation. A second after a CANCEL the worker is killed (grace.h),
 *    or later, if it has not read the CANCEL and may be compiling the SQL of another run.
 * 5. A LOAD that ends before Wait asked for its result is OVER until then, for StatementIdleSec= at most.
 * 6. A run that may have written is not reported as failed before that is known (run-outcome.h).
 * 7. A transaction is STARTED while it is open, and is never parked. Its statements are runs of their own, which its worker
 *    gets directly. It may have written only after COMMIT was sent. It also ends if its client loses its rights.
 * 8. A pin is a kind of transaction here: it is STARTED, and ends in the same ways. But it has no deadline, writes nothing
 *    itself, and has a quota of its own. The runs on it go to its worker directly, too.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_H

#include "daemon/protocol/statement-list.h"
#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/calls/argument-file.h"
#include "daemon/supervisor/calls/parameters.h"
#include "daemon/supervisor/runs/pipe.h"
#include "daemon/supervisor/runs/row-reader.h"
#include "daemon/supervisor/runs/run-life.h"
#include "daemon/supervisor/runs/session.h"
#include "daemon/supervisor/runs/statement.h"
#include "daemon/supervisor/runs/watch.h"
#include "daemon/supervisor/workers/grace.h"

typedef struct Group Group;
typedef struct Worker Worker;

typedef enum RunKind {
        RUN_PREPARE, /* compiles run->statement */
        RUN_FETCH,   /* runs run->statement */
        RUN_QUERY,   /* its pipe leads to the client */
        RUN_ROWS,    /* its pipe is read by run->reader */
        RUN_EXECUTE, /* it has no rows and no pipe: ENDED is its answer */
        RUN_LOAD,    /* its pipe leads from the client: STARTED answers Load, and ENDED answers Wait */
        RUN_TRANSACTION, /* several statements: STARTED answers Begin, and ENDED answers Commit or Rollback */
} RunKind;

/* Answers run->call with the content of STARTED. Negative: no reply was sent. */
typedef int (*RunStartedFunc)(Run *run, const Started *started);
/* EXECUTE, LOAD, TRANSACTION: the same with ENDED. */
typedef int (*RunEndedFunc)(Run *run, const Ended *ended);

struct Run {
        Context *context;       /* not owned */
        User *user;             /* reference */
        Session *session;       /* not owned; NULL: abandoned */
        Statement *statement;   /* not owned; NULL: it has none, or it was finalized */
        Group *group;           /* reference; NULL once DRAINING or OVER */
        Worker *worker;         /* the worker that took it, not owned */
        Database *database;     /* reference */
        Pipe *pipe;             /* reference; NULL for PREPARE, EXECUTE and TRANSACTION */
        RowReader *reader;      /* owned */
        struct Unread *unread;  /* DRAINING: owned */

        uint64_t number;
        RunKind kind;
        RunState state;

        sd_bus_message *call;   /* the method to answer, owned; NULL: answered */
        uint64_t cookie;        /* of the method that began it; 0: none did */
        RunStartedFunc on_started;
        RunEndedFunc on_ended;
        bool error_details;     /* the caller wants SQLite's code and offset with an error */
        bool answers_at_once;     /* QUERY: without a description, and perhaps before STARTED */

        /* for the worker; dropped when the run has started */
        GBytes *sql;
        Parameters parameters;
        StatementList list;     /* EXECUTE of several statements that are not in the file */
        ArgumentFile file;
        bool is_batch;          /* EXECUTE of several statements */
        uint64_t parameters_size_max;
        bool finds_tables;      /* EXECUTE: the SQL is not run, but its tables are found, for a watch */
        bool names;             /* the same, and `sql` has names of tables, as in JobSpec */
        WatchSpec watch;        /* the same */
        bool describe;
        uint32_t page_size;
        uint64_t deadline_usec, row_size_max, result_rows_max, result_size_max;
        uint64_t transaction;   /* the number of the transaction that it belongs to, or of which it makes a pin; 0: none */
        uint64_t pin;           /* the number of the pin that it runs on outside of a transaction, or, of a TRANSACTION,
                                 * that it is on; 0: none */
        bool is_pin;            /* TRANSACTION: it is none, but a connection of the client's own, on which these run */
        GPtrArray *attached;    /* of a pin, owned: a reference to each Database that its client may have attached */
        CountsPlace counts;     /* of its client and the database */
        uint64_t idle_usec;     /* TRANSACTION: TransactionIdleSec= */
        uint64_t lock_wait_usec; /* as in Begin and JobSpec */
        ForeignKeys foreign_keys; /* the client's setting */
        char *time_zone;       /* the client's, owned; "" and NULL: the service's own. Only newer libraries send "" */
        uint64_t used_usec;     /* TRANSACTION: when it began, or its last statement was over */
        bool deferred;          /* TRANSACTION: it reads until a statement writes. `writes` says if one may */
        bool commits, rolls_back; /* TRANSACTION: its worker was told COMMIT; Rollback ends it. Not states: they are about
                                   * the answer */
        bool keeps_open;        /* TRANSACTION: a commit that is refused leaves it open; no Rollback has come meanwhile */
        size_t held_size;       /* bytes of this that count for the user */

        /* Not states: they are about the statement and its transaction. */
        bool writes;            /* EXECUTE, a TRANSACTION that may, or STARTED said so; and it has not ended without it */
        bool committing;        /* its worker is about to commit it, or has */

        uint64_t asked_usec, sent_usec; /* when the method was called; when the job went into the job socket */
        uint64_t due_usec;      /* the deadline that matters in its state (run-timer.h); UINT64_MAX: none */
        unsigned n_cancels_unsent;      /* how many CANCELs to its worker in a row could not be sent */
        bool spared;            /* see clock_timer_was_late(), for due_usec. Not a state: it is about the supervisor */
        Grace grace;            /* TAKEN, and after it was told to end */
        uint64_t end_ping;      /* once the worker has answered this PING, it has read that it is to end the run */
        uint64_t parked_since_usec, parked_usec; /* since when it has been parked; for how long it was parked before */
        uint64_t n_rows, n_bytes; /* delivered, by its worker's last report */
        char *excerpt;          /* start of the SQL, for lists; owned */
        Refusal end;            /* the error that it was told to end with; LOAD, OVER: with which it ended */
        Ended result;           /* LOAD, OVER: without the failure */
        GList session_link, group_link, worker_link;
};

/* Queues a new run for a worker. May free it. */
void run_submit(Run *run);
/* Counts a run that has just been made for the quotas of its user and database (1). run_free() takes it off (-1). */
void run_count(Run *run, int change);
/* Frees the run, in any state and without an answer to its call. */
void run_free(Run *run);

/* run->due_usec has passed. May free the run. */
void run_on_timeout(Run *run);

/* Ends the run. `error` and the sentence are for its client; reasons for which the client gets no error, or always the same,
 * are called with ERROR_NONE. May free it.
 *
 * CANCELLED, BY_ADMINISTRATOR: a worker that has the run is told, and the run stays until the worker has obeyed or is dead.
 * CLIENT_GONE, REVOKED: the same, but a waiting method is answered at once, unless the worker may commit the run all the
 * same. If its client is gone, the run leaves its session. The others free the run, but a RowReader between two calls keeps
 * a run whose worker is lost, to report that. */
void run_end(Run *run, RunEndReason reason, ErrorNumber error, const char *sentence);

/* No bytes of a run that ended are left to be written: frees it, unless its RowReader has not read to the end. */
void run_is_over(Run *run);

/* ---- Messages from a worker; -EBADMSG: the worker may not send this now. May free the run. ---- */
int run_on_taken(Run *run, Worker *w);
int run_on_started(Run *run, const Started *started);
int run_on_parked(Run *run, bool parked);
int run_on_filling(Run *run);
int run_on_committing(Run *run);
int run_on_ended(Run *run, const Ended *ended);
int run_on_commit_refused(Run *run, const Failure *failure);
int run_on_drained(Run *run, const Drained *drained);
int run_on_progress(Run *run, const Progress *progress);
/* A statement on this pin attaches the database of this name. Answers ATTACH, but not while polkit is asked, nor if the
 * worker reads no messages: it asks again. */
int run_on_attach_wanted(Run *run, const char *name);

/* Sends COMMIT for a transaction that is open, whose end answers the call (on_ended). Otherwise Busy: it has another one.
 * run_rollback() cancels it in the same way. `keeps_open`: the worker may refuse the commit. That answers the call, too, and
 * the transaction goes on, but not if run_rollback() was called meanwhile. */
int run_commit(Run *run, sd_bus_message *call, bool keeps_open, RunEndedFunc on_ended, Refusal *refusal);
int run_rollback(Run *run, sd_bus_message *call, RunEndedFunc on_ended, Refusal *refusal);

/* The end of a load answers the call, at once if it has ended: then the run is freed. Otherwise Busy: another call waits. */
int run_wait(Run *run, sd_bus_message *call, RunEndedFunc on_ended, Refusal *refusal);

/* An idle worker was sent the job: answers the call of a run that answers at once. */
void run_answer_at_once(Run *run);

/* The run waits in the group's queue. */
void run_on_queued(Run *run);
/* An ending worker took the job and returned it: the run waits again. */
void run_put_back(Run *run);
/* The job socket was emptied and the job was not in it: if no live worker says TAKEN within a second, the run is lost. */
void run_on_missing(Run *run);
/* The job was sent into the job socket. */
void run_on_sent(Run *run);

/* Makes the reader of a run whose rows are sent as D-Bus values. It takes the read end of the pipe. `one_shot`: QueryRows.
 * -errno. */
int run_add_reader(Run *run, bool one_shot);

/* True if it is a run as clients know it: one execution of a statement. */
static inline bool run_kind_is_execution(RunKind kind) {
        return kind != RUN_PREPARE && kind != RUN_TRANSACTION;
}

static inline bool run_is_execution(const Run *run) {
        return run_kind_is_execution(run->kind);
}

/* True for a transaction that waits for its turn to write before it begins: its group has one of them open at a time. On a
 * server a deferred one does so, too. */
static inline bool transaction_takes_turns(const Database *d, bool writes, bool deferred) {
        return writes && (!deferred || database_config_is_server(d->config));
}

static inline bool run_takes_turns(const Run *run) {
        return run->kind == RUN_TRANSACTION && transaction_takes_turns(run->database, run->writes, run->deferred);
}

/* True if the run is for the worker that has its transaction or pin. */
static inline bool run_has_place(const Run *run) {
        return run->transaction > 0 || run->pin > 0;
}

/* The run that has the worker to which this one must go. NULL: it has ended, or run_has_place() is false. */
static inline Run *run_place(const Run *run) {
        return g_hash_table_lookup(run->context->runs, run->transaction > 0 ? &run->transaction : &run->pin);
}

/* True if the run wants a CPU. A transaction waits for its turn or its client, and a load mostly for its client. */
static inline bool run_is_runnable(const Run *run) {
        return run->kind != RUN_TRANSACTION &&
               (run->state == RUN_TAKEN || (run->state == RUN_STARTED && run->kind != RUN_LOAD));
}

/* True if it is in one of the group's queues, by group_link. */
static inline bool run_is_queued(const Run *run) {
        return run->state >= RUN_WAITING && run->state <= RUN_MISSING;
}

/* True if it has started and not ended. */
static inline bool run_is_under_way(const Run *run) {
        return run->state == RUN_STARTED || run->state == RUN_PARKED;
}

#endif
