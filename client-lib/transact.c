/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Transactions (transact.h). Library. */
#include <stdio.h>
#include <string.h>

#include "client-lib/call.h"
#include "client-lib/channel-link.h"
#include "client-lib/connection-bus.h"
#include "client-lib/connection.h"
#include "client-lib/error.h"
#include "client-lib/event-loop.h"
#include "client-lib/repeat.h"
#include "client-lib/transact-life.h"
#include "client-lib/transact.h"

/* ---- The end ------------------------------------------------------------------------------------------------------ */

/* A Begin that is given up ends; a Commit goes on. */
static void end(sqlipc_transaction *t) {
        t->told = t->told || (t->is_pin && t->state == TRANSACTION_BEGINNING);
        t->call = t->state == TRANSACTION_BEGINNING ? call_abandon(t->call) : call_free(t->call);
        transact_life_move(&t->state, TRANSACTION_OVER);
}

void transact_end(sqlipc_transaction *t) {
        end(t);
        transact_send_waiting(t->connection, t->path);
}

/* If the bus is gone, the service has rolled the transaction back, and knows no number of ours on another bus. */
static void notice_lost_bus(sqlipc_transaction *t) {
        sqlipc_connection *c = t->connection;

        if (t->state != TRANSACTION_OPEN || (t->bus_generation == c->bus_generation && connection_bus_is_open(c)))
                return;
        if (t->is_pin) {
                (void) error_set(&t->error, ERROR_PIN_LOST,
                                 "The connection to the bus was lost, and your TEMP tables with it.");
                t->error.lost_pin = t->pin_id;
        } else
                (void) error_set(&t->error, ERROR_TRANSACTION_ENDED,
                                 "The connection to the bus was lost, and the transaction with it.");
        transact_end(t);
}

/* The service need not answer. Once it knows the end, it takes no notice. */
static void send_rollback(sqlipc_transaction *t) {
        sqlipc_connection *c = t->connection;

        if (t->number == 0 || c->closed || t->bus_generation != c->bus_generation || connection_is_foreign(c))
                return;
        call_notify(c->bus, t->owner, t->path, "Rollback", t->number);
        event_loop_update(c);
}

/* Gives the transaction up, unless it has ended. A commit under way goes on. If it is refused, the service ends the
 * transaction because of the Rollback, also if that comes before. */
static void give_up(sqlipc_transaction *t) {
        bool may_be_open = t->state == TRANSACTION_OPEN || (t->state == TRANSACTION_ENDING && t->commits) ||
                           (t->state == TRANSACTION_OVER && t->error.result < 0);

        if (may_be_open)
                send_rollback(t);
        if (t->state != TRANSACTION_OVER)
                end(t);
}

/* ---- The beginning ------------------------------------------------------------------------------------------------ */

CallPlace transact_place(const sqlipc_transaction *t) {
        return t ? (CallPlace) { .option = t->is_pin ? "pin" : "transaction", .number = t->number } : (CallPlace) {};
}

static void undo_begin(sd_bus_message *reply, const char *path) {
        uint64_t number;

        if (sd_bus_message_read(reply, "t", &number) > 0)
                call_notify(sd_bus_message_get_bus(reply), sd_bus_message_get_sender(reply), path, "Rollback", number);
}

static int read_begin_reply(sqlipc_transaction *t, sd_bus_message *reply) {
        const char *sender = sd_bus_message_get_sender(reply);

        if (sender) {
                t->owner = strdup(sender);
                if (!t->owner)
                        return -ENOMEM;
        }
        return sd_bus_message_read(reply, "t", &t->number);
}

static void on_begin_reply(sd_bus_message *reply, void *userdata) {
        sqlipc_transaction *t = userdata;
        int r;

        t->call = call_free(t->call);
        if (sd_bus_message_get_error(reply)) {
                (void) error_set_reply(&t->error, reply);
                if (!t->is_pin)
                        transact_on_failure_of_pin(t->connection, t->pin_id, &t->error);
                transact_end(t);
                return;
        }
        r = read_begin_reply(t, reply);
        if (r >= 0) {
                transact_life_move(&t->state, TRANSACTION_OPEN);
                transact_send_waiting(t->connection, t->path);
                return;
        }
        (void) error_set_errno(&t->error, r, NULL);
        transact_end(t);
        (void) sd_bus_message_rewind(reply, true);
        undo_begin(reply, t->path);
}

