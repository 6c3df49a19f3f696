/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. One execution of SQL, for a job of the supervisor or a request of a channel: bind, then step -> encode ->
 * flush. It can be resumed wherever the pipe was full. If the statement writes, the writer steps it.
 *
 *      OVER --begin--> READY ---slice: a page is out---> READY
 *        |              |  |            pipe full
 *        |              |  +---------------------------> PARKED --pipe drains--> READY    the engine holds its row and
 *        |              |  |       lock at the start                                      its transaction
 *        |              |  +---------------------------> RETRY --some ms later--> READY
 *        |              |  |       a server computes
 *        |              |  +---------------------------> AWAITING --it answers--> READY
 *        |              |  +--the statement writes-----> QUEUED --committed, or failed--> READY
 *        |              |        end, error, cancel, deadline, also while it waits: the engine is reset at once
 *        +--refuse------+------------------------------> ENDING --pipe full--> DRAINING --pipe drains--> ENDING
 *                                                         |                      |
 *                                                         +--end is written------+--the supervisor has the rest--> OVER
 *
 *      from \ to  READY  RETRY  AWAITING  PARKED  QUEUED  ENDING  DRAINING  OVER
 *      OVER         x                                       x                     the next job begins, or is refused
 *      READY               x       x        x       x       x                x    OVER: the supervisor's PREPARE, whose
 *      RETRY        x                                       x                           answer is a message
 *      AWAITING     x                                       x
 *      PARKED       x                                       x
 *      QUEUED       x                                       x
 *      ENDING                                                       x        x
 *      DRAINING                                             x                x
 *
 * 1. The engine steps only while nothing waits to be written: a row is encoded after the page before it is written.
 * 2. The owner hears once that the job has ended, when the engine is reset, and once that it is drained, before the last
 *    byte is written or together with the last bytes. It hears both at once if the pipe has room.
 * 3. A job always ends through job_end(), whatever the reason.
 * 4. A job that is QUEUED has no connection, and begins with an empty page. Its statement runs in a transaction of the
 *    writer (writer.h). If it ends before that is committed, it has written nothing. After that it ends without an error,
 *    or with OutcomeUnknown if its rows cannot be sent.
 * 5. A job with a list of statements (EXECUTE_BATCH) is QUEUED at once, because later ones may depend on earlier ones. The
 *    writer runs all of them as if they were one.
 * 6. A job of a client's transaction (transaction.h) is QUEUED there at first. One that writes runs the statement, as the
 *    writer does, whatever the statement is. One that reads lends the job its connection, and the job is READY. If it may
 *    begin to write, a job whose statement writes is QUEUED there once more.
 *
 * The job's owner (job-owner.h) writes its pages and reports its events.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_JOB_H
#define SQLIPC_DAEMON_WORKER_CORE_JOB_H

#include "daemon/protocol/protocol.h"
#include "daemon/worker/core/engine.h"
#include "daemon/worker/core/job-owner.h"
#include "daemon/worker/core/page-writer.h"
#include "daemon/worker/core/row-sink.h"
#include "daemon/worker/core/row-spool.h"
#include "daemon/worker/core/task.h"
#include "dbus-interfaces/wire/page-encoder.h"

typedef enum JobState {
        JOB_OVER,     /* no execution is under way */
        JOB_READY,    /* goes on at its next slice */
        JOB_RETRY,    /* met a lock; tries again at wait.retry_usec */
        JOB_AWAITING, /* the server of its connection has not answered */
        JOB_PARKED,   /* its page waits for room */
        JOB_QUEUED,   /* its statement writes; the writer runs it, and then commits it */
        JOB_ENDING,   /* the engine is reset; what is left to be written goes out at the next slice */
        JOB_DRAINING, /* the same, and that waits for room */
        _JOB_STATE_MAX,
} JobState;

/* How much of the end the owner knows. */
typedef enum JobTold {
        JOB_TOLD_NOTHING,
        JOB_TOLD_ENDED,
        JOB_TOLD_DRAINED,
} JobTold;

