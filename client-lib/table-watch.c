/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Watches at the service (table-watch.h). Library. */
#include <string.h>

#include "client-lib/connection-bus.h"
#include "client-lib/dictionary.h"
#include "client-lib/error.h"
#include "client-lib/event-loop.h"
#include "client-lib/pipe-read.h"
#include "client-lib/table-watch.h"
#include "dbus-interfaces/wire/sqlipc-page.h"

/* The pauses between attempts. A watch that was open for STEADY_USEC has had no failure. */
#define PAUSE_MIN_USEC (USEC_PER_SEC / 20)
#define PAUSE_MAX_USEC (10 * USEC_PER_SEC)
#define STEADY_USEC (10 * USEC_PER_SEC)

/* The service drops a WaitChange after this time, which is then sent again: a watch that was closed meanwhile would
 * otherwise stay there until the next change. */
#define WAIT_USEC (300 * USEC_PER_SEC)

/* No change has this number, so WaitChange replies at once. */
#define SEQUENCE_FUTURE ((uint64_t) INT64_MAX)

/* The size of a message in the pipe: the number of a change. A service that keeps to the interface writes only one. */
#define MESSAGE_SIZE 8u

static void send_call(sqlipc_watch *w);

/* ---- States ------------------------------------------------------------------------------------------------------- */

static void move(sqlipc_watch *w, WatchState to) {
        w->connection->n_watches_lost += (to == WATCH_LOST) - (w->state == WATCH_LOST);
        watch_life_move(&w->state, to);
}

ObjectNews watch_news(const sqlipc_watch *w) {
        ObjectNews news = { .data.fd = -1, .until = UINT64_MAX };

        switch (w->state) {
        case WATCH_OPENING:
                news.bus = true;
                break;
        case WATCH_OPEN:
                news.data = (struct pollfd) { .fd = w->fd, .events = POLLIN };
                news.bus = w->fd < 0;
                break;
        case WATCH_LOST:
                news.bus = true;
                if (!w->call)
                        news.until = w->retry_at;
                break;
        case WATCH_OVER:
        case WATCH_STATE_MAX:
                news.until = 0;
                break;
        }
        if (w->changed)
                news = (ObjectNews) { .data.fd = -1 };
        return news;
}

/* Something has happened: lets the program know if it waits for that. */
static void tell(sqlipc_watch *w) {
        if ((w->changed || w->state == WATCH_OVER) && w->member.wait == MEMBER_WAITS) {
                w->member.wait = MEMBER_HAS_NEWS;
                event_loop_wake(w->connection);
        }
        object_fd_update(&w->object_fd, w->connection, watch_news(w));
}

static void close_pipe(sqlipc_watch *w) {
        if (w->fd < 0)
                return;
        event_loop_disarm(w->connection, w->fd);
        object_fd_forget(&w->object_fd, w->connection, w->fd);
        w->fd = safe_close(w->fd);
}

/* The service frees a watch whose pipe is closed; but a process that was forked may still have the pipe. */
static void drop(sqlipc_watch *w) {
        sqlipc_connection *c = w->connection;
        bool named = w->number > 0 && !c->closed && w->bus_generation == c->bus_generation && !connection_is_foreign(c);

        w->call = call_free(w->call);
        close_pipe(w);
        if (named) {
                call_notify(c->bus, w->owner, w->path, "Unwatch", w->number);
                event_loop_update(c);
        }
        w->number = 0;
}

/* The watch is over, with the error that was set. */
static void end(sqlipc_watch *w) {
        drop(w);
        move(w, WATCH_OVER);
        tell(w);
}

static void fail_errno(sqlipc_watch *w, int r) {
        if (r == -EBADMSG)
                (void) error_set_errno(&w->error, r, "The service sent something that sqlipc's interface does not allow.");
        else
                (void) error_set_send(&w->error, r);
        end(w);
}

