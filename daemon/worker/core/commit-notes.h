/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Notes about the commits of this worker, which the supervisor needs for the clients that watch the database
 * (docs/design/watching.md): the tables, and the state of the file before and after.
 *
 * 1. COMMITTED is sent when the commit is durable, before the end of any of its statements is told.
 * 2. While no client watches, commits are only noted, and told together, as "any table": when clients begin to watch, when
 *    the lease is returned, and when the worker ends.
 * 3. A transaction that has changed nothing is no commit.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_COMMIT_NOTES_H
#define SQLIPC_DAEMON_WORKER_CORE_COMMIT_NOTES_H

#include "daemon/worker/core/job.h"

/* The change sequence of the worker's database now: every change that is not in the database yet will have a larger
 * number. 0: not known. */
uint64_t commit_notes_now(const JobContext *context);

/* A transaction that writes has begun. */
void commit_notes_begin(JobContext *context, EngineConnection *connection);

/* Commits it as engine->commit() does. `written` is what it may have changed; `ret_sequence` the number of the commit. */
bool commit_notes_commit(JobContext *context, EngineConnection *connection, const EngineWritten *written,
                         uint64_t *ret_sequence, SqlError *error);

/* LEASE and WATCH say if clients watch. The answer to WATCH is commit_notes_tell(). */
void commit_notes_set_watched(JobContext *context, bool watched);

/* Sends COMMITTED if there were commits since the last one, or it answers WATCH. */
void commit_notes_tell(JobContext *context, bool answers);

#endif
