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
void transact_end(sqlipc_transaction *t) {
        t->call = t->state == TRANSACTION_BEGINNING ? call_abandon(t->call) : call_free(t->call);
        transact_life_move(&t->state, TRANSACTION_OVER);
}

/* If the bus is gone, the service has rolled the transaction back, and knows no number of ours on another bus. */
static void notice_lost_bus(sqlipc_transaction *t) {
        sqlipc_connection *c = t->connection;

        if (t->state != TRANSACTION_OPEN || (t->bus_generation == c->bus_generation && connection_bus_is_open(c)))
                return;
        if (t->is_pin)
                (void) error_set(&t->error, ERROR_PIN_LOST,
                                 "The connection to the bus was lost, and your TEMP tables with it.");
        else
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
                transact_end(t);
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
        t->inside = transact_unref(t->inside);
        if (sd_bus_message_get_error(reply)) {
                (void) error_set_reply(&t->error, reply);
                transact_note_lost_pin(t->connection, t->path, &t->error);
                transact_end(t);
                return;
        }
        r = read_begin_reply(t, reply);
        if (r >= 0) {
                transact_life_move(&t->state, TRANSACTION_OPEN);
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

static int append_options(const sqlipc_transaction *t, sd_bus_message *m) {
        uint64_t lock_wait_usec = t->connection->lock_wait_usec;
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}{sv}", "mode", "s", t->is_pin ? "pin" : mode_name(t->mode),
                                          "error-details", "b", 1);
        if (r >= 0)
                r = call_append_place(m, transact_place(t->is_pin ? t->inside : transact_pin_of(t->connection, t->path)));
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

static int send_begin(sqlipc_transaction *t) {
        int r = try_to_send_begin(t);

        return connection_bus_may_send_again(t->connection, r) ? try_to_send_begin(t) : r;
}

static void notice_interrupt(sqlipc_transaction *t) {
        if (t->state != TRANSACTION_BEGINNING || t->n_interrupts == connection_interrupts(t->connection))
                return;
        (void) error_set(&t->error, ERROR_CANCELLED, "The transaction was interrupted before it had begun.");
        transact_end(t);
}

void transact_look(sqlipc_transaction *t) {
        notice_lost_bus(t);
        notice_interrupt(t);
}

/* ---- Runs --------------------------------------------------------------------------------------------------------- */

static sqlipc_transaction *find_current(sqlipc_connection *c, const char *path) {
        Member *member;

        TAILQ_FOREACH(member, &c->transactions, link) {
                sqlipc_transaction *t = (sqlipc_transaction *) member;

                if (!t->told && !t->is_pin && strcmp(t->path, path) == 0)
                        return t;
        }
        return NULL;
}

static sqlipc_transaction *find_pin(const sqlipc_connection *c, const char *path) {
        Member *member;

        TAILQ_FOREACH(member, &c->transactions, link) {
                sqlipc_transaction *t = (sqlipc_transaction *) member;

                if (!t->told && t->is_pin && strcmp(t->path, path) == 0)
                        return t;
        }
        return NULL;
}

sqlipc_transaction *transact_ref_current(sqlipc_connection *c, const char *path) {
        sqlipc_transaction *t = find_current(c, path) ?: find_pin(c, path);

        if (t)
                t->n_ref++;
        return t;
}

sqlipc_transaction *transact_unref(sqlipc_transaction *t) {
        sqlipc_connection *c;

        if (!t || --t->n_ref > 0)
                return NULL;
        c = t->is_pin ? NULL : t->connection;
        t->call = call_free(t->call);
        (void) transact_unref(t->inside);
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
        t->told = t->told || t->is_pin;
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

/* The program learns from `e` that its TEMP tables are gone. */
static void on_failure_of_pin(sqlipc_transaction *t, Error *e) {
        if (e->number == ERROR_DAEMON_LOST)
                (void) error_set(e, ERROR_PIN_LOST, "The service was lost, and your TEMP tables with it.");
        if (e->number != ERROR_PIN_LOST)
                return;
        t->told = true;
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

static const MemberOperations member_operations = {
        .free = free_pin,
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

/* A transaction must be on the pin if there is one. */
static int check_pin(sqlipc_connection *c, const char *path) {
        sqlipc_transaction *pin = find_pin(c, path);
        Error e;
        int r = pin ? transact_check(pin, &e) : 1;

        if (r < 0)
                return connection_fail(c, &e);
        if (r > 0)
                return 0;
        return error_set_errno(&c->error, -EBUSY, "A statement with TEMP tables is being sent: wait for its answer.");
}

static int begin(sqlipc_connection *connection, const char *database, sqlipc_transaction_mode mode, bool waits,
                 sqlipc_transaction **ret_transaction) {
        _cleanup_(sqlipc_transaction_closep) sqlipc_transaction *t = NULL;
        char *path;
        int r;

        r = call_database_path(database, &path);
        if (r < 0)
                return connection_fail_errno(connection, r);
        if (find_current(connection, path)) {
                free(path);
                return error_set_errno(&connection->error, -EBUSY,
                                       "This connection has a transaction on the database already.");
        }
        r = check_pin(connection, path);
        if (r < 0) {
                free(path);
                return r;
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

static int begin_pin(sqlipc_connection *c, const char *path, sqlipc_transaction *inside, sqlipc_transaction **ret) {
        sqlipc_transaction *t;
        char *copy = strdup(path);
        int r;

        drop_pins(c);
        r = copy ? transaction_new(&t, c, copy, SQLIPC_TRANSACTION_DEFERRED) : -ENOMEM;
        if (r < 0)
                return connection_fail_errno(c, r);
        t->is_pin = true;
        if (inside) {
                inside->n_ref++;
                t->inside = inside;
        }
        r = send_begin(t);
        if (r < 0) {
                free_pin(&t->member);
                return connection_fail_send(c, r);
        }
        *ret = t;
        return 0;
}

int transact_take_pin(sqlipc_connection *c, const char *path, sqlipc_transaction *inside, sqlipc_transaction **ret) {
        sqlipc_transaction *t = find_pin(c, path);
        int r = t ? 0 : begin_pin(c, path, inside, &t);

        if (r < 0)
                return r;
        t->n_ref++;
        *ret = t;
        return 0;
}

int transact_wait_pin(sqlipc_connection *c, const char *database) {
        _cleanup_free_ char *path = NULL;
        sqlipc_transaction *t;
        int r = call_database_path(database, &path);

        if (r < 0 || c->dispatching)
                return -EBUSY;
        r = transact_take_pin(c, path, find_current(c, path), &t);
        if (r < 0)
                return r;
        r = wait_open(t);
        t->told = t->told || t->state == TRANSACTION_OVER;
        (void) transact_unref(t);
        return r;
}

sqlipc_transaction *transact_pin_of(const sqlipc_connection *c, const char *path) {
        sqlipc_transaction *t = find_pin(c, path);

        return t && t->state == TRANSACTION_OPEN ? t : NULL;
}

void transact_note_lost_pin(sqlipc_connection *c, const char *path, const Error *e) {
        sqlipc_transaction *t = find_pin(c, path);

        if (!t || e->number != ERROR_PIN_LOST)
                return;
        t->told = true;
        if (t->state == TRANSACTION_OPEN)
                transact_end(t);
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
               call_database_path(database, &path) >= 0 && !find_current(c, path);
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
        return transact_unref(t);
}

_public_ void sqlipc_transaction_closep(sqlipc_transaction **transaction) {
        (void) sqlipc_transaction_close(*transaction);
}
