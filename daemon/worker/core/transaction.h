/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. A transaction of a client, with the statements that it runs in it: jobs of the supervisor that name it.
 *
 *      WAITS --it has begun--> OPEN --COMMIT--> COMMITS --it is committed--> OVER
 *        |                      |                 |
 *        +---CANCEL, deadline---+---idle too long, rolled back, commit failed---> ENDS --its statement has ended--> OVER
 *
 * 1. A transaction that writes waits for its turn to write (writer.h), and keeps the lease until it ends. It runs each
 *    statement in a savepoint (write-batch.h) to its end, and the rows are kept in memory until then: a worker never parks
 *    while it holds the lease. No change is durable before the transaction is committed.
 * 2. A transaction that reads has a connection with one snapshot, which it lends to one job at a time. Rows go out as from
 *    any other job, so the next job waits until they are sent. Savepoints are made there like reads.
 * 3. A transaction that may begin to write (Begin.deferred) is one that reads, from its first statement that reads. The
 *    first statement that writes makes it one that writes, when it is its turn, if no program has committed since it began
 *    to read. Otherwise, and if it would have to wait for a transaction that waits for it, only that statement fails, with
 *    SQLITE_BUSY_SNAPSHOT or SQLITE_BUSY, as in SQLite. So what it has read is still true when it commits. The snapshot and
 *    the transaction that writes have different connections, so its savepoints are made on both.
 * 4. COMMIT is carried out after the statements that came before it. The end is reported by ENDED. Any failure of the
 *    transaction is TransactionEnded for its jobs.
 * 5. A load (load.h) is a statement that takes long: its rows come from a pipe. While it is under way, the statements after
 *    it wait. A load that belongs to no transaction gets one of its own, which waits until its first row is there, and only
 *    then for its turn to write. Its job reports the end of both.
 * 6. If others wait to write, a transaction that writes ends when it has been without a statement, or its load without
 *    rows, for Begin.idle_usec. In rollback mode a snapshot is in the way of writers of other programs, too. It ends after
 *    they have waited for ParkTimeoutRollbackSec=.
 * 7. Begin.lock_wait_usec counts from the time when another transaction is known to be in the way: one of this worker, one
 *    of a worker that keeps the lease for it (LEASE_TAKEN), or that of a foreign program. The way of messages and the start
 *    of workers do not count, so 0 means: at once, but only if the database is locked.
 * 8. A pin (docs/design/own-connection.md) is a transaction that lends its connection to jobs, and to one transaction at a
 *    time, its guest: that of a client, or one that was made for a job that writes. Others wait for it. It ends after all
 *    of these.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_TRANSACTION_H
#define SQLIPC_DAEMON_WORKER_CORE_TRANSACTION_H

#include "daemon/worker/core/writer.h"

typedef struct Transaction Transaction;

/* All transactions of the worker. */
typedef struct TransactionSet {
        JobContext *context;
        GroupWriter *writer;
        TaskQueue *tasks;
        Transaction *first;
        JobWriter loads;        /* gives a load a transaction of its own */
} TransactionSet;

/* Borrows all until transaction_set_done(). */
void transaction_set_init(TransactionSet *set, JobContext *context, GroupWriter *writer, TaskQueue *tasks);

/* Begins a transaction. -EROFS: it may not write; -ENOMEM; -ENOTCONN: its pin has ended; -EBUSY: that has a transaction. */
int transaction_begin(TransactionSet *set, const Begin *begin);

/* Puts a job that has just begun into its transaction, or on its pin. False: that has ended. */
bool transaction_add(TransactionSet *set, Job *job);

/* COMMIT; the transaction may have ended already. `keeps_open`: TRY_COMMIT, so it goes on if the engine refuses the commit,
 * and the answer is COMMIT_REFUSED. */
void transaction_commit(TransactionSet *set, uint64_t number, bool keeps_open);

/* ATTACH: the answer about a database that a statement on this pin attaches. The pin may have ended. */
void transaction_answer(TransactionSet *set, const Attach *answer);

/* CANCEL. It ends with this error, soon. False: no transaction has the number. */
bool transaction_cancel(TransactionSet *set, const Cancel *cancel);

/* True if it is the task of a transaction. */
bool transaction_has_task(const Task *task);

/* Rolls all back and frees them. They must have no jobs. */
void transaction_set_done(TransactionSet *set);

#endif
