/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The channels of a worker. Supervisor. */
#include <errno.h>
#include <string.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/base/quota.h"
#include "daemon/supervisor/runs/worker-channels.h"

#define WATCH_USEC UINT64_C(1000000)
#define WATCH_ACCURACY_USEC UINT64_C(100000)
#define STUCK_USEC UINT64_C(250000)
#define DEAF_USEC UINT64_C(100000)
#define GIVE_UP_USEC UINT64_C(1000000)

static int on_watch(sd_event_source *s, uint64_t usec, void *userdata);

/* ---- Is the worker responsive? ---- */

uint64_t worker_ping(Worker *w) {
        if (worker_is_closed(w))
                return w->ping_number;
        if (w->ping >= PING_SENT) {
                w->ping = PING_REPEAT;
                return w->ping_number + 1;
        }
        if (w->ping == PING_NONE) {
                w->ping_usec = clock_usec();
                grace_begin(&w->grace, w->process.pid, GIVE_UP_USEC);
        }
        int r = message_send(w->control_fd, &(Message) { .kind = MESSAGE_PING, .number = w->ping_number }, -1);
        w->ping = r >= 0 ? PING_SENT : PING_UNSENT; /* if the socket is full, the worker owes an answer all the same */
        return w->ping_number;
}

bool worker_has_answered(const Worker *w, uint64_t ping) {
        return w->ping_number > ping;
}

static int on_pong(Worker *w, uint64_t number) {
        bool repeat = w->ping == PING_REPEAT;

        if (w->ping < PING_SENT || number != w->ping_number)
                return -EBADMSG;
        w->ping_number++;
        w->ping = PING_NONE;
        if (repeat)
                (void) worker_ping(w);
        return 0;
}

bool worker_is_deaf(const Worker *w, uint64_t usec) {
        return w->ping != PING_NONE && clock_usec() - w->ping_usec >= usec;
}

void worker_is_stuck_now(Worker *w) {
        w->stuck_until_usec = clock_usec() + STUCK_USEC;
}

void worker_is_not_stuck(Worker *w) {
        w->stuck_until_usec = 0;
}

bool worker_is_stuck(const Worker *w) {
        return clock_usec() < w->stuck_until_usec || (w->state != WORKER_STARTING && worker_is_deaf(w, DEAF_USEC));
}

bool worker_has_busy_channels(const Worker *w) {
        for (GList *i = w->channels.head; i; i = i->next)
                if (((const Channel *) i->data)->run.state != CHANNEL_RUN_NONE)
                        return true;
        return false;
}

bool worker_is_held_up_by_others(const Worker *w, const Channel *c) {
        if (worker_n_runnable(w) > channel_is_runnable(c))
                return true;
        if (channel_is_runnable(c))
                return false;
        for (GList *i = w->channels.head; i; i = i->next)
                if (i->data != c && channel_is_served(i->data))
                        return true;
        return false;
}

uint64_t worker_channels_used_usec(const Worker *w) {
        uint64_t usec = 0;

        for (GList *i = w->channels.head; i; i = i->next)
                usec = MAX(usec, ((const Channel *) i->data)->used_usec);
        return usec;
}

unsigned worker_channels_n_runnable(const Worker *w) {
        unsigned n = 0;

        for (GList *i = w->channels.head; i; i = i->next)
                n += channel_is_runnable(i->data);
        return n;
}

/* ---- Which worker has a channel ---- */

static void watch(Worker *w) {
        int r;

        if (!w->watch)
                r = sd_event_add_time_relative(w->context->event, &w->watch, CLOCK_MONOTONIC, WATCH_USEC,
                                               WATCH_ACCURACY_USEC, on_watch, w);
        else {
                r = sd_event_source_set_time_relative(w->watch, WATCH_USEC);
                if (r >= 0)
                        r = sd_event_source_set_enabled(w->watch, SD_EVENT_ONESHOT);
        }
        if (r < 0)
                log_error("A timer cannot be set: %s", strerror(-r));
}

void worker_add_channel(Worker *w, Channel *c) {
        bool first = !w->channels.head;

        g_queue_push_tail_link(&w->channels, &c->worker_link);
        (void) worker_ping(w);
        worker_priority_watch(w->context->priorities);
        if (first)
                watch(w);
}

