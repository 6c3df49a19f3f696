/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The counts of clients (SQLite's last_insert_rowid(), changes() and total_changes()): one place for a peer and a database
 * file, in memory that the workers of the user share. Supervisor.
 *
 * A client may use several workers, one after the other, and channels of which the supervisor sees no request. Workers load
 * the counts before a statement, and store them before its client learns its end, so a client that waits for each end finds
 * its own. A place lasts until the peer leaves the bus. Only workers of the same user have the memory.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_WORKERS_COUNTS_PAGE_H
#define SQLIPC_DAEMON_SUPERVISOR_WORKERS_COUNTS_PAGE_H

#include "daemon/supervisor/base/user.h"

/* Returns the descriptor for a worker, borrowed; -errno: the memory could not be made. */
int counts_page_fd(User *u);

/* The place of a peer of the user for the database file with this change slot. Its slot is 0 if there is none,
 * or no memory. */
CountsPlace counts_page_place(User *u, const char *peer, uint32_t change_slot);

/* The session of the peer ends, which has held a reference to the user. */
void counts_page_forget(User *u, const char *peer);

/* True if a peer that is still there has counted something, which would be lost with the service. */
bool counts_page_is_needed(const Context *context);

#endif
