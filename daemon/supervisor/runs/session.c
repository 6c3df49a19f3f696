/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One client. Supervisor. */
#include "daemon/supervisor/access/policy.h"
#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/runs/session.h"
#include "daemon/supervisor/workers/changes.h"
#include "daemon/supervisor/workers/counts-page.h"

Session *session_get(Context *context, const Peer *p) {
        Session *s = g_hash_table_lookup(context->sessions, p->name);

        if (s)
                return s;
        s = g_new(Session, 1);
        *s = (Session) {
                .context = context,
                .name = g_strdup(p->name),
                .user = user_get(context, p->uid),
                .statements = G_QUEUE_INIT,
                .runs = G_QUEUE_INIT,
                .channels = G_QUEUE_INIT,
                .began_usec = clock_usec(),
        };
        g_hash_table_insert(context->sessions, s->name, s);
        return s;
}

bool session_may_write(const Session *s, const Database *d) {
        const Peer *p = g_hash_table_lookup(s->context->peers, s->name);

        return p && policy_may_write(s->context, p, d);
}

/* Servers keep them, if at all. */
CountsPlace session_counts_place(const Session *s, const Database *d) {
        if (database_config_is_server(d->config))
                return (CountsPlace) {};
        return counts_page_place(s->user, s->name, changes_of_database(s->context, d->config)->slot);
}

void session_note_ended(Session *s, uint64_t number, const char *why) {
        EndedTransaction *t = &s->ended[s->n_ended++ % SESSION_N_ENDED];

        g_free(t->why);
        *t = (EndedTransaction) { .number = number, .why = g_strdup(why) };
}

const char *session_why_ended(const Session *s, uint64_t number) {
        for (unsigned i = 0; s && i < SESSION_N_ENDED; i++)
                if (s->ended[i].number == number && s->ended[i].why)
                        return s->ended[i].why;
        return NULL;
}

Session *session_free(Session *s) {
        for (unsigned i = 0; i < SESSION_N_ENDED; i++)
                g_free(s->ended[i].why);
        g_hash_table_remove(s->context->sessions, s->name);
        counts_page_forget(s->user, s->name);
        (void) user_unref(s->user);
        g_free(s->name);
        g_free(s);
        return NULL;
}
