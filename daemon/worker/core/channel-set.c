/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See channel-set.h.
 */
#include "daemon/worker/core/channel-set.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "daemon/worker/compile-limit.h"
#include "daemon/worker/core/channel-report.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/report.h"

/* Uses edge-triggered events: a request that cannot be read yet must not wake the worker again and again. EPOLLOUT is set
 * only while the channel waits for room, because each answer that the client reads makes room. */
static int watch_channel(JobQueue *q, ServedChannel *c, bool for_room) {
        struct epoll_event e = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET | (for_room ? EPOLLOUT : 0), .data.ptr = &c->job };

        if (c->watched == e.events)
                return 0;
        if (epoll_ctl(q->epoll_fd, c->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &e) < 0)
                return -errno;
        c->watched = e.events;
        return 0;
}

/* The channel must not be in the queue. */
static void forget_channel(JobQueue *q, ServedChannel *c) {
        if (c->watched)
                (void) epoll_ctl(q->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
        if (c->next)
                c->next->previous = c->previous;
        *(c->previous ? &c->previous->next : &q->channels) = c->next;
        (void) served_channel_free(c);
}

static void close_channel(JobQueue *q, ServedChannel *c) {
        channel_report_closed(c, (Bytes) {});
        forget_channel(q, c);
}

/* Gives the channel back. If there is no memory for its state, it stays. */
static void rest_channel(JobQueue *q, ServedChannel *c, bool waiting) {
        if (c->queued)
                job_queue_take_out(q, &c->job);
        if (channel_report_rested(c, waiting, (Bytes) {}) == 0)
                forget_channel(q, c);
        else if (c->job.state != JOB_IDLE)
                job_queue_append(q, &c->job);
}

/* When the channel needs attention even if nothing comes. */
static uint64_t look_again_usec(const ServedChannel *c) {
        uint64_t quiet = served_channel_quiet_until(c), due = channel_report_due(c);

        return quiet < due ? quiet : due;
}

/* EXIT or GIVE_WAY: the channel moves to another worker; if it cannot, it is closed. */
static void leave(JobQueue *q, ServedChannel *c) {
        if (c->queued)
                job_queue_take_out(q, &c->job);
        if (!served_channel_can_move(c) || channel_report_rested(c, served_channel_waits(c), (Bytes) {}) < 0)
                channel_report_closed(c, (Bytes) {});
        forget_channel(q, c);
}

/* The supervisor writes the answers that are left, and then another worker continues. The channel must not be in the
 * queue. */
static void hand_over(JobQueue *q, ServedChannel *c) {
        bool can_move;
        uint8_t *bytes;
        size_t size;
        Bytes unread;

        c->slow = false;
        if (served_channel_take_unread(c, &bytes, &size, &can_move) < 0) {
                close_channel(q, c);
                return;
        }
        unread = (Bytes) { .data = (const char *) bytes, .size = size };
        if (!can_move || channel_report_rested(c, served_channel_waits(c), unread) < 0)
                channel_report_closed(c, unread);
        free(bytes);
        forget_channel(q, c);
}

/* Acts on a channel after its turn. */
int channel_set_settle(JobQueue *q, ServedChannel *c) {
        JobState state = c->job.state;

        if (c->dropped && state != JOB_OVER) /* it was dropped inside its step, which is over now */
                served_channel_drop(c, false);
        if (c->slow && !c->dropped) {
                hand_over(q, c);
                return 0;
        }
        if (c->dropped || state == JOB_OVER) {
                close_channel(q, c);
                return 0;
        }
        if (q->context.leaving && served_channel_is_answered(c)) {
                leave(q, c);
                return 0;
        }
        if (state != JOB_IDLE)
                job_queue_append(q, &c->job);
        if ((state == JOB_IDLE || c->closing) && look_again_usec(c) < q->armed_usec)
                job_queue_arm(q, look_again_usec(c));
        return watch_channel(q, c, state == JOB_PARKED || state == JOB_DRAINING);
}

/* ---- from the supervisor ---- */

static ServedChannel *find_channel(JobQueue *q, uint64_t number) {
        for (ServedChannel *c = q->channels; c; c = c->next)
                if (c->setup.number == number)
                        return c;
        return NULL;
}

/* The channel gets a turn at once: it came because its socket is readable, or because requests moved with it. */
int channel_set_add(JobQueue *q, ReceivedMessage *m) {
        uint64_t number = m->message.channel.number;
        ServedChannel *c;

        compile_limit_set(m->message.channel.prepare_timeout_usec);
        if (served_channel_new(&q->context, m, &c) < 0)
                return channel_report_refused(q->control_fd, number);
        c->next = q->channels;
        if (c->next)
                c->next->previous = c;
        q->channels = c;
        c->job.state = JOB_READY;
        return channel_set_settle(q, c);
}

int channel_set_close(JobQueue *q, const ChannelClose *m) {
        ServedChannel *c = find_channel(q, m->number);

        if (!c) /* it has just ended */
                return 0;
        if (m->drain)
                served_channel_drain(c);
        else
                served_channel_drop(c, &c->job == q->current);
        if (&c->job == q->current)
                return 0;
        if (c->queued)
                job_queue_take_out(q, &c->job);
        if (m->drain)
                return channel_set_settle(q, c);
        close_channel(q, c);
        return 0;
}

/* ---- events and times ---- */

void channel_set_on_events(JobQueue *q, ServedChannel *c, uint32_t events) {
        if (!served_channel_on_events(c, events) || &c->job == q->current)
                return;
        c->job.state = JOB_READY;
        if (!c->queued)
                job_queue_append(q, &c->job);
}

/* Gives channels away that wait while the worker is inside the step of another job: another worker may have time for
 * them. */
void channel_set_give_away(JobQueue *q) {
        for (ServedChannel *c = q->channels, *next; c; c = next) {
                next = c->next;
                if (&c->job != q->current && served_channel_can_move(c) && served_channel_waits(c))
                        rest_channel(q, c, true);
        }
}

/* Gives channels back that were quiet for long. Closes those that have only a part of a request, or a last answer that is
 * not read. Returns when to check again. */
uint64_t channel_set_expire(JobQueue *q, uint64_t now) {
        uint64_t first = UINT64_MAX;

        for (ServedChannel *c = q->channels, *next; c; c = next) {
                uint64_t until = served_channel_quiet_until(c);

                next = c->next;
                if (channel_report_due(c) <= now)
                        channel_report_progress(c, now);
                if (until > now)
                        first = look_again_usec(c) < first ? look_again_usec(c) : first;
                else if (c->closing || channel_input_is_partial(&c->input)) {
                        if (c->queued)
                                job_queue_take_out(q, &c->job);
                        close_channel(q, c);
                } else if (served_channel_can_move(c))
                        rest_channel(q, c, false);
        }
        return first;
}

uint64_t channel_set_idle_since(const JobQueue *q) {
        uint64_t since = 0;

        if (q->current || q->first)
                return UINT64_MAX;
        for (const ServedChannel *c = q->channels; c; c = c->next) {
                uint64_t over = c->job.taken_usec + c->job.counters.usec;

                since = over > since ? over : since;
        }
        return since;
}

void channel_set_leave(JobQueue *q) {
        for (ServedChannel *c = q->channels, *next; c; c = next) {
                next = c->next;
                if (&c->job != q->current && served_channel_is_answered(c))
                        leave(q, c);
        }
}

void channel_set_report_progress(JobQueue *q) {
        for (ServedChannel *c = q->channels; c; c = c->next)
                if (c->busy)
                        channel_report_progress(c, now_coarse_usec());
}

void channel_set_end(JobQueue *q) {
        while (q->channels) {
                ServedChannel *c = q->channels;

                served_channel_cancel(c, ERROR_SHUTTING_DOWN, "the service is stopping: ask again");
                if (!c->busy && c->job.state != JOB_IDLE)
                        (void) served_channel_flush(c);
                leave(q, c);
        }
}

void channel_set_free(JobQueue *q) {
        while (q->channels)
                forget_channel(q, q->channels);
}
