/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See job-report.h.
 */
#include "daemon/worker/core/job-report.h"

#include <stdlib.h>

#include "daemon/worker/core/channel-report.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/report.h"
#include "daemon/worker/describe.h"

#define PROGRESS_USEC (500 * USEC_PER_MSEC)   /* between two reports of progress */

static void report(Job *job, const Message *m) {
        int r = report_send(job->context->control_fd, m);

        if (r < 0)
                job->context->report_error = r;
}

static void report_number(Job *job, MessageKind kind) {
        report(job, &(Message) { .kind = kind, .number = job->spec->number });
}

/* Reports a change of the channel's state at once, without the pause between two reports. */
static void report_channel_now(ServedChannel *c) {
        c->progress_usec = 0;
        channel_report_progress(c, now_coarse_usec());
}

void job_report_parked(Job *job, bool parked) {
        if (job->parked_said == parked)
                return;
        job->parked_said = parked;
        if (job->channel) {
                report_channel_now(job->channel);
                return;
        }
        report(job, &(Message) { .kind = MESSAGE_PARKED, .parked = { .number = job->spec->number, .parked = parked } });
}

void job_report_progress(Job *job) {
        uint64_t now = now_coarse_usec();

        if (job->channel) {
                channel_report_progress(job->channel, now);
                return;
        }
        if (now < job->progress_usec + PROGRESS_USEC)
                return;
        job->progress_usec = now;
        report(job, &(Message) {
                .kind = MESSAGE_PROGRESS,
                .progress = { .number = job->spec->number, .n_rows = job->n_rows, .n_bytes = job->writer.total },
        });
}

void job_report_unread(Job *job, Bytes unread) {
        report(job, &(Message) { .kind = MESSAGE_DRAINED, .drained = { .number = job->spec->number, .unread = unread } });
}

void job_report_end(Job *job, bool drained) {
        if (job->ended_said) {
                /* only once: the reader may leave between the report and the last byte */
                if (drained && !job->drained_said && !job->channel)
                        job_report_unread(job, (Bytes) {});
                job->drained_said = job->drained_said || drained;
                return;
        }
        job->ended_said = true;
        job->drained_said = drained;
        if (job->channel) {
                channel_report_count(job->channel);
                if (job->parked_said || !drained) { /* nothing is pinned now, even if the end cannot be written yet */
                        job->parked_said = false;
                        report_channel_now(job->channel);
                }
                return;
        }
        report(job, &(Message) {
                .kind = MESSAGE_ENDED,
                .ended = {
                        .number = job->spec->number,
                        .failure = sql_error_as_failure(&job->error),
                        .n_rows = job->n_rows,
                        .n_bytes = job_bytes(job),
                        .usec = now_usec() - job->taken_usec,
                        .drained = drained,
                },
        });
}

void job_report_filling(Job *job) {
        if (!job->channel) /* the size of a socket is fixed */
                report_number(job, MESSAGE_FILLING);
}

bool job_report_started(Job *job, SqlError *error) {
        Message m = { .kind = MESSAGE_STARTED };
        Started *s = &m.started;

        if (job->channel)
                return job->started = true;
        *s = (Started) { .number = job->spec->number, .read_only = true };
        if ((job->is_prepare || job->spec->describe) && !describe_statement(job->stmt, s, error))
                return false;
        job->started = true;
        report(job, &m);
        free(s->columns);
        return true;
}
