/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads: their beginning, and their end (load-call.h). Library. */
#include <stdio.h>
#include <string.h>

#include "client-lib/call-file.h"
#include "client-lib/channel-link.h"
#include "client-lib/connection-bus.h"
#include "client-lib/description.h"
#include "client-lib/error.h"
#include "client-lib/event-loop.h"
#include "client-lib/load-call.h"
#include "client-lib/pipe-write.h"
#include "client-lib/repeat.h"
#include "client-lib/transact.h"
#include "dbus-interfaces/sqlipc-names.h"

/* As much as a pipe holds by default. */
#define PAGE_SIZE_MAX ((size_t) 65536)

/* load_call_write() returns after this many writes even if the pipe takes more, so that a large row does not keep a program
 * from its loop. */
#define WRITES_MAX 64u

/* ---- The end ------------------------------------------------------------------------------------------------------ */

static void close_pipe(sqlipc_load *l) {
        if (l->fd < 0)
                return;
        event_loop_disarm(l->connection, l->fd);
        l->fd = safe_close(l->fd);
}

/* A pin goes on without its load. */
static bool is_in_transaction(const sqlipc_load *l) {
        return l->transaction && !l->transaction->is_pin;
}

/* A Load that is given up ends. In a transaction a Cancel would end that, too: there the load ends with the transaction, or
 * when its late answer is read. */
static void end(sqlipc_load *l) {
        close_pipe(l);
        l->call = l->state == LOAD_BEGINNING && !is_in_transaction(l) ? call_abandon(l->call) : call_free(l->call);
        load_life_move(&l->state, LOAD_OVER);
}

/* A transaction would end with a load that is cancelled. */
static void send_cancel(const sqlipc_load *l) {
        sqlipc_connection *c = l->connection;

        if (is_in_transaction(l) || c->closed || l->bus_generation != c->bus_generation || connection_is_foreign(c))
                return;
        call_notify(c->bus, l->owner, l->path, "Cancel", l->number);
        event_loop_update(c);
}

/* Closing the pipe ends the load, unless a process that was forked meanwhile still has it. */
static void give_up(sqlipc_load *l) {
        bool runs = (l->state == LOAD_OPEN || l->state == LOAD_ENDING) && !load_is_sent(l);

        if (l->state == LOAD_OVER)
                return;
        end(l);
        if (runs)
                send_cancel(l);
}

static void fail_errno(sqlipc_load *l, int r) {
        (void) error_set_errno(&l->error, r, NULL);
        give_up(l);
}

/* After END was sent the load can no longer be interrupted. */
static void notice_interrupt(sqlipc_load *l) {
        if (l->state == LOAD_OVER || load_is_sent(l) || l->n_interrupts == connection_interrupts(l->connection))
                return;
        (void) error_set(&l->error, ERROR_CANCELLED, "The load was interrupted: nothing was written.");
        give_up(l);
}

/* True if the error is the load's own, which has details. One of Wait itself has none, for example from the bus, or from an
 * instance that is shutting down: it does not say how the load ended. */
static bool tells_outcome(sd_bus_message *reply) {
        return sd_bus_message_has_signature(reply, "sii") > 0;
}

/* Sets the failure in a reply to Load or Wait. */
static void set_failure(sqlipc_load *l, sd_bus_message *reply) {
        bool unknown = load_is_sent(l) && !tells_outcome(reply);
        Error *e = &l->error;

        (void) error_set_reply(e, reply);
        if (l->transaction && unknown)
                transact_on_no_answer(l->transaction, e, LOAD_FACT);
        else if (l->transaction)
                transact_on_failure(l->transaction, e);
        else if (unknown) {
                if (e->number == ERROR_DAEMON_LOST)
                        (void) snprintf(e->message, sizeof e->message, "The service was lost before it answered.");
                repeat_set_unknown(e, LOAD_FACT);
        } else if (e->number == ERROR_DAEMON_LOST && l->number > 0)
                (void) snprintf(e->message, sizeof e->message, "The service was lost: nothing was written.");
}

static void on_wait_reply(sd_bus_message *reply, void *userdata) {
        sqlipc_load *l = userdata;
        int r = -EBADMSG;

        l->call = call_free(l->call);
        if (sd_bus_message_get_error(reply))
                set_failure(l, reply);
        else {
                if (load_is_sent(l)) /* there can be no result without all rows */
                        r = sd_bus_message_read(reply, "x", &l->n_changes);
                if (r < 0)
                        (void) error_set_errno(&l->error, r, NULL);
        }
        end(l);
}

/* ---- The beginning ------------------------------------------------------------------------------------------------ */

/* The message closes the pipe, which ends the load. Wait takes the result, which would be kept for a while. */
static void undo_load(sd_bus_message *reply, const char *path) {
        uint64_t number;

        if (sd_bus_message_read(reply, "t", &number) > 0)
                call_notify(sd_bus_message_get_bus(reply), sd_bus_message_get_sender(reply), path, "Wait", number);
}

