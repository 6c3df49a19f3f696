/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of a live query that programs call (live.h). Library. */
#include "client-lib/call.h"
#include "client-lib/connection.h"
#include "client-lib/error.h"
#include "client-lib/live.h"
#include "client-lib/table-watch.h"

/* ---- Opening ------------------------------------------------------------------------------------------------------ */

/* A program that was built with a later version may have a larger struct, whose other fields must be zero. */
static int check_options(const sqlipc_live_options *options) {
        const uint8_t *bytes = (const uint8_t *) options;

        if (!options)
                return 0;
        if (options->struct_size < sizeof *options || options->struct_size > PARAMETER_STRUCT_SIZE_MAX)
                return -EINVAL;
        for (size_t i = sizeof *options; i < options->struct_size; i++)
                if (bytes[i] != 0)
                        return -EOPNOTSUPP;
        return options->key_columns && options->n_key_columns == 0 ? -EINVAL : 0;
}

static int check_open(sqlipc_connection *c, const char *database, const char *sql, const sqlipc_live_options *options) {
        Error e;
        int r = connection_check(c);

        if (r < 0)
                return r;
        if (!database || !sql)
                return connection_fail_errno(c, -EINVAL);
        r = check_options(options);
        if (r < 0)
                return connection_fail_errno(c, r);
        if (c->blocking && c->dispatching) /* a handler cannot wait for the answer, so nothing may be sent */
                return connection_fail_errno(c, -EBUSY);
        return call_check_sql(&e, sql) < 0 ? connection_fail(c, &e) : 0;
}

/* Until the statement is watched, or that has failed. While the connection waits it may go on with the live query, which
 * may end and close its watch. */
static int wait_open(sqlipc_live *l) {
        uint64_t deadline = connection_answer_deadline(l->connection);
        int r;

        while (l->watch && l->watch->state == WATCH_OPENING) {
                r = connection_wait(l->connection, CONNECTION_NO_DATA, &deadline);
                if (r < 0)
                        return connection_fail_wait(l->connection, r);
                if (l->watch)
                        l->watch->member.operations->advance(&l->watch->member);
        }
        if (l->state == LIVE_OVER)
                return connection_fail(l->connection, &l->error);
        return l->watch && l->watch->state == WATCH_OVER ? connection_fail(l->connection, &l->watch->error) : 0;
}

_public_ int sqlipc_live_open(sqlipc_connection *connection, const char *database, const char *sql,
                              const sqlipc_parameter *parameters, size_t n_parameters, const sqlipc_live_options *options,
                              sqlipc_live **ret_live) {
        _cleanup_(sqlipc_live_closep) sqlipc_live *l = NULL;
        int r;

        if (!ret_live || (n_parameters > 0 && !parameters))
                return connection_fail_errno(connection, -EINVAL);
        r = check_open(connection, database, sql, options);
        if (r < 0)
                return r;
        r = live_new(&l, connection, database, sql, parameters, n_parameters, options);
        if (r < 0)
                return r;
        if (connection->blocking) {
                r = wait_open(l);
                if (r < 0)
                        return r;
        } else if (!live_advance(l)) {
                r = live_arm(l);
                if (r < 0)
                        return r;
        }
        *ret_live = steal(l);
        return 0;
}

/* ---- Changes ------------------------------------------------------------------------------------------------------ */

/* Does what can be done without waiting, also about the bus unless the program's loop does that. */
static bool advance_now(sqlipc_live *l) {
        sqlipc_connection *c = l->connection;

        if (live_advance(l))
                return true;
        return live_news(l).bus && (c->blocking || l->object_fd.epoll_fd >= 0) && connection_process_aside(c) > 0 &&
               live_advance(l);
}

/* Nothing is new, and the program does not want to wait. */
static int wait_later(sqlipc_live *l) {
        int r = object_fd_turn(&l->object_fd, l->connection, live_news(l));

        if (r < 0)
                return connection_fail_loop(l->connection);
        if (l->connection->blocking)
                return 0;
        l->member.wait = MEMBER_WAITS;
        r = live_arm(l);
        return r < 0 ? r : -EAGAIN;
}

/* Waits until there is something to tell. 1; 0: not within the time; or the failure. */
static int wait_for_news(sqlipc_live *l, uint64_t deadline) {
        sqlipc_connection *c = l->connection;
        unsigned n_interrupts = connection_interrupts(c);
        int r;

        while (!live_advance(l)) {
                if (n_interrupts != connection_interrupts(c) && l->state == LIVE_WAITING)
                        return error_set(&c->error, ERROR_CANCELLED, "The wait for a change was interrupted.");
                r = connection_wait(c, live_news(l).data, &deadline);
                if (r == -ETIMEDOUT)
                        return live_advance(l);
                if (r < 0)
                        return connection_fail_wait(c, r);
        }
        return 1;
}

_public_ int sqlipc_live_next(sqlipc_live *live, uint64_t timeout_usec, const sqlipc_live_change **ret_change) {
        int r;

        if (!live)
                return -EINVAL;
        r = connection_check(live->connection);
        if (r < 0)
                return r;
        if (!ret_change)
                return connection_fail_errno(live->connection, -EINVAL);
        if (advance_now(live))
                return live_take(live, ret_change);
        if (!live->connection->blocking || timeout_usec == 0)
                return wait_later(live);
        if (live->connection->dispatching) /* a handler of the bus must not wait */
                return connection_fail_errno(live->connection, -EBUSY);
        r = wait_for_news(live, connection_deadline_after(timeout_usec));
        return r <= 0 ? r : live_take(live, ret_change);
}

_public_ int sqlipc_live_get_fd(sqlipc_live *live) {
        int r;

        if (!live)
                return -EINVAL;
        r = connection_check(live->connection);
        if (r < 0)
                return r;
        r = object_fd_open(&live->object_fd);
        if (r < 0)
                return connection_fail_errno(live->connection, r);
        object_fd_update(&live->object_fd, live->connection, live_news(live));
        return live->object_fd.epoll_fd;
}

/* ---- The result --------------------------------------------------------------------------------------------------- */

/* While differences are told, the names are those of the new result. */
static unsigned count_columns(const sqlipc_live *l) {
        return l->state == LIVE_TELLING ? l->next.n_columns : l->rows.n_columns;
}

_public_ unsigned sqlipc_live_column_count(sqlipc_live *live) {
        return live ? count_columns(live) : 0;
}

_public_ const char *sqlipc_live_column_name(sqlipc_live *live, unsigned column) {
        return live && column < count_columns(live) ? live->names[column] : NULL;
}

_public_ uint64_t sqlipc_live_sequence(sqlipc_live *live) {
        return live ? live->sequence : 0;
}

_public_ int sqlipc_live_set_ready_callback(sqlipc_live *live, sqlipc_live_callback callback, void *userdata) {
        if (!live)
                return -EINVAL;
        live->on_ready = callback;
        live->on_ready_userdata = userdata;
        return 0;
}
