/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The watch of a live query (live-watch.h). Library. */
#include "client-lib/error.h"
#include "client-lib/live-watch.h"
#include "client-lib/live.h"
#include "client-lib/table-watch.h"

static void on_ready(sqlipc_watch *watch, void *userdata) {
        sqlipc_live *l = userdata;

        (void) watch;
        if (!live_advance(l))
                (void) live_arm(l);
}

static int open_watch(sqlipc_live *l, const char *sql, sqlipc_watch **ret) {
        int r = table_watch_new(ret, l->connection, &(WatchSubject) { .database = l->database, .sql = sql });

        if (r < 0)
                return connection_fail_errno(l->connection, r);
        (*ret)->on_ready = on_ready;
        (*ret)->on_ready_userdata = l;
        return 0;
}

int live_watch_open(sqlipc_live *l) {
        return open_watch(l, l->sql, &l->watch);
}

bool live_watch_is_open(const sqlipc_live *l) {
        return l->watch && l->watch->state == WATCH_OPEN;
}

bool live_watch_is_due(const sqlipc_live *l) {
        return l->fallback && (l->watch ? l->watch->state == WATCH_OPEN
                                        : l->tries_again && l->fallback->state == WATCH_OPEN);
}

sqlipc_watch *live_watch_current(const sqlipc_live *l) {
        return l->watch && (l->watch->state == WATCH_OPENING || !l->fallback) ? l->watch : l->fallback;
}

void live_watch_done(sqlipc_live *l) {
        l->watch = sqlipc_watch_close(l->watch);
        l->fallback = sqlipc_watch_close(l->fallback);
}

/* True if the result has the change already, by its number. Numbers of different instances of the service are not
 * comparable. */
static bool is_known(const sqlipc_live *l) {
        return l->has_result && l->sequence > 0 && l->watch->n_opened == l->n_opened && l->watch->sequence <= l->sequence;
}

/* True if the statement cannot be compiled now; the schema may change again. */
static bool is_about_sql(const Error *e) {
        return e->number == ERROR_SQL || e->number == ERROR_MISSING_FUNCTION || e->number == ERROR_MISSING_COLLATION ||
               e->number == ERROR_MISSING_MODULE;
}

/* The watch of the statement is over. */
static int on_failure(sqlipc_live *l) {
        const Error e = l->watch->error;

        if (!is_about_sql(&e) || (!l->was_watched && l->watch->n_opened == 0))
                return connection_fail(l->connection, &e);
        l->watch = sqlipc_watch_close(l->watch);
        if (l->fallback)
                return 0; /* the error was told when that was opened */
        live_report(l, &e);
        l->due_at = UINT64_MAX;
        l->tries_again = true;
        return open_watch(l, NULL, &l->fallback);
}

/* The statement is watched, perhaps again. */
static void on_open(sqlipc_live *l) {
        l->was_watched = true;
        if (!l->fallback)
                return;
        l->fallback = sqlipc_watch_close(l->fallback);
        live_set_due(l, 0);
}

static int look_at_fallback(sqlipc_live *l) {
        int r = table_watch_take(l->fallback);

        if (r < 0 && r != -EAGAIN)
                return r;
        if (l->watch || l->fallback->state == WATCH_OPENING || (r != 1 && !l->tries_again))
                return 0;
        l->tries_again = false;
        return open_watch(l, l->sql, &l->watch);
}

int live_watch_look(sqlipc_live *l) {
        int r;

        if (live_watch_is_open(l))
                on_open(l);
        r = l->fallback ? look_at_fallback(l) : 0;
        if (r < 0 || !l->watch)
                return r;
        r = table_watch_take(l->watch);
        if (r < 0 && r != -EAGAIN) {
                r = on_failure(l);
                return r < 0 || !l->fallback ? r : look_at_fallback(l);
        }
        if (r == 1 && !is_known(l))
                live_set_due(l, l->debounce_usec);
        return 0;
}
