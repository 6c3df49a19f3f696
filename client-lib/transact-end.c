/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Commit and Rollback (transact.h). Library. */
#include <stdio.h>

#include "client-lib/call.h"
#include "client-lib/connection-bus.h"
#include "client-lib/connection.h"
#include "client-lib/cursor.h"
#include "client-lib/error.h"
#include "client-lib/repeat.h"
#include "client-lib/transact-life.h"
#include "client-lib/transact.h"

static void set_outcome_unknown(Error *e) {
        repeat_set_unknown(e, "the transaction was committed");
}

/* The errors after which nothing of a transaction is left to be rolled back. */
static bool is_rolled_back(const Error *e) {
        switch (e->number) {
        case ERROR_TRANSACTION_ENDED:
        case ERROR_WORKER_LOST:
        case ERROR_DAEMON_LOST:
        case ERROR_SHUTTING_DOWN:
        case ERROR_CANCELLED:
                return true;
        default:
                return false;
        }
}

/* True if it has a run that may write. */
static bool has_run_that_may_write(const sqlipc_transaction *t) {
        const Member *member;

        TAILQ_FOREACH(member, &t->connection->cursors, link) {
                const sqlipc_cursor *c = (const sqlipc_cursor *) member;

                if (c->transaction == t && cursor_may_write(c))
                        return true;
        }
        return false;
}

/* True if it can be unknown what the commit has written. */
static bool may_have_written(const sqlipc_transaction *t) {
        switch (t->mode) {
        case SQLIPC_TRANSACTION_READ:
                return false;
        case SQLIPC_TRANSACTION_WRITE:
                return true;
        case SQLIPC_TRANSACTION_DEFERRED:
                break;
        }
        return t->may_have_written || has_run_that_may_write(t);
}

/* True if the error is the transaction's own, which has details. A refusal of the call has none, and may leave it open. */
static bool tells_outcome(sd_bus_message *reply) {
        return sd_bus_message_has_signature(reply, "sii") > 0;
}

/* Sets the outcome of a call that the service did not carry out, from its error reply. */
static void set_failure(sqlipc_transaction *t, sd_bus_message *reply) {
        Error *e = &t->error;
        Fate fate;

        (void) error_set_reply(e, reply);
        t->refused = t->commits && e->number == ERROR_COMMIT_REFUSED;
        if (t->refused)
                return;
        fate = repeat_fate_of_reply(reply, e);
        if (!t->commits && is_rolled_back(e)) {
                e->result = 0;
        } else if (t->commits && may_have_written(t) && fate == FATE_UNKNOWN) {
                (void) snprintf(e->message, sizeof e->message, "The service was lost before it answered.");
                set_outcome_unknown(e);
        } else if (e->number == ERROR_DAEMON_LOST)
                (void) error_set(e, ERROR_TRANSACTION_ENDED, "The service was lost, and the transaction with it.");
        t->rolled_back = t->commits && e->number != ERROR_OUTCOME_UNKNOWN && tells_outcome(reply);
}

static void on_end_reply(sd_bus_message *reply, void *userdata) {
        sqlipc_transaction *t = userdata;

        t->call = call_free(t->call);
        if (sd_bus_message_get_error(reply))
                set_failure(t, reply);
        if (!t->refused)
                transact_end(t);
        else
                transact_send_waiting(t->connection, t->path);
}

static int send_end(sqlipc_transaction *t, bool commits) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r;

        r = connection_bus_new_call(t->connection, &m, t->owner, t->path, commits ? "Commit" : "Rollback");
        if (r >= 0)
                r = sd_bus_message_append(m, "ta{sv}", t->number, 2, "error-details", "b", 1, "x-keeps-open", "b", commits);
        if (r >= 0)
                r = call_new(&t->call, t->connection, m, on_end_reply, NULL, t, UINT64_MAX);
        if (r < 0)
                return r;
        t->commits = commits;
        t->n_interrupts = connection_interrupts(t->connection);
        transact_life_move(&t->state, TRANSACTION_ENDING);
        return 0;
}

