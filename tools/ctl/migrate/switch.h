/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The switch: FILE.conf becomes the configuration of the database, in the first directory of the configuration, by one
 * reload. Runs on the old database go on to their end. The file before it is kept as NAME.conf.before-migration.
 */
#ifndef SQLIPC_TOOLS_CTL_MIGRATE_SWITCH_H
#define SQLIPC_TOOLS_CTL_MIGRATE_SWITCH_H

#include "tools/ctl/migrate/publication.h"
#include "tools/ctl/migrate/side.h"

/* A transaction on the source that keeps out other clients that write. It has a connection of its own, because everything
 * that a connection runs belongs to its transaction. All zeros: none. */
typedef struct SwitchLock {
        Side side;
        sqlipc_transaction *transaction; /* owned, as the connection of `side` */
} SwitchLock;

/** Begins it, unless it is open. Does nothing if the source is published read-only. Returns 0, or a negative error, which
 * has been printed. The service ends it after TransactionTimeoutSec=, or if it is idle and others wait to write. */
int switch_lock(Context *c, const Side *source, SwitchLock *lock);
/** Lets the service know that the lock is still needed. False: it is over. */
bool switch_lock_keep(const SwitchLock *lock);
void switch_unlock(SwitchLock *lock);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SwitchLock, switch_unlock)

/** True if FILE.conf is the database's configuration already, perhaps without the reload. */
bool switch_is_done(Context *c, const char *database, const Publication *target);

/** Checks, before the long work, if the switch is possible. Returns 0, or a negative error, which has been printed. */
int switch_check(Context *c, const char *database);

/** Switches if the change sequence of the source is still `sequence`, with the lock. Returns 1: done; 0: the source has
 * changed; or a negative error, which has been printed. */
int switch_run(Context *c, const Side *source, const Side *target, uint64_t sequence, SwitchLock *lock,
               Publication *publication);

/** The last part of it: removes the state from the target, and the temporary publication; then reloads. */
int switch_finish(Context *c, const Side *target, Publication *publication);

#endif
