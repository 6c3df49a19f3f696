/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A private socket between a client and a worker. Supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/configuration/configuration-database.h"
#include "daemon/supervisor/access/policy.h"
#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/base/quota.h"
#include "daemon/supervisor/base/try-bytes.h"
#include "daemon/supervisor/calls/bus-error.h"
#include "daemon/supervisor/runs/channel-run.h"
#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/shared-memory.h"
#include "daemon/supervisor/runs/unread.h"
#include "daemon/supervisor/runs/worker-channels.h"
#include "daemon/supervisor/workers/changes.h"
#include "daemon/supervisor/workers/group.h"
#include "daemon/supervisor/workers/worker.h"

#define ACCURACY_USEC UINT64_C(1000)

/* How long a channel is expected to be used again at once. */
#define IN_USE_USEC UINT64_C(1000000)

/* How many channels are looked at for unread requests. The number of system calls must not grow with the number of channels
 * that a user holds. */
#define N_LOOKS_MAX 32u

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *userdata);
static int on_timer(sd_event_source *s, uint64_t usec, void *userdata);

/* ---- Cached channels ---- */

static void leave_cached(Channel *c) {
        if (c->cached_link.data)
                g_queue_unlink(&c->user->cached_channels, &c->cached_link);
        c->cached_link.data = NULL;
}

/* It becomes the last that is released. */
static void enter_cached(Channel *c) {
        c->cached_link.data = c;
        g_queue_push_tail_link(&c->user->cached_channels, &c->cached_link);
}

static void note_use(Channel *c) {
        c->used_usec = clock_usec();
        if (!c->cached_link.data)
                return;
        leave_cached(c);
        enter_cached(c);
}

static bool was_just_used(const Channel *c) {
        return clock_usec() - c->used_usec < IN_USE_USEC;
}

/* A client can take back a request that crosses the end of its channel, or repeat it: not one that may write and was sent
 * through the socket. */
static bool can_lose_request(const Channel *c) {
        return c->memory || !c->group->writes || !was_just_used(c);
}

/* If it has no unread request either, which a system call must tell. */
static bool can_be_released(const Channel *c) {
        bool is_here = c->state == CHANNEL_RESTING || (c->state == CHANNEL_AT_WORKER && quota_may_release_channel(c->user));

        return is_here && c->run.state == CHANNEL_RUN_NONE && can_lose_request(c);
}

static void release(Channel *c) {
        log_full(LOG_DEBUG, database_name(c->database), c->session ? c->session->name : NULL,
                 "Channel %" PRIu64 " was released for another one.", c->number);
        if (c->state == CHANNEL_AT_WORKER) {
                leave_cached(c);
                c->released = true;
                quota_release_channel(c->user, c->database);
        }
        channel_end(c, CHANNEL_END_RELEASED);
}

/* NULL: none can be released, or too many have unread requests to look at all. */
static Channel *find_to_release(const User *u, const Database *only_of, bool for_cached) {
        unsigned n_looks_left = N_LOOKS_MAX;

        for (GList *i = u->cached_channels.head; i && n_looks_left > 0; i = i->next) {
                Channel *c = i->data;

                if (for_cached && was_just_used(c))
                        return NULL; /* so were all that follow */
                if ((only_of && c->database != only_of) || !can_be_released(c))
                        continue;
                if (!channel_has_unread(c))
                        return c;
                n_looks_left--;
        }
        return NULL;
}

/* Releases several if a limit has become smaller, also because other users have more than before. */
static void make_room(User *u, const Database *d, bool for_cached) {
        ChannelBound bound;
        Channel *c;

        while ((bound = quota_channel_bound(u, d)) != CHANNEL_BOUND_NONE &&
               (c = find_to_release(u, bound == CHANNEL_BOUND_DATABASE ? d : NULL, for_cached)))
                release(c);
}

/* ---- Creation and end ---- */

