/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of users and groups -> ids, without waiting for them. Supervisor.
 *
 * NSS may ask a directory on the network and take its time, so a child of this same program (`sqlipcd --resolve`) does it:
 * the question is its standard input, the answer comes through a pipe that the loop watches. One that takes longer than
 * RESOLVE_USEC is killed, and then nobody has answered.
 */
#ifndef SQLIPC_RESOLVE_H
#define SQLIPC_RESOLVE_H

#include <systemd/sd-event.h>

#define RESOLVE_USEC UINT64_C(10000000)

typedef struct Resolve Resolve;

/* `answer` is borrowed; NULL: there is none, which was logged. May free the Resolve. */
typedef void (*ResolveHandler)(const char *answer, void *userdata);

/* Starts the child for `question` (configuration-names.h). The handler is called once, from the loop. */
int resolve_new(sd_event *event, const char *question, ResolveHandler handler, void *userdata, Resolve **ret);

/* Ends the child, without waiting for its end. */
Resolve *resolve_free(Resolve *r);

/* The child's side: question on standard input, answer on standard output. Returns the exit code. */
int resolve_serve(void);

#endif
