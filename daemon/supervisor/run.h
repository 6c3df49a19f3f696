/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One thing that a worker is asked to do: to compile a statement (PREPARE), or to run one (RUN). Supervisor.
 *
 *      WAITING --socket has room--> SENT --TAKEN--> TAKEN --STARTED--> STARTED --ENDED--> ENDED --DRAINED--> OVER
 *         |                           |               |  ENDED with an error: method's reply   |       ^
 *         |  cancel, queue timeout    |  the same      +--------------------------------> gone  \--> DRAINING (run-drain.h)
 *         +--> gone                   +--> called back out of the socket: WAITING, gone
 *
 * 1. The method that asked is answered exactly once: at STARTED, or with what ended it before.
 * 2. A run that a worker may have is not freed before the worker said that it ended, or is dead: its number stays known. To
 *    end one that may still lie in the job socket, the socket is emptied first (group_recall), so that nobody starts what
 *    was given up.
 * 3. ENDED: SQLite is reset, and the reader is behind; it keeps its worker for a moment only. DRAINING: the worker is free,
 *    and we have the last bytes. OVER is kept only by a RowReader that has not read to the end. DRAINING and OVER last for
 *    StatementIdleSec= at most.
 * 4. It has one deadline, that which matters in its state; past a CANCEL, which is also how the run's own deadline is told,
 *    a second is left, then the worker is killed (grace.h).
 */
#ifndef SQLIPC_RUN_H
#define SQLIPC_RUN_H

#include "database.h"
#include "grace.h"
#include "parameters.h"
#include "pipe.h"
#include "row-reader.h"
#include "session.h"
#include "statement.h"

typedef struct Group Group;
typedef struct Worker Worker;

typedef enum RunKind {
        RUN_PREPARE, /* compiles run->statement */
        RUN_FETCH,   /* of run->statement */
        RUN_QUERY,   /* its pipe is the client's */
        RUN_ROWS,    /* its pipe is ours: run->reader */
} RunKind;

typedef enum RunState {
        RUN_WAITING,
        RUN_SENT,
        RUN_TAKEN,
        RUN_STARTED,
        RUN_ENDED,
        RUN_DRAINING,
        RUN_OVER,
} RunState;

/* Answers run->call with what STARTED brought. */
typedef int (*RunStartedFunc)(Run *run, const Started *started);

struct Run {
        Manager *manager;       /* not owned */
        User *user;             /* reference */
        Session *session;       /* not owned; NULL: abandoned */
        Statement *statement;   /* not owned; NULL: none, or finalized */
        Group *group;           /* reference; NULL once DRAINING or OVER */
        Worker *worker;         /* who took it, not owned */
        Database *database;     /* reference */
        Pipe *pipe;             /* reference; NULL for PREPARE */
        RowReader *reader;      /* owned */
        struct Unread *unread;  /* DRAINING: owned */

        uint64_t number;
        RunKind kind;
        RunState state;
        bool queued;            /* in the group's queue, by group_link */
        bool parked;
        bool missing;           /* SENT, but it is not in the job socket: it is being taken, or was by a worker that died */

        sd_bus_message *call;   /* the method to answer, owned; NULL: answered */
        RunStartedFunc on_started;
        bool error_details;     /* the caller wants SQLite's code and offset with an error */

        /* what goes to the worker; dropped when it has started */
        GBytes *sql;
        Parameters parameters;
        bool describe;
        uint32_t page_size;
        uint64_t deadline_usec, row_size_max, result_rows_max, result_size_max;
        size_t held_size;       /* of it that counts for the user */

        uint64_t asked_usec, sent_usec;
        uint64_t due_usec;      /* the one deadline that matters in its state (run-timer.h); UINT64_MAX: none */
        unsigned n_cancels_unsent;      /* CANCELs to its worker, one after the other, that could not be sent */
        bool spared;            /* clock_timer_was_late() to that */
        Grace grace;            /* TAKEN, and once it was told to end */
        uint64_t parked_since_usec, parked_usec; /* since when it is parked; how long it was before */
        uint64_t n_rows, n_bytes; /* delivered, as its worker said last */
        char *excerpt;          /* of the SQL, for lists; owned */
        Refusal end;            /* what it was told to end with */
        GList session_link, group_link, worker_link;
};

/* What a new run is made of. */
typedef struct RunSpec {
        RunKind kind;
        Statement *statement;   /* PREPARE, FETCH */
        Database *database;
        GBytes *sql;            /* borrowed */
        Pipe *pipe;             /* borrowed */
        Parameters *parameters; /* taken; NULL: none */
        sd_bus_message *call;   /* borrowed; NULL: the reader has it */
        RunStartedFunc on_started;
        uint64_t timeout_usec;
        uint32_t page_size;
        bool error_details;
} RunSpec;

/* Makes it; run_submit() sends it on its way. LIMITS_EXCEEDED. Call run_free() if something goes wrong in between. */
int run_new(Session *s, RunSpec spec, Run **ret, Refusal *refusal);
void run_submit(Run *run);
void run_free(Run *run);

/* The session's own run of this number, still known. UNKNOWN_RUN. */
int run_find(Manager *m, const Peer *p, const Database *d, uint64_t number, Run **ret, Refusal *refusal);

/* run->due_usec is past; may free it. */
void run_on_timeout(Run *run);

/* Ends it, with `error` and a sentence; may free it. Nothing for one that has ended already. */
void run_cancel(Run *run, ErrorNumber error, const char *sentence);

/* The administrator ends it: the same, but of one that has ended its reader gets no more either. May free it. */
void run_cancel_for_all(Run *run, const char *sentence);

/* Nothing is left to be written of one that ended: it goes, unless its RowReader has not read to the end. May free it. */
void run_is_over(Run *run);

/* Its client is gone, or told to go: answers a waiting method, cancels. */
void run_abandon(Run *run, ErrorNumber error, const char *sentence);

/* ---- What a worker says; -EBADMSG: it may not say that now. ---- */
int run_on_taken(Run *run, Worker *w);
int run_on_started(Run *run, const Started *started);
int run_on_parked(Run *run, bool parked);
int run_on_filling(Run *run);
int run_on_ended(Run *run, const Ended *ended);
int run_on_drained(Run *run, const Drained *drained);
int run_on_progress(Run *run, const Progress *progress);

/* The worker that had it died, or nobody will ever take it. Frees it. */
void run_lost(Run *run);
/* Cannot be started at all. Frees it. */
void run_fail(Run *run, const Failure *failure);
/* An ending worker took it and put it down again: it waits anew. */
void run_put_back(Run *run);
/* The job socket was emptied and it was not in there: some live worker says TAKEN within a second, or it is lost. */
void run_on_missing(Run *run);
/* It went into the job socket. */
void run_on_sent(Run *run);

/* The reader is gone; `ended`: it saw END or ERROR. */
void run_reader_is_over(Run *run, bool ended);

/* Rights changed: each run that has not started, and whose client lost the right to what it would read, fails at once. The
 * transaction of a run that has started is older than the change. */
void runs_on_rights_changed(Manager *m);

/* The client grew this pipe: what uses it ends. */
void run_on_pipe_grown(Manager *m, Pipe *p);

/* Taken, not parked, not ended: it wants a CPU. */
static inline bool run_is_runnable(const Run *run) {
        return (run->state == RUN_TAKEN || run->state == RUN_STARTED) && !run->parked;
}

#endif