/* Tries again at once if the watch was open for a while, and else after a pause. */
static void retry(sqlipc_watch *w) {
        uint64_t now = now_usec(), pause = PAUSE_MIN_USEC;

        if (w->state == WATCH_OPEN && now - w->opened_at >= STEADY_USEC)
                w->n_failures = 0;
        for (unsigned i = 1; i < w->n_failures && pause < PAUSE_MAX_USEC; i++)
                pause *= 2;
        if (pause > PAUSE_MAX_USEC)
                pause = PAUSE_MAX_USEC;
        w->retry_at = w->n_failures > 0 ? now + pause : now;
        w->n_failures++;
        w->number = w->since = 0; /* the service has forgotten it */
        close_pipe(w);
        if (w->state != WATCH_LOST)
                move(w, WATCH_LOST);
        tell(w);
}

/* True if the failure may pass: the service is not there, or has no room for the watch now. */
static bool may_pass(const sqlipc_watch *w) {
        sqlipc_connection *c = w->connection;

        switch (w->error.number) {
        case ERROR_DAEMON_LOST: /* the caller must replace its own bus; ssh that never got through may ask for a password */
                return c->open_bus ? c->descriptors != DESCRIPTORS_NONE || c->bus_was_ready : connection_bus_is_open(c);
        case ERROR_SHUTTING_DOWN:
        case ERROR_WORKER_LOST:
        case ERROR_LIMITS_EXCEEDED:
        case ERROR_OUT_OF_MEMORY:
        case ERROR_BUSY:
        case ERROR_TIMED_OUT:
                return true;
        default:
                return w->error.result == -ENOMEM;
        }
}

/* Watch or WaitChange failed, with the error that was set. */
static void on_failure(sqlipc_watch *w) {
        if (w->state != WATCH_OPENING && may_pass(w))
                retry(w);
        else
                end(w);
}

/* ---- Replies ------------------------------------------------------------------------------------------------------ */

static void undo_watch(sd_bus_message *reply, const char *path) {
        uint64_t number;

        if (sd_bus_message_read(reply, "t", &number) > 0)
                call_notify(sd_bus_message_get_bus(reply), sd_bus_message_get_sender(reply), path, "Unwatch", number);
}

static int set_owner(sqlipc_watch *w, sd_bus_message *reply) {
        const char *sender = sd_bus_message_get_sender(reply);

        free(steal(w->owner));
        if (!sender)
                return 0;
        w->owner = strdup(sender);
        return w->owner ? 0 : -ENOMEM;
}

static int read_info(sd_bus_message *m, const char *key, const char *type, void *userdata) {
        return strcmp(key, "sequence") == 0 && strcmp(type, "t") == 0 ? sd_bus_message_read(m, "v", "t", userdata) : 0;
}

static int read_watch_reply(sqlipc_watch *w, sd_bus_message *reply) {
        uint64_t number;
        int fd, r;

        r = set_owner(w, reply);
        if (r >= 0)
                r = sd_bus_message_read(reply, "th", &number, &fd);
        if (r >= 0)
                r = dictionary_read(reply, read_info, &w->sequence);
        if (r < 0)
                return r;
        w->fd = pipe_read_copy(fd); /* the message closes its own */
        if (w->fd < 0)
                return w->fd;
        w->number = number;
        return 0;
}

/* The watch is there. If it was lost before, something may have changed meanwhile. */
static void on_open(sqlipc_watch *w) {
        w->changed |= w->state == WATCH_LOST || w->tells_beginning;
        w->tells_beginning = false;
        w->n_opened++;
        w->opened_at = now_usec();
        move(w, WATCH_OPEN);
        tell(w);
}

static void on_watch_reply(sd_bus_message *reply, void *userdata) {
        sqlipc_watch *w = userdata;
        int r;

        w->call = call_free(w->call);
        if (sd_bus_message_get_error(reply)) {
                (void) error_set_reply(&w->error, reply);
                on_failure(w);
                return;
        }
        r = read_watch_reply(w, reply);
        if (r >= 0) {
                on_open(w);
                return;
        }
        fail_errno(w, r);
        (void) sd_bus_message_rewind(reply, true);
        undo_watch(reply, w->path);
}

static void on_change_reply(sd_bus_message *reply, void *userdata) {
        sqlipc_watch *w = userdata;
        uint64_t sequence;
        int r;

        w->call = call_free(w->call);
        if (sd_bus_message_get_error(reply)) {
                (void) error_set_reply(&w->error, reply);
                if (w->state == WATCH_OPEN && w->error.number == ERROR_TIMED_OUT)
                        send_call(w);
                else
                        on_failure(w);
                return;
        }
        r = sd_bus_message_read(reply, "t", &sequence);
        if (r < 0) {
                fail_errno(w, r);
                return;
        }
        w->sequence = sequence;
        if (w->state != WATCH_OPEN) {
                on_open(w);
                if (!w->changed)
                        send_call(w);
                return;
        }
        w->since = 0;
        w->changed = true;
        tell(w);
}

