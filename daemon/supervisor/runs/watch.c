/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A client's watch. Supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "daemon/configuration/configuration-database.h"
#include "daemon/supervisor/access/policy.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/base/quota.h"
#include "daemon/supervisor/calls/bus-error.h"
#include "daemon/supervisor/calls/reply.h"
#include "daemon/supervisor/calls/waiting-call.h"
#include "daemon/supervisor/runs/watch-poll.h"
#include "daemon/supervisor/runs/watch.h"

#define PIPE_SIZE 4096 /* a page, which holds one number */

static void on_ready(ChangeListener *l);
static void on_change(ChangeListener *l, uint64_t sequence);

static Watch *watch_of(ChangeListener *l) {
        return (Watch *) ((char *) l - offsetof(Watch, listener));
}

/* ---- Creation and end ---- */

static Watch *watch_free(Watch *w) {
        w->timer = sd_event_source_disable_unref(w->timer);
        changes_remove(&w->listener);
        if (w->read_fd >= 0)
                close(w->read_fd);
        if (w->write_fd >= 0) {
                watch_poll_remove(w->context->watch_poll, w->write_fd);
                close(w->write_fd);
                quota_count_watch_pipe(w->user, -1);
        }
        (void) sd_bus_message_unref(w->call);
        g_strfreev(w->names);
        g_queue_unlink(&w->session->watches, &w->session_link);
        g_hash_table_remove(w->context->watches, &w->number);
        quota_count_watch(w->user, w->database, -1);
        user_release(w->user, w->held_size);
        (void) database_unref(w->database);
        (void) user_unref(w->user);
        g_free(w);
        return NULL;
}

static void fail(Watch *w, ErrorNumber error, const char *sentence) {
        if (w->call)
                (void) bus_error_reply(w->call, &(Failure) { .error = error, .sql_offset = -1, .message = sentence },
                                       w->error_details);
        (void) watch_free(w);
}

void watch_end(Watch *w, ErrorNumber error, const char *sentence) {
        fail(w, error, sentence);
}

/* The client's end is as pipe(2) makes it; ours does not block. */
static int open_pipe(Watch *w) {
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        w->read_fd = fds[0];
        w->write_fd = fds[1];
        quota_count_watch_pipe(w->user, 1);
        if (fcntl(w->write_fd, F_SETFL, O_WRONLY | O_NONBLOCK) < 0)
                return -errno;
        if (fcntl(w->write_fd, F_SETPIPE_SZ, PIPE_SIZE) < 0) /* in a larger one there would always be room, so no edge */
                return -errno;
        return watch_poll_add(w->context->watch_poll, w->write_fd, w->number);
}

static int on_timeout(sd_event_source *s, uint64_t usec, void *userdata) {
        fail(userdata, ERROR_TIMED_OUT, "Nothing has changed within timeout-usec.");
        return 0;
}

static int start_timer(Watch *w) {
        if (w->spec.until_usec == UINT64_MAX)
                return 0;
        return sd_event_add_time(w->context->event, &w->timer, CLOCK_MONOTONIC, w->spec.until_usec, 0, on_timeout, w);
}

static size_t size_of(char **names) {
        size_t size = 0;

        for (; names && *names; names++)
                size += strlen(*names) + sizeof(ChangeEntry) + sizeof(char *);
        return size;
}

static Watch *make(Session *s, Database *d, const WatchSpec *spec, char **names, size_t held_size) {
        Watch *w = g_new(Watch, 1);

        *w = (Watch) {
                .context = s->context,
                .user = user_ref(s->user),
                .session = s,
                .database = database_ref(d),
                .number = context_next_number(s->context),
                .spec = *spec,
                .listener = { .on_ready = on_ready, .on_change = on_change },
                .names = names,
                .held_size = held_size,
                .read_fd = -1,
                .write_fd = -1,
                .session_link.data = w,
        };
        quota_count_watch(w->user, w->database, 1);
        g_queue_push_tail_link(&s->watches, &w->session_link);
        g_hash_table_insert(s->context->watches, &w->number, w);
        return w;
}

int watch_new(Session *s, Database *d, const WatchSpec *spec, char **tables, char **names, sd_bus_message *call,
              bool error_details, Refusal *refusal) {
        size_t size = size_of(tables) + size_of(names);
        int r = quota_check_watch(s->user, d, !spec->waits, refusal);

        if (r >= 0)
                r = user_hold(s->user, size, refusal);
        if (r < 0) {
                g_strfreev(tables);
                g_strfreev(names);
                return r;
        }
        Watch *w = make(s, d, spec, names, size);
        w->error_details = error_details;
        r = spec->waits ? start_timer(w) : open_pipe(w);
        if (r < 0) {
                g_strfreev(tables);
                (void) watch_free(w);
                return r == -EMFILE || r == -ENFILE
                               ? refuse(refusal, ERROR_LIMITS_EXCEEDED,
                                        "The service has no descriptor left for your watch; try again later.")
                               : r;
        }
        r = changes_add(changes_of_database(s->context, d->config), &w->listener, tables,
                        spec->n_schemas);
        if (r < 0) {
                (void) watch_free(w);
                return r;
        }
        w->call = sd_bus_message_ref(call);
        return 0;
}

