/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See job-channels.h.
 */
#include "daemon/worker/job-channels.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "daemon/worker/channel-report.h"
#include "daemon/worker/clock.h"
#include "daemon/worker/compile-limit.h"
#include "daemon/worker/report.h"

/* Uses edge-triggered events: a request that cannot be read yet must not wake the worker again and again. EPOLLOUT is set
 * only while the channel waits for room, because each answer that the client reads makes room. */
static int watch_channel(JobQueue *q, Channel *c, bool for_room) {
        struct epoll_event e = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET | (for_room ? EPOLLOUT : 0), .data.ptr = &c->run };

        if (c->watched == e.events)
                return 0;
        if (epoll_ctl(q->epoll_fd, c->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &e) < 0)
                return -errno;
        c->watched = e.events;
        return 0;
}

/* The channel must not be in the queue. */
static void forget_channel(JobQueue *q, Channel *c) {
        if (c->watched)
                (void) epoll_ctl(q->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
        if (c->next)
                c->next->previous = c->previous;
        *(c->previous ? &c->previous->next : &q->channels) = c->next;
        (void) channel_free(c);
}

static void close_channel(JobQueue *q, Channel *c) {
        channel_report_closed(c, (Bytes) {});
        forget_channel(q, c);
}

/* Gives the channel back. If there is no memory for its state, it stays. */
static void rest_channel(JobQueue *q, Channel *c, bool waiting) {
        if (c->queued)
                job_queue_take_out(q, &c->run);
        if (channel_report_rested(c, waiting, (Bytes) {}) == 0)
                forget_channel(q, c);
        else if (c->run.state != RUN_IDLE)
                job_queue_append(q, &c->run);
}

/* When the channel needs attention even if nothing comes. */
static uint64_t look_again_usec(const Channel *c) {
        uint64_t quiet = channel_quiet_until(c), due = channel_report_due(c);

        return quiet < due ? quiet : due;
}

/* EXIT or GIVE_WAY: the channel moves to another worker; if it cannot, it is closed. */
static void leave(JobQueue *q, Channel *c) {
        if (c->queued)
                job_queue_take_out(q, &c->run);
        if (!channel_can_move(c) || channel_report_rested(c, channel_waits(c), (Bytes) {}) < 0)
                channel_report_closed(c, (Bytes) {});
        forget_channel(q, c);
}

/* The supervisor writes the answers that are left, and then another worker continues. The channel must not be in the
 * queue. */
static void hand_over(JobQueue *q, Channel *c) {
        bool can_move;
        uint8_t *bytes;
        size_t size;
        Bytes unread;

        c->slow = false;
        if (channel_take_unread(c, &bytes, &size, &can_move) < 0) {
                close_channel(q, c);
                return;
        }
        unread = (Bytes) { .data = (const char *) bytes, .size = size };
        if (!can_move || channel_report_rested(c, channel_waits(c), unread) < 0)
                channel_report_closed(c, unread);
        free(bytes);
        forget_channel(q, c);
}

/* Acts on a channel after its turn. */
int channels_settle(JobQueue *q, Channel *c) {
        RunState state = c->run.state;

        if (c->dropped && state != RUN_OVER) /* it was dropped inside its step, which is over now */
                channel_drop(c, false);
        if (c->slow && !c->dropped) {
                hand_over(q, c);
                return 0;
        }
        if (c->dropped || state == RUN_OVER) {
                close_channel(q, c);
                return 0;
        }
        if (q->context.leaving && channel_is_answered(c)) {
                leave(q, c);
                return 0;
        }
        if (state != RUN_IDLE)
                job_queue_append(q, &c->run);
        if ((state == RUN_IDLE || c->closing) && look_again_usec(c) < q->armed_usec)
                job_queue_arm(q, look_again_usec(c));
        return watch_channel(q, c, state == RUN_PARKED || state == RUN_DRAINING);
}

/* ---- from the supervisor ---- */

static Channel *find_channel(JobQueue *q, uint64_t number) {
        for (Channel *c = q->channels; c; c = c->next)
                if (c->setup.number == number)
                        return c;
        return NULL;
}

/* The channel gets a turn at once: it came because its socket is readable, or because requests moved with it. */
int channels_add(JobQueue *q, ReceivedMessage *m) {
        uint64_t number = m->message.channel.number;
        Channel *c;

        compile_limit_set(m->message.channel.prepare_timeout_usec);
        if (channel_new(&q->context, m, &c) < 0)
                return channel_report_refused(q->control_fd, number);
        c->next = q->channels;
        if (c->next)
                c->next->previous = c;
        q->channels = c;
        c->run.state = RUN_READY;
        return channels_settle(q, c);
}

int channels_close(JobQueue *q, const ChannelClose *m) {
        Channel *c = find_channel(q, m->number);

        if (!c) /* it has just ended */
                return 0;
        if (m->drain)
                channel_drain(c);
        else
                channel_drop(c, &c->run == q->current);
        if (&c->run == q->current)
                return 0;
        if (c->queued)
                job_queue_take_out(q, &c->run);
        if (m->drain)
                return channels_settle(q, c);
        close_channel(q, c);
        return 0;
}

/* ---- events and times ---- */

void channels_on_events(JobQueue *q, Channel *c, uint32_t events) {
        if (!channel_on_events(c, events) || &c->run == q->current)
                return;
        c->run.state = RUN_READY;
        if (!c->queued)
                job_queue_append(q, &c->run);
}

/* Gives channels away that wait while the worker is inside the step of another run: another worker may have time for
 * them. */
void channels_give_away(JobQueue *q) {
        for (Channel *c = q->channels, *next; c; c = next) {
                next = c->next;
                if (&c->run != q->current && channel_can_move(c) && channel_waits(c))
                        rest_channel(q, c, true);
        }
}

/* Gives channels back that were quiet for long. Closes those that have only a part of a request, or a last answer that is
 * not read. Returns when to check again. */
uint64_t channels_expire(JobQueue *q, uint64_t now) {
        uint64_t first = UINT64_MAX;

        for (Channel *c = q->channels, *next; c; c = next) {
                uint64_t until = channel_quiet_until(c);

                next = c->next;
                if (channel_report_due(c) <= now)
                        channel_report_progress(c, now);
                if (until > now)
                        first = look_again_usec(c) < first ? look_again_usec(c) : first;
                else if (c->closing || channel_input_is_partial(&c->input)) {
                        if (c->queued)
                                job_queue_take_out(q, &c->run);
                        close_channel(q, c);
                } else if (channel_can_move(c))
                        rest_channel(q, c, false);
        }
        return first;
}

uint64_t channels_idle_since(const JobQueue *q) {
        uint64_t since = 0;

        if (q->current || q->first)
                return UINT64_MAX;
        for (const Channel *c = q->channels; c; c = c->next) {
                uint64_t over = c->run.taken_usec + c->run.counters.usec;

                since = over > since ? over : since;
        }
        return since;
}

void channels_leave(JobQueue *q) {
        for (Channel *c = q->channels, *next; c; c = next) {
                next = c->next;
                if (&c->run != q->current && channel_is_answered(c))
                        leave(q, c);
        }
}

void channels_report_progress(JobQueue *q) {
        for (Channel *c = q->channels; c; c = c->next)
                if (c->busy)
                        channel_report_progress(c, now_coarse_usec());
}

void channels_end(JobQueue *q) {
        while (q->channels) {
                Channel *c = q->channels;

                channel_cancel(c, ERROR_SHUTTING_DOWN, "the service is stopping: ask again");
                if (!c->busy && c->run.state != RUN_IDLE)
                        (void) channel_flush(c);
                leave(q, c);
        }
}

void channels_free(JobQueue *q) {
        while (q->channels)
                forget_channel(q, q->channels);
}