/* ---- Calls -------------------------------------------------------------------------------------------------------- */

static int append_options(sqlipc_watch *w, sd_bus_message *m, bool waits) {
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}", "error-details", "b", 1);
        if (r >= 0 && w->sql)
                r = sd_bus_message_append(m, "{sv}", "sql", "s", w->sql);
        if (r >= 0 && waits)
                r = sd_bus_message_append(m, "{sv}", "timeout-usec", "t", WAIT_USEC);
        if (r >= 0 && !waits && w->since > 0)
                r = sd_bus_message_append(m, "{sv}", "since", "t", w->since);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* The number after which a change answers WaitChange. */
static uint64_t waits_since(const sqlipc_watch *w) {
        if (w->state != WATCH_OPEN)
                return SEQUENCE_FUTURE;
        return w->since > 0 ? w->since : w->sequence;
}

/* `waits`: sends WaitChange. */
static int try_to_send(sqlipc_watch *w, bool waits) {
        _cleanup_message_ sd_bus_message *m = NULL;
        sqlipc_connection *c = w->connection;
        int r = connection_bus_ensure(c);

        if (r >= 0)
                r = connection_bus_new_call(c, &m, NULL, w->path, waits ? "WaitChange" : "Watch");
        if (r >= 0)
                r = sd_bus_message_append_strv(m, w->tables);
        if (r >= 0 && waits)
                r = sd_bus_message_append(m, "t", waits_since(w));
        if (r >= 0)
                r = append_options(w, m, waits);
        w->bus_generation = c->bus_generation;
        if (r < 0)
                return r;
        return waits ? call_new(&w->call, c, m, on_change_reply, NULL, w, UINT64_MAX)
                     : call_new(&w->call, c, m, on_watch_reply, undo_watch, w, UINT64_MAX);
}

static void send_call(sqlipc_watch *w) {
        Descriptors descriptors = connection_bus_descriptors(w->connection);
        bool waits = descriptors == DESCRIPTORS_NONE;
        int r;

        if (descriptors == DESCRIPTORS_UNKNOWN)
                return;
        r = try_to_send(w, waits);
        if (connection_bus_may_send_again(w->connection, r))
                r = try_to_send(w, waits);
        if (r < 0) {
                if (r == -ENOTCONN && !connection_bus_is_open(w->connection))
                        (void) error_set_bus_lost(&w->error, w->connection->bus);
                else
                        (void) error_set_send(&w->error, r);
                on_failure(w);
        } else
                tell(w);
}

/* ---- The pipe ----------------------------------------------------------------------------------------------------- */

static void read_pipe(sqlipc_watch *w) {
        uint8_t bytes[8 * MESSAGE_SIZE];
        ssize_t n = pipe_read(w->fd, bytes, sizeof bytes);

        if (n == -EAGAIN)
                return;
        if (n == 0)
                retry(w);
        else if (n < 0 || n % MESSAGE_SIZE != 0)
                fail_errno(w, n < 0 ? (int) n : -EBADMSG);
        else {
                turns_step(&w->connection->turns);
                w->sequence = load_le64(bytes + n - MESSAGE_SIZE);
                w->changed = true;
        }
}

static void notice_interrupt(sqlipc_watch *w) {
        if (w->state != WATCH_OPENING || w->n_interrupts == connection_interrupts(w->connection))
                return;
        (void) error_set(&w->error, ERROR_CANCELLED, "The watch was interrupted before it had begun.");
        end(w);
}

/* True if a call is to be sent now. */
static bool is_due(const sqlipc_watch *w) {
        if (w->call || w->changed)
                return false;
        switch (w->state) {
        case WATCH_OPENING:
                return true;
        case WATCH_OPEN:
                return w->fd < 0; /* WaitChange, after the program has taken the last change */
        case WATCH_LOST:
                return now_usec() >= w->retry_at;
        case WATCH_OVER:
        case WATCH_STATE_MAX:
                break;
        }
        return false;
}

