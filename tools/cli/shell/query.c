/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The loop in which the shell waits (query.h). The library is non-blocking, so that one poll() waits for rows, Ctrl-C and
 * the pager. All early ends of a run go through end_run().
 */
#include "tools/cli/shell/query.h"

#include <errno.h>
#include <glib.h>
#include <string.h>

#include "tools/cli/output/interrupt.h"
#include "tools/cli/output/output.h"
#include "tools/cli/render/human.h"

/* The shell waits at most this long for the end of a cancelled run, so that the next query finds the service idle. */
#define CANCEL_USEC ((uint64_t) 1000 * 1000)
/* The number of rows between two looks at the clock. */
enum { ROWS_UNWATCHED = 256 };

static uint64_t now_usec(void) {
        return (uint64_t) g_get_monotonic_time();
}

/* ---- Waiting ------------------------------------------------------------------------------------------------------ */

static int msec_until(uint64_t until) {
        uint64_t now = now_usec();

        if (until == UINT64_MAX)
                return -1;
        return until <= now ? 0 : (int) MIN((until - now) / 1000 + 1, (uint64_t) G_MAXINT);
}

/* Waits for the library, a signal, the output (if `output` is not NULL), or `until`. */
static int wait_once(Query *query, Output *output, uint64_t until) {
        struct pollfd fds[3] = { { .fd = sqlipc_get_fd(query->connection) }, { .fd = interrupt_fd(), .events = POLLIN },
                                 { .fd = -1 } };
        uint64_t library = UINT64_MAX;
        int timeout, n;

        (void) sqlipc_get_timeout(query->connection, &library);
        timeout = msec_until(MIN(until, library));
        fds[0].events = (short) sqlipc_get_events(query->connection);
        if (output)
                fds[2] = output_pollfd(output, &timeout);
        n = poll(fds, G_N_ELEMENTS(fds), timeout);
        if (n < 0 && errno != EINTR)
                return -errno;
        (void) sqlipc_process(query->connection); /* the cursor reports errors */
        return output && (n == 0 || fds[2].revents) ? output_pump(output) : 0;
}

static uint64_t deadline_of(const Query *query) {
        uint64_t timeout = query->shell->settings.timeout_usec;

        return timeout > 0 ? query->begin + timeout : UINT64_MAX;
}

static uint64_t pause_due(const Query *query) {
        uint64_t pause = query->last + (uint64_t) query->pause_msec * 1000;
        uint64_t hold = query->hold_msec > 0 ? query->dirty_since + (uint64_t) query->hold_msec * 1000 : UINT64_MAX;

        return query->dirty && query->pause ? MIN(pause, hold) : UINT64_MAX;
}

static void show_progress(Query *query, uint64_t now) {
        g_autofree char *line = NULL;

        if (!progress_is_due(&query->progress, now))
                return;
        line = human_progress(query->totals.n_rows, query->n_bytes, now - query->progress.begin, progress_width());
        progress_draw(&query->progress, line);
}

/* Handles signals, the time limit and the progress line. */
static int look_around(Query *query) {
        uint64_t now = now_usec();

        if (interrupt_pending() || interrupt_leave()) {
                query->n_interrupts += interrupt_take();
                output_hurry(query->shell->output);
                return -ECANCELED;
        }
        if (now >= deadline_of(query)) {
                query->timed_out = true;
                return -ETIMEDOUT;
        }
        if (!query->on_terminal || !query->has_columns)
                show_progress(query, now);
        return 0;
}

