/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Conditions that must hold whenever the loop rests: the tables of objects and the sums over them agree. They are asserted
 * in builds with -Dinvariants=true, as the tests use them. Supervisor.
 *
 * I4  a run has a worker or its position in a queue, as its state says; a worker has only runs of its own group
 * I5  everything that a client holds is in a table of the context and in its session, under a number below 2^53; each count
 *     of a uid and of a database matches the objects that exist; a method waits for one answer until its run has
 *     started, and not longer
 * I6  every parked run has a deadline
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_SERVICE_INVARIANTS_H
#define SQLIPC_DAEMON_SUPERVISOR_SERVICE_INVARIANTS_H

typedef struct Context Context;

/* Checks everything after each turn of the loop; if there are very many objects, after some of the turns. Does nothing in
 * other builds. -errno of sd-event. */
int invariants_watch(Context *context);

/* Checks everything now. Aborts with a line on standard error that names the condition that does not hold. */
void invariants_check(const Context *context);

#endif
