/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See observing.h.
 */
#include "daemon/worker/core/observing.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "daemon/worker/core/report.h"

typedef struct Observing {
        const Engine *engine;
        EnginePool *pool;    /* owned */
        int control_fd;      /* borrowed */
        int notifier_fd;     /* owned; inotify; -1: none */
} Observing;

static int look(Observing *o) {
        Message m = { .kind = MESSAGE_OBSERVED, .observed.name = "" };

        o->engine->observe(o->pool, o->notifier_fd, &m.observed);
        return report_send(o->control_fd, &m);
}

static int handle(Observing *o, ReceivedMessage *m) {
        switch (m->message.kind) {
        case MESSAGE_OBSERVE:
                return look(o);
        case MESSAGE_NOTIFIER:
                if (o->notifier_fd >= 0)
                        return -EBADMSG;
                o->notifier_fd = m->pipe_fd;
                m->pipe_fd = -1;
                return 0;
        case MESSAGE_EXIT:
                return -ECONNRESET;
        default:
                return -EBADMSG;
        }
}

static int serve(Observing *o) {
        for (;;) {
                struct pollfd p = { .fd = o->control_fd, .events = POLLIN };
                ReceivedMessage m = RECEIVED_MESSAGE_INIT;
                int r;

                if (poll(&p, 1, -1) < 0 && errno != EINTR)
                        return -errno;
                r = message_receive(o->control_fd, &m);
                if (r == -EAGAIN)
                        continue;
                if (r > 0)
                        r = handle(o, &m);
                else if (r == 0)
                        r = -ECONNRESET;
                received_message_done(&m);
                if (r < 0)
                        return r;
        }
}

int observer_run(const Engine *engine, int control_fd, const Setup *setup) {
        Observing o = { .engine = engine, .control_fd = control_fd, .notifier_fd = -1 };
        int r = engine->start(setup, NULL, NULL, &o.pool);

        if (r == 0)
                r = serve(&o);
        engine->stop(o.pool);
        if (o.notifier_fd >= 0)
                (void) close(o.notifier_fd);
        return r == -ECONNRESET || r == -EPIPE ? 0 : r;
}
