/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One uid whose clients hold something, and the sums over all of it: quotas are per uid, no matter how many connections it
 * opens. Supervisor.
 *
 * Each session, run, channel, watch, pipe, group, waiting call and polkit question of the uid has a reference, and so have
 * the unread bytes of a stream (unread.h), because any of them may outlive the others.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BASE_USER_H
#define SQLIPC_DAEMON_SUPERVISOR_BASE_USER_H

#include <glib.h>
#include <sys/types.h>

#include "daemon/protocol/protocol.h"
#include "daemon/supervisor/base/pipe-budget.h"
#include "daemon/supervisor/base/refusal.h"

typedef struct Context Context;

/* Bytes of SQL and parameters that the service keeps for a uid: in statements, in runs that wait and in channels that
 * rest. */
#define HELD_SIZE_MAX ((size_t) 32 * 1024 * 1024)

/* Bytes of large rows that are joined for a uid at a time, for replies with rows. */
#define JOINED_SIZE_MAX ((size_t) 64 * 1024 * 1024)

/* Bytes that the service keeps for a uid's slow readers (unread.h): enough for the default RunsMax= with default pages. */
#define UNREAD_OF_USER_MAX ((size_t) 64 * 1024 * 1024)

/* Bytes of memory that a uid's channels share with their clients (shared-memory.h): enough for 248 of them, since a
 * channel without memory takes twice as long, and a program may use 200 databases. */
#define MEMORY_OF_USER_MAX ((size_t) 32 * 1024 * 1024)

/* Bytes of SQL and parameters in files of a uid's clients (argument-file.h), for calls that have not begun: as many as one
 * call may have. Their memory is the clients'. */
#define ARGUMENTS_OF_USER_MAX (UINT64_C(2) << 30)

/* How the calls of a user are paced (pacing.h). */
typedef struct PacingAccount {
        uint64_t until_usec; /* when the charge to the user is paid off; 0: no charge */
        GQueue calls;        /* of calls that were put aside */
        GList link;          /* in Pacing's `users`, while `calls` is not empty */
} PacingAccount;

/* The questions to polkit about a user (polkit.h). */
typedef struct PolkitAccount {
        GQueue waiting;         /* of PolkitQuestion without interaction, in order */
        unsigned n_asked, n_interactive; /* questions that were sent, without and with interaction */
        GList link;             /* in Polkit's `waiting`, while `waiting` here is not empty */
} PolkitAccount;

/* The memory in which the user's workers keep the counts of its clients (counts-page.h). */
typedef struct CountsPage {
        int fd;                 /* for workers; valid if there are slots */
        CountsSlot *slots;      /* NULL: not made yet */
        size_t size;
        uint32_t n_used;        /* slot 0 is none */
        GQueue unused;          /* of slots that were used before */
        GHashTable *clients;    /* name of a peer that has a session -> its places; NULL: none had one */
} CountsPage;

/* Accounts belong to the modules that they are named after; this one only keeps them. */
typedef struct User {
        Context *context; /* not owned */
        unsigned n_ref;
        uid_t uid;
        unsigned n_held_calls; /* held-call.h */
        uint64_t n_statements, n_runs, n_channels, n_watches, n_watch_pipes, n_workers;
        uint64_t n_transactions; /* those that may be open at the same time; quota_check_transaction() */
        uint64_t n_pins;         /* connections of clients' own, open or not */
        uint64_t n_writers;      /* transactions that take turns to write, open or not */
        uint64_t n_released_channels; /* besides n_channels: their workers have not closed them yet */
        size_t held_size, joined_size, unread_size, memory_size;
        uint64_t arguments_size;
        PipeAccount pipe_account;
        PolkitAccount polkit_account;
        uint64_t computed_usec; /* when a worker with a lower priority was last seen computing; worker-priority.h */
        uint64_t lost_usec;  /* when a worker last died that was not told to end; 0: none did. placement.h */
        GQueue listings;     /* of Listing, by its link */
        GList listings_link; /* in Listings' `users`, while `listings` is not empty */
        PacingAccount pacing;
        GQueue pipes;  /* of Pipe, by its link; the head is checked next */
        uint64_t n_checks_left; /* checks of these pipes that pipe_new() still allows */
        GQueue groups; /* of Group, by its user_link */
        GQueue idle_statements; /* of Statement, by its idle_link: those that are cached; the head is idle for longest */
        CountsPage counts;
        GQueue cached_channels; /* of Channel, by its cached_link; the head was not used for longest */
} User;

/* Returns a reference to the user, which is created if there is none. */
User *user_get(Context *context, uid_t uid);
User *user_ref(User *u);
User *user_unref(User *u);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(User, user_unref)

/* Refuses as refuse_for_now(), with a sentence for the user, and logs a line for the administrator. `limit` names the limit,
 * usually a key of the configuration that the administrator can raise. */
int user_refuse(const User *u, const char *limit, Refusal *refusal, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* user_hold(): adds `size` bytes to held_size. LIMITS_EXCEEDED past HELD_SIZE_MAX. user_release(): subtracts them again. */
int user_hold(User *u, size_t size, Refusal *refusal);
void user_release(User *u, size_t size);

/* The same for the size of a file, and ARGUMENTS_OF_USER_MAX. */
int user_hold_file(User *u, uint64_t size, Refusal *refusal);
void user_release_file(User *u, uint64_t size);

#endif
