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
        int notifier_fd;     /* owned; inotify, or of a server the write end of a pipe; -1: none */
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

static int listening_fd(const Observing *o) {
        return o->engine->listening_fd ? o->engine->listening_fd(o->pool) : -1;
}

/* A server has told something. If the pipe is full, the supervisor will ask anyway. */
static void hear(const Observing *o) {
        if (o->engine->heard(o->pool) && o->notifier_fd >= 0)
                (void) !write(o->notifier_fd, "", 1);
}

static int serve(Observing *o) {
        for (;;) {
                struct pollfd p[] = {
                        { .fd = o->control_fd, .events = POLLIN },
                        { .fd = listening_fd(o), .events = POLLIN },
                };
                ReceivedMessage m = RECEIVED_MESSAGE_INIT;
                int r;

                if (poll(p, 2, -1) < 0 && errno != EINTR)
                        return -errno;
                if (p[1].fd >= 0 && p[1].revents)
                        hear(o);
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
