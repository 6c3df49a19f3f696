/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cursors: their life, and their ends (cursor.h). Library. */
#include "client-lib/bindings.h"
#include "client-lib/channel-link.h"
#include "client-lib/connection.h"
#include "client-lib/cursor-life.h"
#include "client-lib/cursor.h"
#include "client-lib/error.h"
#include "client-lib/fetch.h"
#include "client-lib/prepared.h"
#include "client-lib/repeat.h"
#include "client-lib/transact.h"
#include "client-lib/transport.h"

static const MemberOperations member_operations;

int cursor_new(sqlipc_cursor **ret, sqlipc_connection *connection, sqlipc_statement *s, char *path, CursorStart start) {
        sqlipc_cursor *c = connection->spare_cursor ? steal(connection->spare_cursor) : malloc(sizeof *c);
        ChannelLink *link = path ? channel_link_get(connection, path) : NULL;

        if (!c || (path && !link)) {
                free(c);
                free(path);
                return -ENOMEM;
        }
        *c = (sqlipc_cursor) { .member.operations = &member_operations, .connection = sqlipc_connection_ref(connection),
                               .state = CURSOR_WAITING, .start = start, .statement = s,
                               .retries_left = CHANNEL_RETRIES_MAX, .error = { .sql_offset = -1 },
                               .run_timeout_usec = connection->run_timeout_usec,
                               .n_interrupts = connection_interrupts(connection) };
        atomic_init(&c->cancelled, false);
        if (s) {
                c->fetch = &s->fetch;
                c->bindings = bindings_ref(s->bindings);
                s->cursor = c;
        } else {
                fetch_init(&c->own, connection, path, link);
                c->fetch = &c->own;
        }
        c->transaction = transact_ref_current(connection, c->fetch->path);
        if (c->transaction)
                c->attempt = ATTEMPT_BUS;
        if (s && s->pin)
                cursor_use_pin(c, s->pin);
        TAILQ_INSERT_TAIL(&connection->cursors, &c->member, link);
        *ret = c;
        return 0;
}

uint64_t cursor_timeout_on_channel(const sqlipc_cursor *c) {
        return c->run_timeout_usec == UINT64_MAX ? 0 : c->run_timeout_usec;
}

int cursor_check_transaction(sqlipc_cursor *c, Error *e) {
        int r = c->pin ? transact_check(c->pin, e) : 1;

        return r <= 0 ? r : transact_check(c->transaction, e);
}

void cursor_use_pin(sqlipc_cursor *c, sqlipc_transaction *pin) {
        if (!c->transaction)
                c->transaction = transact_ref(pin);
        else if (!c->pin && !c->transaction->is_pin)
                c->pin = transact_ref(pin);
        c->attempt = ATTEMPT_BUS;
}

bool cursor_take_pin(sqlipc_cursor *c, const Error *e) {
        sqlipc_transaction *pin;
        Error failure;

        if (e->number != ERROR_NEEDS_PIN || c->alone || c->pin || (c->transaction && c->transaction->is_pin) || c->delivered)
                return false;
        if (cursor_is_cancelled(c)) {
                cursor_end(c, CURSOR_END_CANCELLED);
                return true;
        }
        if (transact_take_pin(c->connection, c->fetch->path, &pin, &failure) < 0) {
                cursor_fail(c, &failure);
                return true;
        }
        if (c->state != CURSOR_WAITING)
                cursor_restart(c, true);
        cursor_use_pin(c, pin);
        (void) transact_unref(pin);
        if (c->statement)
                prepared_lose(c->statement);
        return true;
}

Way cursor_choose_way(sqlipc_cursor *c, bool large, size_t parameters_size) {
        ChannelLink *ch = c->fetch->link;
        int r;

        if (c->transaction) {
                r = cursor_check_transaction(c, &ch->error);
                if (r <= 0)
                        return r < 0 ? WAY_NONE : WAY_WAIT;
        } else
                c->needs_channel = transport_needs_channel(ch, parameters_size);
        return transport_choose(ch, large, &c->attempt, parameters_size);
}

