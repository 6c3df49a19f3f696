/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See connection-share.h.
 */
#include "daemon/worker/core/connection-share.h"

#include <errno.h>

#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/report.h"

#define ANSWER_USEC (200 * USEC_PER_MSEC) /* for the supervisor, which may have to ask another worker first */

/* NULL: the engine has none to a server. */
static EngineConnections *connections_of(const JobContext *context) {
        return context->engine->connections ? context->engine->connections(context->pool) : NULL;
}

static void report(JobContext *context, MessageKind kind) {
        int r = report_send(context->control_fd, &(Message) { .kind = kind });

        if (r < 0)
                context->report_error = r;
}

static bool has_spare(const JobContext *context, const EngineConnections *e) {
        return e->n_max > 0 && (e->n < e->n_max || context->engine->close_idle(context->pool));
}

static void give_back(ConnectionShare *s, EngineConnections *e) {
        while (s->n_asked > 0 && has_spare(s->context, e)) {
                e->n_max--;
                s->n_asked--;
                report(s->context, MESSAGE_CONNECTION_RETURNED);
        }
}

int connection_share_on_connection(ConnectionShare *s) {
        EngineConnections *e = connections_of(s->context);

        if (!e)
                return -EBADMSG;
        e->n_max++;
        e->lacks = s->wanted = false;
        return 0;
}

int connection_share_on_asked(ConnectionShare *s) {
        EngineConnections *e = connections_of(s->context);

        if (!e)
                return -EBADMSG;
        s->n_asked++;
        give_back(s, e);
        return 0;
}

void connection_share_update(ConnectionShare *s) {
        EngineConnections *e = connections_of(s->context);

        if (!e)
                return;
        give_back(s, e);
        if (!e->lacks || s->wanted)
                return;
        s->wanted = true;
        report(s->context, MESSAGE_CONNECTION_WANTED);
}

uint64_t connection_share_busy_until(const JobContext *context, uint64_t until, uint64_t now) {
        const EngineConnections *e = connections_of(context);
        bool lacks = e && e->lacks && e->n >= e->n_max;
        uint64_t usec = context->setup->busy_usec;

        if (until > 0 && !(lacks && context->n_awaiting > 0))
                return until;
        return now + (lacks && usec < ANSWER_USEC ? ANSWER_USEC : usec);
}
