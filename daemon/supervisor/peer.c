/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The identity behind a bus name. Supervisor. */
#include <errno.h>
#include <string.h>

#include "daemon/supervisor/bus-error.h"
#include "daemon/supervisor/log.h"
#include "daemon/supervisor/manager.h"
#include "daemon/supervisor/pacing.h"
#include "daemon/supervisor/peer.h"
#include "daemon/supervisor/policy.h"
#include "daemon/supervisor/sd-autoptr.h"
#include "daemon/supervisor/session.h"

void peer_free(void *peer) {
        Peer *p = peer;

        policy_forget_peer(p);
        pacing_forget(p);
        g_hash_table_unref(p->answers);
        g_free(p->name);
        g_free(p->gids);
        g_free(p);
}

Peer *peer_of(const Manager *m, sd_bus_message *message) {
        const char *sender = sd_bus_message_get_sender(message);

        return sender ? g_hash_table_lookup(m->peers, sender) : NULL;
}

bool peer_is_administrator(const Manager *m, const Peer *p) {
        return p->uid == 0 || p->uid == m->uid;
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

static int ask_driver(Manager *m, const char *name, Peer *p) {
        g_autoptr(sd_bus_message) call = NULL, reply = NULL;
        int r = sd_bus_message_new_method_call(m->bus, &call, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                               "org.freedesktop.DBus", "GetConnectionCredentials");

        if (r < 0)
                return r;
        r = sd_bus_message_append(call, "s", name);
        if (r < 0)
                return r;
        r = sd_bus_call(m->bus, call, PEER_CREDENTIALS_USEC, NULL, &reply);
        if (r < 0)
                return r;
        return parse_credentials(reply, p) < 0 ? -EBADMSG : 0; /* sd-bus's own errno could mean "the peer left" */
}

/* While ask_driver() waits, sd-bus reads messages that arrive before the reply. Its own timer dispatches them, but that
 * timer is set anew in each turn of the loop. So an event source that always has something to do, such as a worker that
 * sends without end, would come before it each time. */
void peer_serve_read_ahead(Manager *m) {
        uint64_t n_queued = 0;

        if (sd_bus_get_n_queued_read(m->bus, &n_queued) >= 0 && n_queued > 0)
                (void) sd_event_source_set_enabled(m->read_ahead, SD_EVENT_ONESHOT); /* if that fails: dispatched later */
}

static int on_read_ahead(sd_event_source *s, void *userdata) {
        Manager *m = userdata;

        if (sd_bus_process(m->bus, NULL) >= 0) /* if this fails, sd-bus's own sources will meet the failure, too */
                peer_serve_read_ahead(m);
        return 0;
}

/* Runs before each message is dispatched, so its sender is known from here on. */
static int on_message(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Manager *m = userdata;
        const char *sender = sd_bus_message_get_sender(message);

        if (!sd_bus_message_is_method_call(message, NULL, NULL) || !sender)
                return 0;
        if (g_hash_table_contains(m->peers, sender))
                return 0;

        Peer *p = g_new(Peer, 1);
        *p = (Peer) {
                .manager = m,
                .name = g_strdup(sender),
                .uid = (uid_t) -1,
                .answers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        };
        int r = ask_driver(m, sender, p);
        peer_serve_read_ahead(m);
        if (r >= 0) {
                g_hash_table_insert(m->peers, p->name, p);
                return 0;
        }
        peer_free(p);
        /* It has left already, so no reply is needed. */
        if (r == -EBADR || r == -ENXIO || r == -ENOENT || r == -EHOSTUNREACH)
                return 1;
        log_warning_limited("The bus does not say who %s is: %s", sender, g_strerror(-r));
        return bus_error_reply(message, &(Failure) { .error = ERROR_ACCESS_DENIED, .sql_offset = -1,
                                                     .message = "The bus did not say who you are; try again." }, false);
}

static int on_name_vanished(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Manager *m = userdata;
        const char *name;
        int r;

        /* Any peer may send us a signal with this content, and sd-bus lets it pass: it compares the sender of a match only
         * if that is a unique name. */
        if (g_strcmp0(sd_bus_message_get_sender(message), "org.freedesktop.DBus") != 0)
                return 0;
        r = sd_bus_message_read(message, "s", &name);
        if (r < 0)
                return r;
        (void) session_close(g_hash_table_lookup(m->sessions, name), ERROR_CANCELLED, "The client left the bus.");
        g_hash_table_remove(m->peers, name);
        if (strcmp(name, POLKIT_BUS_NAME) == 0)
                policy_forget_answers(m); /* polkit's next instance may have other rules, and does not announce its start */
        return 0;
}

int peer_watch(Manager *m) {
        int r = sd_bus_add_match(m->bus, NULL,
                                 "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
                                 "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg2=''",
                                 on_name_vanished, m);

        if (r < 0)
                return r;
        r = sd_event_add_defer(m->event, &m->read_ahead, on_read_ahead, m);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(m->read_ahead, SD_EVENT_OFF);
        return r < 0 ? r : sd_bus_add_filter(m->bus, NULL, on_message, m);
}