static int open_sockets(Channel *c, int *ret_client_fd, Refusal *refusal) {
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
                if (errno != EMFILE && errno != ENFILE)
                        return -errno;
                return refuse(refusal, ERROR_LIMITS_EXCEEDED,
                              "The service has no descriptor left for a channel; try again later.");
        }
        c->fd = fds[0];
        *ret_client_fd = fds[1];
        /* Each end has its own file description, so the client's stays blocking. */
        return fcntl(c->fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0 ? -errno : 0;
}

static int add_sources(Channel *c) {
        int r = sd_event_add_io(c->context->event, &c->io, c->fd, EPOLLIN, on_io, c);

        if (r >= 0)
                r = sd_event_add_time(c->context->event, &c->timer, CLOCK_MONOTONIC, UINT64_MAX, ACCURACY_USEC, on_timer, c);
        return r;
}

static void watch(Channel *c, uint32_t events, uint64_t until_usec);
static uint64_t expires(const Channel *c);
static void free_channel(Channel *c);

int channel_new(Session *s, Database *d, uint32_t page_size, bool memory, bool cached, Channel **ret, int *ret_client_fd,
                Refusal *refusal) {
        g_autoptr(Group) group = NULL;
        int client_fd = -1, r;

        make_room(s->user, d, cached);
        r = quota_check_channel(s->user, d, refusal);
        if (r < 0)
                return r;
        r = group_get(s->user, d, session_may_write(s, d), &group);
        if (r < 0)
                return r;
        Channel *c = g_new(Channel, 1);
        *c = (Channel) {
                .context = s->context,
                .user = user_ref(s->user),
                .session = s,
                .database = database_ref(d),
                .group = g_steal_pointer(&group),
                .number = context_next_number(s->context),
                .fd = -1,
                .page_size = page_size,
                .counts = session_counts_place(s, d),
                .opened_usec = clock_usec(),
                .used_usec = clock_usec(),
                .session_link.data = c,
                .worker_link.data = c,
                .group_link.data = c,
        };
        c->client = s->channels.head ? ((const Channel *) s->channels.head->data)->client : c->number;
        quota_count_channel(c->user, d, 1);
        g_queue_push_tail_link(&s->channels, &c->session_link);
        g_hash_table_insert(s->context->channels, &c->number, c);
        if (cached)
                enter_cached(c);
        r = open_sockets(c, &client_fd, refusal);
        if (r >= 0)
                r = add_sources(c);
        if (r < 0) {
                if (client_fd >= 0)
                        close(client_fd);
                free_channel(c);
                return r;
        }
        if (memory)
                c->memory = shared_memory_new(c->user);
        watch(c, EPOLLIN, expires(c));
        *ret = c;
        *ret_client_fd = client_fd;
        return 0;
}

static void drop_kept(Channel *c) {
        if (c->kept)
                user_release(c->user, g_bytes_get_size(c->kept));
        g_clear_pointer(&c->kept, g_bytes_unref);
}

/* Removes the channel from the group's queue or from its worker. */
static void detach(Channel *c) {
        if (c->worker)
                worker_remove_channel(c->worker, c);
        else if (c->state == CHANNEL_WAITING)
                g_queue_unlink(&c->group->channels, &c->group_link);
        c->worker = NULL;
}

static void forget_session(Channel *c) {
        if (c->session)
                g_queue_unlink(&c->session->channels, &c->session_link);
        c->session = NULL;
}

static void free_channel(Channel *c) {
        log_full(LOG_DEBUG, database_name(c->database), c->session ? c->session->name : NULL,
                 "Channel %" PRIu64 " is closed after %" PRIu64 " runs: %s.", c->number, c->n_runs,
                 channel_life_sentence(c->end));
        detach(c);
        drop_kept(c);
        c->unread = unread_free(c->unread);
        c->memory = shared_memory_free(c->memory);
        forget_session(c);
        g_hash_table_remove(c->context->channels, &c->number);
        leave_cached(c);
        if (c->released)
                quota_forget_released_channel(c->user);
        else
                quota_count_channel(c->user, c->database, -1);
        c->io = sd_event_source_disable_unref(c->io);
        c->timer = sd_event_source_disable_unref(c->timer);
        if (c->fd >= 0)
                close(c->fd);
        channel_run_done(&c->run);
        (void) database_unref(c->database);
        c->group = group_unref(c->group);
        (void) user_unref(c->user);
        g_free(c);
}

