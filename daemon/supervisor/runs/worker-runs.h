/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The runs of a worker. Supervisor. */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_WORKER_RUNS_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_WORKER_RUNS_H

#include "daemon/supervisor/workers/worker.h"

typedef struct Run Run;

/* worker_runs_add(): the worker has the run from now on. worker_runs_remove(): it no longer has it. */
void worker_runs_add(Worker *w, Run *run);
void worker_runs_remove(Worker *w, Run *run);

/* The number of runs that want a CPU. */
unsigned worker_runs_n_runnable(const Worker *w);

/* The number of these that another worker could have or could have had: they are not known to write, and belong to no
 * transaction that takes turns to write. They would keep such a transaction waiting. */
unsigned worker_runs_n_parallel(const Worker *w);

/* The worker is dead: ends the runs that it took and did not finish. `was_told`: it was told to end before. Then a job that
 * it has not begun, and of which it has written nothing, goes back to the group. */
void worker_runs_lose(Worker *w, bool was_told);

/* The worker is dead. `ended_well`: it was told to end, exited with status 0, and sent no invalid message.
 *
 * A worker reports the end of a run before it writes the last byte. If that report was its last message and the worker did
 * not exit regularly, or if it sent an invalid message, the byte may be missing. Then the pipe is broken, so that a reader
 * that waits for the byte finds the end of the file. */
void worker_runs_break_pipes(const Worker *w, bool ended_well);

/* Handles a message about a run. -EBADMSG: the worker may not send this now. */
int worker_runs_dispatch(Worker *w, const Message *m);

#endif