static void advance_watch(sqlipc_watch *w) {
        notice_interrupt(w);
        if (is_due(w))
                send_call(w);
}

int table_watch_take(sqlipc_watch *w) {
        if (w->state == WATCH_OPEN && w->fd >= 0 && !w->changed)
                read_pipe(w);
        advance_watch(w);
        if (!w->changed && w->state == WATCH_OVER)
                return connection_fail(w->connection, &w->error);
        if (!w->changed)
                return -EAGAIN;
        w->changed = false;
        advance_watch(w); /* WaitChange */
        tell(w);
        return 1;
}

/* ---- As a member of the connection -------------------------------------------------------------------------------- */

static void advance(Member *member) {
        advance_watch((sqlipc_watch *) member);
}

static void on_connection_closed(Member *member) {
        sqlipc_watch *w = (sqlipc_watch *) member;

        if (w->state != WATCH_OVER)
                end(w);
        w->changed = false;
        (void) error_set_errno(&w->error, -ENOTCONN, "The connection was closed.");
}

static uint64_t deadline(const Member *member) {
        const sqlipc_watch *w = (const sqlipc_watch *) member;

        return w->state == WATCH_LOST && !w->call ? w->retry_at : UINT64_MAX;
}

static const void *descriptor_owner(const Member *member) {
        return member;
}

static bool call_back(Member *member) {
        sqlipc_watch *w = (sqlipc_watch *) member;

        if (!w->on_ready)
                return false;
        w->on_ready(w, w->on_ready_userdata); /* may free it */
        return true;
}

static const MemberOperations member_operations = {
        .advance = advance,
        .close = on_connection_closed,
        .deadline = deadline,
        .descriptor_owner = descriptor_owner,
        .call_back = call_back,
};

/* ---- Beginning and end -------------------------------------------------------------------------------------------- */

/* Copies the array with its strings into one piece of memory. */
static char **copy_tables(const char *const *tables) {
        size_t n = 0, size = 0;
        char **copy, *at;

        for (; tables[n]; n++)
                size += strlen(tables[n]) + 1;
        copy = malloc((n + 1) * sizeof *copy + size);
        if (!copy)
                return NULL;
        at = (char *) (copy + n + 1);
        for (size_t i = 0; i < n; i++) {
                copy[i] = at;
                at = stpcpy(at, tables[i]) + 1;
        }
        copy[n] = NULL;
        return copy;
}

int table_watch_new(sqlipc_watch **ret, sqlipc_connection *c, const WatchSubject *subject) {
        _cleanup_free_ char *path = NULL, *sql = subject->sql ? strdup(subject->sql) : NULL;
        _cleanup_free_ char **tables = subject->tables ? copy_tables(subject->tables) : NULL;
        sqlipc_watch *w;
        int r;

        if ((subject->sql && !sql) || (subject->tables && !tables))
                return -ENOMEM;
        r = call_database_path(subject->database, &path);
        if (r < 0)
                return r;
        w = malloc(sizeof *w);
        if (!w)
                return -ENOMEM;
        *w = (sqlipc_watch) { .member.operations = &member_operations, .connection = sqlipc_connection_ref(c),
                              .path = steal(path), .sql = steal(sql), .tables = steal(tables), .since = subject->since,
                              .n_interrupts = connection_interrupts(c), .fd = -1, .object_fd = OBJECT_FD_INIT,
                              .error = { .sql_offset = -1 } };
        TAILQ_INSERT_TAIL(&c->watches, &w->member, link);
        send_call(w);
        *ret = w;
        return 0;
}

_public_ sqlipc_watch *sqlipc_watch_close(sqlipc_watch *w) {
        if (!w)
                return NULL;
        if (w->state != WATCH_OVER) {
                drop(w);
                move(w, WATCH_OVER);
        }
        TAILQ_REMOVE(&w->connection->watches, &w->member, link);
        object_fd_done(&w->object_fd);
        (void) sqlipc_connection_unref(w->connection);
        free(w->path);
        free(w->sql);
        free(w->tables);
        free(w->owner);
        free(w);
        return NULL;
}

_public_ void sqlipc_watch_closep(sqlipc_watch **watch) {
        (void) sqlipc_watch_close(*watch);
}
