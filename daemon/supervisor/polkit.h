/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Questions to polkit: may this client read that database, or manage the service? Supervisor.
 *
 * The action org.sqlipc1.read comes with the database's name as the detail "database", so that rules decide for each. A
 * question without a database is about org.sqlipc1.manage. The subject is the client's bus name, which polkit looks up
 * itself. A question has no deadline (a user may have to find a password) and is taken back when the client vanishes. Its
 * answer goes to policy_on_answer().
 *
 * dbus-daemon lets a connection wait for 128 replies. A question without interaction ends soon: POLKIT_PLAIN_MAX of them
 * are on their way, POLKIT_PLAIN_UID_MAX for one uid. The others wait, and uids take turns, so that one which asks for long
 * lists again and again holds nobody else up. One with interaction ends when a user likes: a uid may have
 * POLKIT_INTERACTIVE_UID_MAX of them and all together POLKIT_INTERACTIVE_MAX, and what is more is refused.
 */
#ifndef SQLIPC_POLKIT_H
#define SQLIPC_POLKIT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "peer.h"
#include "refusal.h"

#define POLKIT_BUS_NAME "org.freedesktop.PolicyKit1"
#define POLKIT_ACTION_READ "org.sqlipc1.read"
#define POLKIT_ACTION_MANAGE "org.sqlipc1.manage"

#define POLKIT_PLAIN_MAX 64u
#define POLKIT_PLAIN_UID_MAX 16u
#define POLKIT_INTERACTIVE_MAX 48u
#define POLKIT_INTERACTIVE_UID_MAX 4u

typedef enum PolkitAnswer {
        POLKIT_ABSENT,    /* none came, or none that can be read */
        POLKIT_NO,
        POLKIT_CHALLENGE, /* yes, once a user has authenticated */
        POLKIT_YES,
} PolkitAnswer;

/* Of the Manager; all zero at first. The questions belong to their peers. */
typedef struct Polkit {
        GQueue waiting;         /* of PolkitAccount that has questions waiting: the next one to be asked for comes first */
        unsigned n_asked, n_interactive;
        uint64_t n_questions;   /* since the start: the next one's cancellation id */
        uint64_t n_changes;     /* how often polkit's answers were forgotten */
        sd_event_source *retry; /* where a question could not be sent; NULL: all could */
        char *authority;        /* owned: the unique name that the last answer came from; NULL: none came yet */
} Polkit;

/* Of a User; all zero at first. */
typedef struct PolkitAccount {
        GQueue waiting;         /* of PolkitQuestion without interaction, in order */
        unsigned n_asked, n_interactive;
        GList link;             /* in Polkit's `waiting`, while this one's holds any */
} PolkitAccount;

/* What became of a question. */
typedef struct PolkitReply {
        const char *database;   /* NULL: it was about org.sqlipc1.manage */
        PolkitAnswer answer;
        bool interactive;
        bool announce;          /* as of polkit_ask() */
        bool outdated;          /* polkit's answers were forgotten while it was asked: this one holds just now */
} PolkitReply;

/* Asks about `database` (NULL: org.sqlipc1.manage) without interaction, unless that is being asked already. `announce`:
 * handed on, if any of those that asked wanted it. */
void polkit_ask(Manager *m, Peer *p, const char *database, bool announce);

/* The same with interaction. LIMITS_EXCEEDED. */
int polkit_ask_user(Manager *m, Peer *p, const char *database, Refusal *refusal);

/* Takes back all that was asked about the peer. */
void polkit_forget(Peer *p);

/* Nothing is asked any more. */
void polkit_stop(Manager *m);

/* Starts to hear of polkit's Changed. */
int polkit_watch(Manager *m);

#endif
