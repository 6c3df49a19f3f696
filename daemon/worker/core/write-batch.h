/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. One transaction for the statements of several jobs, each in a savepoint of its own. If a job has a list of
 * statements, all of them are in its savepoint, and count as one here. A job whose statement ran waits in the batch for the
 * commit. A job whose statement failed is READY, with its error, and has changed nothing:
 *
 *      begin --> run, run, ... --> commit --> end         or end at any time: everything is taken back
 *
 * A statement that can be in no transaction is the only one of its batch, and its changes exist when it ran.
 *
 * The statement of a job steps while `*current` is the job's task, so that the progress handler finds it.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_WRITE_BATCH_H
#define SQLIPC_DAEMON_WORKER_CORE_WRITE_BATCH_H

#include "daemon/worker/core/job.h"

#define WRITE_BATCH_N_MAX 256u                              /* statements, failed ones included */
#define WRITE_BATCH_USEC 10000u                             /* after which no statement begins or goes on beside others */
#define WRITE_BATCH_SERVER_USEC (1 * USEC_PER_SEC)   /* after which no statement of a server goes on beside others: an
                                                      * interrupt takes a request to cancel, and all begins again */
#define WRITE_BATCH_COMMIT_USEC (60 * USEC_PER_SEC)  /* for a server's answer to a commit; then its outcome is unknown */
#define WRITE_BATCH_HURRY_USEC (500 * USEC_PER_MSEC) /* for that answer after a job should have ended; a worker that does not
                                                      * end a job within a second is killed */
#define WRITE_BATCH_ANNOUNCE_USEC 250000u                   /* the longest time with commits and without COMMITTING */
#define WRITE_BATCH_SPOOL_MAX ((size_t) 8 * 1024 * 1024)    /* rows in memory of one statement */
#define WRITE_BATCH_SPOOLS_MAX ((size_t) 64 * 1024 * 1024)  /* rows in memory of all statements of the worker, also after the
                                                      * commit */

/* Jobs that are QUEUED, in the order in which they came. */
typedef struct JobList {
        Job *first, *last;
        size_t n;
} JobList;

typedef struct WriteBatch {
        JobContext *context;          /* borrowed */
        Task **current;               /* borrowed: the queue's */
        EngineConnection *connection; /* owned; NULL: no transaction is under way */
        uint64_t sequence;            /* of changes, before the transaction began */
        EngineWritten written;        /* what it may have changed */
        JobList jobs;                 /* their statements ran */
        uint64_t spooled_before;      /* bytes of all spools of the worker at the beginning */
        unsigned n_run;               /* statements, failed ones included */
        uint64_t until_usec;          /* WRITE_BATCH_USEC after the beginning */
        Job *running;                 /* its statement steps, or NULL */
        bool is_saved;                /* the statement that runs has a savepoint */
        bool yields;                  /* it was interrupted, because others wait for it or for the commit */
        bool enforces;                /* foreign keys hold */
        bool delays_readers;          /* its commit: there is no WAL */
        bool announced;               /* COMMITTING was sent, or is not needed */
        uint64_t announced_usec;      /* when it was sent last, also for an earlier batch */
        bool rolled_back;             /* by the failure of a statement: the jobs must run again, without it */
        bool left;                    /* a job of the batch has ended meanwhile: the others must run again */
} WriteBatch;

/* Begins a transaction, in which foreign keys are enforced or not. False: ERROR_BUSY, another program writes; or another
 * error. */
bool write_batch_begin(WriteBatch *b, bool enforces, SqlError *error);

/* The same on a pin, which the batch borrows. */
bool write_batch_begin_pin(WriteBatch *b, EngineConnection *pin, PinBegin how, bool enforces, bool only_temp,
                           SqlError *error);

/* True if no other statement may run in the batch: it has as many of them, rows or microseconds as it may, or the engine
 * must commit. */
bool write_batch_is_full(const WriteBatch *b);

/* Runs the statement of a job that is QUEUED and in no list. False: it was taken back, and must run again. Without an error
 * it takes so long that the others must be committed before, and is the last one of a batch; with job->error, which is
 * ERROR_BUSY, it runs alone, and met a lock. */
bool write_batch_run(WriteBatch *b, Job *job);

/* Called by the progress handler: interrupts a statement that takes too long beside others, or while others wait that it may
 * itself wait for. */
void write_batch_on_progress(WriteBatch *b, bool others_wait, uint64_t now_usec);

/* Commits; the first call sends COMMITTING if it is needed. The jobs are READY then, and have written. False: ERROR_BUSY,
 * which means that the batch goes on and this may be called again; ERROR_OUTCOME_UNKNOWN: the jobs must not run again; any
 * other error: everything was rolled back. */
bool write_batch_commit(WriteBatch *b, SqlError *error);

/* When the engine must give up the wait for a server's answer to a commit, whose jobs must end at `deadline_usec`
 * (UINT64_MAX: never). */
uint64_t write_batch_commit_until(uint64_t deadline_usec);

/* A commit under way gets only a moment more. */
void write_batch_hurry(JobContext *context, uint64_t now_usec);

/* Ends the transaction. Without a commit it is taken back. Its jobs must have been taken out. */
void write_batch_end(WriteBatch *b);

/* The writer is through with a job, which is in no list: it is READY. It has written nothing unless it was committed. */
void write_batch_release(Job *job);

/* ---- lists ---- */

void job_list_append(JobList *list, Job *job);
Job *job_list_take(JobList *list); /* the first; NULL: none */

/* Puts all jobs of `front` before those of the list. */
void job_list_prepend_all(JobList *list, JobList *front);

/* The earliest of the jobs. UINT64_MAX: none has one. */
uint64_t job_list_deadline(const JobList *list);

/* False: the job is not in the list. */
bool job_list_remove(JobList *list, Job *job);

#endif