static int open_stream(sqlipc_load *l, const Description *d) {
        size_t page_size = d->page_size < PAGE_SIZE_MAX ? d->page_size : PAGE_SIZE_MAX;

        if (d->n_parameters == 0 || page_size < SQLIPC_PAGE_SIZE_MIN || (page_size & (page_size - 1)) != 0)
                return -EBADMSG;
        l->n_columns = d->n_parameters;
        l->values = calloc(l->n_columns, sizeof *l->values);
        return l->values ? load_stream_open(&l->stream, l->number, l->n_columns, page_size) : -ENOMEM;
}

static int read_load_reply(sqlipc_load *l, sd_bus_message *reply) {
        _cleanup_(description_done) Description d = { .page_size = 0 };
        const char *sender = sd_bus_message_get_sender(reply);
        int fd, r;

        if (sender) {
                l->owner = strdup(sender);
                if (!l->owner)
                        return -ENOMEM;
        }
        r = sd_bus_message_read(reply, "th", &l->number, &fd);
        if (r >= 0)
                r = description_read_info(&d, reply);
        if (r >= 0)
                r = open_stream(l, &d);
        if (r < 0)
                return r;
        l->fd = pipe_write_copy(fd); /* the message closes its own */
        return l->fd < 0 ? l->fd : 0;
}

static int send_wait(sqlipc_load *l) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r;

        r = connection_bus_new_call(l->connection, &m, l->owner, l->path, "Wait");
        if (r >= 0)
                r = sd_bus_message_append(m, "ta{sv}", l->number, 1, "error-details", "b", 1);
        return r < 0 ? r : call_new(&l->call, l->connection, m, on_wait_reply, NULL, l, UINT64_MAX);
}

static void on_load_reply(sd_bus_message *reply, void *userdata) {
        sqlipc_load *l = userdata;
        int r;

        l->call = call_free(l->call);
        if (sd_bus_message_get_error(reply)) {
                set_failure(l, reply);
                end(l);
                return;
        }
        r = read_load_reply(l, reply);
        if (r >= 0)
                r = send_wait(l);
        if (r >= 0) {
                load_life_move(&l->state, LOAD_OPEN);
                return;
        }
        fail_errno(l, r);
        (void) sd_bus_message_rewind(reply, true);
        undo_load(reply, l->path);
}

static int try_to_send_load(sqlipc_load *l) {
        _cleanup_message_ sd_bus_message *m = NULL;
        _cleanup_(close_file) int fd = -1;
        sqlipc_connection *c = l->connection;
        sqlipc_transaction *t = l->transaction;
        int r = t ? 0 : connection_bus_ensure(c); /* no other bus can name the transaction */

        if (r >= 0)
                r = connection_bus_new_call(c, &m, t ? t->owner : NULL, l->path, "Load");
        if (r >= 0)
                r = call_file_append_sql(m, connection_bus_descriptors(c) != DESCRIPTORS_NONE, l->sql, &fd);
        if (r >= 0)
                r = call_append_options(c, m, true, true, l->run_timeout_usec, transact_place(t),
                                        channel_link_foreign_keys(c, l->path), fd);
        if (r >= 0)
                r = call_new(&l->call, c, m, on_load_reply, undo_load, l, UINT64_MAX);
        l->bus_generation = c->bus_generation;
        return r;
}

static void send_load(sqlipc_load *l) {
        int r = try_to_send_load(l);

        if (!l->transaction && connection_bus_may_send_again(l->connection, r))
                r = try_to_send_load(l);
        if (r >= 0) {
                if (l->transaction)
                        l->transaction->may_have_written = true;
                free(steal(l->sql));
                return;
        }
        if (r == -ENOTCONN && !connection_bus_is_open(l->connection))
                (void) error_set_bus_lost(&l->error, l->connection->bus);
        else
                (void) error_set_send(&l->error, r);
        if (l->transaction)
                transact_on_failure(l->transaction, &l->error);
        end(l);
}

/* 1: Load can be sent; 0: not yet; negative: it never can, as the error says. */
static int check_begin(sqlipc_load *l) {
        int r = l->transaction ? transact_check(l->transaction, &l->error) : 1;

        if (r <= 0)
                return r;
        switch (connection_bus_descriptors(l->connection)) {
        case DESCRIPTORS_UNKNOWN:
                return 0;
        case DESCRIPTORS_PASS:
                return 1;
        case DESCRIPTORS_NONE:
                break;
        }
        return error_set_no_descriptors(&l->error);
}

void load_call_advance(sqlipc_load *l) {
        int r;

        notice_interrupt(l);
        if (l->state != LOAD_BEGINNING || l->call)
                return;
        r = check_begin(l);
        if (r < 0)
                end(l);
        else if (r > 0)
                send_load(l);
}

/* ---- Writing ------------------------------------------------------------------------------------------------------ */

/* The answer to Wait says why. */
static void on_pipe_closed(sqlipc_load *l) {
        close_pipe(l);
        load_life_move(&l->state, LOAD_BROKEN);
}