/* Runs the statements of jobs that write (writer.h), or those of a transaction (transaction.h). */
typedef struct JobWriter JobWriter;
struct JobWriter {
        bool (*add)(JobWriter *w, Job *job);    /* the job is about to be QUEUED. False with job->error; NULL: it was QUEUED
                                                 * before its first turn */
        void (*forget)(JobWriter *w, Job *job); /* a job that is QUEUED ends for another reason, perhaps inside the step of
                                                 * another job */
        bool (*is_taken)(const JobWriter *w, const Job *job); /* another transaction is known to be writing, for which the
                                         * QUEUED job waits; NULL: none can be */
        bool (*waits_for_readers)(const JobWriter *w); /* a job that runs alone has met their lock, and is tried again; NULL:
                                         * none can */
        void (*take_back)(JobWriter *w, Job *job); /* the connection that it has lent to the job; NULL: it lends none */
        uint64_t pin;                           /* the number of the pin that it lends; 0: it lends no pin */
        bool is_pin;                            /* it lends a pin to jobs outside of transactions, one after the other */
        bool upgrades;                          /* a statement that writes gives a lent connection back, and is added */
};

/* Commits of this worker (commit-notes.h). */
typedef struct CommitNotes {
        bool watched;            /* clients watch the database */
        uint64_t last;           /* the number of the last commit; 0: there was none */
        FileState begun;         /* the state of the file when the transaction under way began */
        bool any, schema;        /* there were commits that were not told; one of them may have changed the schema */
        FileState before, after; /* the first and after the last of these */
} CommitNotes;

/* State that all jobs of a worker share. Outlives them. */
typedef struct JobContext {
        const Setup *setup;
        const Engine *engine;
        EnginePool *pool;
        int control_fd;      /* borrowed; reports go there */
        int epoll_fd;        /* borrowed; the sockets of AWAITING jobs are in it, for one event */
        void *answer_event;  /* borrowed: the user data of that event */
        unsigned n_awaiting; /* jobs that are AWAITING */
        bool leaving;        /* EXIT or GIVE_WAY came: channels begin no more requests */
        uint64_t n_orders;   /* of change-numbers.h, that were read; channels begin no request while there are others */
        int report_error;    /* -errno: a report failed, so the supervisor would wait for it for ever; the worker must end */
        EnginePool *shared_pool; /* borrowed: of `shared` */
        EngineConnection *shared; /* owned: the connection of the last request of a round (channel-round.h), with its read
                              * transaction, for the next one; NULL: none */
        uint64_t shared_sequence; /* of `shared`: see Job */
        bool shares;         /* the round has requests of channels after the one that has its turn */
        uint8_t *spare_page; /* a page buffer of the default size that is kept for the next job; owned */
        JobWriter *writer;   /* borrowed; NULL: no statement writes */
        EngineProgress progress; /* the one that the engine has, for the moments between two statements of a job */
        void (*hear)(void *progress_data); /* reads the messages of the supervisor, which may end jobs */
        void *progress_data; /* borrowed; of both */
        uint64_t wait_until_usec; /* the engine begins or commits a transaction: when it must give up a wait for its server;
                              * 0: it does neither */
        bool commit_waits;   /* for readers, perhaps jobs of this worker */
        uint64_t n_commits;  /* that readers of other workers would not have delayed, because there is a WAL */
        size_t spooled;      /* bytes of all spools in memory */
        uint64_t spooled_files; /* bytes of all spools in files */
        CommitNotes notes;
} JobContext;

/* Frees what is kept for the next job. */
void job_context_trim(JobContext *context);

/* Ends the read transaction that requests share. */
void job_context_let_go(JobContext *context);

/* The times at which a job that waits goes on. */
typedef struct JobWait {
        uint64_t retry_usec, retry_pause_usec; /* RETRY: when, and how long after the last attempt. QUEUED, and runs alone:
                                    * the same; 0: it has met no lock */
        uint64_t busy_until_usec;  /* when the attempts end; 0: there was none */
        uint64_t lock_until_usec;  /* RETRY, QUEUED: until when its client lets it wait for a lock; 0: it has met none */
        uint64_t parked_usec, park_until_usec; /* PARKED: since when, and until when, once it has settled */
        uint64_t drain_until_usec; /* DRAINING: when the supervisor takes over; 0: not set */
        uint64_t lacking_usec, again_usec; /* since when the kernel has no memory for the pipe, 0: it has; next attempt */
        bool settled;              /* parked for long: memory is freed, and the owner knows. It holds until the page is
                                    * written, also while the job writes a part of it */
} JobWait;

