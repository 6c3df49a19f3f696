/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Live queries: their runs, and the changes that they tell (live.h). Library. */
#include <string.h>

#include "client-lib/cursor-next.h"
#include "client-lib/error.h"
#include "client-lib/event-loop.h"
#include "client-lib/live-run.h"
#include "client-lib/live-watch.h"
#include "client-lib/live.h"
#include "client-lib/table-watch.h"

/* The pauses after runs that failed for a reason that may pass. */
#define PAUSE_MIN_USEC (USEC_PER_SEC / 20)
#define PAUSE_MAX_USEC (10 * USEC_PER_SEC)

/* ---- News --------------------------------------------------------------------------------------------------------- */

static bool has_news(const sqlipc_live *l) {
        return l->has_error || l->state == LIVE_TELLING || l->state == LIVE_OVER;
}

ObjectNews live_news(const sqlipc_live *l) {
        ObjectNews news = { .data.fd = -1, .until = UINT64_MAX };
        const sqlipc_watch *watch = live_watch_current(l);

        if (has_news(l))
                news.until = 0;
        else if (l->state == LIVE_RUNNING) {
                news.data = cursor_next_pollfd(l->cursor);
                news.bus = true;
        } else if (watch) {
                news = watch_news(watch);
                if (live_watch_is_open(l) && l->due_at < news.until)
                        news.until = l->due_at;
        }
        return news;
}

static void tell(sqlipc_live *l) {
        if (has_news(l) && l->member.wait == MEMBER_WAITS) {
                l->member.wait = MEMBER_HAS_NEWS;
                event_loop_wake(l->connection);
        }
        object_fd_update(&l->object_fd, l->connection, live_news(l));
}

int live_arm(sqlipc_live *l) {
        sqlipc_watch *watch = live_watch_current(l);
        ObjectNews news;
        int r;

        if (l->state == LIVE_RUNNING) {
                r = cursor_next_arm(l->cursor);
                return r == -EAGAIN ? 0 : r;
        }
        if (l->state != LIVE_WAITING || !watch)
                return 0;
        news = watch_news(watch);
        watch->member.wait = MEMBER_WAITS;
        r = news.data.fd < 0 ? 0 : event_loop_arm(l->connection, news.data, watch);
        return r < 0 ? connection_fail_errno(l->connection, r) : 0;
}

void live_report(sqlipc_live *l, const Error *e) {
        l->error = *e;
        l->has_error = true;
}

/* ---- Runs --------------------------------------------------------------------------------------------------------- */

void live_set_due(sqlipc_live *l, uint64_t usec) {
        uint64_t at = usec > 0 ? connection_deadline_after(usec) : 0;

        if (at < l->due_at)
                l->due_at = at;
}

/* The live query is over, with the connection's error. */
static void end(sqlipc_live *l) {
        l->error = l->connection->error;
        l->has_error = false;
        live_run_end(l);
        live_watch_done(l);
        live_life_move(&l->state, LIVE_OVER);
}

/* The consequence of a failed run. */
typedef struct Consequence {
        bool told;    /* to the program */
        bool at_once; /* the statement runs again as soon as the program asks, */
        bool later;   /* or after a pause, if there is no change before */
} Consequence;

static Consequence consequence_of(const Error *e) {
        switch (e->number) {
        case ERROR_CANCELLED:
                return (Consequence) { .told = true, .at_once = true };
        case ERROR_DAEMON_LOST: /* the watch will bring a change, or fail */
        case ERROR_OUTCOME_UNKNOWN: /* the service has refused to watch a statement that writes */
        case ERROR_SHUTTING_DOWN:
        case ERROR_READER_TOO_SLOW:
                return (Consequence) { .later = true };
        case ERROR_WORKER_LOST:
        case ERROR_LIMITS_EXCEEDED:
        case ERROR_OUT_OF_MEMORY:
        case ERROR_BUSY:
        case ERROR_TIMED_OUT:
                return (Consequence) { .told = true, .later = true };
        default:
                return (Consequence) { .told = true, .later = e->result == -ENOMEM };
        }
}

