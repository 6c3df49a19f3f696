/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One client. Supervisor. */
#include "daemon/supervisor/channel.h"
#include "daemon/supervisor/clock.h"
#include "daemon/supervisor/manager.h"
#include "daemon/supervisor/run.h"
#include "daemon/supervisor/session.h"
#include "daemon/supervisor/statement.h"

Session *session_get(Manager *m, const Peer *p) {
        Session *s = g_hash_table_lookup(m->sessions, p->name);

        if (s)
                return s;
        s = g_new(Session, 1);
        *s = (Session) {
                .manager = m,
                .name = g_strdup(p->name),
                .user = user_get(m, p->uid),
                .statements = G_QUEUE_INIT,
                .runs = G_QUEUE_INIT,
                .channels = G_QUEUE_INIT,
                .began_usec = clock_usec(),
        };
        g_hash_table_insert(m->sessions, s->name, s);
        return s;
}

Session *session_close(Session *s, ErrorNumber error, const char *sentence) {
        if (!s)
                return NULL;
        while (s->runs.head)
                run_abandon(s->runs.head->data, error, sentence);
        while (s->channels.head) {
                Channel *c = s->channels.head->data;

                channel_abandon(c);
                channel_close(c);
        }
        while (s->statements.head)
                (void) statement_free(s->statements.head->data);
        g_hash_table_remove(s->manager->sessions, s->name);
        (void) user_unref(s->user);
        g_free(s->name);
        g_free(s);
        return NULL;
}
