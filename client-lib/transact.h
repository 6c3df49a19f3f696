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
 *
 * A *pin* is a connection of SQLite in the service that belongs to this connection of the program, with its TEMP tables. The
 * program does not ask for it: if the service refuses a statement with NeedsPin, the library begins a pin, and sends the
 * statement again. From then on each run on the database that belongs to no transaction names the pin, as it would name a
 * transaction, and transactions are begun on it. So no run can meet another table of the same name if the TEMP tables are
 * gone: it fails with PinLost. The runs after it do without a pin as soon as a public function has returned that error
 * (connection_fail()); an error that the program has not seen changes nothing. A pin that has never been open has no TEMP
 * tables, so only the runs that have asked for it learn how it failed. The Begin of a pin waits until it is known if a
 * transaction on the database is open, and the other way round, because each must name the other. Live queries are about the
 * file, and name no pin. A pin has no reference to its connection, which keeps it until it is closed.
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
        bool is_pin;                   /* it is no transaction, but the connection's pin on the database: see above */
        uint64_t pin_id;               /* of a pin: its number among those of the connection; of a transaction: that of the
                                        * pin that its Begin has named, 0: none */
        bool may_have_written;         /* by a run that has ended, a batch or a load */
        bool commits;                  /* ENDING, OVER: the program wants or wanted it committed, not rolled back */
        bool refused;                  /* ENDING: the commit was refused with `error`, which the program does not know yet */
        bool rolled_back;              /* OVER: the commit failed, and the service has taken all back */
        bool told;                     /* OVER: the program knows how it ended, so later runs do not belong to it; or a pin
                                        * that was never open */
        bool closed;                   /* by the program */
        char *path;                    /* database object */
        char *owner;                   /* unique name of the instance that has it; NULL on a bus without names */
        uint64_t number;               /* the daemon's; 0: not known yet */
        uint64_t bus_generation;       /* of the bus on which it began: no other can name it */
        unsigned n_interrupts;         /* of the connection, when its last call was sent */
        Call *call;                    /* Begin, Commit or Rollback in progress; NULL, BEGINNING: Begin cannot be sent yet */
        sqlipc_transaction_callback on_ready; /* NULL: none */
        void *on_ready_userdata;
        Error error;                   /* OVER: result 0 if it ended as the program wanted */
};

/* A statement was refused with the connection's error. If it writes, and the user may be asked to authenticate, waits for
 * the answer. 0: the statement can be sent again. Otherwise the connection's error, which may be another one then. The
 * service asks the user only if a call is certainly about writing, such as Begin. */
int transact_ask_to_write(sqlipc_connection *c, const char *database);

/* The option by which a call names it; NULL: none. */
CallPlace transact_place(const sqlipc_transaction *t);

/* Returns a new reference on the transaction to which new runs on the database belong, or NULL. */
sqlipc_transaction *transact_ref_current(sqlipc_connection *connection, const char *path);

/* Returns a new reference on the pin for the database, which is begun if there is none. Negative, with an error. */
int transact_take_pin(sqlipc_connection *c, const char *path, sqlipc_transaction **ret, Error *e);

/* The pin for the database if it is open, borrowed. NULL: there is none. */
sqlipc_transaction *transact_pin_of(const sqlipc_connection *c, const char *path);

/* 1: there is an open pin for the database; 0: there is none; negative: it is lost, which `e` then says. */
int transact_check_pin(sqlipc_connection *c, const char *path, Error *e);

/* A call that named this pin failed with `e`, which becomes PIN_LOST if the pin is lost. 0: it named none. */
void transact_on_failure_of_pin(sqlipc_connection *c, uint64_t pin_id, Error *e);

/* Sends the Begin of those on the database that have waited for another. */
void transact_send_waiting(sqlipc_connection *c, const char *path);

sqlipc_transaction *transact_ref(sqlipc_transaction *t);

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

/* A run failed with `e`. If the service was lost, `e` becomes TRANSACTION_ENDED, unless the commit was sent; or PIN_LOST. */
void transact_on_failure(sqlipc_transaction *t, Error *e);

/* A run that may write was sent, and no answer to it will come, for the reason in `e`. The transaction is rolled back,
 * unless it only reads, so nothing of the run is ever committed, and the error stays. If the commit was sent before, `e`
 * becomes OUTCOME_UNKNOWN, and says which `fact` is unknown. */
void transact_on_no_answer(sqlipc_transaction *t, Error *e, const char *fact);

#endif
