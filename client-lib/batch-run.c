/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ExecuteBatch (batch.h). Library. */
#include <string.h>

#include "client-lib/call-file.h"
#include "client-lib/batch.h"
#include "client-lib/call.h"
#include "client-lib/channel-link.h"
#include "client-lib/connection-bus.h"
#include "client-lib/connection.h"
#include "client-lib/error.h"
#include "client-lib/parameter-row.h"
#include "client-lib/parameter.h"
#include "client-lib/repeat.h"
#include "client-lib/transact.h"

static const char *const unknown_fact = "the batch took effect";

/* ---- The reply ---------------------------------------------------------------------------------------------------- */

static int read_reply(sqlipc_batch *b, sd_bus_message *reply) {
        const void *changes;
        int64_t *copy;
        size_t size;
        int r;

        r = sd_bus_message_read_array(reply, 'x', &changes, &size);
        if (r < 0)
                return r == -ENXIO ? -EBADMSG : r; /* another type */
        if (size != b->n_statements * sizeof *copy)
                return -EBADMSG;
        copy = malloc(size);
        if (!copy)
                return -ENOMEM;
        memcpy(copy, changes, size);
        free(b->changes);
        b->changes = copy;
        b->n_changes = b->n_statements;
        return 0;
}

static void set_failure(sqlipc_batch *b, sd_bus_message *reply) {
        sqlipc_connection *c = b->connection;
        bool never_sent = c->open_bus && !c->bus_was_ready; /* for example, ssh could not reach the host */
        Fate fate;

        (void) error_set_reply(&b->error, reply);
        fate = repeat_fate_of_reply(reply, &b->error);
        if (b->transaction && (!b->transaction->is_pin || fate != FATE_UNKNOWN))
                transact_on_failure(b->transaction, &b->error);
        else if (fate == FATE_UNKNOWN && !never_sent)
                repeat_set_unknown(&b->error, unknown_fact);
}

static void on_reply(sd_bus_message *reply, void *userdata) {
        sqlipc_batch *b = userdata;
        int r;

        b->call = call_free(b->call);
        if (sd_bus_message_get_error(reply)) {
                set_failure(b, reply);
                return;
        }
        r = read_reply(b, reply);
        if (r < 0)
                (void) error_set_errno(&b->error, r, "The batch was carried out, but its answer cannot be read.");
}

/* ---- The call ----------------------------------------------------------------------------------------------------- */