/* ---- Time ---- */

static void arm(Channel *c, uint64_t usec) {
        int r = sd_event_source_set_time(c->timer, usec);

        c->spared = false;
        if (r >= 0)
                r = sd_event_source_set_enabled(c->timer, usec == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
        if (r < 0)
                log_error("A timer cannot be set: %s", strerror(-r));
}

/* The time at which StatementIdleSec= will have passed; UINT64_MAX: never. */
static uint64_t expires(const Channel *c) {
        uint64_t idle_usec = quota_limits(c->user, c->database).statement_idle_usec;

        return idle_usec == UINT64_MAX ? UINT64_MAX : c->used_usec + idle_usec;
}

void channel_check_idle(Channel *c) {
        if (clock_usec() < expires(c))
                return;
        /* a worker that got no CPU may not have read the request yet */
        if (c->run.state == CHANNEL_RUN_DRAINING || (c->run.state == CHANNEL_RUN_NONE && !channel_has_unread(c)))
                channel_end(c, CHANNEL_END_IDLE);
}

/* Tells the worker to close the channel, at once or after the answer under way. If its socket is full, it is told later. */
static void tell_to_close(Channel *c) {
        int r = message_send(c->worker->control_fd, &(Message) {
                .kind = MESSAGE_CHANNEL_CLOSE,
                .channel_close = { .number = c->number, .drain = c->state != CHANNEL_CLOSING },
        }, -1);

        c->told = r >= 0;
        if (c->told)
                change_page_count_order(&c->context->changes->page);
        c->close_ping = worker_ping(c->worker);
        grace_begin(&c->grace, c->worker->process.pid, GRACE_USEC);
}

/* True if its worker is not killed before it has read CHANNEL_CLOSE. */
static bool is_patient(const Channel *c) {
        return channel_life_manner(c->end) == CHANNEL_ENDS_PATIENTLY;
}

/* The worker was told to close the channel and still has it. If other work keeps the worker from reading that, at least the
 * client is released. */
static void on_close_timeout(Channel *c) {
        Worker *w = c->worker;

        if (!c->told)
                tell_to_close(c);
        else if ((worker_has_answered(w, c->close_ping) || !(is_patient(c) || worker_is_held_up_by_others(w, c))) &&
                 !grace_goes_on(&c->grace, w->process.pid))
                (void) worker_end(w, WORKER_END_KEEPS_CHANNEL);
        (void) shutdown(c->fd, SHUT_RDWR);
        arm(c, clock_usec() + GRACE_USEC);
}

/* Sets the time at which a channel at a worker is checked again: for a CANCEL or CHANNEL_CLOSE that was not obeyed or could
 * not be sent. */
static void arm_at_worker(Channel *c) {
        bool leaving = c->state == CHANNEL_LEAVING;
        uint64_t usec = leaving && c->told ? c->leaves_usec : UINT64_MAX;

        if (c->cancelled_usec > 0 || (leaving && !c->told))
                usec = MIN(usec, clock_usec() + GRACE_USEC);
        arm(c, usec);
}

static void check_cancelled(Channel *c) {
        if (c->cancelled_usec == 0 || clock_usec() < c->cancelled_usec + GRACE_USEC)
                return;
        if (worker_has_answered(c->worker, c->cancel_ping))
                c->cancelled_usec = 0;
        else if (!worker_is_held_up_by_others(c->worker, c) && !grace_goes_on(&c->grace, c->worker->process.pid))
                (void) worker_end(c->worker, WORKER_END_KEEPS_REQUEST);
}

static void on_time_at_worker(Channel *c) {
        if (c->state == CHANNEL_LEAVING && clock_usec() >= c->leaves_usec) {
                channel_end(c, CHANNEL_END_UNANSWERED);
                return;
        }
        if (c->state == CHANNEL_LEAVING && !c->told)
                tell_to_close(c);
        check_cancelled(c);
        arm_at_worker(c);
}

/* True if the channel still exists and its timer was not set anew after the worker's messages were read: the answer may
 * already be in the socket. */
static bool is_due(Context *context, uint64_t number) {
        Channel *c = g_hash_table_lookup(context->channels, &number);

        if (c->worker)
                worker_process(c->worker);
        c = g_hash_table_lookup(context->channels, &number);
        return c && sd_event_source_get_enabled(c->timer, NULL) == 0;
}

/* As for a run that waits. */
static void on_queue_timeout(Channel *c) {
        uint64_t until = group_moved_usec(c->group) + quota_limits(c->user, c->database).queue_timeout_usec;

        if (clock_usec() < until)
                arm(c, until);
        else
                channel_end(c, CHANNEL_END_NO_PLACE);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        Channel *c = userdata;

        if (clock_timer_was_late(usec, &c->spared)) {
                arm(c, clock_usec() + GRACE_USEC);
                c->spared = true;
                return 0;
        }
        if (!is_due(c->context, c->number))
                return 0;
        switch (c->state) {
        case CHANNEL_RESTING:
                arm(c, expires(c)); /* a reload may have changed it */
                channel_check_idle(c);
                break;
        case CHANNEL_DRAINING:
                arm(c, expires(c));
                if (clock_usec() >= expires(c))
                        channel_end(c, CHANNEL_END_UNREAD);
                break;
        case CHANNEL_WAITING: on_queue_timeout(c); break;
        case CHANNEL_AT_WORKER:
        case CHANNEL_LEAVING: on_time_at_worker(c); break;
        case CHANNEL_CLOSING: on_close_timeout(c); break;
        case CHANNEL_STATE_MAX: break;
        }
        return 0;
}

/* ---- Resting and waiting ---- */

static void watch(Channel *c, uint32_t events, uint64_t until_usec) {
        (void) sd_event_source_set_io_events(c->io, events);
        arm(c, until_usec);
}

static void enter(Channel *c, ChannelState state, uint32_t events, uint64_t until_usec) {
        channel_life_move(&c->state, state);
        watch(c, events, until_usec);
}

static void rest(Channel *c) {
        enter(c, CHANNEL_RESTING, EPOLLIN, expires(c));
}

/* The timer is not set to a time that has passed: then it would be late, and the channel would be spared, each time that a
 * worker gives it back. */
static void wait_for_worker(Channel *c) {
        uint64_t now = clock_usec();

        if (c->waits_usec == 0)
                c->waits_usec = now;
        enter(c, CHANNEL_WAITING, 0, MAX(now, c->waits_usec + quota_limits(c->user, c->database).queue_timeout_usec));
        g_queue_push_tail_link(&c->group->channels, &c->group_link);
        group_staff(c->group);
}

bool channel_has_unread(const Channel *c) {
        struct pollfd pfd = { .fd = c->fd, .events = POLLIN };

        if (c->memory) /* a byte in the socket may be an old one */
                return shared_memory_has_requests(c->memory);
        return poll(&pfd, 1, 0) > 0 && (pfd.revents & POLLIN);
}

/* True if the client sends no more, because it closed its end or shut it down for writing. */
static bool is_at_end(const Channel *c) {
        char byte;
        ssize_t n = recv(c->fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);

        return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* ---- Draining ---- */

/* Returns as unread_write() does. */
static int write_unread(Channel *c) {
        ssize_t n;

        if (!c->memory)
                return unread_write(c->unread, c->fd);
        n = shared_memory_write(c->memory, unread_left(c->unread), c->fd);
        return n < 0 ? (int) n : unread_note_written(c->unread, (size_t) n);
}

static void on_room(Channel *c) {
        bool waits = c->waits_after;
        int r = write_unread(c);

        if (r == 0)
                return;
        c->unread = unread_free(c->unread);
        if (r > 0 && c->memory)
                waits = shared_memory_rest(c->memory, c->fd) || waits;
        if (r < 0 || c->end != CHANNEL_END_NONE)
                free_channel(c);
        else if (waits)
                wait_for_worker(c);
        else
                rest(c);
}

/* False: the bytes cannot be kept. */
static bool drain(Channel *c, const ChannelEnd *end) {
        if (unread_new(c->user, end->unread, &c->unread) < 0)
                return false;
        c->waits_after = end->waiting;
        note_use(c);
        c->waits_usec = 0;
        /* a byte tells that the memory has room, and an end-of-file must not wake us again and again */
        enter(c, CHANNEL_DRAINING, c->memory ? EPOLLIN | EPOLLOUT | EPOLLET : EPOLLOUT, expires(c));
        return true;
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Channel *c = userdata;

        if (c->state == CHANNEL_DRAINING) {
                if (revents & (EPOLLHUP | EPOLLERR))
                        free_channel(c);
                else
                        on_room(c);
                return 0;
        }
        if ((revents & (EPOLLHUP | EPOLLERR)) || is_at_end(c)) {
                (void) sd_event_source_set_enabled(c->io, SD_EVENT_OFF); /* it would fire again and again */
                channel_end(c, CHANNEL_END_HANGUP);
        } else if (c->state == CHANNEL_RESTING)
                wait_for_worker(c);
        return 0;
}

/* ---- At a worker ---- */

static Message hand_over_message(const Channel *c, const Worker *w) {
        const Limits l = quota_limits(c->user, c->database);
        gsize size = 0;
        const char *kept = c->kept ? g_bytes_get_data(c->kept, &size) : NULL;
        const DatabaseConfig *d = c->database->config;
        bool guest = w->group != c->group;

        return (Message) {
                .kind = MESSAGE_CHANNEL,
                .channel = {
                        .number = c->number,
                        .client = c->client,
                        .page_size = c->page_size,
                        .statements_max = (uint32_t) MIN(l.statements_max, UINT32_MAX),
                        .run_timeout_usec = l.run_timeout_usec,
                        .prepare_timeout_usec = l.prepare_timeout_usec,
                        .row_size_max = l.row_size_max,
                        .result_rows_max = l.result_rows_max,
                        .result_size_max = l.result_size_max,
                        .reads = c->reads,
                        .memory = c->memory,
                        .path = guest ? d->path : NULL,
                        .immutable = guest && d->immutable,
                        .change_slot = changes_of_database(c->context, d)->slot,
                        .counts = c->counts,
                        .state = { .data = kept ?: "", .size = size },
                },
        };
}

int channel_hand_over(Channel *c, Worker *w) {
        Message m = hand_over_message(c, w);
        int r = message_send_with(w->control_fd, &m, c->fd, c->memory ? shared_memory_fd(c->memory) : -1);

        if (r == -EAGAIN || r == -ETOOMANYREFS || r == -EPIPE || r == -ECONNRESET)
                return -EAGAIN;
        if (r < 0) {
                log_full(LOG_DEBUG, database_name(c->database), NULL, "A channel cannot be handed over: %s", strerror(-r));
                free_channel(c);
                return 0;
        }
        if (c->state == CHANNEL_WAITING)
                g_queue_unlink(&c->group->channels, &c->group_link);
        enter(c, CHANNEL_AT_WORKER, 0, UINT64_MAX);
        drop_kept(c);
        c->worker = w;
        note_use(c);
        c->answer_usec = MAX(m.channel.run_timeout_usec, m.channel.prepare_timeout_usec) +
                         quota_limits(c->user, c->database).park_timeout_usec;
        worker_add_channel(w, c);
        return 0;
}

/* ---- End ---- */

static void close_now(Channel *c, ChannelEndReason reason) {
        if (c->state == CHANNEL_CLOSING)
                return;
        c->end = reason;
        if (!channel_is_served(c)) {
                free_channel(c);
                return;
        }
        (void) sd_event_source_set_enabled(c->io, SD_EVENT_OFF);
        channel_life_move(&c->state, CHANNEL_CLOSING);
        tell_to_close(c);
        arm(c, clock_usec() + GRACE_USEC);
}

static void leave(Channel *c, ChannelEndReason reason) {
        if (c->state > CHANNEL_AT_WORKER) /* it ends already */
                return;
        c->end = reason;
        if (c->state == CHANNEL_DRAINING)
                return;
        if (c->state < CHANNEL_AT_WORKER) {
                free_channel(c);
                return;
        }
        channel_life_move(&c->state, CHANNEL_LEAVING);
        c->leaves_usec = clock_usec() + c->answer_usec + GRACE_USEC;
        tell_to_close(c);
        arm_at_worker(c);
}

void channel_end(Channel *c, ChannelEndReason reason) {
        if (reason == CHANNEL_END_CLIENT_GONE)
                forget_session(c);
        switch (channel_life_manner(reason)) {
        case CHANNEL_ENDS_GENTLY: leave(c, reason); return;
        case CHANNEL_ENDS_NOW: close_now(c, reason); return;
        case CHANNEL_ENDS_PATIENTLY:
                if (!channel_is_served(c)) /* it does not depend on that worker, or ends anyway */
                        return;
                (void) shutdown(c->fd, SHUT_RDWR);
                close_now(c, reason);
                return;
        case CHANNEL_ENDS_AT_ONCE:
                c->end = reason;
                free_channel(c);
                return;
        }
}

void channel_cancel(Channel *c, ErrorNumber error, const char *sentence) {
        if (!channel_is_served(c)) /* otherwise no run is under way, or it ends anyway */
                return;
        (void) worker_cancel(c->worker, c->number, error, sentence);
        c->cancelled_usec = clock_usec();
        c->cancel_ping = worker_ping(c->worker);
        grace_begin(&c->grace, c->worker->process.pid, GRACE_USEC);
        arm_at_worker(c);
}

/* ---- Messages from a worker ---- */

static void count(Channel *c, const ChannelProgress *p) {
        Context *context = c->context;
        Session *s = c->session;

        c->n_runs += p->n_runs;
        c->n_rows += p->n_rows;
        c->n_bytes += p->n_bytes;
        context->total_runs += p->n_runs;
        context->total_rows += p->n_rows;
        context->total_bytes += p->n_bytes;
        if (!s)
                return;
        s->total_runs += p->n_runs;
        s->total_rows += p->n_rows;
        s->total_bytes += p->n_bytes;
}

/* Adds the work that was done to the sums of channel, session and service. A channel that did something counts as used now
 * and as not waiting. Returns false if the run that was known before goes on. */
static bool note(Channel *c, const ChannelProgress *p) {
        LogFields fields = {
                .database = database_name(c->database),
                .client = c->session ? c->session->name : NULL,
                .uid = &c->user->uid,
                .run = c->number,
                .worker_pid = c->worker ? c->worker->process.pid : 0,
        };

        if (p->running || p->n_runs > 0 || p->n_bytes > 0 || p->n_statements != c->n_statements) {
                note_use(c);
                c->waits_usec = 0;
        }
        c->n_statements = p->n_statements;
        count(c, p);
        return channel_run_note(&c->run, p, &fields, c->context->config->service.slow_query_usec);
}

void channel_on_progress(Channel *c, const ChannelProgress *progress) {
        if (note(c, progress))
                c->cancelled_usec = 0; /* another run has begun, or none is under way */
        if (c->run.state == CHANNEL_RUN_NONE)
                c->context->events->place_offered(c->context);
}

void channel_on_rested(Channel *c, const ChannelEnd *end) {
        g_auto(Refusal) refusal = REFUSAL_INIT; /* there is no call to answer; the client sees end-of-file */
        g_autoptr(GBytes) kept = try_bytes(end->state.data, end->state.size);
        Worker *w = c->worker;

        (void) note(c, &end->progress);
        if (end->waiting && end->unread.size == 0)
                worker_is_stuck_now(w);
        else
                c->waits_usec = 0;
        detach(c);
        if (c->state == CHANNEL_LEAVING && end->unread.size > 0 && drain(c, end))
                return;
        if (c->state != CHANNEL_AT_WORKER || !kept || user_hold(c->user, end->state.size, &refusal) < 0) {
                free_channel(c);
                return;
        }
        c->kept = g_steal_pointer(&kept);
        c->reads = end->reads;
        c->cancelled_usec = 0;
        if (end->unread.size > 0) {
                if (!drain(c, end))
                        free_channel(c);
        } else if (end->waiting)
                wait_for_worker(c);
        else
                rest(c);
}

void channel_on_closed(Channel *c, const ChannelEnd *end) {
        (void) note(c, &end->progress);
        detach(c);
        if (c->end == CHANNEL_END_NONE)
                c->end = CHANNEL_END_BY_WORKER;
        if (c->state == CHANNEL_CLOSING || end->unread.size == 0 || !drain(c, end))
                free_channel(c);
}

/* ---- All channels ---- */

/* Ends each channel that `wanted` accepts. */
static void end_each(Context *context, bool (*wanted)(const Channel *c), ChannelEndReason reason) {
        g_autoptr(GPtrArray) found = g_ptr_array_new();
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, context->channels);
        while (g_hash_table_iter_next(&i, NULL, &value))
                if (wanted(value))
                        g_ptr_array_add(found, value);
        for (guint k = 0; k < found->len; k++)
                channel_end(found->pdata[k], reason);
}

static bool is_unpublished(const Channel *c) {
        return !c->database->published;
}

static const Peer *peer_of_channel(const Channel *c) {
        return c->session ? g_hash_table_lookup(c->context->peers, c->session->name) : NULL;
}

static bool may_still_write(const Channel *c) {
        const Database *now = database_find(c->context, database_name(c->database));
        const Peer *p = peer_of_channel(c);

        return p && now && database_config_shows_same(now->config, c->database->config) &&
                policy_may_write(c->context, p, now);
}

static bool is_write_revoked(const Channel *c) {
        return is_unpublished(c) && c->group->writes && !may_still_write(c);
}

static void cancel_writes(Context *context, bool (*wanted)(const Channel *c)) {
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, context->channels);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                Channel *c = value;

                if (wanted(c))
                        channel_cancel(c, ERROR_BUSY, "The right to write changed while the request waited: ask again.");
        }
}

