/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A prepared statement. Supervisor. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/base/quota.h"
#include "daemon/supervisor/base/try-bytes.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/runs/sql-text.h"
#include "daemon/supervisor/runs/statement.h"

/* How long a statement that has not run is expected to run soon. */
#define UNUSED_USEC (UINT64_C(10) * 1000000)

static bool can_be_released(const Statement *s) {
        bool was_used = s->n_runs > 0 || clock_usec() - s->idle_usec >= UNUSED_USEC;

        return was_used && !pipe_has_bytes(s->pipe);
}

/* Another cached statement would take the place that one without the option leaves, until none could be released for such a
 * one either. */
static int check_cached(const User *u, const Database *d, Refusal *refusal) {
        if (quota_limits(u, d).statements_max == UINT64_MAX || pipe_may_retire(u, true))
                return 0;
        return user_refuse(u, "PipePagesMax=", refusal,
                           "Your programs hold the pipes of too many statements: finalize some, and close their pipes.");
}

static int make_room(User *u, const Database *d, bool for_cached, Refusal *refusal) {
        StatementBound bound = quota_statement_bound(u, d);

        if (bound == STATEMENT_BOUND_NONE)
                return for_cached ? check_cached(u, d, refusal) : 0;
        if (!pipe_may_retire(u, for_cached))
                return quota_check_statement(u, d, refusal);
        for (GList *i = u->idle_statements.head; i; i = i->next) {
                Statement *s = i->data;

                if ((bound == STATEMENT_BOUND_DATABASE && s->database != d) || !can_be_released(s))
                        continue;
                log_full(LOG_DEBUG, database_name(s->database), s->session->name,
                         "Statement %" PRIu64 " was released for another one.", s->number);
                pipe_shrink(s->pipe);
                (void) statement_free(s);
                break;
        }
        return quota_check_statement(u, d, refusal);
}

int statement_new(Session *s, Database *d, const char *sql, uint32_t page_size, bool cached, Statement **ret,
                  Refusal *refusal) {
        g_autoptr(GBytes) bytes = NULL;
        g_autoptr(Pipe) pipe = NULL;
        size_t size;
        int r = sql_text_check(s->user, d, sql, &size, refusal);

        if (r < 0)
                return r;
        r = make_room(s->user, d, cached, refusal);
        if (r < 0)
                return r;
        r = pipe_new(s->user, false, &pipe, refusal);
        if (r < 0)
                return r;
        bytes = try_bytes(sql, size);
        if (!bytes)
                return -ENOMEM;
        r = user_hold(s->user, size, refusal);
        if (r < 0)
                return r;
        Statement *st = g_new(Statement, 1);
        *st = (Statement) {
                .session = s,
                .database = database_ref(d),
                .number = context_next_number(s->context),
                .state = STATEMENT_PREPARING,
                .sql = g_steal_pointer(&bytes),
                .pipe = g_steal_pointer(&pipe),
                .page_size = page_size,
                .cached = cached,
                .session_link.data = st,
        };
        st->pipe->number = st->number;
        quota_count_statement(s->user, d, 1);
        g_queue_push_tail_link(&s->statements, &st->session_link);
        g_hash_table_insert(s->context->statements, &st->number, st);
        *ret = st;
        return 0;
}

static void leave_idle(Statement *s) {
        if (s->idle_link.data)
                g_queue_unlink(&s->session->user->idle_statements, &s->idle_link);
        s->idle_link.data = NULL;
}

/* It becomes the last that is released. */
static void enter_idle(Statement *s) {
        leave_idle(s);
        s->idle_usec = clock_usec();
        s->idle_link.data = s;
        g_queue_push_tail_link(&s->session->user->idle_statements, &s->idle_link);
}

Statement *statement_free(Statement *s) {
        if (!s)
                return NULL;
        User *u = s->session->user;
        if (s->run) {
                Run *run = s->run;

                s->run = NULL;
                run->statement = NULL;
                run_end(run, RUN_END_CANCELLED, ERROR_CANCELLED, "The statement was finalized.");
        }
        g_hash_table_remove(s->session->context->statements, &s->number);
        g_queue_unlink(&s->session->statements, &s->session_link);
        expiry_forget(&s->expiry);
        leave_idle(s);
        quota_count_statement(u, s->database, -1);
        user_release(u, g_bytes_get_size(s->sql));
        g_bytes_unref(s->sql);
        (void) pipe_unref(s->pipe);
        (void) database_unref(s->database);
        g_free(s);
        return NULL;
}

int statement_find(Context *context, const Peer *p, const Database *d, uint64_t number, Statement **ret, Refusal *refusal) {
        Statement *s = g_hash_table_lookup(context->statements, &number);

        if (!s || (s->state != STATEMENT_READY && s->state != STATEMENT_LOST) || s->database != d ||
            strcmp(s->session->name, p->name) != 0)
                return refuse(refusal, ERROR_UNKNOWN_STATEMENT,
                              "You have no statement %" PRIu64 " on this database; one that did not run for long is given "
                              "up (StatementIdleSec=): prepare it again.", number);
        *ret = s;
        return 0;
}

Statement *statement_of_pipe(const Context *context, const Pipe *p) {
        Statement *s = g_hash_table_lookup(context->statements, &p->number);

        return s && s->pipe == p ? s : NULL;
}

static void on_expired(ExpiryItem *item) {
        Statement *s = (Statement *) ((char *) item - offsetof(Statement, expiry));

        log_full(LOG_DEBUG, database_name(s->database), s->session->name, "Statement %" PRIu64 " was idle for too long.",
                 s->number);
        (void) statement_free(s);
}

void statement_start_expiry(Context *context) {
        expiry_init(context->statement_expiry, context->event, on_expired);
}

static void watch_expiry(Statement *s) {
        uint64_t idle_usec = quota_limits(s->session->user, s->database).statement_idle_usec;

        if (idle_usec != UINT64_MAX)
                expiry_watch(s->session->context->statement_expiry, &s->expiry, clock_usec() + idle_usec);
}

void statement_run_begins(Statement *s, Run *run) {
        s->run = run;
        expiry_forget(&s->expiry);
        leave_idle(s);
}

void statement_run_is_over(Statement *s) {
        s->run = NULL;
        if (s->state == STATEMENT_ENDING)
                (void) statement_free(s);
        else {
                watch_expiry(s);
                if (s->cached)
                        enter_idle(s);
        }
}

void statement_on_prepared(Statement *s) {
        if (s->state == STATEMENT_PREPARING)
                statement_life_move(&s->state, STATEMENT_READY);
}

void statement_on_worker_lost(Statement *s) {
        if (s->state == STATEMENT_READY)
                statement_life_move(&s->state, STATEMENT_LOST);
}

void statement_on_unpublished(Statement *s) {
        if (!s->run)
                (void) statement_free(s);
        else if (s->state != STATEMENT_ENDING)
                statement_life_move(&s->state, STATEMENT_ENDING);
}