void worker_remove_channel(Worker *w, Channel *c) {
        g_queue_unlink(&w->channels, &c->worker_link);
        if (!w->channels.head && w->watch)
                (void) sd_event_source_set_enabled(w->watch, SD_EVENT_OFF);
        worker_on_work_over(w);
}

void worker_lose_channels(Worker *w) {
        while (w->channels.head)
                channel_end(w->channels.head->data, CHANNEL_END_WORKER_LOST);
}

bool worker_has_outdated_channels(const Worker *w) {
        for (GList *i = w->channels.head; i; i = i->next) {
                const Channel *c = i->data;

                if (c->database->published && !worker_has_limits_of(w, c->group))
                        return true;
        }
        return false;
}

void worker_end_channels(Worker *w) {
        for (GList *i = w->channels.head, *next; i; i = next) {
                Channel *c = i->data;

                next = i->next;
                if (!c->database->published || !worker_has_limits_of(w, c->group))
                        channel_end(c, CHANNEL_END_OUTDATED);
        }
}

/* ---- Time ---- */

/* Ends the channels with unread requests of a worker that does not read its sockets, so that their clients need not
 * wait. The channel whose run holds the worker up has usually no unread request, and a deadline. */
static void end_unheard(Worker *w) {
        if (w->runs.length + w->channels.length < 2)
                return;
        for (GList *i = w->channels.head, *next; i; i = next) {
                Channel *c = i->data;

                next = i->next;
                if (!channel_is_runnable(c) && channel_has_unread(c))
                        channel_end(c, CHANNEL_END_UNHEARD);
        }
}

static void check_idle(Worker *w) {
        for (GList *i = w->channels.head, *next; i; i = next) {
                next = i->next;
                channel_check_idle(i->data);
        }
}

/* True if the worker does not read its sockets although it had the time and the CPU for it. */
static bool hears_nothing(Worker *w) {
        return worker_is_deaf(w, GIVE_UP_USEC) && !grace_goes_on(&w->grace, w->process.pid);
}

static int on_watch(sd_event_source *s, uint64_t usec, void *userdata) {
        Worker *w = userdata;
        const Limits l = quota_limits(w->group->user, w->group->database);

        if (clock_timer_was_late(usec, &w->spared)) {
                watch(w);
                return 0;
        }
        worker_process(w); /* the answer may already be in the socket */
        if (worker_is_closed(w))
                return 0;
        if (!hears_nothing(w))
                check_idle(w);
        else if (worker_is_deaf(w, MAX(l.run_timeout_usec, l.prepare_timeout_usec) + GRACE_USEC)) {
                (void) worker_end(w, WORKER_END_DEAF);
                return 0;
        } else
                end_unheard(w);
        if (w->settings != WORKER_CURRENT) /* it was kept for channels that had no other place; they get one once nothing
                                            * runs on them */
                (void) worker_end(w, WORKER_END_OUTDATED);
        (void) worker_ping(w);
        if (w->channels.head)
                watch(w);
        return 0;
}

/* ---- Messages from the worker ---- */

int worker_channels_dispatch(Worker *w, const Message *m) {
        uint64_t number = worker_message_number(m);

        worker_on_sign_of_life(w);
        if (m->kind == MESSAGE_PONG)
                return on_pong(w, m->number);
        Channel *c = g_hash_table_lookup(w->context->channels, &number);
        if (!c || c->worker != w)
                return -EBADMSG;
        /* a channel with a run under way needs its worker */
        if (m->kind == MESSAGE_CHANNEL_RESTED && m->channel_end.progress.running)
                return -EBADMSG;
        if (m->kind != MESSAGE_CHANNEL_PROGRESS && m->channel_end.unread.size > unread_size_max(c->page_size))
                return -EBADMSG;
        switch (m->kind) {
        case MESSAGE_CHANNEL_PROGRESS: channel_on_progress(c, &m->channel_progress); return 0;
        case MESSAGE_CHANNEL_RESTED: channel_on_rested(c, &m->channel_end); return 0;
        case MESSAGE_CHANNEL_CLOSED: channel_on_closed(c, &m->channel_end); return 0;
        default: return -EBADMSG;
        }
}
