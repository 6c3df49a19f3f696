/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See channel-set.h. From top to bottom: channels that go, the task, messages from the supervisor,
 * events and times.
 */
#include "daemon/worker/core/channel-set.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "daemon/worker/core/channel-report.h"
#include "daemon/worker/core/channel-request.h"
#include "daemon/worker/core/channel-turn.h"
#include "daemon/worker/core/compile-limit.h"
#include "daemon/worker/core/job-time.h"
#include "daemon/worker/core/monotonic.h"

/* ---- channels with memory ---- */

static void wake_up(ChannelSet *s, ServedChannel *c) {
        if (!c->side.memory || c->awake)
                return;
        c->awake = true;
        c->previous_awake = NULL;
        c->next_awake = s->awake;
        if (c->next_awake)
                c->next_awake->previous_awake = c;
        s->awake = c;
}

static void take_out_awake(ChannelSet *s, ServedChannel *c) {
        if (!c->awake)
                return;
        if (c->next_awake)
                c->next_awake->previous_awake = c->previous_awake;
        *(c->previous_awake ? &c->previous_awake->next_awake : &s->awake) = c->next_awake;
        c->awake = false;
}

static bool look_at(ChannelSet *s, ServedChannel *c) {
        if (&c->task == s->tasks->current || !served_channel_look(c))
                return false;
        (void) served_channel_set_state(c, CHANNEL_READY);
        if (!c->task.queued)
                task_queue_append(s->tasks, &c->task);
        return true;
}

bool channel_set_look(ChannelSet *s) {
        bool found = false;

        for (ServedChannel *c = s->awake; c; c = c->next_awake)
                found |= look_at(s, c);
        return found;
}

bool channel_set_fall_asleep(ChannelSet *s) {
        bool found = false;

        for (ServedChannel *c = s->awake, *next; c; c = next) {
                next = c->next_awake;
                served_channel_fall_asleep(c);
                if (look_at(s, c))
                        found = true;
                else
                        take_out_awake(s, c);
        }
        return found;
}

/* ---- channels that go ---- */

