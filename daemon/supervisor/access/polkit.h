/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Asks polkit if a client may read or write a database, or manage the service. Supervisor.
 *
 * The actions org.sqlipc1.read and org.sqlipc1.write have the database's name as their detail "database", so that rules can
 * decide for each database; org.sqlipc1.manage has no details. The subject is the client's bus name, which polkit looks up
 * itself. A question has no deadline (a user may have to find a password), and is cancelled when the client vanishes. Its
 * answer goes to the function that polkit_watch() was given.
 *
 * dbus-daemon lets a connection wait for 128 replies. A question without interaction is answered soon: at most
 * POLKIT_PLAIN_MAX of them are sent at a time, POLKIT_PLAIN_UID_MAX for one uid. The others wait, and uids take turns, so
 * that a uid which keeps asking for long lists does not hold up the others. A question with interaction takes as long as its
 * user likes: a uid may have POLKIT_INTERACTIVE_UID_MAX of them, all uids together POLKIT_INTERACTIVE_MAX, and further ones
 * are refused.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_ACCESS_POLKIT_H
#define SQLIPC_DAEMON_SUPERVISOR_ACCESS_POLKIT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "daemon/supervisor/access/peer.h"
#include "daemon/supervisor/base/refusal.h"

#define POLKIT_BUS_NAME "org.freedesktop.PolicyKit1"
#define POLKIT_ACTION_READ "org.sqlipc1.read"
#define POLKIT_ACTION_WRITE "org.sqlipc1.write"
#define POLKIT_ACTION_MANAGE "org.sqlipc1.manage"

#define POLKIT_PLAIN_MAX 64u
#define POLKIT_PLAIN_UID_MAX 16u
#define POLKIT_INTERACTIVE_MAX 48u
#define POLKIT_INTERACTIVE_UID_MAX 4u

typedef enum PolkitAction {
        POLKIT_READ,
        POLKIT_WRITE,
        POLKIT_MANAGE, /* the only one without a database */
} PolkitAction;

typedef enum PolkitAnswer {
        POLKIT_ABSENT,    /* no answer came, or none that can be read */
        POLKIT_NO,
        POLKIT_CHALLENGE, /* yes, once a user has authenticated */
        POLKIT_YES,
} PolkitAnswer;

/* The result of a question. */
typedef struct PolkitReply {
        PolkitAction action;
        const char *database;   /* NULL: POLKIT_MANAGE */
        PolkitAnswer answer;
        bool interactive;
        bool announce;          /* as given to polkit_ask() */
        bool outdated;          /* the kept answers were forgotten meanwhile: this one is not kept either */
} PolkitReply;

typedef struct PolkitEvents {
        void (*answered)(Peer *p, const PolkitReply *reply);
        void (*changed)(Context *context); /* polkit's answers may have changed */
} PolkitEvents;

/* The state of this module, in the context; starts as all zeros. The questions belong to their peers. */
typedef struct Polkit {
        const PolkitEvents *events;
        GQueue waiting;         /* of PolkitAccount that has questions waiting, in the order in which they are served */
        unsigned n_asked, n_interactive;
        uint64_t n_questions;   /* since the start; used as the next question's cancellation id */
        uint64_t n_changes;     /* how often the kept answers were forgotten */
        sd_event_source *retry; /* set after a question could not be sent; NULL: all could be sent */
        char *authority;        /* owned: the unique name of the sender of the last answer; NULL: no answer came yet */
} Polkit;

/* Asks about `database` (NULL: POLKIT_MANAGE) without interaction, unless the same question waits or was sent. The reply has
 * `announce` if any caller of the same question set it. */
void polkit_ask(Context *context, Peer *p, PolkitAction action, const char *database, bool announce);

/* Like polkit_ask(), but with interaction. LIMITS_EXCEEDED. */
int polkit_ask_user(Context *context, Peer *p, PolkitAction action, const char *database, Refusal *refusal);

/* Cancels all questions about the peer. */
void polkit_forget(Peer *p);

/* polkit's answers may have changed: those to the questions under way are outdated. */
void polkit_outdate_questions(Context *context);

/* The service stops: sends no more questions. */
void polkit_stop(Context *context);

/* Starts to watch for polkit's signal Changed. -errno. */
int polkit_watch(Context *context, const PolkitEvents *events);

#endif