static const char *mode_name(sqlipc_transaction_mode mode) {
        switch (mode) {
        case SQLIPC_TRANSACTION_READ:
                return "read";
        case SQLIPC_TRANSACTION_WRITE:
                return "write";
        case SQLIPC_TRANSACTION_DEFERRED:
                return "deferred";
        }
        return NULL;
}

static sqlipc_transaction *find(const sqlipc_connection *c, const char *path, bool is_pin) {
        Member *member;

        TAILQ_FOREACH(member, &c->transactions, link) {
                sqlipc_transaction *t = (sqlipc_transaction *) member;

                if (!t->told && t->is_pin == is_pin && strcmp(t->path, path) == 0)
                        return t;
        }
        return NULL;
}

/* True if the service has it open, as far as is known. */
static bool is_open(const sqlipc_transaction *t) {
        return t->state == TRANSACTION_OPEN || (t->state == TRANSACTION_ENDING && t->refused);
}

/* Its Begin must name this one: the pin for a transaction, and the transaction for a pin, which then goes on there. */
static sqlipc_transaction *find_other(const sqlipc_transaction *t) {
        sqlipc_transaction *other = find(t->connection, t->path, !t->is_pin);

        return other && is_open(other) ? other : NULL;
}

/* True if it is known which one that is. */
static bool may_send_begin(const sqlipc_transaction *t) {
        const sqlipc_transaction *other = find(t->connection, t->path, !t->is_pin);

        return !other || other->state == TRANSACTION_OVER || is_open(other);
}

static int append_options(const sqlipc_transaction *t, sd_bus_message *m) {
        uint64_t lock_wait_usec = t->connection->lock_wait_usec;
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}{sv}", "mode", "s", t->is_pin ? "pin" : mode_name(t->mode),
                                          "error-details", "b", 1);
        if (r >= 0)
                r = call_append_place(m, transact_place(find_other(t)));
        if (r >= 0 && lock_wait_usec != UINT64_MAX)
                r = sd_bus_message_append(m, "{sv}", "lock-wait-usec", "t", lock_wait_usec);
        if (r >= 0)
                r = call_append_foreign_keys(m, channel_link_foreign_keys(t->connection, t->path));
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int try_to_send_begin(sqlipc_transaction *t) {
        _cleanup_message_ sd_bus_message *m = NULL;
        sqlipc_connection *c = t->connection;
        int r = connection_bus_ensure(c);

        if (r >= 0)
                r = connection_bus_new_call(c, &m, NULL, t->path, "Begin");
        if (r >= 0)
                r = append_options(t, m);
        if (r >= 0)
                r = call_new(&t->call, c, m, on_begin_reply, undo_begin, t, UINT64_MAX);
        t->bus_generation = c->bus_generation;
        return r;
}

/* Sends Begin, or lets it wait. */
static int send_begin(sqlipc_transaction *t) {
        const sqlipc_transaction *other;
        int r;

        if (!may_send_begin(t))
                return 0;
        other = find_other(t);
        if (!t->is_pin)
                t->pin_id = other ? other->pin_id : 0;
        r = try_to_send_begin(t);
        return connection_bus_may_send_again(t->connection, r) ? try_to_send_begin(t) : r;
}

void transact_send_waiting(sqlipc_connection *c, const char *path) {
        Member *member;

        if (c->closed)
                return;
        TAILQ_FOREACH(member, &c->transactions, link) {
                sqlipc_transaction *t = (sqlipc_transaction *) member;
                int r;

                if (t->state != TRANSACTION_BEGINNING || t->call || strcmp(t->path, path) != 0)
                        continue;
                r = send_begin(t);
                if (r >= 0)
                        continue;
                (void) error_set_send(&t->error, r);
                transact_end(t);
        }
}

static void notice_interrupt(sqlipc_transaction *t) {
        if (t->is_pin || t->state != TRANSACTION_BEGINNING || t->n_interrupts == connection_interrupts(t->connection))
                return; /* of a pin, the runs that wait for it are interrupted */
        (void) error_set(&t->error, ERROR_CANCELLED, "The transaction was interrupted before it had begun.");
        transact_end(t);
}

void transact_look(sqlipc_transaction *t) {
        notice_lost_bus(t);
        notice_interrupt(t);
}

/* ---- Runs --------------------------------------------------------------------------------------------------------- */

sqlipc_transaction *transact_ref(sqlipc_transaction *t) {
        t->n_ref++;
        return t;
}

