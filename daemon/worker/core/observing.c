/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See observing.h.
 */
#include "daemon/worker/core/observing.h"

#include <errno.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "daemon/worker/core/report.h"

typedef struct Observing {
        const Engine *engine;
        EnginePool *pool;    /* owned */
        int control_fd;      /* borrowed */
        int notifier_fd;     /* owned; inotify; -1: none */
        bool told;           /* the supervisor has the descriptor */
} Observing;

/* Without memory or a free descriptor for it, the supervisor asks from time to time. */
static int tell_notifier(Observing *o) {
        int r;

        if (o->told)
                return 0;
        o->told = true;
        if (o->notifier_fd < 0)
                o->notifier_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (o->notifier_fd < 0)
                return 0;
        do
                r = message_send(o->control_fd, &(Message) { .kind = MESSAGE_NOTIFIER }, o->notifier_fd);
        while (r == -EAGAIN);
        return r;
}

/* The notifier first: a change after the look is then noticed. */
static int look(Observing *o) {
        Message m = { .kind = MESSAGE_OBSERVED, .observed.name = "" };
        int r = tell_notifier(o);

        if (r < 0)
                return r;
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
                o->told = true;
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
