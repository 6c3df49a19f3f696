/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The rows of a load (load-call.h): they are taken without waiting, or the program waits for room in the pipe. Library. */
#include "client-lib/connection.h"
#include "client-lib/error.h"
#include "client-lib/event-loop.h"
#include "client-lib/load-call.h"
#include "client-lib/repeat.h"
#include "client-lib/transact.h"

/* 0: look again. Without blocking, -EAGAIN, and the program is called back when there is news. */
static int wait_for_news(sqlipc_load *l, uint64_t *deadline) {
        struct pollfd data = { .fd = l->fd, .events = POLLOUT };
        sqlipc_connection *c = l->connection;
        int r;

        if (!c->blocking) {
                l->member.wait = MEMBER_WAITS;
                r = data.fd < 0 ? 0 : event_loop_arm(c, data, l);
                return r < 0 ? connection_fail_errno(c, r) : -EAGAIN;
        }
        if (c->dispatching) /* a handler of the bus must not wait */
                return connection_fail_errno(c, -EBUSY);
        r = connection_wait(c, data, deadline);
        return r < 0 ? connection_fail_wait(c, r) : 0;
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

static int refuse_row(sqlipc_load *l) {
        if (l->state == LOAD_OVER && l->error.result < 0)
                return connection_fail(l->connection, &l->error);
        return error_set_errno(&l->connection->error, -EINVAL, "The load is finished, and takes no more rows.");
}

static int check_values(sqlipc_load *l, const sqlipc_parameter *values, size_t n_values) {
        int r;

        if (n_values != l->n_columns)
                return error_set(&l->connection->error, ERROR_PARAMETER_COUNT,
                                 "%zu values in a row, for a statement with %u parameters", n_values, l->n_columns);
        r = parameter_read(values, n_values, l->values);
        for (size_t i = 0; r >= 0 && i < n_values; i++)
                if (l->values[i].name)
                        r = -EINVAL;
        return r < 0 ? connection_fail_errno(l->connection, r) : 0;
}

/* 1: the stream has the row; 0: there is no room; or a failure, after which the load goes on without the row. */
static int take_row(sqlipc_load *l, const sqlipc_parameter *values, size_t n_values) {
        int r = check_values(l, values, n_values);

        if (r < 0)
                return r;
        r = load_stream_add(&l->stream, l->values, l->n_columns);
        if (r == -E2BIG)
                return error_set(&l->connection->error, ERROR_ROW_TOO_LARGE, "A row has more than %zu bytes.",
                                 SQLIPC_ROW_SIZE_MAX);
        return r < 0 ? connection_fail_errno(l->connection, r) : r;
}

/* Takes the row if that is possible without waiting. */
static int try_row(sqlipc_load *l, const sqlipc_parameter *values, size_t n_values) {
        int r;

        load_call_advance(l);
        while (l->state == LOAD_OPEN) {
                r = take_row(l, values, n_values);
                if (r != 0)
                        return r < 0 ? r : 0;
                r = load_call_write(l);
                if (r < 0)
                        break;
                if (l->connection->blocking) /* a program that never waits would not read its messages */
                        connection_look_at_bus(l->connection);
        }
        return l->state == LOAD_OVER || l->state == LOAD_ENDING ? refuse_row(l) : -EAGAIN;
}

_public_ int sqlipc_load_row(sqlipc_load *load, const sqlipc_parameter *values, size_t n_values) {
        uint64_t deadline = 0;
        int r;

        if (!load)
                return -EINVAL;
        r = connection_check(load->connection);
        if (r < 0)
                return r;
        if (!values)
                return connection_fail_errno(load->connection, -EINVAL);
        do {
                r = try_row(load, values, n_values);
                if (r != -EAGAIN)
                        return r;
                r = wait_for_news(load, &deadline);
        } while (r >= 0);
        return r;
}

/* ---- The end ------------------------------------------------------------------------------------------------------ */

static int try_finish(sqlipc_load *l) {
        load_call_advance(l);
        if (l->state == LOAD_OPEN) {
                load_stream_end(&l->stream);
                load_life_move(&l->state, LOAD_ENDING);
        }
        if (l->state == LOAD_ENDING && !load_is_sent(l))
                (void) load_call_write(l);
        if (l->state != LOAD_OVER)
                return -EAGAIN;
        return l->error.result < 0 ? connection_fail(l->connection, &l->error) : 0;
}

/* The program waits no longer, for a reason that the connection has. Once END was sent, the load goes on, also in a
 * transaction, which may be committed then. */
static int fail_wait(sqlipc_load *l, int r) {
        Error *e = &l->connection->error;

        if (r == -EAGAIN || r == -EBUSY || !load_is_sent(l))
                return r;
        if (l->transaction)
                transact_on_failure(l->transaction, e);
        if (e->number != ERROR_TRANSACTION_ENDED)
                repeat_set_unknown(e, LOAD_FACT);
        return e->result;
}

static int finish(sqlipc_load *l) {
        sqlipc_connection *c = l->connection;
        unsigned n_interrupts = c->blocking ? connection_interrupts(c) : l->n_interrupts;
        uint64_t deadline = 0;
        int r;

        do {
                r = try_finish(l);
                if (r != -EAGAIN)
                        return r;
                if (load_is_sent(l) && n_interrupts != connection_interrupts(c)) {
                        l->n_interrupts = connection_interrupts(c); /* another call waits again */
                        r = error_set(&c->error, ERROR_CANCELLED, "The wait was interrupted.");
                } else
                        r = wait_for_news(l, &deadline);
        } while (r >= 0);
        return fail_wait(l, r);
}

_public_ int sqlipc_load_finish(sqlipc_load *load, int64_t *ret_changes) {
        sqlipc_connection *c;
        int r;

        if (!load)
                return -EINVAL;
        c = load->connection;
        r = connection_check(c);
        if (r < 0)
                return r;
        if (c->blocking && c->dispatching && load->state != LOAD_OVER)
                return connection_fail_errno(c, -EBUSY);
        r = finish(load);
        if (r >= 0 && ret_changes)
                *ret_changes = load->n_changes;
        return r;
}
