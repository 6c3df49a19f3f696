/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether a worker that does not do as it was told is stuck, or only had no CPU. Supervisor.
 *
 * A worker looks around every few milliseconds of its own time (I7). Where it is silent for a second, it is in a call that
 * nothing interrupts; or the machine has so much else to do that it got a few milliseconds of that second, and to kill it
 * would cost all its runs for nothing. Its CPU time tells which. A worker that is stopped, or waits for a disk, uses none
 * either, so it is not spared for ever.
 */
#ifndef SQLIPC_GRACE_H
#define SQLIPC_GRACE_H

#include <stdbool.h>
#include <stdint.h>

/* What a worker has between an order to end something and SIGKILL. */
#define GRACE_USEC UINT64_C(1000000)

typedef struct Worker Worker;

typedef struct Grace {
        uint64_t cpu_usec;   /* once the worker has used so much in all, it is stuck */
        unsigned n_spared;
} Grace;

/* The worker is told something now, and has `usec` for it. */
void grace_begin(Grace *g, const Worker *w, uint64_t usec);

/* The worker did not get the CPU so far that it would have needed to do as it was told. */
bool grace_is_starved(const Grace *g, const Worker *w);

/* These have passed in vain. True: the worker did not get the CPU that it needed, and has a second more: four times. */
bool grace_goes_on(Grace *g, const Worker *w);

#endif
