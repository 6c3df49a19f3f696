/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turns names of users and groups into ids without blocking the loop. Supervisor.
 *
 * NSS may ask a directory on the network and take its time, so a child of this same program (`sqlipcd --resolve`) does it:
 * the question is its standard input, and the answer comes through a pipe that the loop watches. A child that takes longer
 * than RESOLVE_USEC is killed, and the handler gets no answer.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_SERVICE_RESOLVE_H
#define SQLIPC_DAEMON_SUPERVISOR_SERVICE_RESOLVE_H

#include <systemd/sd-event.h>

#define RESOLVE_USEC UINT64_C(10000000)

typedef struct Resolve Resolve;

/* `answer` is borrowed; NULL: there is no answer, which was logged. May free the Resolve. */
typedef void (*ResolveHandler)(const char *answer, void *userdata);

/* Starts the child for `question` (configuration-names.h). The handler is called once, from the loop.
 * -errno: no child was started, and the handler is not called. */
int resolve_new(sd_event *event, const char *question, ResolveHandler handler, void *userdata, Resolve **ret);

/* Kills the child, without waiting for its end, and calls no handler. NULL is allowed. Returns NULL. */
Resolve *resolve_free(Resolve *r);

/* Runs the child's side: reads the question from standard input, writes the answer to standard output. Returns the exit
 * code. */
int resolve_serve(void);

#endif