static void forget_channel(ChannelSet *s, ServedChannel *c) {
        GuestDatabase *guest;

        task_queue_take_out(s->tasks, &c->task);
        channel_round_forget(&s->round, c);
        take_out_awake(s, c);
        if (c->watched)
                (void) epoll_ctl(s->tasks->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
        if (c->next)
                c->next->previous = c->previous;
        *(c->previous ? &c->previous->next : &s->first) = c->next;
        guest = c->guest;
        (void) served_channel_free(c);
        guest_database_put(guest);
}

static void close_channel(ChannelSet *s, ServedChannel *c, Bytes unread) {
        channel_report_closed(c, unread);
        forget_channel(s, c);
}

/* Gives the channel back. False: it stays, because there is no memory for its state, or a request has just come. */
static bool rest_channel(ChannelSet *s, ServedChannel *c, bool waiting) {
        served_channel_fall_asleep(c);
        if (!waiting && c->side.memory && served_channel_has_input(c)) {
                wake_up(s, c);
                return false;
        }
        if (channel_report_rested(c, waiting, (Bytes) {}) < 0)
                return false;
        forget_channel(s, c);
        return true;
}

/* Gives the channel back, so that it moves to another worker. If it cannot, closes it. The supervisor writes the answers
 * that are left. */
static void move_channel(ChannelSet *s, ServedChannel *c, bool can_move, Bytes unread) {
        served_channel_fall_asleep(c);
        if (can_move && channel_report_rested(c, served_channel_has_input(c), unread) == 0)
                forget_channel(s, c);
        else
                close_channel(s, c, unread);
}

static void leave(ChannelSet *s, ServedChannel *c) {
        move_channel(s, c, served_channel_can_move(c), (Bytes) {});
}

static void hand_over(ChannelSet *s, ServedChannel *c) {
        bool can_move;
        uint8_t *bytes;
        size_t size;

        if (channel_turn_take_unread(c, &bytes, &size, &can_move) < 0) {
                close_channel(s, c, (Bytes) {});
                return;
        }
        move_channel(s, c, can_move, (Bytes) { .data = (const char *) bytes, .size = size });
        free(bytes);
}

/* ---- the task ---- */

static uint64_t next_usec(const Task *t) {
        const ServedChannel *c = served_channel_of_task(t);

        switch (c->state) {
        case CHANNEL_READY:
                return 0;
        case CHANNEL_WAITING:
                return job_next_usec(&c->job);
        case CHANNEL_DRAINING:
                return c->drain_until_usec;
        default:
                return UINT64_MAX;
        }
}

static void look(Task *t) {
        channel_turn_look(served_channel_of_task(t));
}

static bool on_time(Task *t, uint64_t now) {
        ServedChannel *c = served_channel_of_task(t);
        JobState before = c->job.state;

        channel_turn_on_time(c, now);
        return c->state == CHANNEL_SLOW || (c->state == CHANNEL_WAITING && c->job.state != before);
}

static void on_events(TaskQueue *q, Task *t, uint32_t events) {
        ServedChannel *c = served_channel_of_task(t);

        wake_up(c->set, c);
        if (!served_channel_on_events(c, events) || t == q->current)
                return;
        (void) served_channel_set_state(c, CHANNEL_READY);
        if (!t->queued)
                task_queue_append(q, t);
}

static void cancel(Task *t, ErrorNumber error, const char *message) {
        channel_turn_cancel(served_channel_of_task(t), error, message);
}

/* When the channel needs attention even if nothing comes. */
static uint64_t look_again_usec(const ServedChannel *c) {
        uint64_t quiet = served_channel_quiet_until(c), due = channel_report_due(c);

        return quiet < due ? quiet : due;
}

/* Uses edge-triggered events: a request that cannot be read yet must not wake the worker again and again. EPOLLOUT is set
 * only while the channel waits for room, because each answer that the client reads makes room. */
static int watch_channel(TaskQueue *q, ServedChannel *c) {
        bool for_room = !c->side.memory && served_channel_waits_for_room(c);
        uint32_t events = EPOLLIN | EPOLLRDHUP | EPOLLET | (for_room ? EPOLLOUT : 0);
        struct epoll_event e = { .events = events, .data.ptr = &c->task };

        if (c->watched == e.events)
                return 0;
        if (epoll_ctl(q->epoll_fd, c->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &e) < 0)
                return -errno;
        c->watched = e.events;
        return 0;
}

static int settle(TaskQueue *q, Task *t) {
        ServedChannel *c = served_channel_of_task(t);
        ChannelSet *s = c->set;
        uint64_t again;

        if (c->intake == CHANNEL_DROPPED && c->state != CHANNEL_OVER) /* dropped inside its step, which is over now */
                channel_turn_drop(c, false);
        if (c->intake == CHANNEL_DROPPED || c->state == CHANNEL_OVER) {
                close_channel(s, c, (Bytes) {});
                return 0;
        }
        if (c->state == CHANNEL_SLOW) {
                hand_over(s, c);
                return 0;
        }
        if (s->context->leaving && served_channel_is_answered(c)) {
                leave(s, c);
                return 0;
        }
        if (c->state == CHANNEL_IDLE && served_channel_belongs_elsewhere(c) && served_channel_can_move(c) &&
            rest_channel(s, c, false))
                return 0;
        again = look_again_usec(c);
        wake_up(s, c);
        if (c->state != CHANNEL_IDLE)
                task_queue_append(q, t);
        if (again < q->armed_usec)
                task_queue_arm(q, again);
        return watch_channel(q, c);
}

static const TaskType task_type = {
        .is_channel = true,
        .next_usec = next_usec,
        .look = look,
        .on_time = on_time,
        .on_events = on_events,
        .cancel = cancel,
        .settle = settle,
};

/* ---- from the supervisor ---- */

static ServedChannel *find_channel(ChannelSet *s, uint64_t number) {
        for (ServedChannel *c = s->first; c; c = c->next)
                if (c->setup.number == number)
                        return c;
        return NULL;
}

/* The channel gets a turn at once: it came because its socket is readable, or because requests moved with it. */
int channel_set_add(ChannelSet *s, ReceivedMessage *m) {
        const ChannelSetup *setup = &m->message.channel;
        uint64_t number = setup->number;
        GuestDatabase *guest = NULL;
        ServedChannel *c;
        int r = 0;

        compile_limit_set(setup->prepare_timeout_usec);
        if (setup->path)
                r = guest_database_get(&s->guests, s->context, setup->path, setup->immutable, setup->change_slot, &guest);
        if (r == 0)
                r = served_channel_new(s->context, &channel_request_owner, m, &c);
        if (r < 0) {
                guest_database_put(guest);
                return channel_report_refused(s->context->control_fd, number);
        }
        c->guest = guest;
        if (guest) {
                c->job.pool = guest->pool;
                c->job.change_slot = guest->setup.change_slot;
        }
        c->task.type = &task_type;
        c->set = s;
        c->next = s->first;
        if (c->next)
                c->next->previous = c;
        s->first = c;
        return settle(s->tasks, &c->task);
}

int channel_set_close(ChannelSet *s, const ChannelClose *m) {
        ServedChannel *c = find_channel(s, m->number);
        bool in_step;

        if (!c) /* it has just ended */
                return 0;
        in_step = &c->task == s->tasks->current;
        if (m->drain)
                channel_turn_drain(c);
        else
                channel_turn_drop(c, in_step);
        if (in_step)
                return 0;
        if (m->drain) {
                task_queue_take_out(s->tasks, &c->task);
                return settle(s->tasks, &c->task);
        }
        close_channel(s, c, (Bytes) {});
        return 0;
}

/* ---- events and times ---- */

void channel_set_give_away(ChannelSet *s) {
        for (ServedChannel *c = s->first, *next; c; c = next) {
                next = c->next;
                if (&c->task != s->tasks->current && served_channel_can_move(c) && served_channel_has_input(c))
                        (void) rest_channel(s, c, true);
        }
}

uint64_t channel_set_expire(ChannelSet *s, uint64_t now) {
        uint64_t first = UINT64_MAX;

        for (ServedChannel *c = s->first, *next; c; c = next) {
                uint64_t until = served_channel_quiet_until(c), again;

                next = c->next;
                if (channel_report_due(c) <= now)
                        channel_report_progress(c, now);
                again = look_again_usec(c);
                if (until > now)
                        first = again < first ? again : first;
                else if (c->intake >= CHANNEL_CLOSING || channel_input_is_partial(&c->input))
                        close_channel(s, c, (Bytes) {});
                else if (served_channel_can_move(c))
                        (void) rest_channel(s, c, false);
        }
        return first;
}

uint64_t channel_set_idle_since(const ChannelSet *s) {
        uint64_t since = 0;

        if (s->tasks->current || s->tasks->first)
                return UINT64_MAX;
        for (const ServedChannel *c = s->first; c; c = c->next) {
                uint64_t over = c->job.taken_usec + c->job.counters.usec;

                since = over > since ? over : since;
        }
        return since;
}

void channel_set_leave(ChannelSet *s) {
        for (ServedChannel *c = s->first, *next; c; c = next) {
                next = c->next;
                if (&c->task != s->tasks->current && served_channel_is_answered(c))
                        leave(s, c);
        }
}

void channel_set_report_progress(ChannelSet *s) {
        for (ServedChannel *c = s->first; c; c = c->next)
                if (served_channel_is_busy(c))
                        channel_report_progress(c, now_coarse_usec());
}

void channel_set_end(ChannelSet *s) {
        while (s->first) {
                ServedChannel *c = s->first;

                channel_turn_cancel(c, ERROR_SHUTTING_DOWN, "the service is stopping: ask again");
                if (!served_channel_is_busy(c))
                        (void) channel_turn_send(c);
                leave(s, c);
        }
}

void channel_set_free(ChannelSet *s) {
        while (s->first)
                forget_channel(s, s->first);
        guest_databases_free(&s->guests, s->context->engine);
}
