/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A run whose last bytes the supervisor writes. Supervisor. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/runs/run-drain.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/runs/unread.h"

void run_drain_done(Run *run) {
        if (run->unread)
                pipe_unwatch(run->pipe);
        run->unread = unread_free(run->unread);
}

static void end(Run *run) {
        Context *context = run->context;

        run_drain_done(run);
        run_is_over(run);
        context->events->run_drained(context);
}

void run_drain_drop(Run *run, ErrorNumber error, const char *sentence) {
        Context *context = run->context;

        if (run->end.error == ERROR_NONE)
                (void) refuse(&run->end, run->writes ? ERROR_OUTCOME_UNKNOWN : error, "%s", sentence);
        run_drain_done(run);
        pipe_break(run->pipe);
        run_is_over(run);
        context->events->run_drained(context);
}

static int on_room(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Run *run = userdata;
        int r = unread_write(run->unread, fd);

        if (r > 0)
                end(run);
        else if (r == -EPIPE)
                run_drain_drop(run, ERROR_PIPE_CLOSED, "The reader closed the pipe.");
        else if (r < 0)
                run_drain_drop(run, ERROR_OUT_OF_MEMORY, "The kernel has no memory for the rest of the result.");
        return 0;
}

void run_drain_begin(Run *run, Bytes bytes) {
        if (run->pipe->write_fd < 0) { /* it was broken meanwhile */
                run_is_over(run);
                return;
        }
        int r = unread_new(run->user, bytes, &run->unread);
        if (r >= 0)
                r = pipe_watch_room(run->pipe, on_room, run);
        if (r >= 0)
                return;
        log_full(LOG_DEBUG, database_name(run->database), run->session ? run->session->name : NULL,
                 "The last bytes of run %" PRIu64 " are dropped: %s", run->number, strerror(-r));
        run_drain_drop(run, r == -ENOBUFS ? ERROR_LIMITS_EXCEEDED : ERROR_OUT_OF_MEMORY,
                       "Your slow readers left too many bytes unread: read results faster, or fewer at a time.");
}
