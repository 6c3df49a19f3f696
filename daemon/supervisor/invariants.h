/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What must hold whenever the loop rests, asserted in builds with -Dinvariants=true (the tests'): the registries and the
 * sums over them tell the same story. Supervisor.
 *
 * I4  a run has a worker, or its place in a queue, as its state says; a worker has runs of its own group only
 * I5  what a client holds is in the registry and with its session, under a number below 2^53; each count of a uid and a
 *     database is that of what is there; a method waits for one answer until its run has started, and not longer
 * I6  what is parked has a deadline
 */
#ifndef SQLIPC_INVARIANTS_H
#define SQLIPC_INVARIANTS_H

typedef struct Manager Manager;

/* Has all looked at after each turn of the loop; of very many things, after some of the turns. Nothing in other builds.
 * -errno of sd-event. */
int invariants_watch(Manager *m);

/* The same, now. Aborts with a line on standard error that says what does not hold. */
void invariants_check(const Manager *m);

#endif
