/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The identity behind a bus name. Supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/supervisor/access/peer.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/base/sd-autoptr.h"
#include "daemon/supervisor/calls/bus-error.h"

static void peer_free(Peer *p) {
        const PeerEvents *events = p->context->peer_watch->events;

        if (events->forget)
                events->forget(p);
        g_hash_table_unref(p->answers);
        g_hash_table_unref(p->write_answers);
        g_free(p->name);
        g_free(p->gids);
        g_free(p);
}

/* Does nothing for a name that is no peer's. */
static void forget(Context *context, const char *name) {
        Peer *p = g_hash_table_lookup(context->peers, name);

        if (!p)
                return;
        g_hash_table_remove(context->peers, name);
        peer_free(p);
}

void peer_forget_all(Context *context) {
        GHashTableIter i;
        void *name;

        for (;;) {
                g_hash_table_iter_init(&i, context->peers);
                if (!g_hash_table_iter_next(&i, &name, NULL))
                        return;
                forget(context, name);
        }
}

Peer *peer_of(const Context *context, sd_bus_message *message) {
        const char *sender = sd_bus_message_get_sender(message);

        return sender ? g_hash_table_lookup(context->peers, sender) : NULL;
}

bool peer_is_administrator(const Context *context, const Peer *p) {
        return p->uid == 0 || p->uid == context->uid;
}

/* libsystemd 252 does not know UnixGroupIDs, so the reply is parsed here. */
static int parse_credential(sd_bus_message *reply, Peer *p, bool *have_uid) {
        const char *key;
        int r = sd_bus_message_read_basic(reply, 's', &key);

        if (r < 0)
                return r;
        if (strcmp(key, "UnixUserID") == 0) {
                uint32_t uid;
                r = sd_bus_message_read(reply, "v", "u", &uid);
                p->uid = uid;
                *have_uid = true;
                return r;
        }
        if (strcmp(key, "ProcessID") == 0) {
                uint32_t pid;
                r = sd_bus_message_read(reply, "v", "u", &pid);
                p->pid = r < 0 ? 0 : (pid_t) pid;
                return r;
        }
        if (strcmp(key, "UnixGroupIDs") != 0)
                return sd_bus_message_skip(reply, "v");

        const void *gids;
        size_t size;
        r = sd_bus_message_enter_container(reply, 'v', "au");
        if (r < 0)
                return r;
        r = sd_bus_message_read_array(reply, 'u', &gids, &size);
        if (r < 0)
                return r;
        g_free(p->gids);
        p->gids = g_memdup2(gids, size);
        p->n_gids = size / sizeof(gid_t);
        return sd_bus_message_exit_container(reply);
}

static int parse_credentials(sd_bus_message *reply, Peer *p) {
        bool have_uid = false;
        int r = sd_bus_message_enter_container(reply, 'a', "{sv}");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(reply, 'e', "sv")) > 0) {
                r = parse_credential(reply, p, &have_uid);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(reply);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : have_uid ? 0 : -ENODATA;
}

/* Newer buses send the descriptor of the process along. If there is no place for it, sd-bus fails with the reply half read,
 * and gives up the bus. */
static int check_for_place(Context *context) {
        int fd = fcntl(sd_bus_get_fd(context->bus), F_DUPFD_CLOEXEC, 3);

        if (fd < 0)
                return -errno;
        close(fd);
        return 0;
}

static int ask_driver(Context *context, const char *name, Peer *p) {
        g_autoptr(sd_bus_message) call = NULL, reply = NULL;
        int r = check_for_place(context);

        if (r < 0)
                return r;
        r = sd_bus_message_new_method_call(context->bus, &call, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                           "org.freedesktop.DBus", "GetConnectionCredentials");
        if (r < 0)
                return r;
        r = sd_bus_message_append(call, "s", name);
        if (r < 0)
                return r;
        r = sd_bus_call(context->bus, call, PEER_CREDENTIALS_USEC, NULL, &reply);
        if (r < 0)
                return r;
        return parse_credentials(reply, p) < 0 ? -EBADMSG : 0; /* sd-bus's own errno could mean "the peer left" */
}

/* While ask_driver() waits, sd-bus reads messages that arrive before the reply. Its own timer dispatches them, but that
 * timer is set anew in each turn of the loop. So an event source that always has something to do, such as a worker that
 * sends without end, would come before it each time. */
void peer_serve_read_ahead(Context *context) {
        uint64_t n_queued = 0;

        if (sd_bus_get_n_queued_read(context->bus, &n_queued) >= 0 && n_queued > 0)
                /* if this fails, they are dispatched later */
                (void) sd_event_source_set_enabled(context->peer_watch->read_ahead, SD_EVENT_ONESHOT);
}

static int on_read_ahead(sd_event_source *s, void *userdata) {
        Context *context = userdata;

        if (sd_bus_process(context->bus, NULL) >= 0) /* if this fails, sd-bus's own sources will meet the failure, too */
                peer_serve_read_ahead(context);
        return 0;
}

/* Runs before each message is dispatched, so its sender is known from here on. */
static int on_message(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Context *context = userdata;
        const char *sender = sd_bus_message_get_sender(message);

        if (!sd_bus_message_is_method_call(message, NULL, NULL) || !sender)
                return 0;
        if (g_hash_table_contains(context->peers, sender))
                return 0;

        Peer *p = g_new(Peer, 1);
        *p = (Peer) {
                .context = context,
                .name = g_strdup(sender),
                .uid = (uid_t) -1,
                .answers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                .write_answers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        };
        int r = ask_driver(context, sender, p);
        peer_serve_read_ahead(context);
        if (r >= 0) {
                g_hash_table_insert(context->peers, p->name, p);
                return 0;
        }
        peer_free(p);
        /* It has left already, so no reply is needed. */
        if (r == -EBADR || r == -ENXIO || r == -ENOENT || r == -EHOSTUNREACH)
                return 1;
        log_warning_limited("Cannot ask the bus who %s is: %s", sender, g_strerror(-r));
        g_auto(Refusal) refusal = REFUSAL_INIT;
        if (r != -EMFILE && r != -ENFILE)
                (void) refuse(&refusal, ERROR_ACCESS_DENIED, "The bus did not say who you are; try again.");
        return bus_error_reply_refusal(message, r, &refusal);
}

static int on_name_vanished(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Context *context = userdata;
        const char *name;
        int r;

        /* Any peer may send us a signal with this content, and sd-bus lets it pass: it compares the sender of a match only
         * if that is a unique name. */
        if (g_strcmp0(sd_bus_message_get_sender(message), "org.freedesktop.DBus") != 0)
                return 0;
        r = sd_bus_message_read(message, "s", &name);
        if (r < 0)
                return r;
        const PeerEvents *events = context->peer_watch->events;
        if (events->leaving)
                events->leaving(context, name);
        forget(context, name);
        if (events->left)
                events->left(context, name);
        return 0;
}

int peer_watch(Context *context, const PeerEvents *events) {
        context->peer_watch->events = events;
        int r = sd_bus_add_match(context->bus, NULL,
                                 "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
                                 "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg2=''",
                                 on_name_vanished, context);

        if (r < 0)
                return r;
        r = sd_event_add_defer(context->event, &context->peer_watch->read_ahead, on_read_ahead, context);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(context->peer_watch->read_ahead, SD_EVENT_OFF);
        return r < 0 ? r : sd_bus_add_filter(context->bus, NULL, on_message, context);
}
