/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ends everything that a session holds. Supervisor. */
#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/runs/session-close.h"
#include "daemon/supervisor/runs/statement.h"
#include "daemon/supervisor/runs/watch.h"

Session *session_close(Session *s, ErrorNumber error, const char *sentence) {
        if (!s)
                return NULL;
        while (s->runs.head)
                run_end(s->runs.head->data, RUN_END_CLIENT_GONE, error, sentence);
        while (s->channels.head)
                channel_end(s->channels.head->data, CHANNEL_END_CLIENT_GONE);
        while (s->watches.head)
                watch_end(s->watches.head->data, error, sentence);
        while (s->statements.head)
                (void) statement_free(s->statements.head->data);
        return session_free(s);
}