/* A payload that is sent in parts, in frames with MORE: COLUMNS, STATEMENT, or a row that fits into no page. */
typedef struct JobPayload {
        uint8_t *bytes;            /* owned; of a row: the types and ends of its values, whose data follows */
        FrameKind kind;            /* unless it is a row */
        size_t size, done;         /* of `bytes`; of a row `done` goes on to row_size */
        bool is_row;
        size_t row_size;           /* of the whole row */
        unsigned column;           /* the column at `done` */
} JobPayload;

/* The part of a job whose statement writes. */
typedef struct JobWrite {
        bool writes;
        JobWriter *queue;          /* borrowed: the place of the job while it is QUEUED */
        bool is_over;              /* it is committed or kept in its transaction, or has failed, so the answer can go */
        bool begins, commits;      /* the engine does that with its transaction: it ends only after that */
        bool reads;                /* its statement, in a transaction that writes, does not */
        bool is_savepoint;         /* its statement is about a savepoint */
        bool only_temp;            /* its statement, on a pin, changes only TEMP tables */
        bool runs_alone;           /* its statement can be in no transaction */
        bool keeps_rows;           /* its statement has failed, and keeps the rows that it changed before */
        bool ends_batch;           /* its batch ends after it */
        bool gave_way;             /* it was interrupted for others, which happens once if it is alone in its batch */
        Job *next;                 /* in a list of the writer */
        uint64_t busy_until_usec;  /* until when other programs may keep it out; 0: none does */
        RowSpool spool;            /* rows that did not fit the page, and wait for the commit, then for their reader */
        uint8_t *changes;          /* borrowed: room for Ended.changes; NULL: the job has one statement, that of its spec */
} JobWrite;

struct Job {
        Task *task;               /* borrowed: the one that executes the job */
        const JobOwner *owner;    /* that of the object which contains the job */
        JobContext *context;
        EnginePool *pool;         /* borrowed: that of the context; of a guest, another one (guest-database.h) */
        const JobSpec *spec;      /* borrowed from the owner */
        EngineHint *hint;         /* borrowed; NULL: none */
        bool is_prepare;
        Bytes *watched;           /* borrowed: room for Ended.tables and .names, owned by the owner; NULL: it runs its SQL */
        bool refused;             /* the request is not run: its answer is an error */
        JobState state;
        JobTold told;             /* of the end */
        uint64_t taken_usec, deadline_usec; /* when it began, and when it must have ended; CLOCK_MONOTONIC */
        bool has_own_limit;       /* the deadline is the client's, and the supervisor does not know it */

        EngineConnection *connection; /* owned while the job uses it, unless it is lent */
        JobWriter *lender;        /* borrowed: whose connection that is; NULL: the job's */
        bool keeps;               /* when it ends, the next request gets its connection, by context->shared */
        EngineStatement *statement; /* owned while the job uses it; NULL: none */
        bool started;             /* owner->started() was called, or is not needed because the statement is known to write. A
                                   * job may meet a lock before that, and after */

        uint8_t *page;            /* owned; NULL: the answer is a message (PREPARE and EXECUTE of the supervisor) */
        PageEncoder encoder;
        PageWriter writer;
        RowSink sink;             /* for the engine, which puts rows into the page */
        bool rows_ended;          /* there are no more rows, but the page has not been sent yet */

        JobPayload payload;       /* under way, if it has bytes */
        struct Load *load;        /* borrowed from the owner: its statement runs for rows from a pipe (load.h); NULL: once */
        JobWrite write;

        ClientCounts counts_before, counts; /* of the client: before the job, and after it */

        uint64_t asked_usec, writer_usec; /* when it last checked for waiting writers; since when one waits, 0: none */
        JobWait wait;

