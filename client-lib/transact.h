/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A transaction of the program on one database, and the runs that belong to it. Library.
 *
 * A connection has at most one for each database. Each run that begins meanwhile belongs to it, and names it in its request,
 * which goes over the bus to the instance of the service that has the transaction; requests on a channel cannot name one.
 * This holds until the program knows how the transaction ended: a statement must never run on its own because the
 * transaction that the program meant is gone.
 *
 * A request that belongs to a transaction is never sent again, unless the service did not know the statement. If the service
 * or its worker is lost, nothing of the transaction was written, so only Commit can have an unknown outcome: not if the
 * transaction cannot write, or is deferred and has only read. If no answer comes to a run that may write, the library rolls
 * the transaction back: otherwise a later Commit could write what the program was told is not written. A load whose result
 * is still to come does not end the transaction, because the program can ask for the result again; until then its outcome
 * is unknown.
 */
#ifndef SQLIPC_CLIENT_LIB_TRANSACT_H
#define SQLIPC_CLIENT_LIB_TRANSACT_H

#include "client-lib/call.h"
#include "client-lib/connection.h"
#include "client-lib/transact-life.h"

struct sqlipc_transaction {
        Member member;
        unsigned n_ref;                /* the program's, and one for each run of it */
        sqlipc_connection *connection; /* a reference */
        TransactionState state;
        sqlipc_transaction_mode mode;
        bool may_have_written;         /* by a run that has ended, a batch or a load */
        bool commits;                  /* ENDING, OVER: the program wants or wanted it committed, not rolled back */
        bool refused;                  /* ENDING: the commit was refused with `error`, which the program does not know yet */
        bool rolled_back;              /* OVER: the commit failed, and the service has taken all back */
        bool told;                     /* OVER: the program knows how it ended, so later runs do not belong to it */
        bool closed;                   /* by the program */
        char *path;                    /* database object */
        char *owner;                   /* unique name of the instance that has it; NULL on a bus without names */
        uint64_t number;               /* the daemon's; 0: not known yet */
        uint64_t bus_generation;       /* of the bus on which it began: no other can name it */
        unsigned n_interrupts;         /* of the connection, when its last call was sent */
        Call *call;                    /* Begin, Commit or Rollback in progress */
        sqlipc_transaction_callback on_ready; /* NULL: none */
        void *on_ready_userdata;
        Error error;                   /* OVER: result 0 if it ended as the program wanted */
};

/* A statement was refused with the connection's error. If it writes, and the user may be asked to authenticate, waits for
 * the answer. 0: the statement can be sent again. Otherwise the connection's error, which may be another one then. The
 * service asks the user only if a call is certainly about writing, such as Begin. */
int transact_ask_to_write(sqlipc_connection *c, const char *database);

/* Returns a new reference on the transaction to which new runs on the database belong, or NULL. */
sqlipc_transaction *transact_ref_current(sqlipc_connection *connection, const char *path);

/* Accepts NULL. Returns NULL. */
sqlipc_transaction *transact_unref(sqlipc_transaction *t);

/* Finds out if it is over, because its bus was lost, or the connection was interrupted before it had begun. */
void transact_look(sqlipc_transaction *t);

/* Ends it, with the `error` that was set. */
void transact_end(sqlipc_transaction *t);

/* Checks if a run can be sent. 1; 0: not yet; negative: the transaction ended, or is about to, which `e` then says. */
int transact_check(sqlipc_transaction *t, Error *e);

/* True if the instance with this unique name has it. */
bool transact_is_at(const sqlipc_transaction *t, const char *owner);

/* A run failed with `e`. If the service was lost, `e` becomes TRANSACTION_ENDED, unless the commit was sent. */
void transact_on_failure(sqlipc_transaction *t, Error *e);

/* A run that may write was sent, and no answer to it will come, for the reason in `e`. The transaction is rolled back,
 * unless it only reads, so nothing of the run is ever committed, and the error stays. If the commit was sent before, `e`
 * becomes OUTCOME_UNKNOWN, and says which `fact` is unknown. */
void transact_on_no_answer(sqlipc_transaction *t, Error *e, const char *fact);

#endif