static int wait_for_row(Query *query) {
        uint64_t until = MIN(deadline_of(query), pause_due(query));
        int r;

        if (!query->on_terminal || !query->has_columns)
                until = MIN(until, query->progress.due);
        r = wait_once(query, query->shell->output, until);
        if (r < 0) {
                query->from_output = true;
                return r;
        }
        if (now_usec() >= pause_due(query)) {
                query->dirty = false;
                r = query->pause(query->userdata);
        }
        return r < 0 ? r : look_around(query);
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

static void on_columns(Query *query) {
        Session *session = &query->shell->session;

        query->has_columns = true;
        query->totals.n_columns = sqlipc_column_count(query->cursor);
        query->totals.first_usec = now_usec() - query->begin;
        if (query->on_terminal)
                progress_erase(&query->progress);
        if (session->lost)
                shell_say(query->shell, "Connected again.");
        session->lost = false;
}

/* Handles a result of sqlipc_cursor_next(): a row, or the end. */
static int take(Query *query, bool is_row) {
        int r = 0;

        if (!query->has_columns) {
                on_columns(query);
                r = query->visit(query->cursor, false, query->userdata);
        }
        if (r < 0 || !is_row)
                return r;
        r = query->visit(query->cursor, true, query->userdata);
        if (r < 0)
                return r;
        if (!query->dirty)
                query->dirty_since = now_usec();
        query->dirty = true;
        return ++query->totals.n_rows % ROWS_UNWATCHED == 0 || interrupt_pending() ? look_around(query) : 0;
}

static int take_rows(Query *query) {
        int next, r;

        for (;;) {
                next = sqlipc_cursor_next(query->cursor);
                if (next == -EAGAIN) {
                        query->last = query->last ?: now_usec();
                        r = wait_for_row(query);
                } else if (next < 0) {
                        query->is_over = true;
                        return next == -ECANCELED && query->timed_out ? -ETIMEDOUT : next;
                } else {
                        query->last = 0;
                        r = take(query, next > 0);
                }
                if (r < 0)
                        return r;
                if (next == 0) {
                        query->is_over = true;
                        return 0;
                }
        }
}

/* ---- The run ------------------------------------------------------------------------------------------------------ */

static void tell(const Shell *shell, const char *text) {
        if (shell->interactive)
                shell_say(shell, "%s", text);
        else
                shell_complain(shell, "%s", text);
}

/* Says what is known of a statement that may write, and was not cancelled for certain. A script is told, too: its exit
 * status is that of a statement that was cancelled. */
static void tell_end(const Query *query, int next) {
        sqlipc_cursor *c = query->cursor;

        if (next == -EAGAIN && !query->has_columns)
                tell(query->shell, "No answer: if the statement writes, it may have taken effect.");
        else if (next == -ECONNABORTED)
                tell(query->shell, sqlipc_error_message(query->connection));
        else if (next == 0 && (sqlipc_cursor_changes(c) > 0 || sqlipc_column_count(c) == 0))
                tell(query->shell, "The statement took effect before it could be cancelled.");
}

/* Returns true if the service has not answered the run yet: such a run cannot be cancelled for certain, so the connection
 * must be closed instead. On a channel it can be cancelled. */
static bool is_unheard_of(const Query *query, int next) {
        return (next == -EAGAIN || next == -ECONNABORTED) && !query->has_columns &&
               sqlipc_cursor_get_transport(query->cursor) != SQLIPC_TRANSPORT_CHANNEL;
}

/* Cancels the run, drops rows that are on their way, and waits for the run's end on the server. Another Ctrl-C ends the
 * wait. */
static void end_run(Query *query) {
        uint64_t until = now_usec() + CANCEL_USEC;
        int next;

        (void) sqlipc_cursor_cancel(query->cursor);
        next = sqlipc_cursor_next(query->cursor);
        while ((next == 1 || next == -EAGAIN) && now_usec() < until && !interrupt_pending() && !interrupt_leave()) {
                if (next == -EAGAIN && wait_once(query, NULL, until) < 0)
                        break;
                next = sqlipc_cursor_next(query->cursor);
        }
        query->n_interrupts += interrupt_take();
        tell_end(query, next);
        if (!is_unheard_of(query, next))
                return;
        query->cursor = sqlipc_cursor_close(query->cursor);
        if (query->shell->session.transaction.object)
                shell_say(query->shell, "The transaction was rolled back.");
        /* TEMP tables would end with the connection, and the next statement would read others of their names. The Cancel
         * that was sent names the call, but does not end a question of polkit. */
        if (query->shell->session.may_have_pin) {
                session_forget_transaction(&query->shell->session);
                return;
        }
        query->connection = NULL;
        session_disconnect(&query->shell->session);
}

/* The time is over while the output is not read. The service need not wait for that; rows on their way are still written. */
static void on_late_output(void *userdata) {
        Query *query = userdata;

        query->timed_out = true;
        (void) sqlipc_cursor_cancel(query->cursor);
        (void) sqlipc_process(query->connection); /* sends it */
}

static void note_totals(Query *query) {
        QueryTotals *totals = &query->totals;

        sqlipc_cursor_get_totals(query->cursor, NULL, &totals->n_bytes, &totals->server_usec);
        totals->transport = sqlipc_cursor_get_transport(query->cursor);
        if (totals->transport != SQLIPC_TRANSPORT_AUTO)
                query->shell->session.last_transport = totals->transport;
        totals->total_usec = now_usec() - query->begin;
}

/* Sums up what the statements have changed. Those with a result and without changes only read. */
static void note_changes(Query *query) {
        Session *session = &query->shell->session;

        query->totals.n_changes = sqlipc_cursor_changes(query->cursor);
        if (query->totals.n_columns > 0 && query->totals.n_changes == 0)
                return;
        session->n_changes = query->totals.n_changes;
        session->n_total_changes += query->totals.n_changes;
}

bool query_is_lost(sqlipc_connection *connection) {
        switch (sqlipc_error_code(connection)) {
        case SQLIPC_ERROR_DAEMON_LOST:
        case SQLIPC_ERROR_OUTCOME_UNKNOWN:
        case SQLIPC_ERROR_SHUTTING_DOWN: /* workers report this when the supervisor is killed */
                return true;
        default:
                return false;
        }
}

static void note_loss(Query *query, int r) {
        if (r < 0 && query_is_lost(query->connection))
                query->shell->session.lost = true;
}

/* The library does not tell when it begins a pin. Only these statements need one; others count, too. */
static bool may_need_pin(const char *sql) {
        const char *pragma = strcasestr(sql, "pragma");

        while (pragma && pragma[strlen("pragma")] == '_') /* a table-valued function */
                pragma = strcasestr(pragma + 1, "pragma");
        return pragma || strcasestr(sql, "attach") || (strcasestr(sql, "create") && strcasestr(sql, "temp"));
}

static int run(Query *query) {
        Shell *shell = query->shell;
        int r;

        shell->session.may_have_pin |= may_need_pin(query->sql);
        r = sqlipc_query_with(query->connection, shell->session.database, query->sql, query->parameters, query->n_parameters,
                              &query->cursor);
        if (r < 0)
                return r;
        if (shell->settings.timeout_usec > 0)
                output_set_alarm(shell->output, (gint64) deadline_of(query), on_late_output, query);
        r = take_rows(query);
        output_clear_alarm(shell->output);
        progress_erase(&query->progress);
        note_totals(query);
        if (r >= 0 && query->is_over)
                note_changes(query);
        if (!query->is_over)
                end_run(query);
        else
                note_loss(query, r);
        query->cursor = sqlipc_cursor_close(query->cursor);
        return r;
}

int query_execute(Query *query) {
        Shell *shell = query->shell;
        int r;

        query->begin = now_usec();
        progress_begin(&query->progress, shell->settings.progress, query->begin);
        if (!shell->session.database)
                return -ENODATA;
        r = session_connect(&shell->session, &query->connection);
        if (r >= 0)
                r = look_around(query);
        if (r >= 0)
                r = sqlipc_set_blocking(query->connection, 0);
        if (r < 0)
                return r;
        r = run(query);
        if (query->connection)
                (void) sqlipc_set_blocking(query->connection, 1);
        return r;
}

Query query_init(Shell *shell, const char *sql, QueryVisitor visit, void *userdata) {
        bool on_terminal = output_is_terminal(shell->output);

        return (Query) {
                .shell = shell,
                .sql = sql,
                .visit = visit,
                .userdata = userdata,
                .on_terminal = on_terminal,
                .last_reader = !on_terminal && g_str_equal(output_target(shell->output), "stdout"),
        };
}