        uint32_t change_slot;     /* of its database */
        uint64_t sequence;        /* of changes: those that it has not seen have larger numbers; 0: not known */
        EndCounters counters;
        SqlError error;           /* why the job ends; ERROR_NONE: it is complete */
        bool end_encoded;         /* END or ERROR is in the page */
};

/* True if a job may change from `from` to `to`, by the table above. */
bool job_state_may_follow(JobState from, JobState to);

/* Changes the state, which the table must allow. */
JobState job_set_state(Job *job, JobState state);

/* Initialises a job, which is OVER. It will write to `fd`. `task`, `owner`, `context` and `fd` are borrowed until
 * job_done(). `page_size` 0: it has no page, and its answer is a message. -ENOMEM. */
int job_init(Job *job, Task *task, const JobOwner *owner, JobContext *context, int fd, uint32_t page_size);

/* Releases what a job in any state owns. */
void job_done(Job *job);

/* Begins an execution. The last one must be over. `spec` and `hint` (NULL: none) must live as long as it runs. */
void job_begin(Job *job, const JobSpec *spec, bool is_prepare, EngineHint *hint);

/* Does the same for a request that is not run. Its answer is the error that the caller stores at the result. */
SqlError *job_refuse(Job *job, const JobSpec *spec);

/* The job runs on the connection from now on, with the counts of its client; and no more. `last`: a job of the same client
 * that has run before and whose counts are not stored yet; NULL: none. */
void job_enter(Job *job, EngineConnection *connection, const Job *last);
void job_leave(Job *job, EngineConnection *connection);

/* Must be called before the engine steps for the job: since its last step the worker may have stepped for clients in other
 * time zones. OutOfMemory. */
bool job_set_time_zone(Job *job);

/* The job has written, or has failed: from now on its client has its counts. */
void job_store_counts(const Job *job);

/* The name of the database that the last step on the connection, which was Busy, wants to attach (engine.h); NULL: it wants
 * none. The next function then asks the supervisor. */
const char *job_wanted_database(const Job *job, const EngineConnection *connection);
void job_ask_for_database(const Job *job, const EngineConnection *connection, uint64_t pin);

/* Takes the job back to before its first step: drops its rows. Nothing else may be in the page. */
void job_rewind(Job *job);

/* True if the statement of the job, which is compiled, writes. */
bool job_statement_writes(const Job *job);

/* True if the client keeps a setting that this statement tells: it sends some. A statement that is only prepared tells none;
 * its run does, which has the client's settings. */
bool job_keeps_settings(const Job *job);

/* True if it changes only TEMP tables. */
bool job_statement_only_temp(const Job *job);

/* True if it only reads, so that it may be repeated. */
bool job_statement_reads(const Job *job);

/* True if foreign keys hold for its changes. */
static inline bool job_enforces(const Job *job) {
        return engine_enforces(job->context->setup, job->spec->foreign_keys);
}

/* The engine that executes the job. */
static inline const Engine *job_engine(const Job *job) {
        return job->context->engine;
}

/* Gives statement and connection back to the engine, and ends the transaction. */
void job_give_back(Job *job);

/* Does the same, and drops a payload that is sent in parts, and rows that were kept for the commit. */
void job_release(Job *job);

/* The job will not pass its connection on. Its statement keeps the read transaction that it shared. */
void job_stop_sharing(Job *job);

/* How many bytes of this job have been written, are in the page, or wait in the spool. */
uint64_t job_bytes(const Job *job);

/* True if the engine is reset, and the end is not written yet. */
static inline bool job_is_ending(const Job *job) {
        return job->state == JOB_ENDING || job->state == JOB_DRAINING;
}

/* Tells the owner if `parked` has changed: the job has settled down to wait, or its page is written. */
void job_set_parked(Job *job, bool parked);

/* A lock is in the way of the job. Until when it waits for it by JobSpec.lock_wait_usec, which counts from the first such
 * call. */
uint64_t job_lock_until(Job *job, uint64_t now_usec);

/* Lets a job that waits for room, or for its server, continue at its next slice. */
void job_wake(Job *job);

#endif