void cursor_set_read_only(sqlipc_cursor *c, bool read_only) {
        c->read_only = c->reads || read_only;
}

bool cursor_may_write(const sqlipc_cursor *c) {
        return c->transport != SQLIPC_TRANSPORT_AUTO && !c->read_only;
}

/* ---- States ------------------------------------------------------------------------------------------------------- */

void cursor_begin(sqlipc_cursor *c, sqlipc_transport transport) {
        cursor_life_move(&c->state, CURSOR_RUNNING);
        c->transport = transport;
}

void cursor_restart(sqlipc_cursor *c, bool bus_only) {
        fetch_cancel(c->fetch);
        fetch_reset(c->fetch);
        c->fetch->cursor = NULL;
        c->n_values = 0;
        if (c->attempt != ATTEMPT_BUS)
                c->attempt = bus_only ? ATTEMPT_BUS : ATTEMPT_ANY;
        cursor_life_move(&c->state, CURSOR_WAITING);
        c->transport = SQLIPC_TRANSPORT_AUTO;
}

bool cursor_is_cancelled(sqlipc_cursor *c) {
        return atomic_load_explicit(&c->cancelled, memory_order_relaxed) ||
               connection_interrupts(c->connection) != c->n_interrupts;
}

/* True if the end of the run will tell if it has written. A run whose number is known ends soon after Cancel. So does a
 * call, unless the service says that it cannot cancel it. */
static bool will_know_outcome(const sqlipc_cursor *c) {
        const Source *source = c->fetch->source;

        return source->number > 0 || (source->call && source->cancellation.state != CANCEL_REFUSED);
}

static void give_up(sqlipc_cursor *c) {
        bool sent = c->state == CURSOR_RUNNING || c->state == CURSOR_ASKING;

        if (!sent || c->read_only) {
                cursor_end(c, CURSOR_END_CANCELLED);
                return;
        }
        (void) error_set(&c->error, ERROR_CANCELLED, "The run was cancelled, and the service has not said how it ended.");
        cursor_set_outcome(c, &c->error, FATE_UNKNOWN);
        cursor_end(c, CURSOR_END_FAILED);
}

/* A run that was not sent, or changes nothing, is given up here at once, and cancelled at the service when its number comes.
 * Otherwise the rows that are on their way still arrive, and then the end that the cancellation causes. */
void cursor_apply_cancel(sqlipc_cursor *c) {
        switch (c->state) {
        case CURSOR_RUNNING:
                if (!fetch_has_started(c->fetch) && c->read_only)
                        break;
                fetch_cancel(c->fetch);
                if (fetch_has_started(c->fetch) || will_know_outcome(c))
                        return;
                break;
        case CURSOR_WAITING:
        case CURSOR_DRAINING:
        case CURSOR_ASKING:
                break;
        case CURSOR_DONE:
        case CURSOR_STATE_MAX:
                return;
        }
        give_up(c);
}

void cursor_advance(sqlipc_cursor *c) {
        if (cursor_is_cancelled(c))
                cursor_apply_cancel(c);
        if (c->state == CURSOR_DRAINING)
                cursor_life_move(&c->state, CURSOR_WAITING);
        if (c->state == CURSOR_WAITING)
                c->start(c);
}

/* ---- Ending ------------------------------------------------------------------------------------------------------- */

void cursor_note_result(sqlipc_cursor *c, uint64_t n_bytes, uint64_t usec) {
        transport_on_result(c->fetch->link, c->statement ? &c->statement->habit : NULL, c->sql_sum, n_bytes, usec);
}

void cursor_set_outcome(sqlipc_cursor *c, Error *e, Fate fate) {
        if (!c->transaction)
                repeat_set_outcome(e, fate, c->read_only);
        else if (c->read_only)
                transact_on_failure(c->transaction, e);
        else if (fate == FATE_UNKNOWN)
                transact_on_no_answer(c->transaction, e, STATEMENT_FACT);
}

