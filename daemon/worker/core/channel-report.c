/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See channel-report.h.
 */
#include "daemon/worker/core/channel-report.h"

#include <stdlib.h>

#include "daemon/worker/core/channel-state.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/report.h"

#define PROGRESS_USEC (500 * USEC_PER_MSEC)
#define SQL_SAID_MAX ((size_t) 1024)

static int report(ServedChannel *c, const Message *m) {
        JobContext *context = c->job.context;
        int r = report_send(context->control_fd, m);

        if (r < 0)
                context->report_error = r;
        return r;
}

void channel_report_count(ServedChannel *c) {
        c->progress.n_runs += !c->job.is_prepare && !c->job.refused;
        c->progress.n_rows += c->job.sink.n_rows;
        c->progress.n_bytes += job_bytes(&c->job);
        if (!c->job.is_prepare && c->job.counters.usec > c->progress.usec)
                c->progress.usec = c->job.counters.usec;
}

static ChannelProgress progress_now(const ServedChannel *c) {
        ChannelProgress p = c->progress;
        const Job *job = &c->job;

        p.n_statements = (uint32_t) c->statements.n;
        /* true also after a job has ended and was counted, while its end waits to be read */
        p.running = served_channel_is_busy(c);
        if (!p.running)
                return p;
        p.parked = job->wait.settled;
        p.draining = job_is_ending(job);
        p.usec = now_usec() - job->taken_usec;
        p.sql = (Bytes) { .data = c->spec.sql, .size = c->spec.sql_size < SQL_SAID_MAX ? c->spec.sql_size : SQL_SAID_MAX };
        return p;
}

static void said(ServedChannel *c, bool running) {
        c->progress = (ChannelProgress) { .number = c->setup.number };
        c->running_said = running;
}

void channel_report_progress(ServedChannel *c, uint64_t now) {
        if (now < c->progress_usec + PROGRESS_USEC && !(c->running_said && !served_channel_is_busy(c)))
                return;
        c->progress_usec = now;
        (void) report(c, &(Message) { .kind = MESSAGE_CHANNEL_PROGRESS, .channel_progress = progress_now(c) });
        said(c, served_channel_is_busy(c));
}

void channel_report_now(ServedChannel *c) {
        c->progress_usec = 0;
        channel_report_progress(c, now_coarse_usec());
}

uint64_t channel_report_due(const ServedChannel *c) {
        const ChannelProgress *p = &c->progress;
        bool news = p->n_runs > 0 || p->n_bytes > 0 || served_channel_is_busy(c) != c->running_said;

        return news ? c->progress_usec + PROGRESS_USEC : UINT64_MAX;
}

int channel_report_rested(ServedChannel *c, bool waiting, Bytes unread) {
        Message m = { .kind = MESSAGE_CHANNEL_RESTED };
        uint8_t *state;
        size_t size;
        int r = channel_state_pack(&c->input, &c->statements, &c->settings, &state, &size);

        if (r < 0)
                return r;
        m.channel_end = (ChannelEnd) {
                .progress = progress_now(c),
                .waiting = waiting,
                .reads = c->reads,
                .state = { .data = (const char *) state, .size = size },
                .unread = unread,
        };
        r = report(c, &m);
        free(state);
        return r;
}

void channel_report_closed(ServedChannel *c, Bytes unread) {
        (void) report(c, &(Message) {
                .kind = MESSAGE_CHANNEL_CLOSED,
                .channel_end = { .progress = progress_now(c), .unread = unread },
        });
}

int channel_report_refused(int control_fd, uint64_t number) {
        return report_send(control_fd, &(Message) {
                .kind = MESSAGE_CHANNEL_CLOSED,
                .channel_end = { .progress = { .number = number } },
        });
}
