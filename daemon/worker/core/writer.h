/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The queue of the jobs whose statements write, and the lease without which they do not
 * (docs/design/writing.md). The writer gets turns from the loop, in which it runs the jobs that wait in one transaction and
 * commits it (write-batch.h).
 *
 *      the lease:   NONE --a job waits: LEASE_WANTED--> WANTED --LEASE--> HELD --LEASE_ASKED--> ASKED
 *                    ^                                                                            |
 *                    +---nothing waits, or LEASE_TURN_USEC after LEASE: LEASE_RETURNED------------+
 *      In ASKED, LEASE_KEPT says that a transaction is open. In WANTED, LEASE_TAKEN says the same of another worker.
 *
 * 1. A job that ends for any reason while it is QUEUED has written nothing. If its statement ran already and the commit
 *    waits for a lock, the transaction is rolled back, and the other jobs run again.
 * 2. If a statement rolls back the transaction, those that ran before it run again, and are committed before others join
 *    them. So no statement runs more often than twice because of others. If a commit fails, its jobs run again, each in a
 *    transaction of its own, unless its outcome is unknown.
 * 3. A statement that takes long does not delay the commit of those that ran before it in a batch: it is interrupted, and
 *    runs again after them, alone.
 * 4. A transaction under way is only left open while its commit waits for readers. So the lease can be returned between any
 *    two turns except then.
 * 5. A transaction of a client (transaction.h) claims the writer. Claims and batches take turns. While a transaction has its
 *    claim, all jobs wait in the queue, and the lease is kept.
 * 6. If another program writes, a job waits for it for BusyTimeoutSec=. A pause for readers of a large log looks the same,
 *    and is shorter. A job waits for the lease and its turn until its own deadline. JobSpec.lock_wait_usec bounds all
 *    of this, from the time when another transaction is known to be in the way: that of a program, of a client of this
 *    worker (5), or of another worker (LEASE_TAKEN).
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_WRITER_H
#define SQLIPC_DAEMON_WORKER_CORE_WRITER_H

#include "daemon/worker/core/gathering.h"
#include "daemon/worker/core/task-queue.h"
#include "daemon/worker/core/write-batch.h"

#define WRITER_GATHER_USEC 1000u /* the writer waits for its turn at most so long while other tasks can go on */

typedef enum WriterLease {
        WRITER_LEASE_NONE,
        WRITER_LEASE_WANTED,
        WRITER_LEASE_HELD,
        WRITER_LEASE_ASKED, /* held, and another worker waits */
} WriterLease;

/* A place in the queue of the transactions that wait for the writer. */
typedef struct WriterClaim WriterClaim;
struct WriterClaim {
        WriterClaim *next;
        bool ends; /* its transaction is about to be rolled back, so it is in the way no more */
};

typedef struct GroupWriter {
        JobWriter jobs;             /* what jobs see of it */
        WriteBatch batch;
        JobList queue;
        WriterClaim *claims;        /* of transactions that wait, in order */
        const WriterClaim *claimed; /* by a transaction that is open; NULL: none is */
        bool begins;                /* the engine begins the transaction of the batch */
        bool batch_is_next;         /* a transaction has ended, so the queue goes before the next one */
        Gathering gathering;
        WriterLease lease;
        bool kept;                  /* since LEASE: LEASE_KEPT was sent */
        bool taken;                 /* WANTED: LEASE_TAKEN has come */
        uint64_t leased_usec;       /* when LEASE came */
        uint64_t since_usec;        /* since when the writer waits for its turn, if it can go on */
        uint64_t retry_usec;        /* begin or commit met a lock: the next attempt; 0: none did */
        uint64_t retry_pause_usec;
        uint64_t commit_until_usec; /* until when the commit is tried again; 0: not tried yet */
} GroupWriter;

/* Borrows both until writer_done(). The jobs of the context wait here from now on. */
void writer_init(GroupWriter *w, JobContext *context, TaskQueue *tasks);

/* Rolls back what is under way. No job may be left. */
void writer_done(GroupWriter *w);

/* Handle the messages of those names. -EBADMSG: the lease was not wanted. */
int writer_on_lease(GroupWriter *w, bool watched);
int writer_on_lease_taken(GroupWriter *w);
void writer_on_watch(GroupWriter *w, bool watched);
void writer_on_lease_asked(GroupWriter *w);

/* Puts a claim into the queue, which borrows it; takes it out, or ends it. */
void writer_claim(GroupWriter *w, WriterClaim *claim);
void writer_unclaim(GroupWriter *w, WriterClaim *claim);

/* True if the transaction that waits with this claim may begin now. writer_grant(): it has begun. */
bool writer_may_begin(const GroupWriter *w, const WriterClaim *claim);
void writer_grant(GroupWriter *w, WriterClaim *claim);

/* True if another transaction is known to be writing, which the one with this claim (NULL: none) must wait for. A batch that
 * is over with its turn does not count. */
bool writer_is_taken(const GroupWriter *w, const WriterClaim *claim);

/* True if the transaction of a client is writing. */
bool writer_has_transaction(const GroupWriter *w);

/* True if others wait to write: another worker, or another client of this one. */
bool writer_others_wait(const GroupWriter *w);

/* When the writer needs a turn, if nothing else happens; UINT64_MAX: never. */
uint64_t writer_next_usec(const GroupWriter *w);

/* Called from inside the step of any job: returns the lease if it is time and no transaction is under way. Otherwise a query
 * that computes for long would keep all other workers from writing. */
void writer_on_progress(GroupWriter *w, uint64_t now_usec);

/* Nothing but the writer's turn is left to do. True: jobs are expected in a moment, and the turn should wait for them. */
bool writer_gathers(GroupWriter *w, uint64_t now_usec);

/* A turn: a batch, another attempt to commit, or nothing. Returns the lease if it is time. */
void writer_turn(GroupWriter *w);

#endif