/* The run failed, with the connection's error. */
static void on_failure(sqlipc_live *l) {
        const Error e = l->connection->error;
        Consequence consequence = consequence_of(&e);
        uint64_t pause = PAUSE_MIN_USEC;

        live_run_end(l);
        if (l->state == LIVE_RUNNING)
                live_life_move(&l->state, LIVE_WAITING);
        if (consequence.told)
                live_report(l, &e);
        if (consequence.at_once)
                live_set_due(l, 0);
        if (!consequence.later)
                return;
        for (unsigned i = 0; i < l->n_failures && pause < PAUSE_MAX_USEC; i++)
                pause *= 2;
        l->n_failures++;
        live_set_due(l, pause < PAUSE_MAX_USEC ? pause : PAUSE_MAX_USEC);
}

static void on_result(sqlipc_live *l) {
        object_fd_forget(&l->object_fd, l->connection, l->object_fd.data.fd);
        l->cursor = sqlipc_cursor_close(l->cursor);
        live_rows_index_done(&l->index);
        l->n_failures = 0;
        if (l->has_result && l->n_changes == 0) {
                live_run_settle(l);
                live_life_move(&l->state, LIVE_WAITING);
        } else
                live_life_move(&l->state, LIVE_TELLING);
        l->has_result = true;
}

/* True if the state has changed, so that there may be more to do. */
static bool advance_waiting(sqlipc_live *l) {
        if (live_watch_look(l) < 0) {
                end(l);
                return false;
        }
        if (l->has_error || !live_watch_is_open(l) || l->due_at > now_usec())
                return false;
        l->due_at = UINT64_MAX;
        if (live_run_begin(l) < 0) {
                on_failure(l);
                return false;
        }
        live_life_move(&l->state, LIVE_RUNNING);
        return true;
}

static bool advance_running(sqlipc_live *l) {
        int r = live_run_read(l);

        if (r == -EAGAIN)
                return false;
        if (r < 0)
                on_failure(l);
        else
                on_result(l);
        return true;
}

bool live_advance(sqlipc_live *l) {
        bool more = true;

        while (more && !has_news(l))
                switch (l->state) {
                case LIVE_WAITING:
                        more = advance_waiting(l);
                        break;
                case LIVE_RUNNING:
                        more = advance_running(l);
                        break;
                case LIVE_TELLING:
                case LIVE_OVER:
                case LIVE_STATE_MAX:
                        more = false;
                        break;
                }
        tell(l);
        return has_news(l);
}

/* ---- Telling ------------------------------------------------------------------------------------------------------ */

static void set_change(sqlipc_live *l, const RowsChange *change) {
        sqlipc_live_change *to = &l->change;

        *to = (sqlipc_live_change) { .position = change->position };
        switch (change->kind) {
        case ROWS_REMOVED:
                to->kind = SQLIPC_LIVE_REMOVED;
                to->old_values = l->rows.rows[change->before]->values;
                break;
        case ROWS_MOVED:
                to->kind = SQLIPC_LIVE_MOVED;
                to->new_position = change->to;
                to->values = l->rows.rows[change->before]->values;
                break;
        case ROWS_ADDED:
                to->kind = SQLIPC_LIVE_ADDED;
                to->values = l->next.rows[change->after]->values;
                break;
        case ROWS_CHANGED:
                to->kind = SQLIPC_LIVE_CHANGED;
                to->values = l->next.rows[change->after]->values;
                to->old_values = l->rows.rows[change->before]->values;
                break;
        }
}

int live_take(sqlipc_live *l, const sqlipc_live_change **ret) {
        if (l->has_error || l->state == LIVE_OVER) {
                l->has_error = false;
                tell(l);
                return connection_fail(l->connection, &l->error);
        }
        if (l->n_told < l->n_changes)
                set_change(l, &l->changes[l->n_told++]);
        else {
                l->change = (sqlipc_live_change) { .kind = SQLIPC_LIVE_SETTLED };
                live_run_settle(l);
                live_life_move(&l->state, LIVE_WAITING);
                tell(l);
        }
        *ret = &l->change;
        return 1;
}

/* ---- As a member of the connection -------------------------------------------------------------------------------- */

static uint64_t deadline(const Member *member) {
        const sqlipc_live *l = (const sqlipc_live *) member;

        if (l->state != LIVE_WAITING || l->has_error)
                return UINT64_MAX;
        if (live_watch_is_due(l))
                return 0;
        return live_watch_is_open(l) ? l->due_at : UINT64_MAX;
}

