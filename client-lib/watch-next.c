/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of a watch that programs call (table-watch.h). Library. */
#include "client-lib/connection.h"
#include "client-lib/error.h"
#include "client-lib/event-loop.h"
#include "client-lib/table-watch.h"

/* ---- Opening ------------------------------------------------------------------------------------------------------ */

static int check_open(sqlipc_connection *c, const char *database) {
        int r = connection_check(c);

        if (r < 0)
                return r;
        if (!database)
                return connection_fail_errno(c, -EINVAL);
        if (c->blocking && c->dispatching) /* a handler cannot wait for the answer, so nothing may be sent */
                return connection_fail_errno(c, -EBUSY);
        return 0;
}

static int wait_open(sqlipc_watch *w) {
        uint64_t deadline = connection_answer_deadline(w->connection);
        int r;

        while (w->state == WATCH_OPENING) {
                r = connection_wait(w->connection, CONNECTION_NO_DATA, &deadline);
                if (r < 0)
                        return connection_fail_wait(w->connection, r);
                w->member.operations->advance(&w->member);
        }
        return w->state == WATCH_OVER ? connection_fail(w->connection, &w->error) : 0;
}

static int open_watch(sqlipc_connection *c, const WatchSubject *subject, sqlipc_watch **ret) {
        _cleanup_(sqlipc_watch_closep) sqlipc_watch *w = NULL;
        int r = check_open(c, subject->database);

        if (r < 0)
                return r;
        r = table_watch_new(&w, c, subject);
        if (r < 0)
                return connection_fail_errno(c, r);
        if (c->blocking) {
                r = wait_open(w);
                if (r < 0)
                        return r;
        } else
                w->tells_beginning = true;
        *ret = steal(w);
        return 0;
}

_public_ int sqlipc_watch_open(sqlipc_connection *connection, const char *database, const char *const *tables,
                               sqlipc_watch **ret_watch) {
        if (!ret_watch)
                return connection_fail_errno(connection, -EINVAL);
        return open_watch(connection, &(WatchSubject) { .database = database, .tables = tables }, ret_watch);
}

_public_ int sqlipc_watch_open_since(sqlipc_connection *connection, const char *database, const char *const *tables,
                                     uint64_t since, sqlipc_watch **ret_watch) {
        if (!ret_watch)
                return connection_fail_errno(connection, -EINVAL);
        return open_watch(connection, &(WatchSubject) { .database = database, .tables = tables, .since = since },
                          ret_watch);
}

_public_ int sqlipc_watch_open_sql(sqlipc_connection *connection, const char *database, const char *sql,
                                   sqlipc_watch **ret_watch) {
        Error e;

        if (!sql || !ret_watch)
                return connection_fail_errno(connection, -EINVAL);
        if (connection && call_check_sql(&e, sql) < 0)
                return connection_fail(connection, &e);
        return open_watch(connection, &(WatchSubject) { .database = database, .sql = sql }, ret_watch);
}

/* ---- Changes ------------------------------------------------------------------------------------------------------ */

/* Does what can be done without waiting, also about the bus unless the program's loop does that. */
static int take_now(sqlipc_watch *w) {
        sqlipc_connection *c = w->connection;
        int r = table_watch_take(w);

        if (r == -EAGAIN && watch_news(w).bus && (c->blocking || w->object_fd.epoll_fd >= 0) &&
            connection_process_aside(c) > 0)
                r = table_watch_take(w);
        return r;
}

/* Nothing is new, and the program does not want to wait. */
static int wait_later(sqlipc_watch *w) {
        int r = object_fd_turn(&w->object_fd, w->connection, watch_news(w));

        if (r < 0)
                return connection_fail_loop(w->connection);
        if (w->connection->blocking)
                return 0;
        w->member.wait = MEMBER_WAITS;
        if (w->fd >= 0)
                r = event_loop_arm(w->connection, watch_news(w).data, w);
        return r < 0 ? connection_fail_errno(w->connection, r) : -EAGAIN;
}

static int wait_for_change(sqlipc_watch *w, uint64_t deadline) {
        sqlipc_connection *c = w->connection;
        unsigned n_interrupts = connection_interrupts(c);
        int r;

        for (;;) {
                r = table_watch_take(w);
                if (r != -EAGAIN)
                        return r;
                if (n_interrupts != connection_interrupts(c))
                        return error_set(&c->error, ERROR_CANCELLED, "The wait for a change was interrupted.");
                r = connection_wait(c, watch_news(w).data, &deadline);
                if (r == -ETIMEDOUT)
                        return 0;
                if (r < 0)
                        return connection_fail_wait(c, r);
        }
}

_public_ int sqlipc_watch_next(sqlipc_watch *watch, uint64_t timeout_usec) {
        int r;

        if (!watch)
                return -EINVAL;
        r = connection_check(watch->connection);
        if (r < 0)
                return r;
        r = take_now(watch);
        if (r != -EAGAIN)
                return r;
        if (!watch->connection->blocking || timeout_usec == 0)
                return wait_later(watch);
        if (watch->connection->dispatching) /* a handler of the bus must not wait */
                return connection_fail_errno(watch->connection, -EBUSY);
        return wait_for_change(watch, connection_deadline_after(timeout_usec));
}

_public_ int sqlipc_watch_get_fd(sqlipc_watch *watch) {
        int r;

        if (!watch)
                return -EINVAL;
        r = connection_check(watch->connection);
        if (r < 0)
                return r;
        r = object_fd_open(&watch->object_fd);
        if (r < 0)
                return connection_fail_errno(watch->connection, r);
        object_fd_update(&watch->object_fd, watch->connection, watch_news(watch));
        return watch->object_fd.epoll_fd;
}

_public_ uint64_t sqlipc_watch_sequence(sqlipc_watch *watch) {
        return watch ? watch->sequence : 0;
}

_public_ int sqlipc_watch_set_ready_callback(sqlipc_watch *watch, sqlipc_watch_callback callback, void *userdata) {
        if (!watch)
                return -EINVAL;
        watch->on_ready = callback;
        watch->on_ready_userdata = userdata;
        return 0;
}