sqlipc_transaction *transact_ref_current(sqlipc_connection *c, const char *path) {
        sqlipc_transaction *t = find(c, path, false);

        if (t)
                return transact_ref(t);
        t = find(c, path, true);
        return t && t->state != TRANSACTION_BEGINNING ? transact_ref(t) : NULL; /* before that it has no TEMP tables */
}

sqlipc_transaction *transact_unref(sqlipc_transaction *t) {
        sqlipc_connection *c;

        if (!t || --t->n_ref > 0)
                return NULL;
        c = t->is_pin ? NULL : t->connection;
        t->call = call_free(t->call);
        free(t->path);
        free(t->owner);
        free(t);
        if (c)
                (void) sqlipc_connection_unref(c);
        return NULL;
}

int transact_check(sqlipc_transaction *t, Error *e) {
        transact_look(t);
        switch (t->state) {
        case TRANSACTION_BEGINNING:
                return 0;
        case TRANSACTION_OPEN:
                return 1;
        case TRANSACTION_ENDING:
                return error_set(e, ERROR_TRANSACTION_ENDED, "The transaction is about to end: wait until it is %s.",
                                 t->commits ? "committed" : "rolled back");
        case TRANSACTION_OVER:
        case TRANSACTION_STATE_MAX:
                break;
        }
        if (t->closed || t->error.result == 0)
                return error_set(e, ERROR_TRANSACTION_ENDED, "The program has ended the transaction.");
        *e = t->error;
        return e->result;
}

bool transact_is_at(const sqlipc_transaction *t, const char *owner) {
        return t->owner && owner ? strcmp(t->owner, owner) == 0 : t->owner == owner;
}

/* True if it can write, and its commit was sent, and is not known to have failed. */
static bool may_be_committed(const sqlipc_transaction *t) {
        return t->commits && !t->refused && !t->rolled_back && t->mode != SQLIPC_TRANSACTION_READ;
}

static void on_failure_of_pin(sqlipc_transaction *t, Error *e) {
        if (t->number == 0) /* it has never been open */
                return;
        if (e->number == ERROR_DAEMON_LOST)
                (void) error_set(e, ERROR_PIN_LOST, "The service was lost, and your TEMP tables with it.");
        if (e->number != ERROR_PIN_LOST)
                return;
        e->lost_pin = t->pin_id;
        if (t->state != TRANSACTION_OPEN)
                return;
        t->error = *e;
        transact_end(t);
}

void transact_on_failure(sqlipc_transaction *t, Error *e) {
        if (t->is_pin) {
                on_failure_of_pin(t, e);
                return;
        }
        if (e->number == ERROR_DAEMON_LOST && !may_be_committed(t))
                (void) error_set(e, ERROR_TRANSACTION_ENDED, "The service was lost, and the transaction with it.");
        if (e->number != ERROR_TRANSACTION_ENDED || t->state != TRANSACTION_OPEN)
                return;
        t->error = *e;
        transact_end(t);
}

void transact_on_no_answer(sqlipc_transaction *t, Error *e, const char *fact) {
        size_t n;

        if (t->is_pin || may_be_committed(t)) { /* a statement of a pin is committed by itself */
                repeat_set_unknown(e, fact);
                return;
        }
        transact_on_failure(t, e);
        if (t->state != TRANSACTION_OPEN || t->mode == SQLIPC_TRANSACTION_READ)
                return;
        n = strlen(e->message);
        (void) snprintf(e->message + n, sizeof e->message - n, "%sThe transaction is rolled back.", n > 0 ? " " : "");
        (void) error_set(&t->error, ERROR_TRANSACTION_ENDED,
                         "The transaction was rolled back, because one of its statements ended without an answer.");
        send_rollback(t);
        transact_end(t);
}

/* ---- As a member of the connection -------------------------------------------------------------------------------- */

static void on_connection_closed(Member *member) {
        sqlipc_transaction *t = (sqlipc_transaction *) member;

        give_up(t);
        (void) error_set_errno(&t->error, -ENOTCONN, "The connection was closed.");
}

static const void *descriptor_owner(const Member *member) {
        (void) member;
        return NULL;
}

static bool call_back(Member *member) {
        sqlipc_transaction *t = (sqlipc_transaction *) member;

        if (!t->on_ready)
                return false;
        t->on_ready(t, t->on_ready_userdata); /* may free it */
        return true;
}

/* Of a connection that is being freed, and has nothing else. */
static void free_pin(Member *member) {
        sqlipc_transaction *t = (sqlipc_transaction *) member;

        TAILQ_REMOVE(&t->connection->transactions, member, link);
        (void) transact_unref(t);
}

