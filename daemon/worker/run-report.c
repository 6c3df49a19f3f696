/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See run-report.h.
 */
#include "daemon/worker/run-report.h"

#include <stdlib.h>

#include "daemon/worker/channel-report.h"
#include "daemon/worker/clock.h"
#include "daemon/worker/describe.h"
#include "daemon/worker/report.h"

#define PROGRESS_USEC (500 * USEC_PER_MSEC)   /* between two reports of progress */

static void report(Run *run, const Message *m) {
        int r = report_send(run->context->control_fd, m);

        if (r < 0)
                run->context->report_error = r;
}

static void report_number(Run *run, MessageKind kind) {
        report(run, &(Message) { .kind = kind, .number = run->job->number });
}

/* Reports a change of the channel's state at once, without the pause between two reports. */
static void report_channel_now(Channel *c) {
        c->progress_usec = 0;
        channel_report_progress(c, now_coarse_usec());
}

void run_report_parked(Run *run, bool parked) {
        if (run->parked_said == parked)
                return;
        run->parked_said = parked;
        if (run->channel) {
                report_channel_now(run->channel);
                return;
        }
        report(run, &(Message) { .kind = MESSAGE_PARKED, .parked = { .number = run->job->number, .parked = parked } });
}

void run_report_progress(Run *run) {
        uint64_t now = now_coarse_usec();

        if (run->channel) {
                channel_report_progress(run->channel, now);
                return;
        }
        if (now < run->progress_usec + PROGRESS_USEC)
                return;
        run->progress_usec = now;
        report(run, &(Message) {
                .kind = MESSAGE_PROGRESS,
                .progress = { .number = run->job->number, .n_rows = run->n_rows, .n_bytes = run->writer.total },
        });
}

void run_report_unread(Run *run, Bytes unread) {
        report(run, &(Message) { .kind = MESSAGE_DRAINED, .drained = { .number = run->job->number, .unread = unread } });
}

void run_report_end(Run *run, bool drained) {
        if (run->ended_said) {
                /* only once: the reader may leave between the report and the last byte */
                if (drained && !run->drained_said && !run->channel)
                        run_report_unread(run, (Bytes) {});
                run->drained_said = run->drained_said || drained;
                return;
        }
        run->ended_said = true;
        run->drained_said = drained;
        if (run->channel) {
                channel_count_run(run->channel);
                if (run->parked_said || !drained) { /* nothing is pinned now, even if the end cannot be written yet */
                        run->parked_said = false;
                        report_channel_now(run->channel);
                }
                return;
        }
        report(run, &(Message) {
                .kind = MESSAGE_ENDED,
                .ended = {
                        .number = run->job->number,
                        .failure = sql_error_as_failure(&run->error),
                        .n_rows = run->n_rows,
                        .n_bytes = run_bytes(run),
                        .usec = now_usec() - run->taken_usec,
                        .drained = drained,
                },
        });
}

void run_report_filling(Run *run) {
        if (!run->channel) /* the size of a socket is fixed */
                report_number(run, MESSAGE_FILLING);
}

bool run_report_started(Run *run, SqlError *error) {
        Message m = { .kind = MESSAGE_STARTED };
        Started *s = &m.started;

        if (run->channel)
                return run->started = true;
        *s = (Started) { .number = run->job->number, .read_only = true };
        if ((run->is_prepare || run->job->describe) && !describe_statement(run->stmt, s, error))
                return false;
        run->started = true;
        report(run, &m);
        free(s->columns);
        return true;
}