/* ---- What programs call ------------------------------------------------------------------------------------------- */

/* The answer of a transaction that is over. */
static int outcome(sqlipc_transaction *t, bool commits) {
        Error e = t->error;

        t->told = true;
        if (e.result == 0 && t->commits != commits)
                (void) error_set(&e, ERROR_TRANSACTION_ENDED, "The transaction was %s before.",
                                 t->commits ? "committed" : "rolled back");
        else if (!commits && (t->rolled_back || is_rolled_back(&e)))
                return 0;
        return e.result < 0 ? connection_fail(t->connection, &e) : 0;
}

/* Goes on as far as possible without waiting. */
static int advance_end(sqlipc_transaction *t, bool commits) {
        int r;

        transact_look(t);
        if (t->refused) {
                const Error e = t->error;

                t->refused = t->commits = false;
                transact_life_move(&t->state, TRANSACTION_OPEN);
                t->error = (Error) { .sql_offset = -1 };
                transact_look(t); /* it may have been lost since */
                if (commits && t->state == TRANSACTION_OPEN)
                        return connection_fail(t->connection, &e);
        }
        if (t->state == TRANSACTION_OPEN) {
                r = send_end(t, commits);
                if (r < 0) {
                        r = connection_fail_send(t->connection, r);
                        transact_on_failure(t, &t->connection->error);
                        if (t->state == TRANSACTION_OPEN)
                                return r;
                }
        }
        if (t->state == TRANSACTION_OVER)
                return outcome(t, commits);
        if (t->state == TRANSACTION_ENDING && t->commits != commits)
                return error_set_errno(&t->connection->error, -EBUSY, "The transaction is being %s.",
                                       t->commits ? "committed" : "rolled back");
        return -EAGAIN;
}

/* The program waits no longer. The details are those of the connection. */
static int fail_wait(sqlipc_transaction *t) {
        Error *e = &t->connection->error;

        if (t->state == TRANSACTION_ENDING && t->commits && may_have_written(t))
                set_outcome_unknown(e);
        return e->result;
}

static int fail_interrupted(sqlipc_transaction *t) {
        t->n_interrupts = connection_interrupts(t->connection); /* another call waits again */
        (void) error_set(&t->connection->error, ERROR_CANCELLED, "The wait was interrupted.");
        return fail_wait(t);
}

/* An interruption ends the wait, also one that came before it, since the call was sent. */
static int wait_end(sqlipc_transaction *t, bool commits) {
        sqlipc_connection *c = t->connection;
        unsigned n_interrupts = t->state == TRANSACTION_ENDING ? t->n_interrupts : connection_interrupts(c);
        uint64_t deadline = 0;
        int r;

        for (;;) {
                r = advance_end(t, commits);
                if (r != -EAGAIN)
                        return r;
                if (n_interrupts != connection_interrupts(c))
                        return fail_interrupted(t);
                r = connection_wait(c, CONNECTION_NO_DATA, &deadline);
                if (r < 0) {
                        (void) connection_fail_wait(c, r);
                        return fail_wait(t);
                }
        }
}

static int end_by_program(sqlipc_transaction *t, bool commits) {
        sqlipc_connection *c;
        int r;

        if (!t)
                return -EINVAL;
        c = t->connection;
        r = connection_check(c);
        if (r < 0)
                return r;
        if (c->blocking && c->dispatching && t->state != TRANSACTION_OVER)
                return connection_fail_errno(c, -EBUSY);
        if (c->blocking)
                return wait_end(t, commits);
        r = advance_end(t, commits);
        if (r == -EAGAIN && t->state == TRANSACTION_ENDING && t->n_interrupts != connection_interrupts(c))
                return fail_interrupted(t);
        if (r == -EAGAIN)
                t->member.wait = MEMBER_WAITS;
        return r;
}

_public_ int sqlipc_commit(sqlipc_transaction *transaction) {
        return end_by_program(transaction, true);
}

_public_ int sqlipc_rollback(sqlipc_transaction *transaction) {
        return end_by_program(transaction, false);
}