int load_call_write(sqlipc_load *l) {
        for (unsigned i = 0; i < WRITES_MAX; i++) {
                size_t size;
                const uint8_t *bytes = load_stream_next(&l->stream, &size);
                ssize_t n;

                if (size == 0)
                        return 0;
                n = pipe_write(l->fd, bytes, size);
                if (n == -EPIPE)
                        on_pipe_closed(l);
                else if (n < 0 && n != -EAGAIN)
                        fail_errno(l, (int) n);
                if (n < 0)
                        return -EAGAIN;
                turns_step(&l->connection->turns);
                load_stream_sent(&l->stream, (size_t) n);
                if (load_is_sent(l))
                        close_pipe(l);
        }
        event_loop_come_back(l->connection);
        return -EAGAIN;
}

/* ---- As a member of the connection -------------------------------------------------------------------------------- */

static void on_connection_closed(Member *member) {
        sqlipc_load *l = (sqlipc_load *) member;

        give_up(l);
        (void) error_set_errno(&l->error, -ENOTCONN, "The connection was closed.");
}

static const void *descriptor_owner(const Member *member) {
        return member;
}

static bool call_back(Member *member) {
        sqlipc_load *l = (sqlipc_load *) member;

        if (!l->on_ready)
                return false;
        l->on_ready(l, l->on_ready_userdata); /* may free it */
        return true;
}

static const MemberOperations member_operations = {
        .close = on_connection_closed,
        .descriptor_owner = descriptor_owner,
        .call_back = call_back,
};

/* ---- What programs call ------------------------------------------------------------------------------------------- */

static int check_open(sqlipc_connection *c, const char *database, const char *sql) {
        Error e;
        int r = connection_check(c);

        if (r < 0)
                return r;
        if (!database || !sql)
                return connection_fail_errno(c, -EINVAL);
        if (c->blocking && c->dispatching) /* a handler cannot wait for the answer, so nothing may be sent */
                return connection_fail_errno(c, -EBUSY);
        return call_check_sql(&e, sql) < 0 ? connection_fail(c, &e) : 0;
}

static int load_new(sqlipc_load **ret, sqlipc_connection *c, const char *database, const char *sql) {
        _cleanup_free_ char *path = NULL, *copy = strdup(sql);
        sqlipc_load *l;
        int r = call_database_path(database, &path);

        if (r < 0)
                return r;
        l = copy ? malloc(sizeof *l) : NULL;
        if (!l)
                return -ENOMEM;
        *l = (sqlipc_load) { .member.operations = &member_operations, .connection = sqlipc_connection_ref(c),
                             .transaction = transact_ref_current(c, path), .path = steal(path), .sql = steal(copy),
                             .run_timeout_usec = c->run_timeout_usec, .n_interrupts = connection_interrupts(c), .fd = -1,
                             .error = { .sql_offset = -1 } };
        TAILQ_INSERT_TAIL(&c->loads, &l->member, link);
        *ret = l;
        return 0;
}

static int wait_open(sqlipc_load *l) {
        uint64_t deadline = connection_answer_deadline(l->connection);
        int r;

        for (;;) {
                load_call_advance(l);
                if (l->state != LOAD_BEGINNING)
                        break;
                r = connection_wait(l->connection, CONNECTION_NO_DATA, &deadline);
                if (r < 0)
                        return connection_fail_wait(l->connection, r);
        }
        return l->state == LOAD_OVER ? connection_fail(l->connection, &l->error) : 0;
}

_public_ int sqlipc_load_open(sqlipc_connection *connection, const char *database, const char *sql, sqlipc_load **ret_load) {
        _cleanup_(sqlipc_load_closep) sqlipc_load *l = NULL;
        int r;

        if (!ret_load)
                return connection_fail_errno(connection, -EINVAL);
        r = check_open(connection, database, sql);
        if (r < 0)
                return r;
        r = load_new(&l, connection, database, sql);
        if (r < 0)
                return connection_fail_errno(connection, r);
        if (connection->blocking) {
                r = wait_open(l);
                if (r < 0)
                        return r;
        } else
                load_call_advance(l);
        *ret_load = steal(l);
        return 0;
}

_public_ int sqlipc_load_set_ready_callback(sqlipc_load *load, sqlipc_load_callback callback, void *userdata) {
        if (!load)
                return -EINVAL;
        load->on_ready = callback;
        load->on_ready_userdata = userdata;
        return 0;
}

_public_ int sqlipc_load_cancel(sqlipc_load *l) {
        if (!l)
                return -EINVAL;
        if (l->state == LOAD_OVER)
                return 0;
        if (load_is_sent(l)) {
                send_cancel(l);
                return 0;
        }
        (void) error_set(&l->error, ERROR_CANCELLED, "The load was cancelled: nothing was written.");
        give_up(l);
        return 0;
}

_public_ sqlipc_load *sqlipc_load_close(sqlipc_load *l) {
        if (!l)
                return NULL;
        give_up(l);
        TAILQ_REMOVE(&l->connection->loads, &l->member, link);
        load_stream_done(&l->stream);
        (void) transact_unref(l->transaction);
        (void) sqlipc_connection_unref(l->connection);
        free(l->path);
        free(l->sql);
        free(l->owner);
        free(l->values);
        free(l);
        return NULL;
}

_public_ void sqlipc_load_closep(sqlipc_load **load) {
        (void) sqlipc_load_close(*load);
}