static void advance(Member *member) {
        sqlipc_live *l = (sqlipc_live *) member;

        if (deadline(member) <= now_usec() && !live_advance(l))
                (void) live_arm(l);
}

static void on_connection_closed(Member *member) {
        sqlipc_live *l = (sqlipc_live *) member;

        (void) error_set_errno(&l->connection->error, -ENOTCONN, "The connection was closed.");
        if (l->state != LIVE_OVER)
                end(l);
        l->error = l->connection->error;
        tell(l);
}

static bool call_back(Member *member) {
        sqlipc_live *l = (sqlipc_live *) member;

        if (!l->on_ready)
                return false;
        l->on_ready(l, l->on_ready_userdata); /* may free it */
        return true;
}

static const MemberOperations member_operations = {
        .advance = advance,
        .close = on_connection_closed,
        .deadline = deadline,
        .call_back = call_back,
};

/* ---- Beginning and end -------------------------------------------------------------------------------------------- */

static int copy_parameters(sqlipc_live *l, const sqlipc_parameter *parameters, size_t n) {
        _cleanup_free_ Parameter *read = NULL;
        unsigned n_positional = 0;
        int r = parameter_read_all(parameters, n, &read);

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = bindings_set(&l->bindings, read[i].name ? 0 : ++n_positional, &read[i]);
        if (r < 0 || n == 0)
                return r;
        l->parameters = calloc(n, sizeof *l->parameters);
        if (!l->parameters)
                return -ENOMEM;
        for (unsigned i = 0; i < n_positional; i++)
                l->parameters[l->n_parameters++] = l->bindings->values[i];
        for (unsigned i = 0; i < l->bindings->n_named; i++)
                l->parameters[l->n_parameters++] = l->bindings->named[i];
        return 0;
}

/* Reads the options, whose struct_size has been checked. */
static int copy_key(sqlipc_live *l, const sqlipc_live_options *options) {
        static const unsigned first = 0;
        const unsigned *from = options && options->key_columns ? options->key_columns : &first;

        l->n_key_columns = from == &first ? 1 : options->n_key_columns;
        l->key_columns = calloc(l->n_key_columns, sizeof *l->key_columns);
        if (!l->key_columns)
                return -ENOMEM;
        memcpy(l->key_columns, from, l->n_key_columns * sizeof *from);
        return 0;
}

int live_new(sqlipc_live **ret, sqlipc_connection *c, const char *database, const char *sql,
             const sqlipc_parameter *parameters, size_t n_parameters, const sqlipc_live_options *options) {
        _cleanup_(sqlipc_live_closep) sqlipc_live *l = malloc(sizeof *l);
        int r;

        if (!l)
                return connection_fail_errno(c, -ENOMEM);
        *l = (sqlipc_live) { .member.operations = &member_operations, .connection = sqlipc_connection_ref(c),
                             .database = strdup(database), .sql = strdup(sql), .object_fd = OBJECT_FD_INIT,
                             .debounce_usec = options ? options->debounce_usec : 0, .error = { .sql_offset = -1 } };
        TAILQ_INSERT_TAIL(&c->lives, &l->member, link);
        if (!l->database || !l->sql)
                return connection_fail_errno(c, -ENOMEM);
        r = copy_parameters(l, parameters, n_parameters);
        if (r >= 0)
                r = copy_key(l, options);
        if (r < 0)
                return connection_fail_send(c, r);
        r = live_watch_open(l);
        if (r < 0)
                return r;
        *ret = steal(l);
        return 0;
}

_public_ sqlipc_live *sqlipc_live_close(sqlipc_live *l) {
        if (!l)
                return NULL;
        TAILQ_REMOVE(&l->connection->lives, &l->member, link);
        live_run_end(l);
        live_watch_done(l);
        live_rows_done(&l->rows);
        object_fd_done(&l->object_fd);
        (void) bindings_unref(l->bindings);
        (void) sqlipc_connection_unref(l->connection);
        free(l->parameters);
        free(l->key_columns);
        free(l->names);
        free(l->database);
        free(l->sql);
        free(l);
        return NULL;
}

_public_ void sqlipc_live_closep(sqlipc_live **live) {
        (void) sqlipc_live_close(*live);
}