void cursor_note_setting(const sqlipc_cursor *c) {
        const EndCounters *end = &c->fetch->decoder.end_counters;

        if (end->foreign_keys != FOREIGN_KEYS_CONFIGURED)
                c->fetch->link->foreign_keys = (ForeignKeys) end->foreign_keys;
}

/* Abandons the run, because the cursor reads no further. A program that wants one row often leaves the end after it
 * unread; the run counts with its counters if the end is there. An answer that holds up others, and is still in progress
 * after its first rows, counts as large or slow. */
static void abandon(sqlipc_cursor *c) {
        Fetch *fetch = c->fetch;

        switch (fetch_abandon(fetch)) {
        case PAGE_END:
                cursor_note_setting(c);
                cursor_note_result(c, fetch->decoder.end_counters.n_bytes, fetch->decoder.end_counters.usec);
                break;
        case PAGE_MORE:
                if (fetch->source->operations->shared && c->delivered)
                        cursor_note_result(c, UINT64_MAX, UINT64_MAX);
                break;
        }
}

static void set_error(sqlipc_cursor *c, CursorEnd reason) {
        switch (reason) {
        case CURSOR_END_COMPLETE:
                c->error.result = 0;
                break;
        case CURSOR_END_FAILED:
        case CURSOR_END_LOST:
                if (c->transaction)
                        transact_on_failure(c->transaction, &c->error);
                break;
        case CURSOR_END_CANCELLED:
        case CURSOR_END_KILLED:
                (void) error_set(&c->error, ERROR_CANCELLED, "The run was cancelled.");
                break;
        case CURSOR_END_REPLACED:
                (void) error_set_errno(&c->error, -ESTALE, "The statement was executed again or finalized.");
                break;
        case CURSOR_END_CLOSED:
                (void) error_set_errno(&c->error, -ENOTCONN, "The connection was closed.");
                break;
        }
}

void cursor_end(sqlipc_cursor *c, CursorEnd reason) {
        set_error(c, reason);
        cursor_life_move(&c->state, CURSOR_DONE);
        c->n_values = 0;
        c->bindings = bindings_unref(c->bindings);
        if (c->fetch->cursor == c)
                abandon(c);
        if (c->fetch == &c->own) {
                fetch_stop(&c->own);
                free(steal(c->query));
                c->sent = sd_bus_message_unref(c->sent);
        }
        if (c->statement && (reason == CURSOR_END_LOST || reason == CURSOR_END_KILLED))
                prepared_lose(c->statement); /* it is compiled again, and gets another pipe */
        if (c->transaction && cursor_may_write(c))
                c->transaction->may_have_written = true;
        c->transaction = transact_unref(c->transaction);
        c->pin = transact_unref(c->pin);
}

void cursor_fail(sqlipc_cursor *c, const Error *e) {
        c->error = *e;
        cursor_end(c, CURSOR_END_FAILED);
}

void cursor_fail_send(sqlipc_cursor *c, int r) {
        (void) error_set_send(&c->error, r);
        cursor_end(c, CURSOR_END_FAILED);
}

void cursor_fail_reply(sqlipc_cursor *c, sd_bus_message *reply) {
        sqlipc_connection *connection = c->connection;
        Fate fate;
        Error e;

        (void) error_set_reply(&e, reply);
        if (cursor_take_pin(c, &e))
                return;
        fate = repeat_fate_of_reply(reply, &e);
        if (fate == FATE_UNKNOWN && connection->open_bus && !connection->bus_was_ready)
                fate = FATE_NOT_BEGUN; /* for example, ssh could not reach the host */
        cursor_set_outcome(c, &e, fate);
        cursor_fail(c, &e);
}

