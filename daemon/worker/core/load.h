/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The rows of a job that the supervisor sent as LOAD: they come from a pipe, as pages (sqlipc-page.h), and the
 * statement runs once for each. The transaction that the job belongs to (transaction.h) calls these functions:
 *
 *      read, until a row or END is there --> begin --> run, read, run, ... --> END      stop at any time
 *
 * 1. The client is not trusted: every byte goes through the page decoder, which bounds sizes and memory.
 * 2. END is the only good end. A pipe that ends before it, as that of a client that was killed, ends the job with an error.
 * 3. No call takes longer than about a millisecond and a few rows. If the pipe is empty, `waits` is set, and the job's task
 *    waits for it.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_LOAD_H
#define SQLIPC_DAEMON_WORKER_CORE_LOAD_H

#include "daemon/worker/core/job.h"
#include "daemon/worker/core/row-source.h"

typedef struct Load {
        int fd;                     /* borrowed: the read end, which is non-blocking */
        bool waits;                 /* the pipe is empty; the task that watches it clears this */
        RowSource source;           /* its decoder is owned */
        EngineStatement *statement; /* owned: on the connection that writes; NULL: not begun */
} Load;

/* `fd` is borrowed until load_done(). */
void load_init(Load *l, int fd, size_t page_size_max, size_t row_size_max);

/* Frees the buffers. load_stop() must have been called if it had begun. All zeros are allowed. */
void load_done(Load *l);

/* Checks the compiled statement of the job: NotAllowed, ParameterCount. */
bool load_check(Job *job);

/* True if a row or END waits, so that load_run() can go on. True after END: load_has_ended(). */
bool load_has_rows(const Load *l);
bool load_has_ended(const Load *l);

/* Reads once, and decodes until a row or END is there. False with job->error. */
bool load_read(Job *job);

/* Compiles the statement on the connection that writes. If the job has not started, its owner hears that it has. False with
 * job->error. */
bool load_begin(Job *job, EngineConnection *connection);

/* Runs the statement for the rows that wait, and for more that it reads, for a moment. False with job->error, which names
 * the row if it is about one. */
bool load_run(Job *job);

/* Releases the statement. */
void load_stop(Job *job);

#endif
