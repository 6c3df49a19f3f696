/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The transactions that a new reader of a server sees, by pg_current_snapshot(): "xmin:xmax:xip". Pure. All
 * transactions before xmax have ended, except those in the list; none from xmax on has. So each transaction that ends
 * changes the snapshot, also one that is rolled back, which only costs a needless notice.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_SNAPSHOT_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_SNAPSHOT_H

#include "daemon/protocol/file-state.h"

/* As file_state_same() compares it. UNKNOWN: the text is not valid. */
FileState pg_snapshot_state(const char *snapshot);

/* True if, between two snapshots, no transaction has ended except one that took `n_own` numbers, at least: its own, and
 * one for each savepoint that wrote. The numbers of savepoints of others that are still under way are not in the list, so
 * the answer may be false without need. */
bool pg_snapshot_only_own(const char *before, const char *after, uint64_t n_own);

#endif
