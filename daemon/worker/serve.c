/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See serve.h.
 */
#include "daemon/worker/serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "daemon/protocol/engine-connection.h"
#include "daemon/worker/core/change-numbers.h"
#include "daemon/worker/core/client-counts.h"
#include "daemon/worker/core/observing.h"
#include "daemon/worker/core/worker-loop.h"
#include "daemon/worker/sandbox/late-libraries.h"
#include "daemon/worker/sandbox/sandbox.h"

bool serve_has_socket(int fd) {
        struct stat st;

        return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

static int complain(const WorkerProgramKind *program, const char *what, int r) {
        (void) fprintf(stderr, "%s: %s: %s\n", program->name, what, strerror(-r));
        return 1;
}

/* Receives the first message, SETUP. 1: `ret` has it; 0: the supervisor is gone already; -EBADMSG; other -errno. */
static int receive_setup(ReceivedMessage *ret) {
        int r;

        do {
                struct pollfd p = { .fd = WORKER_CONTROL_FD, .events = POLLIN };

                if (poll(&p, 1, -1) < 0 && errno != EINTR)
                        return -errno;
                r = message_receive(WORKER_CONTROL_FD, ret);
        } while (r == -EAGAIN);
        if (r > 0 && ret->message.kind != MESSAGE_SETUP) {
                received_message_done(ret);
                return -EBADMSG;
        }
        return r;
}

/* Limits the process, and sets up the engine. */
static int set_up(const Engine *engine, const Setup *setup) {
        int r = sandbox_limit(setup);

        return r == 0 ? engine->init(setup) : r;
}

static int observe(const Engine *engine, const Setup *setup, SandboxNeeds needs) {
        int r = sandbox_filter(needs | SANDBOX_INOTIFY);

        return r < 0 ? r : observer_run(engine, WORKER_CONTROL_FD, setup);
}

static int run(const Engine *engine, ReceivedMessage *setup, SandboxNeeds needs) {
        WorkerLoop queue;
        int r = needs & SANDBOX_NETWORK ? 0 : client_counts_open(WORKER_COUNTS_FD);

        if (r < 0)
                return r;
        change_numbers_open(WORKER_CHANGES_FD);
        r = worker_loop_init(&queue, engine, WORKER_JOB_FD, WORKER_CONTROL_FD, setup);
        if (r == 0)
                r = sandbox_filter(needs);
        if (r == 0)
                r = worker_loop_run(&queue);
        worker_loop_done(&queue);
        return r;
}

int serve(const WorkerProgramKind *program) {
        SandboxNeeds needs = program->network ? SANDBOX_NETWORK : 0;
        ReceivedMessage setup = RECEIVED_MESSAGE_INIT;
        const Engine *engine = NULL;
        int r;

        (void) prctl(PR_SET_DUMPABLE, 0); /* otherwise other users' workers could open its memory through files in /proc */
        (void) signal(SIGPIPE, SIG_IGN);  /* a reader that has left is only EPIPE */
        (void) signal(SIGXFSZ, SIG_IGN);  /* a file that may not grow is only EFBIG */
        r = receive_setup(&setup);
        if (r <= 0) {
                received_message_done(&setup);
                return r == 0 ? 0 : complain(program, "cannot set up", r);
        }
        engine = program->find_engine(setup.message.setup.engine);
        if (!engine) {
                received_message_done(&setup);
                return ENGINE_EXIT_NO_ENGINE;
        }
        if (program->network)
                late_libraries_load();
        r = set_up(engine, &setup.message.setup);
        if (r < 0) {
                received_message_done(&setup);
                return complain(program, "cannot set up", r);
        }
        if (setup.message.setup.observes) {
                r = observe(engine, &setup.message.setup, needs);
                received_message_done(&setup);
        } else
                r = run(engine, &setup, needs);
        return r == 0 ? 0 : complain(program, "gave up", r);
}
