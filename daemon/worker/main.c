/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. sqlipc-worker runs the queries of one uid, for the supervisor that started it with the job
 * socket on WORKER_JOB_FD and its own control socket on WORKER_CONTROL_FD. It knows no bus, no policy, no other user.
 *
 * Exit status: 0 the supervisor told it to end, or is gone; 1 it could not set itself up, or the supervisor sent an invalid
 * message; 2 it was started by hand.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "daemon/worker/core/change-numbers.h"
#include "daemon/worker/core/observing.h"
#include "daemon/worker/core/worker-loop.h"
#include "daemon/worker/sandbox/sandbox.h"
#include "daemon/worker/sqlite/sqlite-engine.h"

static int complain(const char *what, int r) {
        (void) fprintf(stderr, "sqlipc-worker: %s: %s\n", what, strerror(-r));
        return 1;
}

static bool is_socket(int fd) {
        struct stat st;

        return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
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

/* Limits the process, and sets up the engine, by the message SETUP. Returns as receive_setup(). */
static int set_up(const Engine *engine, ReceivedMessage *setup) {
        int r = receive_setup(setup);

        if (r <= 0)
                return r;
        r = sandbox_limit(&setup->message.setup);
        if (r == 0)
                r = engine->init(&setup->message.setup);
        return r < 0 ? r : 1;
}

static int observe(const Engine *engine, const ReceivedMessage *setup) {
        int r = sandbox_filter(true);

        return r < 0 ? r : observer_run(engine, WORKER_CONTROL_FD, &setup->message.setup);
}

int main(int argc, char **argv) {
        const Engine *engine = &sqlite_engine; /* the only one today */
        ReceivedMessage setup = RECEIVED_MESSAGE_INIT;
        WorkerLoop queue;
        int r;

        if (argc != 1 || !is_socket(WORKER_JOB_FD) || !is_socket(WORKER_CONTROL_FD)) {
                (void) fprintf(stderr, "%s " SQLIPC_VERSION ": started by sqlipcd, not by hand: see sqlipcd(8)\n", argv[0]);
                return 2;
        }
        (void) prctl(PR_SET_DUMPABLE, 0); /* otherwise other users' workers could open its memory through files in /proc */
        (void) prctl(PR_SET_NAME, "sqlipc-worker"); /* otherwise it has the name of the descriptor by which it was started */
        (void) signal(SIGPIPE, SIG_IGN); /* a reader that has left is only EPIPE */
        (void) signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is only EFBIG */
        r = set_up(engine, &setup);
        if (r <= 0) {
                received_message_done(&setup);
                return r == 0 ? 0 : complain("cannot set up", r);
        }
        if (setup.message.setup.observes) {
                r = observe(engine, &setup);
                received_message_done(&setup);
                return r == 0 ? 0 : complain("gave up", r);
        }
        change_numbers_open(WORKER_CHANGES_FD);
        r = worker_loop_init(&queue, engine, WORKER_JOB_FD, WORKER_CONTROL_FD, &setup);
        if (r == 0)
                r = sandbox_filter(false);
        if (r == 0)
                r = worker_loop_run(&queue);
        worker_loop_done(&queue);
        return r == 0 ? 0 : complain("gave up", r);
}