void channels_on_reload(Context *context) {
        cancel_writes(context, is_write_revoked);
        end_each(context, is_unpublished, CHANNEL_END_UNPUBLISHED);
}

/* True if its client may not write any longer, or polkit must be asked again. */
static bool is_write_in_doubt(const Channel *c) {
        const Peer *p = peer_of_channel(c);

        return p && c->group->writes &&
               (policy_verdict(c->context, p, c->database) != POLICY_YES ||
                policy_write_verdict(c->context, p, c->database) != POLICY_YES);
}

/* A channel that cannot write is in doubt, too, if polkit must be asked about that. */
static bool is_in_doubt(const Channel *c) {
        const Peer *p = peer_of_channel(c);

        return p && (policy_verdict(c->context, p, c->database) != POLICY_YES || is_write_in_doubt(c) ||
                     policy_write_verdict(c->context, p, c->database) == POLICY_ASK);
}

void channels_on_policy_changed(Context *context) {
        cancel_writes(context, is_write_in_doubt);
        end_each(context, is_in_doubt, CHANNEL_END_RIGHTS);
}

static bool can_write_if_reopened(const Channel *c) {
        const Peer *p = peer_of_channel(c);

        return p && !c->group->writes && policy_may_write(c->context, p, c->database);
}

void channels_on_write_granted(Context *context, const char *client) {
        const Session *s = g_hash_table_lookup(context->sessions, client);

        if (s && s->channels.head)
                end_each(context, can_write_if_reopened, CHANNEL_END_RIGHTS);
}
