/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One uid that has something here, and the sums over all that its clients hold: quotas are per uid, whatever number of
 * connections it opens. Supervisor.
 *
 * Referenced by each session, run, channel, pipe, group, call that waits and question to polkit of the uid: the last of
 * them may outlive the others.
 */
#ifndef SQLIPC_USER_H
#define SQLIPC_USER_H

#include <glib.h>
#include <sys/types.h>

#include "pacing.h"
#include "pipe-budget.h"
#include "polkit.h"
#include "refusal.h"

typedef struct Manager Manager;

/* Bytes of SQL and parameters that a uid may make us keep, in statements, in runs that wait and in channels that rest. */
#define HELD_SIZE_MAX ((size_t) 32 * 1024 * 1024)

/* Bytes of large rows that a uid may have us join at once, for replies with rows. */
#define JOINED_SIZE_MAX ((size_t) 64 * 1024 * 1024)

/* Bytes that a uid's slow readers may leave with us (unread.h): the default RunsMax= of default pages. */
#define UNREAD_OF_USER_MAX ((size_t) 64 * 1024 * 1024)

typedef struct User {
        Manager *manager; /* not owned */
        unsigned n_ref;
        uid_t uid;
        unsigned n_held_calls; /* held-call.h */
        uint64_t n_statements, n_runs, n_channels, n_workers;
        size_t held_size, joined_size, unread_size;
        PipeAccount pipe_account;
        PolkitAccount polkit_account;
        uint64_t computed_usec; /* when a worker with a lower priority was last seen at work; worker-priority.h */
        GQueue listings;     /* of Listing, by its link */
        GList listings_link; /* in Listings' `users`, while there are any */
        PacingAccount pacing;
        GQueue pipes;  /* of Pipe, by its link; the head is checked next */
        uint64_t n_checks_left; /* of them, which pipe_new() has paid for */
        GQueue groups; /* of Group, by its user_link */
} User;

/* A reference on the user, who is born with the first one. */
User *user_get(Manager *m, uid_t uid);
User *user_ref(User *u);
User *user_unref(User *u);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(User, user_unref)

/* LIMITS_EXCEEDED with a sentence for the user, and a line in the log for who may raise the `limit`. */
int user_refuse(const User *u, const char *limit, Refusal *refusal, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* Adds `size` to what is held. LIMITS_EXCEEDED past HELD_SIZE_MAX. */
int user_hold(User *u, size_t size, Refusal *refusal);
void user_release(User *u, size_t size);

#endif
