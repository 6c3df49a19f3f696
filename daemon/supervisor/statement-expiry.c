/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Statements that do not run. Supervisor. */
#include <string.h>

#include "daemon/supervisor/clock.h"
#include "daemon/supervisor/context.h"
#include "daemon/supervisor/log.h"
#include "daemon/supervisor/quota.h"
#include "daemon/supervisor/statement-expiry.h"
#include "daemon/supervisor/statement.h"

#define EXPIRED_AT_ONCE 64 /* how many expire in one turn of the loop (I1) */

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata);

static int compare(const void *a, const void *b, void *userdata) {
        const Statement *x = a, *y = b;

        return x->expires_usec < y->expires_usec ? -1 : x->expires_usec > y->expires_usec;
}

/* If the first statement runs meanwhile, the timer fires too early, which does no harm: it is set again. */
static void arm(Context *context, uint64_t usec) {
        StatementExpiry *e = context->statement_expiry;
        int r;

        if (!e->timer)
                r = sd_event_add_time(context->event, &e->timer, CLOCK_MONOTONIC, usec, 0, on_timer, context);
        else {
                r = sd_event_source_set_time(e->timer, usec);
                if (r >= 0)
                        r = sd_event_source_set_enabled(e->timer, SD_EVENT_ONESHOT);
        }
        if (r < 0)
                log_error("A timer cannot be set: %s", strerror(-r));
}

static Statement *first(const StatementExpiry *e) {
        GSequenceIter *i = g_sequence_get_begin_iter(e->statements);

        return g_sequence_iter_is_end(i) ? NULL : g_sequence_get(i);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Context *context = userdata;
        uint64_t now = clock_usec();
        Statement *s;

        for (unsigned n = 0; (s = first(context->statement_expiry)) && s->expires_usec <= now; n++) {
                if (n == EXPIRED_AT_ONCE)
                        break;
                log_full(LOG_DEBUG, database_name(s->database), s->session->name,
                         "Statement %" PRIu64 " was idle for too long.", s->number);
                (void) statement_free(s);
        }
        if (s)
                arm(context, s->expires_usec);
        return 0;
}

void statement_expiry_watch(Statement *s) {
        Context *context = s->session->context;
        uint64_t idle_usec = quota_limits(s->session->user, s->database).statement_idle_usec;

        statement_expiry_forget(s);
        if (idle_usec == UINT64_MAX)
                return;
        s->expires_usec = clock_usec() + idle_usec;
        if (!context->statement_expiry->statements)
                context->statement_expiry->statements = g_sequence_new(NULL);
        s->expiry = g_sequence_insert_sorted(context->statement_expiry->statements, s, compare, NULL);
        if (g_sequence_iter_is_begin(s->expiry))
                arm(context, s->expires_usec);
}

void statement_expiry_forget(Statement *s) {
        if (s->expiry)
                g_sequence_remove(s->expiry);
        s->expiry = NULL;
}

void statement_expiry_done(StatementExpiry *e) {
        e->timer = sd_event_source_disable_unref(e->timer);
        g_clear_pointer(&e->statements, g_sequence_free);
}