static void tell_loss(Member *member, uint64_t pin_id) {
        sqlipc_transaction *t = (sqlipc_transaction *) member;

        t->told = t->told || (t->is_pin && t->pin_id == pin_id);
}

static const MemberOperations member_operations = {
        .free = free_pin,
        .tell_loss = tell_loss,
        .close = on_connection_closed,
        .descriptor_owner = descriptor_owner,
        .call_back = call_back,
};

/* ---- What programs call ------------------------------------------------------------------------------------------- */

/* Takes `path`, also on failure. */
static int transaction_new(sqlipc_transaction **ret, sqlipc_connection *c, char *path,
                           sqlipc_transaction_mode mode) {
        sqlipc_transaction *t = malloc(sizeof *t);

        if (!t) {
                free(path);
                return -ENOMEM;
        }
        *t = (sqlipc_transaction) { .member.operations = &member_operations, .n_ref = 1,
                                    .connection = c, .mode = mode, .path = path,
                                    .n_interrupts = connection_interrupts(c), .error = { .sql_offset = -1 } };
        TAILQ_INSERT_TAIL(&c->transactions, &t->member, link);
        *ret = t;
        return 0;
}

static int check_begin(sqlipc_connection *c, const char *database, sqlipc_transaction_mode mode) {
        int r = connection_check(c);

        if (r < 0)
                return r;
        if (!database || !mode_name(mode))
                return connection_fail_errno(c, -EINVAL);
        if (c->blocking && c->dispatching) /* a handler cannot wait for the answer, so nothing may be sent */
                return connection_fail_errno(c, -EBUSY);
        return 0;
}

static int wait_open(sqlipc_transaction *t) {
        uint64_t deadline = connection_answer_deadline(t->connection);
        int r;

        for (;;) {
                transact_look(t);
                if (t->state != TRANSACTION_BEGINNING)
                        break;
                r = connection_wait(t->connection, CONNECTION_NO_DATA, &deadline);
                if (r < 0)
                        return connection_fail_wait(t->connection, r);
        }
        return t->state == TRANSACTION_OVER ? connection_fail(t->connection, &t->error) : 0;
}

static int begin(sqlipc_connection *connection, const char *database, sqlipc_transaction_mode mode, bool waits,
                 sqlipc_transaction **ret_transaction) {
        _cleanup_(sqlipc_transaction_closep) sqlipc_transaction *t = NULL;
        char *path;
        Error e;
        int r;

        r = call_database_path(database, &path);
        if (r < 0)
                return connection_fail_errno(connection, r);
        if (find(connection, path, false)) {
                free(path);
                return error_set_errno(&connection->error, -EBUSY,
                                       "This connection has a transaction on the database already.");
        }
        if (transact_check_pin(connection, path, &e) < 0) {
                free(path);
                return connection_fail(connection, &e);
        }
        r = transaction_new(&t, connection, path, mode);
        if (r < 0)
                return connection_fail_errno(connection, r);
        (void) sqlipc_connection_ref(connection);
        r = send_begin(t);
        if (r < 0)
                return connection_fail_send(connection, r);
        if (waits) {
                r = wait_open(t);
                if (r < 0)
                        return r;
        }
        *ret_transaction = steal(t);
        return 0;
}

/* ---- Pins --------------------------------------------------------------------------------------------------------- */

/* Frees those whose end the program knows. */
static void drop_pins(sqlipc_connection *c) {
        Member *member = TAILQ_FIRST(&c->transactions), *next;

        for (; member; member = next) {
                sqlipc_transaction *t = (sqlipc_transaction *) member;

                next = TAILQ_NEXT(member, link);
                if (t->is_pin && t->told && t->n_ref == 1)
                        free_pin(member);
        }
}

static int begin_pin(sqlipc_connection *c, const char *path, sqlipc_transaction **ret) {
        char *copy = strdup(path);
        int r;

        drop_pins(c);
        r = copy ? transaction_new(ret, c, copy, SQLIPC_TRANSACTION_DEFERRED) : -ENOMEM;
        if (r < 0)
                return r;
        (*ret)->is_pin = true;
        (*ret)->pin_id = ++c->n_pins;
        r = send_begin(*ret);
        if (r < 0)
                free_pin(&(*ret)->member);
        return r;
}