void cursor_fail_errno(sqlipc_cursor *c, int r) {
        if (r == -EBADMSG)
                (void) error_set_errno(&c->error, r,
                                       "The service sent data that sqlipc's interface and page format do not allow.");
        else
                (void) error_set_send(&c->error, r);
        if (c->error.number != ERROR_NONE)
                cursor_set_outcome(c, &c->error, FATE_UNKNOWN);
        cursor_end(c, CURSOR_END_LOST);
}

void cursor_detach(sqlipc_cursor *c) {
        sqlipc_statement *s = c->statement;

        if (c->state != CURSOR_DONE)
                cursor_end(c, CURSOR_END_REPLACED);
        if (s && s->cursor == c)
                s->cursor = NULL;
        c->statement = NULL;
        c->fetch = NULL;
        c->n_values = 0;
}

int cursor_report(sqlipc_cursor *c, int r) {
        c->error = c->connection->error;
        return r;
}

/* ---- As a member of the connection -------------------------------------------------------------------------------- */

static void advance(Member *member) {
        cursor_advance((sqlipc_cursor *) member);
}

/* The cursor fails with -ENOTCONN unless it has ended. The program must still close it. */
static void on_connection_closed(Member *member) {
        sqlipc_cursor *c = (sqlipc_cursor *) member;

        if (c->state != CURSOR_DONE)
                cursor_end(c, CURSOR_END_CLOSED);
        c->n_values = 0;
}

static const void *descriptor_owner(const Member *member) {
        const sqlipc_cursor *c = (const sqlipc_cursor *) member;

        return c->fetch ? fetch_descriptor_owner(c->fetch) : NULL;
}

static bool call_back(Member *member) {
        sqlipc_cursor *c = (sqlipc_cursor *) member;

        if (!c->on_ready)
                return false;
        c->on_ready(c, c->on_ready_userdata); /* may free it */
        return true;
}

static const MemberOperations member_operations = {
        .advance = advance,
        .close = on_connection_closed,
        .descriptor_owner = descriptor_owner,
        .call_back = call_back,
};

/* ---- What programs call ------------------------------------------------------------------------------------------- */

_public_ sqlipc_cursor *sqlipc_cursor_close(sqlipc_cursor *c) {
        sqlipc_connection *connection;

        if (!c)
                return NULL;
        connection = c->connection;
        TAILQ_REMOVE(&connection->cursors, &c->member, link);
        if (c->fetch == &c->own) {
                if (c->state != CURSOR_DONE)
                        cursor_end(c, CURSOR_END_CLOSED);
                fetch_done(&c->own);
        } else
                cursor_detach(c);
        if (connection->spare_cursor)
                free(c);
        else
                connection->spare_cursor = c;
        (void) sqlipc_connection_unref(connection);
        return NULL;
}

_public_ void sqlipc_cursor_closep(sqlipc_cursor **cursor) {
        (void) sqlipc_cursor_close(*cursor);
}

_public_ int sqlipc_cursor_cancel(sqlipc_cursor *c) {
        int saved = errno; /* may run in a signal handler */
        uint64_t one = 1;

        if (!c)
                return -EINVAL;
        if (connection_is_foreign(c->connection))
                return -ECHILD;
        atomic_store_explicit(&c->cancelled, true, memory_order_release);
        if (write(c->connection->wake_fd, &one, sizeof one) < 0)
                errno = saved; /* the counter is full: wake_fd is readable in any case */
        return 0;
}

_public_ int sqlipc_cursor_set_ready_callback(sqlipc_cursor *cursor, sqlipc_cursor_callback callback, void *userdata) {
        if (!cursor)
                return -EINVAL;
        cursor->on_ready = callback;
        cursor->on_ready_userdata = userdata;
        return 0;
}

_public_ int sqlipc_cursor_is_readonly(sqlipc_cursor *cursor) {
        return cursor && cursor->read_only;
}

_public_ sqlipc_transport sqlipc_cursor_get_transport(sqlipc_cursor *cursor) {
        return cursor ? cursor->transport : SQLIPC_TRANSPORT_AUTO;
}