int watch_find(Context *context, const Peer *p, const Database *d, uint64_t number, Watch **ret, Refusal *refusal) {
        Watch *w = g_hash_table_lookup(context->watches, &number);

        if (!w || w->spec.waits || w->call || strcmp(w->session->name, p->name) != 0 ||
            strcmp(database_name(w->database), database_name(d)) != 0)
                return refuse(refusal, ERROR_UNKNOWN_RUN,
                              "You have no watch %" PRIu64 " on this database; it may have ended.", number);
        *ret = w;
        return 0;
}

/* ---- Answers ---- */

static int append_info(Reply *reply, const Watch *w) {
        int r = sd_bus_message_open_container(reply->message, 'a', "{sv}");

        if (r >= 0)
                r = sd_bus_message_append(reply->message, "{sv}{sv}", "sequence", "t", w->told, "foreign", "s",
                                          changes_foreign(w->listener.changes));
        if (r >= 0)
                r = reply_append_strings(reply, "tables", w->names);
        return r < 0 ? r : sd_bus_message_close_container(reply->message);
}

static int reply_watch(Watch *w) {
        g_auto(Reply) reply = REPLY_INIT;
        int r = reply_new(w->call, &reply);

        if (r >= 0)
                r = sd_bus_message_append(reply.message, "th", w->number, w->read_fd);
        if (r >= 0)
                r = append_info(&reply, w);
        if (r >= 0)
                r = reply_send(&reply);
        close(w->read_fd); /* the message has its own copy */
        w->read_fd = -1;
        return r;
}

static void refuse_without_reply(Watch *w, int r) {
        log_warning_limited("A reply could not be sent: %s", strerror(-r));
        if (r == -EMFILE || r == -ENFILE)
                fail(w, ERROR_LIMITS_EXCEEDED, "The service has no descriptor left for your watch; try again later.");
        else
                fail(w, r == -ENOMEM ? ERROR_OUT_OF_MEMORY : ERROR_INTERNAL, "The service could not reply.");
}

/* The present state is known, so no change after this is missed. */
static void on_ready(ChangeListener *l) {
        Watch *w = watch_of(l);
        uint64_t since = w->spec.since;

        w->told = l->changes->sequence;
        if (!w->spec.waits) {
                int r = reply_watch(w);
                if (r < 0) {
                        refuse_without_reply(w, r);
                        return;
                }
                w->call = sd_bus_message_unref(w->call);
        }
        changes_arm(l, since == WATCH_SINCE_NOW ? w->told : since);
}

/* ---- Changes ---- */

/* The pipe is empty, so there is room; an error means that the client has closed its end. */
static void write_number(Watch *w) {
        uint8_t bytes[8];

        store_le64(bytes, w->told);
        w->unread = true;
        if (write(w->write_fd, bytes, sizeof bytes) != sizeof bytes)
                (void) watch_free(w);
}

static void answer(Watch *w) {
        int r = sd_bus_reply_method_return(w->call, "ta{sv}", w->told, 0);

        if (r < 0)
                refuse_without_reply(w, r);
        else
                (void) watch_free(w);
}

static void on_change(ChangeListener *l, uint64_t sequence) {
        Watch *w = watch_of(l);

        w->told = sequence;
        if (w->spec.waits)
                answer(w);
        else
                write_number(w);
}

/* There is room again when the client has read the number. The pipe has one page, in which nothing else fits before. */
void watch_on_pipe(Context *context, uint64_t number, bool closed) {
        Watch *w = g_hash_table_lookup(context->watches, &number);

        if (w && closed)
                fail(w, ERROR_PIPE_CLOSED, "You closed your end.");
        else if (w && w->unread) {
                w->unread = false;
                changes_arm(&w->listener, w->told);
        }
}

/* ---- Rights ---- */

static bool is_still_allowed(const Watch *w) {
        const Database *now = database_find(w->context, database_name(w->database));
        const Peer *p = g_hash_table_lookup(w->context->peers, w->session->name);

        return p && now && database_config_shows_same(now->config, w->database->config) &&
                policy_verdict(w->context, p, now) == POLICY_YES;
}

void watches_on_rights_changed(Context *context) {
        g_autoptr(GPtrArray) found = g_ptr_array_new();
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, context->watches);
        while (g_hash_table_iter_next(&i, NULL, &value))
                if (!is_still_allowed(value))
                        g_ptr_array_add(found, value);
        for (guint k = 0; k < found->len; k++)
                fail(found->pdata[k], ERROR_BUSY, "The rights to the database changed while the call waited: call again.");
}