static int append_statement(sd_bus_message *m, const BatchStatement *s) {
        const uint8_t *row = (const uint8_t *) s->sql + strlen(s->sql) + 1;
        size_t n = (size_t) s->n_positional + s->n_named;
        _cleanup_free_ Parameter *parameters = NULL;
        int r = 0;

        if (n > 0)
                r = parameter_row_read(row, s->n_positional, s->n_named, &parameters);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'r', "sava{sv}");
        if (r >= 0)
                r = sd_bus_message_append(m, "s", s->sql);
        if (r >= 0)
                r = parameter_append_all(m, parameters, n, 0);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_statements(sd_bus_message *m, const sqlipc_batch *b) {
        int r = sd_bus_message_open_container(m, 'a', "(sava{sv})");

        for (size_t i = 0; r >= 0 && i < b->n_statements; i++)
                r = append_statement(m, &b->statements[i]);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* Makes a file of the statements (call-arguments.h). */
static int write_file(const sqlipc_batch *b, int *ret_fd) {
        uint8_t *bytes, *at;
        int fd, r;

        r = call_arguments_new(b->size, &fd, &bytes);
        if (r < 0)
                return r;
        at = bytes;
        for (size_t i = 0; i < b->n_statements; i++) {
                const BatchStatement *s = &b->statements[i];
                size_t size = s->sql_size + 1 + s->row_size;

                call_arguments_write_head(at, s->sql_size, s->row_size, s->n_positional, s->n_named);
                memcpy(at + CALL_ARGUMENTS_HEAD_SIZE, s->sql, size);
                at += CALL_ARGUMENTS_HEAD_SIZE + size;
        }
        r = call_arguments_seal(fd, bytes, b->size);
        if (r >= 0)
                *ret_fd = fd;
        return r;
}

/* Appends the statements to the call, or none if they are in a file. */
static int append_all(sd_bus_message *m, const sqlipc_batch *b, int *ret_fd) {
        int r;

        if (!b->needs_file)
                return append_statements(m, b);
        if (connection_bus_descriptors(b->connection) == DESCRIPTORS_NONE)
                return -E2BIG;
        r = write_file(b, ret_fd);
        return r < 0 ? r : sd_bus_message_append(m, "a(sava{sv})", 0);
}

static int try_to_send(sqlipc_batch *b) {
        _cleanup_message_ sd_bus_message *m = NULL;
        _cleanup_(close_file) int fd = -1;
        sqlipc_connection *c = b->connection;
        sqlipc_transaction *t = b->transaction;
        int r = t ? 0 : connection_bus_ensure(c); /* no other bus can name the transaction */

        if (r >= 0)
                r = connection_bus_new_call(c, &m, t ? t->owner : NULL, b->path, "ExecuteBatch");
        if (r >= 0)
                r = append_all(m, b, &fd);
        if (r >= 0)
                r = call_append_options(c, m, false, true, c->run_timeout_usec, transact_place(t),
                                        channel_link_foreign_keys(c, b->path), fd);
        return r < 0 ? r : call_new(&b->call, c, m, on_reply, NULL, b, UINT64_MAX);
}

static int send_batch(sqlipc_batch *b) {
        int r = try_to_send(b);

        if (!b->transaction && connection_bus_may_send_again(b->connection, r))
                r = try_to_send(b);
        if (r >= 0 && b->transaction)
                b->transaction->may_have_written = true;
        if (r < 0) {
                (void) connection_fail_send(b->connection, r);
                b->error = b->connection->error;
                if (b->transaction)
                        transact_on_failure(b->transaction, &b->error);
        }
        return r;
}

/* ---- Waiting ------------------------------------------------------------------------------------------------------ */

/* The program waits no longer, for a reason that the connection has. */
static void give_up(sqlipc_batch *b) {
        b->error = b->connection->error;
        if (!b->call || b->connection->closed)
                return;
        if (b->transaction)
                transact_on_no_answer(b->transaction, &b->error, unknown_fact);
        else
                repeat_set_unknown(&b->error, unknown_fact);
}

static void on_cancel_reply(sd_bus_message *reply, void *userdata) {
        sqlipc_batch *b = userdata;

        call_note_cancel(&b->cancellation, reply);
}

/* True if the answer will come, and say what became of the batch. */
static bool cancel(sqlipc_batch *b) {
        if (!b->call)
                return false;
        call_cancel(&b->cancellation, b->call, on_cancel_reply, b);
        return b->cancellation.state != CANCEL_REFUSED;
}

/* Waits for news. False: the wait is over, and `error` says why. */
static bool wait_on(sqlipc_batch *b, unsigned n_interrupts, uint64_t *deadline) {
        sqlipc_connection *c = b->connection;
        int r;

        if (n_interrupts != connection_interrupts(c) && !cancel(b)) {
                (void) error_set(&c->error, ERROR_CANCELLED, "The wait was interrupted.");
                give_up(b);
                return false;
        }
        r = connection_wait(c, CONNECTION_NO_DATA, deadline);
        if (r < 0) {
                (void) connection_fail_wait(c, r);
                give_up(b);
        }
        return r >= 0;
}

/* Waits until the transaction or pin is open. False: it never will be, and `error` says why. */
static bool wait_for(sqlipc_batch *b, sqlipc_transaction *t) {
        unsigned n_interrupts = connection_interrupts(b->connection);
        uint64_t deadline = connection_answer_deadline(b->connection);
        int r;

        do
                r = transact_check(t, &b->error);
        while (r == 0 && wait_on(b, n_interrupts, &deadline));
        return r > 0;
}

/* Sends the batch as soon as its transaction is open, and waits for the reply. */
static void run(sqlipc_batch *b) {
        unsigned n_interrupts = connection_interrupts(b->connection);
        uint64_t deadline = connection_answer_deadline(b->connection);

        if ((b->transaction && !wait_for(b, b->transaction)) || send_batch(b) < 0)
                return;
        while (b->call && wait_on(b, n_interrupts, &deadline))
                ;
        b->call = call_free(b->call);
        call_forget_cancel(&b->cancellation);
}

/* One of its statements needs a pin, and nothing of the batch is kept: sends it again, on the pin. */
static void run_on_pin(sqlipc_batch *b, unsigned n_interrupts) {
        sqlipc_transaction *pin;

        if (b->transaction && b->transaction->is_pin)
                return;
        if (n_interrupts != connection_interrupts(b->connection)) {
                (void) error_set(&b->error, ERROR_CANCELLED, "The batch was interrupted.");
                return;
        }
        if (transact_take_pin(b->connection, b->path, &pin, &b->error) < 0)
                return;
        b->error = (Error) { .sql_offset = -1 };
        if (!b->transaction)
                b->transaction = transact_ref(pin);
        if (wait_for(b, pin))
                run(b);
        (void) transact_unref(pin);
}

static int check_run(sqlipc_batch *b) {
        sqlipc_connection *c = b->connection;
        int r = connection_check(c);

        if (r < 0)
                return r;
        if (c->dispatching) /* a handler cannot wait for the answer, so nothing may be sent */
                return connection_fail_errno(c, -EBUSY);
        if (b->n_statements == 0)
                return error_set(&c->error, ERROR_EMPTY_STATEMENT, "The batch has no statements.");
        return 0;
}

_public_ int sqlipc_batch_run(sqlipc_batch *b, int64_t *ret_changes) {
        unsigned n_interrupts;
        uint64_t sum = 0;
        int r;

        if (!b)
                return -EINVAL;
        r = check_run(b);
        if (r < 0)
                return r;
        b->error.result = 0;
        n_interrupts = connection_interrupts(b->connection);
        b->transaction = transact_ref_current(b->connection, b->path);
        run(b);
        if (b->error.number == ERROR_NEEDS_PIN && b->error.result < 0)
                run_on_pin(b, n_interrupts);
        b->transaction = transact_unref(b->transaction);
        if (b->error.result < 0)
                return connection_fail(b->connection, &b->error);
        for (size_t i = 0; i < b->n_changes; i++)
                sum += (uint64_t) b->changes[i]; /* unsigned: the service may have sent anything */
        batch_clear(b);
        if (ret_changes)
                *ret_changes = (int64_t) sum;
        return 0;
}
