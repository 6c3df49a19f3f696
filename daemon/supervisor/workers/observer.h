/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Notices commits of other programs to a database file that clients watch (docs/design/watching.md). Supervisor.
 *
 * The supervisor itself touches no file: a worker without a user does that (daemon/worker/core/observing.h). It gets a
 * descriptor of inotify, to which it adds the file, and which the supervisor polls. After a change the worker is asked for
 * the state of the file. After some quiet seconds the worker ends, and the next change starts another one. So a quiet file
 * needs no process.
 *
 * 1. Own commits are told by inotify, too. While they follow each other, the observer is not asked: the worker that writes
 *    notices others when it begins its next transaction. The observer is asked when they pause.
 * 2. While a writer is at work, its commit is not visible yet, so the observer is asked again soon.
 * 3. If inotify cannot be used, the observer is asked each second, and does not end.
 * 4. A process that fails, or does not answer, is one that may have missed a change: watchers are told. The next one is
 *    started after a pause, which grows while they fail. Until then each event of inotify counts as a change.
 * 5. All observers together have 16 processes. While one waits for a place, each of the others ends after its answer.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_WORKERS_OBSERVER_H
#define SQLIPC_DAEMON_SUPERVISOR_WORKERS_OBSERVER_H

#include <stdbool.h>

typedef struct Changes Changes;
typedef struct ChangeStock ChangeStock;
typedef struct Observer Observer;

/* Begins to observe, and asks for the state of the file. -errno. */
int observer_new(Changes *c, Observer **ret);

/* Stops. NULL is allowed. Returns NULL; the object is freed when its process has ended. */
Observer *observer_free(Observer *o);

/* True if inotify tells of changes. */
bool observer_is_notified(const Observer *o);

/* The service ends: kills what is left of them. */
void observers_end(ChangeStock *s);

#endif