int transact_take_pin(sqlipc_connection *c, const char *path, sqlipc_transaction **ret, Error *e) {
        sqlipc_transaction *t = find(c, path, true);
        int r = t ? 0 : begin_pin(c, path, &t);

        if (r < 0)
                return error_set_send(e, r);
        *ret = transact_ref(t);
        return 0;
}

sqlipc_transaction *transact_pin_of(const sqlipc_connection *c, const char *path) {
        sqlipc_transaction *t = find(c, path, true);

        return t && t->state == TRANSACTION_OPEN ? t : NULL;
}

int transact_check_pin(sqlipc_connection *c, const char *path, Error *e) {
        sqlipc_transaction *t = find(c, path, true);

        return t ? transact_check(t, e) : 0;
}

static sqlipc_transaction *find_pin(const sqlipc_connection *c, uint64_t pin_id) {
        Member *member;

        TAILQ_FOREACH(member, &c->transactions, link) {
                sqlipc_transaction *t = (sqlipc_transaction *) member;

                if (t->is_pin && t->pin_id == pin_id)
                        return t;
        }
        return NULL;
}

void transact_on_failure_of_pin(sqlipc_connection *c, uint64_t pin_id, Error *e) {
        sqlipc_transaction *t = find_pin(c, pin_id);

        if (t)
                on_failure_of_pin(t, e);
}

_public_ int sqlipc_begin(sqlipc_connection *connection, const char *database, sqlipc_transaction_mode mode,
                          sqlipc_transaction **ret_transaction) {
        int r;

        if (!ret_transaction)
                return connection_fail_errno(connection, -EINVAL);
        r = check_begin(connection, database, mode);
        return r < 0 ? r : begin(connection, database, mode, connection->blocking, ret_transaction);
}

/* True if a statement may have been refused only because its user was not asked. */
static bool may_ask_user(sqlipc_connection *c, const char *database) {
        _cleanup_free_ char *path = NULL;

        return c->error.number == ERROR_READ_ONLY && c->allow_interactive_authorization && !c->dispatching &&
               call_database_path(database, &path) >= 0 && !find(c, path, false);
}

/* Begins the transaction about which the user is asked. A service that does not know the limit for locks has refused only
 * that, and the limit is not about this transaction, but about those of the program. */
static int begin_to_ask(sqlipc_connection *c, const char *database, sqlipc_transaction **ret_transaction) {
        uint64_t limit = c->lock_wait_usec;
        int r = begin(c, database, SQLIPC_TRANSACTION_WRITE, true, ret_transaction);

        if (r >= 0 || c->error.number != ERROR_UNKNOWN_OPTION || limit == UINT64_MAX)
                return r;
        c->lock_wait_usec = UINT64_MAX;
        r = begin(c, database, SQLIPC_TRANSACTION_WRITE, true, ret_transaction);
        c->lock_wait_usec = limit;
        return r;
}

int transact_ask_to_write(sqlipc_connection *c, const char *database) {
        _cleanup_(sqlipc_transaction_closep) sqlipc_transaction *t = NULL;
        const Error before = c->error;
        int r;

        if (!may_ask_user(c, database))
                return c->error.result;
        r = begin_to_ask(c, database, &t);
        if (r == -EOPNOTSUPP || (r < 0 && c->error.number == ERROR_READ_ONLY)) /* there was nothing to ask */
                c->error = before;
        return r < 0 ? c->error.result : 0;
}

_public_ int sqlipc_transaction_is_open(sqlipc_transaction *t) {
        Error e;
        int r;

        if (!t)
                return -EINVAL;
        r = connection_check(t->connection);
        if (r < 0)
                return r;
        r = transact_check(t, &e);
        if (r == 0)
                t->member.wait = MEMBER_WAITS;
        return r < 0 ? connection_fail(t->connection, &e) : r;
}

_public_ int sqlipc_transaction_set_ready_callback(sqlipc_transaction *transaction, sqlipc_transaction_callback callback,
                                                   void *userdata) {
        if (!transaction)
                return -EINVAL;
        transaction->on_ready = callback;
        transaction->on_ready_userdata = userdata;
        return 0;
}

_public_ sqlipc_transaction *sqlipc_transaction_close(sqlipc_transaction *t) {
        if (!t)
                return NULL;
        give_up(t);
        t->closed = true;
        TAILQ_REMOVE(&t->connection->transactions, &t->member, link);
        transact_send_waiting(t->connection, t->path);
        return transact_unref(t);
}

_public_ void sqlipc_transaction_closep(sqlipc_transaction **transaction) {
        (void) sqlipc_transaction_close(*transaction);
}
